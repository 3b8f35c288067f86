rule data:
    output:
        f"{ROOT}/data/{{dataset}}.npz",
    log:
        f"{ROOT}/logs/data/{{dataset}}.log",
    threads: 1
    resources:
        mem_mb=1500,
        runtime=60,
    params:
        spec=lambda w: plan.spec_data(w.dataset),
        code=plan.code("data"),
    shell:
        "{PYTHON} -m fu.stages.data --spec {params.spec:q} --data-dir {plan.config.data_dir:q}"
        " --output {output} 2> {log}"
