# {trial} may start from another trial's unlearned model.
rule recover:
    input:
        known("recover"),
    output:
        **kept("recover"),
    log:
        plan.paths.log("recover"),
    group:
        pack("recover")
    conda:
        "../../envs/environment.yaml"
    threads: plan.config.threads
    resources:
        **needs("recover"),
    params:
        spec=lambda w: plan.job("recover", dict(w)).json,
        code=lambda w: plan.job("recover", dict(w)).code,
        candidates=lambda w: plan.job("recover", dict(w)).made,
        unless_made=unless_made,
    shell:
        command_line("recover")
