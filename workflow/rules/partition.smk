rule partition:
    input:
        known("partition"),
    output:
        **kept("partition"),
    log:
        plan.paths.log("partition"),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=lambda w: plan.job("partition", dict(w)).mem_mb,
        runtime=lambda w, attempt: cluster.minutes(plan.job("partition", dict(w)).minutes, attempt, limit),
        **site.resources(gpu),
        plugins=plan.config.plugins or "",
    params:
        spec=lambda w: plan.job("partition", dict(w)).json,
        code=lambda w: plan.job("partition", dict(w)).code,
        unless_made=unless_made,
    shell:
        command_line("partition")
