# {trial} is `original`, or a trial whose unlearned and (after post-training) recovered models are evaluated.
rule evaluate:
    input:
        known("evaluate"),
    output:
        **kept("evaluate"),
    log:
        plan.paths.log("evaluate"),
    group:
        pack("evaluate")
    conda:
        "../../envs/environment.yaml"
    threads: plan.config.threads
    resources:
        **needs("evaluate"),
    params:
        spec=lambda w: plan.job("evaluate", dict(w)).json,
        code=lambda w: plan.job("evaluate", dict(w)).code,
        unless_made=unless_made,
    shell:
        command_line("evaluate")
