rule publish:
    input:
        results=lambda w: plan.artefact_inputs(w.paper, w.artefact),
        published=lambda w: plan.published(w.paper, w.artefact),
        costs=lambda w: ancient(plan.artefact_costs(w.paper, w.artefact)),
    output:
        report(
            f"{ROOT}/artefacts/{{paper}}/{{artefact}}.png",
            caption="../report/artefact.rst",
            category="{paper}",
        ),
        multiext(
            f"{ROOT}/artefacts/{{paper}}/{{artefact}}", ".csv", ".md", ".pdf", ".json"
        ),
    log:
        f"{ROOT}/logs/artefacts/{{paper}}/{{artefact}}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        spec=lambda w: plan.spec_publish(w.paper, w.artefact),
        code=lambda w: plan.code("publish", plan.spec_publish(w.paper, w.artefact)),
        root=lambda w: ROOT,
        base=lambda w: f"{ROOT}/artefacts/{w.paper}/{w.artefact}",
    shell:
        "python -m fu.warm fu.stages.publish --spec {params.spec:q} --root {params.root} --output {params.base} 2> {log}"
