rule partition:
    input:
        data=lambda w: plan.dataset(w.run),
    output:
        f"{ROOT}/{{run}}/partition.npz",
    log:
        f"{ROOT}/logs/{{run}}/partition.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        spec=lambda w: plan.spec("partition", w.run),
        code=lambda w: plan.code("partition", plan.spec("partition", w.run)),
    shell:
        "python -m fu.warm fu.stages.partition --spec {params.spec:q} --data {input.data} --output {output} 2> {log}"
