# {trial} may start from another trial's unlearned model.
rule recover:
    input:
        known("recover"),
    output:
        **kept("recover"),
    log:
        plan.paths.log("recover"),
    conda:
        "../../envs/environment.yaml"
    threads: plan.config.threads
    resources:
        mem_mb=lambda w: plan.job("recover", dict(w)).mem_mb,
        runtime=lambda w: plan.job("recover", dict(w)).minutes,
        plugins=plan.config.plugins or "",
        device=plan.config.device,
        cache=plan.config.cache or "",
    params:
        spec=lambda w: plan.job("recover", dict(w)).json,
        code=lambda w: plan.job("recover", dict(w)).code,
        candidates=lambda w: plan.job("recover", dict(w)).made,
        unless_made=unless_made,
    shell:
        command_line("recover")
