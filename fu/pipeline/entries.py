"""What a table or figure is told: its entry, with the labels, values and file names of all that it shows."""

from typing import Any

from fu import plugins
from fu.artefacts import entry as artefacts
from fu.artefacts.entry import ORIGINAL, Entry
from fu.contents import checksum
from fu.errors import UserError
from fu.pipeline import catalogue, digest, estimates
from fu.pipeline.checks import evaluations_with
from fu.pipeline.grid import inherited
from fu.pipeline.jobs import SEED, Jobs
from fu.pipeline.settings.records import Artefact, Data, Forget, Preset, Settings
from fu.plugins import Choice


def entry_of(jobs: Jobs, preset: Preset, paper: str, artefact: str, numbers: list[str]) -> Entry:
    """Return an artefact's full entry, with what it needs of its scenarios, methods and metrics.

    `numbers`: the file with the paper's own, if there is one.
    """
    source, where = jobs.papers[paper], f"{jobs.grid.where[paper]}: artefacts.{artefact}"
    shown = source.artefacts[artefact]
    reads, chooses = catalogue.reads(shown.kind), catalogue.chooses(shown.kind, shown.points)
    known = catalogue.metrics()
    metrics = tuple(known[name] for name in shown.metrics)
    read = {name for metric in metrics for name in (metric.name, metric.spread)} | set(catalogue.also(shown.kind))
    settings = {name: _settings(jobs, paper, shown, name) for name in shown.scenarios}
    measured = {
        name: evaluations_with(filter(None, read), own.evaluations) if reads == "evaluations" else []
        for name, own in settings.items()
    }
    methods = [_method(jobs, paper, name, chooses, measured) for name in shown.shown]
    unmarked = [name for name, own in settings.items() if reads == "data" and own.data.attack is None]
    if unmarked:
        raise UserError(f"{where}: {unmarked[0]!r} has no attack to show.")
    return Entry(
        paper=paper,
        artefact=artefact,
        preset=jobs.config.preset,
        figures=jobs.config.figures,
        reads=reads,  # type: ignore[arg-type]
        chooses=chooses,
        rule=_rule(jobs, paper, [method for method in methods if method.chosen]),
        citation=source.citation,
        published=checksum(digest.ROOT / numbers[0]) if numbers else None,
        seeds=tuple(jobs.seeds(paper)),
        metrics=metrics,
        spreads=tuple(known[metric.spread] for metric in metrics if metric.spread in known),
        scenarios=tuple(
            _scenario(jobs, preset, paper, shown, name, settings[name], measured[name]) for name in settings
        ),
        methods=tuple(methods),
        datasets=tuple(own.data.dataset for own in settings.values()) if reads == "data" else (),
        attacks=tuple(own.data.attack.name for own in settings.values() if own.data.attack) if reads == "data" else (),
        lines=tuple(shown.lines),
        panels=tuple(shown.panels),
        against=tuple(shown.against),
        names={
            short: about.label or short
            for name in shown.scenarios
            for short, about in source.scenarios[name].vary.items()
        },
        **shown.model_dump(
            include={"kind", "marks", "title", "caption", "note", "in_paper", "stages", "x", "from_training", "draws"}
        ),
    )


def _settings(jobs: Jobs, paper: str, shown: Artefact, scenario: str) -> Settings:
    """Return the settings of a scenario, as the first that is shown has them."""
    scope = f"{paper}/{scenario}"
    first = jobs.grid.names[scope, shown.shown[0]][0] if shown.shown else ORIGINAL
    return jobs.grid.trials[scope, first].settings


def _scenario(
    jobs: Jobs, preset: Preset, paper: str, shown: Artefact, name: str, settings: Settings, measured: list[str]
) -> artefacts.Scenario:
    scope, source = f"{paper}/{name}", jobs.papers[paper]
    used, replaces = _called("datasets", settings.data.dataset), _replaced(jobs, preset, paper, name)
    starts = {source.methods[source.methods[one].unlearned_from or one].trained_by for one in shown.methods}
    draws = catalogue.declared("artefacts", shown.kind).get("REQUESTS")
    stated, on = source.scenarios[name], f" [on {used}]" if replaces else ""
    coordinates = "".join(f", {short} = {stated.at[short]}" for short in stated.vary)
    return artefacts.Scenario(
        name=name,
        label=stated.label + on,
        family=stated.label.removesuffix(coordinates) + on if coordinates else None,
        dataset=settings.data.dataset,
        data=used,
        replaces=replaces,
        rounds=(settings.training.rounds, None if shown.trains_only else settings.total_rounds),
        requests=settings.data.forget.requests if settings.data.forget else 1,
        at=dict(stated.at),
        original=_trial(jobs, scope, ORIGINAL, measured) if ORIGINAL in starts else None,
        partition=jobs.first("partition", run=f"{scope}/{SEED}").place,
        model=_called("models", settings.model.name),
        sampling=_sampling(settings),
        asked=_asked(settings.data.forget) if draws else None,
    )


