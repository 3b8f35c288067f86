rule publish:
    input:
        results=lambda w: plan.job("publish", dict(w)).inputs["results"],
        published=lambda w: plan.job("publish", dict(w)).inputs["published"],
        costs=lambda w: ancient(plan.job("publish", dict(w)).inputs["costs"]),
    output:
        **{
            name: path
            for name, path in plan.paths.outputs("publish").items()
            if name != "png"
        },
        png=report(
            plan.paths.outputs("publish")["png"],
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
        runtime=lambda w: plan.job("publish", dict(w)).minutes,
        plugins=plan.config.plugins or "",
        root=plan.root,
    params:
        spec=lambda w: plan.job("publish", dict(w)).json,
        code=lambda w: plan.job("publish", dict(w)).code,
    shell:
        command_line("publish")
