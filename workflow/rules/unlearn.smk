rule unlearn:
    input:
        data=lambda w: plan.dataset(w.run),
        partition=f"{ROOT}/{{run}}/partition.npz",
        original=f"{ROOT}/{{run}}/original.safetensors",
        histories=lambda w: plan.needed_histories(w.run, w.method),
    output:
        model=f"{ROOT}/{{run}}/{{method}}.unlearned.safetensors",
        trace=f"{ROOT}/{{run}}/{{method}}.unlearned.csv",
        cost=f"{ROOT}/{{run}}/{{method}}.unlearned.cost.json",
    log:
        f"{ROOT}/logs/{{run}}/{{method}}.unlearned.log",
    conda:
        "../../envs/environment.yaml"
    threads: plan.config.threads
    resources:
        mem_mb=lambda w: plan.mem_mb(w.run),
        runtime=lambda w: plan.runtime(w.run, "unlearning", w.method),
        device=plan.config.device,
    params:
        spec=lambda w: plan.spec("unlearn", w.run, w.method),
        code=lambda w: plan.code("unlearn", plan.spec("unlearn", w.run, w.method)),
    shell:
        "python -m fu.warm fu.stages.unlearn --spec {params.spec:q} --data {input.data} --partition {input.partition}"
        " --original {input.original} --model {output.model} --trace {output.trace} --cost {output.cost}"
        " --histories {input.histories}"
        " --threads {threads} --device {resources.device} 2> {log}"


rule recover:
    input:
        data=lambda w: plan.dataset(w.run),
        partition=f"{ROOT}/{{run}}/partition.npz",
        original=f"{ROOT}/{{run}}/original.safetensors",
        unlearned=lambda w: plan.models(w.run, w.method)[0],
    output:
        model=f"{ROOT}/{{run}}/{{method}}.recovered.safetensors",
        trace=f"{ROOT}/{{run}}/{{method}}.recovered.csv",
        cost=f"{ROOT}/{{run}}/{{method}}.recovered.cost.json",
    log:
        f"{ROOT}/logs/{{run}}/{{method}}.recovered.log",
    conda:
        "../../envs/environment.yaml"
    threads: plan.config.threads
    resources:
        mem_mb=lambda w: plan.mem_mb(w.run),
        runtime=lambda w: plan.runtime(w.run, "recovery", w.method),
        device=plan.config.device,
    params:
        spec=lambda w: plan.spec("recover", w.run, w.method),
        code=lambda w: plan.code("recover", plan.spec("recover", w.run, w.method)),
    shell:
        "python -m fu.warm fu.stages.recover --spec {params.spec:q} --data {input.data} --partition {input.partition}"
        " --original {input.original} --unlearned {input.unlearned}"
        " --model {output.model} --trace {output.trace} --cost {output.cost}"
        " --threads {threads} --device {resources.device} 2> {log}"
