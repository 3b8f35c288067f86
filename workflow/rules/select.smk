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
        mem_mb=lambda w: plan.job("select", dict(w)).mem_mb,
        runtime=lambda w, attempt: cluster.minutes(plan.job("select", dict(w)).minutes, attempt, limit),
        **site.resources(gpu),
        plugins=plan.config.plugins or "",
    params:
        spec=lambda w: plan.job("select", dict(w)).json,
        code=lambda w: plan.job("select", dict(w)).code,
        unless_made=unless_made,
    shell:
        command_line("select")
