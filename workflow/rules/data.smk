rule data:
    input:
        known("data"),
    output:
        **kept("data"),
    log:
        plan.paths.log("data"),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **needs("data"),
        data_dir=plan.config.data_dir,
    params:
        spec=lambda w: plan.job("data", dict(w)).json,
        code=lambda w: plan.job("data", dict(w)).code,
        unless_made=unless_made,
    shell:
        command_line("data")
