# {scope} is paper/scenario: one point of a method's grid is chosen over all seeds.
rule select:
    input:
        lambda w: plan.candidates(w.scope, w.method),
    output:
        f"{ROOT}/{{scope}}/{{method}}.selected.json",
    log:
        f"{ROOT}/logs/{{scope}}/{{method}}.selected.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=200,
        runtime=10,
    params:
        spec=lambda w: plan.spec_select(w.scope, w.method),
        code=lambda w: plan.code("select", plan.spec_select(w.scope, w.method)),
    shell:
        "python -m fu.stages.select --spec {params.spec:q} --evaluations {input} --output {output} 2> {log}"
