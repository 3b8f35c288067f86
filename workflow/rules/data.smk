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
        mem_mb=lambda w: plan.job("data", dict(w)).mem_mb,
        runtime=lambda w, attempt: cluster.minutes(plan.job("data", dict(w)).minutes, attempt, limit),
        **site.resources(gpu),
        plugins=plan.config.plugins or "",
        data_dir=plan.config.data_dir,
    params:
        spec=lambda w: plan.job("data", dict(w)).json,
        code=lambda w: plan.job("data", dict(w)).code,
        unless_made=unless_made,
    shell:
        command_line("data")
