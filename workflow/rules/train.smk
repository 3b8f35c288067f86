# One rule for each set of histories that scenarios record: the outputs differ.
for kinds, scenarios in plan.runs_by_history.items():

    rule:
        name:
            "_".join(["train", *kinds])
        input:
            data=lambda w: plan.dataset(w.run),
            partition=f"{ROOT}/{{run}}/partition.npz",
        output:
            model=f"{ROOT}/{{run}}/original.safetensors",
            trace=f"{ROOT}/{{run}}/original.csv",
            cost=f"{ROOT}/{{run}}/original.cost.json",
            histories=[f"{ROOT}/{{run}}/history.{kind}.safetensors" for kind in kinds],
        log:
            f"{ROOT}/logs/{{run}}/original.log",
        wildcard_constraints:
            run=rf"({'|'.join(map(re.escape, scenarios))})/seed\d+",
        priority: 10  # everything else waits for it
        conda:
            "../../envs/environment.yaml"
        threads: plan.config.threads
        resources:
            mem_mb=lambda w: plan.mem_mb(w.run),
            runtime=lambda w: plan.runtime(w.run, "training"),
            device=plan.config.device,
        params:
            spec=lambda w: plan.spec("train", w.run),
            code=lambda w: plan.code("train", plan.spec("train", w.run)),
        shell:
            "python -m fu.warm fu.stages.train --spec {params.spec:q} --data {input.data} --partition {input.partition}"
            " --model {output.model} --trace {output.trace} --cost {output.cost}"
            " --histories {output.histories}"
            " --threads {threads} --device {resources.device} 2> {log}"
