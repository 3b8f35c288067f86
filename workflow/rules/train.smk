rule train:
    input:
        known("train"),
    output:
        **kept("train"),
    log:
        plan.paths.log("train"),
    priority: 10  # everything else waits for it
    conda:
        "../../envs/environment.yaml"
    threads: plan.config.threads
    resources:
        mem_mb=lambda w: plan.job("train", dict(w)).mem_mb,
        runtime=lambda w: plan.job("train", dict(w)).minutes,
        plugins=plan.config.plugins or "",
        device=plan.config.device,
        cache=plan.config.cache or "",
    params:
        spec=lambda w: plan.job("train", dict(w)).json,
        code=lambda w: plan.job("train", dict(w)).code,
        candidates=lambda w: plan.job("train", dict(w)).made,
        unless_made=unless_made,
    shell:
        command_line("train")
