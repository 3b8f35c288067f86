# {model} is `original` or a method; a method's models are the unlearned and, after post-training, the recovered one.
rule evaluate:
    input:
        data=lambda w: plan.dataset(w.run),
        partition=f"{ROOT}/{{run}}/partition.npz",
        original=f"{ROOT}/{{run}}/original.safetensors",
        models=lambda w: plan.models(w.run, w.model),
        traces=lambda w: plan.traces(w.run, w.model),
    output:
        f"{ROOT}/{{run}}/{{model}}.evaluation.csv",
    log:
        f"{ROOT}/logs/{{run}}/{{model}}.evaluation.log",
    conda:
        "../../envs/environment.yaml"
    threads: plan.config.threads
    resources:
        mem_mb=lambda w: plan.mem_mb(w.run),
        runtime=30,
        device=plan.config.device,
    params:
        spec=lambda w: plan.spec("evaluate", w.run),
        code=lambda w: plan.code("evaluate", plan.spec("evaluate", w.run)),
    shell:
        "python -m fu.warm fu.stages.evaluate --spec {params.spec:q} --data {input.data} --partition {input.partition}"
        " --original {input.original} --models {input.models} --traces {input.traces} --output {output}"
        " --threads {threads} --device {resources.device} 2> {log}"
