# A rule for every stage (fu/pipeline/stages), in the order in which they run; what one does not say it has from `data`.
# The plan says which files a job reads; a role may have none, as `request` where nothing is to be forgotten.


rule data:
    """A data set as one archive."""
    input:
        engine.inputs("data"),
    output:
        **engine.outputs("data", "archive"),
    log:
        plan.paths.log("data"),
    retries: engine.retries
    conda:  # for `--lint` and `--report`; `--sdm` is refused
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **engine.resources("data"),
    params:
        command=lambda wildcards, output, threads: engine.command(
            output.certificate, threads
        ),
    shell:
        "{params.command} 2> {log:q}"


use rule data as partition with:
    """Who holds which samples of a data set, in a scenario and seed."""
    input:
        engine.inputs("partition", "data"),
    output:
        **engine.outputs("partition", "partition"),
    log:
        plan.paths.log("partition"),
    group:
        engine.pack("partition")
    resources:
        **engine.resources("partition"),


use rule data as request with:
    """Who or what is to be forgotten, where the partition does not say it already."""
    input:
        engine.inputs("request", "partition"),
    output:
        **engine.outputs("request", "request"),
    log:
        plan.paths.log("request"),
    group:
        engine.pack("request")
    resources:
        **engine.resources("request"),


use rule data as train with:
    """A model trained by all clients, with what it measured, what it cost, and the history that methods read."""
    input:
        engine.inputs("train", "data", "partition", "request", "chosen", "points"),
    output:
        **engine.outputs("train", "model", "trace", "cost", "history"),
    log:
        plan.paths.log("train"),
    priority: 10  # everything else waits for it
    group:
        engine.pack("train")
    threads: plan.config.threads
    resources:
        **engine.resources("train"),


use rule data as shadow with:
    """Shadow models of a training, which all evaluations share that infer membership on it or what starts from it."""
    input:
        engine.inputs("shadow", "data", "partition", "request", "chosen", "points"),
    output:
        **engine.outputs("shadow", "shadows"),
    log:
        plan.paths.log("shadow"),
    group:
        engine.pack("shadow")
    threads: plan.config.threads
    resources:
        **engine.resources("shadow"),


use rule data as unlearn with:
    """A model after unlearning, with what was measured meanwhile and what it cost."""
    input:
        engine.inputs(
            *("unlearn", "data", "partition", "request", "original", "history"),
            *("chosen", "points"),
        ),
    output:
        **engine.outputs("unlearn", "model", "trace", "cost"),
    log:
        plan.paths.log("unlearn"),
    group:
        engine.pack("unlearn")
    threads: plan.config.threads
    resources:
        **engine.resources("unlearn"),


use rule data as recover with:
    """A model after post-training; it may start from the unlearned model of another trial."""
    input:
        engine.inputs(
            *("recover", "data", "partition", "request", "original", "unlearned"),
            *("chosen", "points"),
        ),
    output:
        **engine.outputs("recover", "model", "trace", "cost"),
    log:
        plan.paths.log("recover"),
    group:
        engine.pack("recover")
    threads: plan.config.threads
    resources:
        **engine.resources("recover"),


use rule data as evaluate with:
    """What one evaluation measures on the models of a trial, the original or those after the request, with predictions."""
    input:
        engine.inputs(
            *("evaluate", "data", "partition", "request", "original", "models"),
            *("traces", "shadows"),
        ),
    output:
        **engine.outputs("evaluate", "evaluation", "predictions"),
    log:
        plan.paths.log("evaluate"),
    group:
        engine.pack("evaluate")
    threads: plan.config.threads
    resources:
        **engine.resources("evaluate"),


use rule data as predict with:
    """What the last models of a trial, one of each seed, say of fixed probes: audits compare these."""
    input:
        engine.inputs("predict", "data", "partition", "request", "models"),
    output:
        **engine.outputs("predict", "predictions"),
    log:
        plan.paths.log("predict"),
    group:
        engine.pack("predict")
    threads: plan.config.threads
    resources:
        **engine.resources("predict"),


