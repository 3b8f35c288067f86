"""What a table or figure is told: its entry, with the labels, values and file names of all that it shows."""

from typing import TYPE_CHECKING, Any

from fu import plugins
from fu.artefacts import entry as artefacts
from fu.artefacts.entry import ORIGINAL, Entry
from fu.contents import checksum
from fu.errors import UserError
from fu.pipeline import catalogue, digest, estimates
from fu.pipeline.checks import evaluations_with
from fu.pipeline.grid import inherited
from fu.pipeline.settings.records import Data, Forget, Paper, Settings
from fu.plugins import Choice

if TYPE_CHECKING:
    from fu.pipeline.plan import Plan


def entry_of(plan: "Plan", paper: str, artefact: str) -> Entry:
    """Return an artefact's full entry, with what it needs of its scenarios, methods and metrics."""
    shown, source = plan.artefacts[paper, artefact], plan.papers[paper]
    numbers = plan.published(paper, artefact)
    reads, known = catalogue.reads(shown.kind), catalogue.metrics()
    metrics = tuple(known[name] for name in shown.metrics)
    read = {name for metric in metrics for name in (metric.name, metric.spread)} | set(catalogue.also(shown.kind))
    starts = {source.methods[source.methods[name].unlearned_from or name].trained_by for name in shown.methods}
    original = ORIGINAL in starts
    draws = catalogue.declared("artefacts", shown.kind).get("REQUESTS")
    scenarios, attacks = [], []
    for name in shown.scenarios:
        scope = f"{paper}/{name}"
        first = plan.names[scope, shown.shown[0]][0] if shown.shown else ORIGINAL
        settings = plan.trials[scope, first].settings
        used, replaces = _called("datasets", settings.data.dataset), _replaced(plan, paper, name)
        stated, on = source.scenarios[name], f" [on {used}]" if replaces else ""
        coordinates = "".join(f", {short} = {stated.at[short]}" for short in stated.vary)
        evaluations = evaluations_with(filter(None, read), settings.evaluations) if reads == "evaluations" else []
        scenarios.append(
            artefacts.Scenario(
                name=name,
                label=stated.label + on,
                family=stated.label.removesuffix(coordinates) + on if coordinates else None,
                dataset=settings.data.dataset,
                data=used,
                replaces=replaces,
                rounds=(settings.training.rounds, None if shown.trains_only else settings.total_rounds),
                requests=settings.data.forget.requests if settings.data.forget else 1,
                evaluations=tuple(evaluations),
                at=dict(stated.at),
                original=_trial_shown(plan, scope, ORIGINAL) if original else None,
                partition=_other(plan.grid.partitions[scope], scope),
                model=_called("models", settings.model.name),
                sampling=_sampling(settings),
                asked=_asked(settings.data.forget) if draws else None,
            )
        )
        if reads == "data":
            if settings.data.attack is None:
                raise UserError(f"{plan.where[paper]}: artefacts.{artefact}: {name!r} has no attack to show.")
            attacks.append(settings.data.attack.name)
    trials = {
        name: {scenario: _trials_shown(plan, f"{paper}/{scenario}", name) for scenario in shown.scenarios}
        for name in shown.shown
    }
    several = shown.shown if catalogue.chooses(shown.kind, shown.points) else ()
    chosen = {
        name: {
            scenario: _chosen(plan, f"{paper}/{scenario}", name)
            for scenario in (shown.scenarios if name in several else ())
            if (f"{paper}/{scenario}", name) in plan.grid.chosen
        }
        for name in shown.shown
    }
    methods = [
        artefacts.Method(
            **source.trainings[name].model_dump(include={"label", "in_paper"}),
            name=name,
            post_training="none",
            trains=True,
            trials=trials[name],
            chosen=chosen[name],
        )
        for name in shown.shown
        if name in source.trainings
    ]
    methods += [
        artefacts.Method(
            **source.methods[name].model_dump(include={"label", "in_paper", "post_training"}),
            name=name,
            retrains=bool(_declares(source, name).get("RETRAINS")),
            alike=any(_declares(source, name).get(constant) for constant in ("RETRAINS", "CONTINUES")),
            trials=trials[name],
            chosen=chosen[name],
        )
        for name in shown.methods
    ]
    return Entry(
        paper=paper,
        artefact=artefact,
        preset=plan.config.preset,
        figures=plan.config.figures,
        reads=reads,  # type: ignore[arg-type]
        chooses=catalogue.chooses(shown.kind, shown.points),
        rule=_rule(plan, paper, [method for method in methods if method.chosen]),
        citation=source.citation,
        published=checksum(digest.ROOT / numbers[0]) if numbers else None,
        seeds=tuple(plan.seeds(paper)),
        metrics=metrics,
        spreads=tuple(known[metric.spread] for metric in metrics if metric.spread in known),
        scenarios=tuple(scenarios),
        methods=tuple(methods),
        datasets=tuple(scenario.dataset for scenario in scenarios) if reads == "data" else (),
        attacks=tuple(attacks),
        lines=tuple(shown.lines),
        panels=tuple(shown.panels),
        against=tuple(shown.against),
        names={
            short: about.label or short
            for name in shown.scenarios
            for short, about in source.scenarios[name].vary.items()
        },
        **shown.model_dump(
            include={"kind", "title", "caption", "note", "in_paper", "stages", "x", "from_training", "draws"}
        ),
    )


