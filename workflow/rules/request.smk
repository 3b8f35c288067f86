# Only where something is to be forgotten that the partition does not say already.
rule request:
    input:
        known("request"),
    output:
        **kept("request"),
    log:
        plan.paths.log("request"),
    group:
        pack("request")
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **needs("request"),
    params:
        spec=lambda w: plan.job("request", dict(w)).json,
        code=lambda w: plan.job("request", dict(w)).code,
        unless_made=unless_made,
    shell:
        command_line("request")
