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
        **needs("publish"),
        root=plan.root,
    params:
        spec=lambda w: plan.job("publish", dict(w)).json,
        code=lambda w: plan.job("publish", dict(w)).code,
        unless_made=unless_made,
    shell:
        command_line("publish")
