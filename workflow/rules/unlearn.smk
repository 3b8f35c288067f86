rule unlearn:
    input:
        known("unlearn"),
    output:
        **kept("unlearn"),
    log:
        plan.paths.log("unlearn"),
    conda:
        "../../envs/environment.yaml"
    threads: plan.config.threads
    resources:
        mem_mb=lambda w: plan.job("unlearn", dict(w)).mem_mb,
        runtime=lambda w: plan.job("unlearn", dict(w)).minutes,
        plugins=plan.config.plugins or "",
        device=plan.config.device,
        cache=plan.config.cache or "",
    params:
        spec=lambda w: plan.job("unlearn", dict(w)).json,
        code=lambda w: plan.job("unlearn", dict(w)).code,
        candidates=lambda w: plan.job("unlearn", dict(w)).made,
        unless_made=unless_made,
    shell:
        command_line("unlearn")
