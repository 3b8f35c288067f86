rule partition:
    input:
        known("partition"),
    output:
        **kept("partition"),
    log:
        plan.paths.log("partition"),
    group:
        pack("partition")
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **needs("partition"),
    params:
        spec=lambda w: plan.job("partition", dict(w)).json,
        code=lambda w: plan.job("partition", dict(w)).code,
        unless_made=unless_made,
    shell:
        command_line("partition")
