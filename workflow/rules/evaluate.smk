# {trial} is `original`, or a trial whose unlearned and (after post-training) recovered models are evaluated.
rule evaluate:
    input:
        known("evaluate"),
    output:
        **kept("evaluate"),
    log:
        plan.paths.log("evaluate"),
    conda:
        "../../envs/environment.yaml"
    threads: plan.config.threads
    resources:
        mem_mb=lambda w: plan.job("evaluate", dict(w)).mem_mb,
        runtime=lambda w, attempt: cluster.minutes(plan.job("evaluate", dict(w)).minutes, attempt, limit),
        **site.resources(gpu),
        plugins=plan.config.plugins or "",
        device=plan.config.device,
    params:
        spec=lambda w: plan.job("evaluate", dict(w)).json,
        code=lambda w: plan.job("evaluate", dict(w)).code,
        unless_made=unless_made,
    shell:
        command_line("evaluate")
