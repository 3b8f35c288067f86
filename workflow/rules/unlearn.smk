rule unlearn:
    input:
        known("unlearn"),
    output:
        **kept("unlearn"),
    log:
        plan.paths.log("unlearn"),
    group:
        pack("unlearn")
    conda:
        "../../envs/environment.yaml"
    threads: plan.config.threads
    resources:
        **needs("unlearn"),
    params:
        spec=lambda w: plan.job("unlearn", dict(w)).json,
        code=lambda w: plan.job("unlearn", dict(w)).code,
        candidates=lambda w: plan.job("unlearn", dict(w)).made,
        unless_made=unless_made,
    shell:
        command_line("unlearn")