def _replaced(plan: "Plan", paper: str, scenario: str) -> str | None:
    """Return the paper's data set if the preset replaces it, else None."""
    named = str(inherited(plan.where[paper], plan.papers[paper], scenario)[0]["data"]["dataset"])
    return None if plan.preset.replace_datasets.get(named, named) == named else _called("datasets", named)


def _declares(paper: Paper, method: str) -> dict[str, Any]:
    """Return what the plug-in of a method declares; none where it starts from another method's model."""
    plugin = paper.methods[method].plugin
    return catalogue.declared("methods", plugin) if plugin else {}


def _trials_shown(plan: "Plan", scenario: str, method: str) -> tuple[artefacts.Trial, ...]:
    return tuple(_trial_shown(plan, scenario, name) for name in plan.names[scenario, method])


def _rule(plan: "Plan", paper: str, methods: list[artefacts.Method]) -> str:
    """Return in words how points are chosen, and of whom otherwise."""
    said: dict[str, list[str]] = {}
    for method in methods:
        scenario, by = next(iter(method.chosen.values())).by
        said.setdefault(plan.rule(f"{paper}/{scenario}", by), []).append(method.label)
    usual, *others = sorted(said, key=lambda rule: -len(said[rule])) or [""]
    return "; ".join([usual, *(f"{', '.join(said[rule])}: {rule}" for rule in others)])


def _chosen(plan: "Plan", scenario: str, method: str) -> artefacts.Chosen:
    name = plan.grid.chosen[scenario, method]
    trial, shown = plan.trials[scenario, name], _trial_shown(plan, scenario, name)
    folder, by = trial.chosen_by
    return artefacts.Chosen(
        by=(folder.partition("/")[2], by),
        points=dict(trial.points),
        files=name,
        **shown.model_dump(include={"trained", "unlearned", "recovers", "home", "evaluated"}),
    )


def _trial_shown(plan: "Plan", scenario: str, name: str) -> artefacts.Trial:
    trial = plan.trials[scenario, name]
    settings, run = trial.settings, f"{scenario}/seed0"
    evaluated = None if trial.method else _other(plan.evaluated(run, name).rpartition("/")[0], scenario)
    rate: float | None = settings.training.lr
    if trial.method:
        assert settings.unlearning is not None
        rate = settings.unlearning.lr if any(estimates.trained(trial).values()) else None
    return artefacts.Trial(
        name=name,
        rate=rate,
        recovery_rate=settings.recovery.lr if settings.recovery and trial.leaves_rounds else None,
        values=dict(trial.values),
        trained=trial.trained,
        unlearned=trial.unlearned,
        recovers=trial.leaves_rounds,
        home=_other(plan.grid.homes[scenario, trial.trained], scenario),
        evaluated=evaluated,
    )


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


def _other(scenario: str, own: str) -> str | None:
    """Return the name of another scenario of the paper; None for one's own."""
    return None if scenario == own else scenario.partition("/")[2]


def _called(kind: str, name: str) -> str:
    """Return what people call a data set or a model."""
    return str(catalogue.declared(kind, name).get("LABEL", name.replace("_", " ")))