def _method(jobs: Jobs, paper: str, name: str, chooses: bool, measured: dict[str, list[str]]) -> artefacts.Method:
    source, grid = jobs.papers[paper], jobs.grid
    entry = source.trainings.get(name) or source.methods[name]
    declared = catalogue.declared("methods", entry.plugin) if name in source.methods and entry.plugin else {}
    chosen = {
        scenario: _chosen(jobs, f"{paper}/{scenario}", name, evaluations)
        for scenario, evaluations in measured.items()
        if chooses and (f"{paper}/{scenario}", name) in grid.chosen
    }
    return artefacts.Method(
        name=name,
        label=entry.label,
        in_paper=entry.in_paper,
        post_training=getattr(entry, "post_training", "none"),
        trains=name in source.trainings,
        retrains=bool(declared.get("RETRAINS")),
        alike=any(declared.get(constant) for constant in ("RETRAINS", "CONTINUES")),
        trials={
            scenario: tuple(
                _trial(jobs, f"{paper}/{scenario}", one, evaluations, scenario in chosen)
                for one in grid.names[f"{paper}/{scenario}", name]
            )
            for scenario, evaluations in measured.items()
        },
        chosen=chosen,
    )


def _replaced(jobs: Jobs, preset: Preset, paper: str, scenario: str) -> str | None:
    """Return the paper's data set if the preset replaces it, else None."""
    named = str(inherited(jobs.grid.where[paper], jobs.papers[paper], scenario)[0]["data"]["dataset"])
    return None if preset.replace_datasets.get(named, named) == named else _called("datasets", named)


def _rule(jobs: Jobs, paper: str, methods: list[artefacts.Method]) -> str:
    """Return in words how points are chosen, and of whom otherwise."""
    labels: dict[str, list[str]] = {}
    for method in methods:
        scenario = f"{paper}/{next(iter(method.chosen))}"
        chosen = jobs.grid.trials[scenario, jobs.grid.chosen[scenario, method.name]]
        labels.setdefault(jobs.rule(*chosen.chosen_by), []).append(method.label)
    usual, *others = sorted(labels, key=lambda rule: -len(labels[rule])) or [""]
    return "; ".join([usual, *(f"{', '.join(labels[rule])}: {rule}" for rule in others)])


def _chosen(jobs: Jobs, scenario: str, method: str, evaluations: list[str]) -> artefacts.Chosen:
    name = jobs.grid.chosen[scenario, method]
    trial = jobs.grid.trials[scenario, name]
    folder, by = trial.chosen_by
    selection = jobs.first("select", scenario=folder, method=by)
    places = _places(jobs, scenario, name, evaluations)
    return artefacts.Chosen(by=selection.place, points=dict(trial.points), **places)


def _trial(jobs: Jobs, scenario: str, name: str, evaluations: list[str], chosen: bool = False) -> artefacts.Trial:
    """Return a trial; `chosen`: it is shown by the files of the chosen one."""
    trial = jobs.grid.trials[scenario, name]
    settings = trial.settings
    rate: float | None = settings.training.lr
    if trial.method:
        assert settings.unlearning is not None
        rate = settings.unlearning.lr if any(estimates.trained(trial).values()) else None
    trained = jobs.of(scenario, name, "train").place
    return artefacts.Trial(
        name=name,
        rate=rate,
        recovery_rate=settings.recovery.lr if settings.recovery and trial.leaves_rounds else None,
        values=dict(trial.values),
        **({"trained": trained} if chosen else _places(jobs, scenario, name, evaluations)),
    )


def _places(jobs: Jobs, scenario: str, name: str, evaluations: list[str]) -> dict[str, Any]:
    """Return where the models of a trial lie, and these of its evaluations."""
    places = {role: job.place for role, job in jobs.models(scenario, name).items() if role != ORIGINAL}
    evaluated = [jobs.of(scenario, name, "evaluate", evaluation=each) for each in evaluations]
    return {
        "trained": jobs.of(scenario, name, "train").place,
        "unlearned": places.get("unlearned", ""),
        "recovered": places.get("recovered", ""),
        "evaluated": tuple(f"{job.place}.{job.names['evaluation']}" for job in evaluated),
    }


def _sampling(settings: Settings) -> artefacts.Sampling | None:
    """Return what a training draws; None where all clients take part or take epochs, not steps."""
    data, training = settings.data, settings.training
    if training.clients_per_round is None or training.local_steps is None:
        return None
    _, train, held_out = data.fewest
    return artefacts.Sampling(
        clients=data.clients - data.absent,
        samples=train - held_out,
        clients_per_round=training.clients_per_round,
        rounds=training.rounds,
        steps=training.local_steps,
        batch_size=training.batch_size,
        fewest=_fewest(data),
    )


def _fewest(data: Data) -> int | None:
    """Return how many training samples each client holds at least, where the clients are the data's own."""
    name = data.partition.name
    if not catalogue.declared("partitions", name).get("NATURAL"):
        return None
    params = plugins.params("partitions", Choice(name=name, params=data.partition.params), "data.partition")
    return int(params.minimum)


def _asked(forget: Forget | None) -> artefacts.Asked | None:
    """Return what a request names."""
    if forget is None:
        return None
    if forget.samples is not None:
        return artefacts.Asked(level="sample", number=forget.samples)
    return artefacts.Asked(level="client", number=forget.gone // forget.requests)


def _called(kind: str, name: str) -> str:
    """Return what people call a data set or a model."""
    return str(catalogue.declared(kind, name).get("LABEL", name.replace("_", " ")))
