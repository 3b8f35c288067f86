rule data:
    output:
        archive=f"{ROOT}/data/{{dataset}}.npz",
        source=f"{ROOT}/data/{{dataset}}.source.json",
    log:
        f"{ROOT}/logs/data/{{dataset}}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=60,
        data_dir=plan.config.data_dir,
    params:
        spec=lambda w: plan.spec_data(w.dataset),
        code=lambda w: plan.code("data", plan.spec_data(w.dataset)),
    shell:
        "python -m fu.warm fu.stages.data --spec {params.spec:q} --data-dir {resources.data_dir:q}"
        " --output {output.archive} 2> {log}"
