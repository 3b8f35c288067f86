# Shadow models of a training, which every evaluation that infers membership on it or what starts from it shares.
rule shadow:
    input:
        known("shadow"),
    output:
        **kept("shadow"),
    log:
        plan.paths.log("shadow"),
    group:
        pack("shadow")
    conda:
        "../../envs/environment.yaml"
    threads: plan.config.threads
    resources:
        **needs("shadow"),
    params:
        spec=lambda w: plan.job("shadow", dict(w)).json,
        code=lambda w: plan.job("shadow", dict(w)).code,
        candidates=lambda w: plan.job("shadow", dict(w)).made,
        unless_made=unless_made,
    shell:
        command_line("shadow")
