# One trial of a method's grid is chosen over all seeds.
rule select:
    input:
        known("select"),
    output:
        **kept("select"),
    log:
        plan.paths.log("select"),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **needs("select"),
    params:
        spec=lambda w: plan.job("select", dict(w)).json,
        code=lambda w: plan.job("select", dict(w)).code,
        unless_made=unless_made,
    shell:
        command_line("select")
