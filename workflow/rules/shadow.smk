# Shadow models of a scenario, which every evaluation that infers membership shares.
rule shadow:
    input:
        known("shadow"),
    output:
        **kept("shadow"),
    log:
        plan.paths.log("shadow"),
    conda:
        "../../envs/environment.yaml"
    threads: plan.config.threads
    resources:
        mem_mb=lambda w: plan.job("shadow", dict(w)).mem_mb,
        runtime=lambda w, attempt: cluster.minutes(plan.job("shadow", dict(w)).minutes, attempt, limit),
        **site.resources(gpu),
        plugins=plan.config.plugins or "",
        device=plan.config.device,
    params:
        spec=lambda w: plan.job("shadow", dict(w)).json,
        code=lambda w: plan.job("shadow", dict(w)).code,
        unless_made=unless_made,
    shell:
        command_line("shadow")
