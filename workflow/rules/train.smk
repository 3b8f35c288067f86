rule train:
    input:
        known("train"),
    output:
        **kept("train"),
    log:
        plan.paths.log("train"),
    priority: 10  # everything else waits for it
    group:
        pack("train")
    conda:
        "../../envs/environment.yaml"
    threads: plan.config.threads
    resources:
        **needs("train"),
    params:
        spec=lambda w: plan.job("train", dict(w)).json,
        code=lambda w: plan.job("train", dict(w)).code,
        candidates=lambda w: plan.job("train", dict(w)).made,
        unless_made=unless_made,
    shell:
        command_line("train")