use rule data as relearn with:
    """What comes back of the forgotten client when the last models of a trial, one of each seed, train on."""
    input:
        engine.inputs("relearn", "data", "partition", "request", "models", "originals"),
    output:
        **engine.outputs("relearn", "relearned"),
    log:
        plan.paths.log("relearn"),
    group:
        engine.pack("relearn")
    threads: plan.config.threads
    resources:
        **engine.resources("relearn"),


use rule data as assess with:
    """What an audit says of the last models of a trial, compared with retrained ones."""
    input:
        engine.inputs("assess", "unlearned", "retrained", "original"),
    output:
        **engine.outputs("assess", "audited"),
    log:
        plan.paths.log("assess"),
    group:
        engine.pack("assess")
    resources:
        **engine.resources("assess"),


use rule data as expose with:
    """The forgotten samples that original models expose most, as pictures."""
    input:
        engine.inputs(
            "expose", "unlearned", "retrained", "original", "data", "partition"
        ),
    output:
        **engine.outputs("expose", "exposed"),
    log:
        plan.paths.log("expose"),
    group:
        engine.pack("expose")
    resources:
        **engine.resources("expose"),


use rule data as agree with:
    """How far a trial's predictions lie from those of repeats of retraining, in one run."""
    input:
        engine.inputs("agree", "own", "others"),
    output:
        **engine.outputs("agree", "agreement"),
    log:
        plan.paths.log("agree"),
    group:
        engine.pack("agree")
    resources:
        **engine.resources("agree"),


use rule data as holdings with:
    """How many training samples each client has, in all and by class."""
    input:
        engine.inputs("holdings", "data", "partition"),
    output:
        **engine.outputs("holdings", "holdings"),
    log:
        plan.paths.log("holdings"),
    group:
        engine.pack("holdings")
    resources:
        **engine.resources("holdings"),


use rule data as examples with:
    """Samples of a forgotten client without and with the trigger, as pictures."""
    input:
        engine.inputs("examples", "data", "partition"),
    output:
        **engine.outputs("examples", "examples"),
    log:
        plan.paths.log("examples"),
    group:
        engine.pack("examples")
    resources:
        **engine.resources("examples"),


use rule data as select with:
    """The point of a method's grid that is chosen, by its evaluations."""
    input:
        engine.inputs("select", "evaluations"),
    output:
        **engine.outputs("select", "selection"),
    log:
        plan.paths.log("select"),
    resources:
        **engine.resources("select"),


use rule data as oracles with:
    """Original and retrained models of a scenario as one archive, for audits without training."""
    input:
        engine.inputs(
            *("oracles", "data", "partition", "request", "original", "retrained"),
            *("predicted", "costs"),
        ),
    output:
        **engine.outputs("oracles", "archive"),
    log:
        plan.paths.log("oracles"),
    group:
        engine.pack("oracles")
    resources:
        **engine.resources("oracles"),


use rule data as publish with:
    """A figure, with its numbers."""
    input:
        engine.inputs("publish", "results", "published", "costs"),
    output:
        **engine.outputs(
            *("publish", "csv", "rows", "md", "html", "tex", "json", "pdf", "svg"),
            png=lambda path: report(
                path, caption="../report/artefact.rst", category="{paper}"
            ),
        ),
    log:
        plan.paths.log("publish"),
    wildcard_constraints:
        paper=plan.folder(tables=False),
    resources:
        **engine.resources("publish"),


use rule publish as tabulate with:
    """A table, with its numbers."""
    output:
        **engine.outputs(
            *("publish", "csv", "rows", "md", "tex", "json"),
            html=lambda path: report(
                path, caption="../report/artefact.rst", category="{paper}"
            ),
        ),
    wildcard_constraints:
        paper=plan.folder(tables=True),
