rule publish:
    input:
        known("publish"),
    output:
        **{name: path for name, path in kept("publish").items() if name != "png"},
        png=report(
            kept("publish")["png"],
            caption="../report/artefact.rst",
            category="{paper}",
        ),
    log:
        plan.paths.log("publish"),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=lambda w: plan.job("publish", dict(w)).mem_mb,
        runtime=lambda w, attempt: cluster.minutes(plan.job("publish", dict(w)).minutes, attempt, limit),
        **site.resources(gpu),
        plugins=plan.config.plugins or "",
        root=plan.root,
    params:
        spec=lambda w: plan.job("publish", dict(w)).json,
        code=lambda w: plan.job("publish", dict(w)).code,
        unless_made=unless_made,
    shell:
        command_line("publish")
