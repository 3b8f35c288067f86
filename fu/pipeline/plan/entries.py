"""The entry of a table or figure: labels, values and file names of everything that it shows."""

from collections.abc import Mapping, Sequence

from fu import plugins
from fu.artefacts import entry as artefacts
from fu.artefacts.entry import ORIGINAL, RATES, Display
from fu.artefacts.style import Figures
from fu.claims.rows import Operand
from fu.contents import checksum
from fu.data.forget import Forget
from fu.errors import UserError
from fu.pipeline.plan import estimates, sources
from fu.pipeline.plan.estimates import counted
from fu.pipeline.plan.grid import Grid, inherited
from fu.pipeline.plan.jobs import Jobs
from fu.pipeline.provenance import catalogue, digest
from fu.pipeline.provenance.paths import SEED
from fu.pipeline.settings.records import Artefact, Method, Paper, Preset, Settings
from fu.pipeline.stages import publish

PLAIN = Figures()  # type: ignore[call-arg]  # of tables: no setting of figures draws them again


def spec_of(jobs: Jobs, preset: Preset, paper: str, artefact: str, numbers: list[str]) -> publish.Spec:
    """Return the spec of an artefact: its entry, with the scenarios, methods and metrics it shows, and its sources.

    `numbers`: the file with the paper's own numbers, if there is one.
    """
    source, grid, known = jobs.papers[paper], jobs.grid, catalogue.metrics()
    shown = source.artefacts[artefact]
    reads, chooses = catalogue.reads(shown.kind), catalogue.chooses(shown.kind, shown.points)
    metrics = tuple(known[name] for name in shown.metrics)
    claims = source.judged(shown) if "artefacts" in reads else {}
    judged = dict.fromkeys(name for claim in claims.values() for name in claim.scenarios)
    scopes = {name: f"{paper}/{name}" for name in judged or shown.scenarios}
    settings = {
        name: jobs.trial(f"{scope}/{SEED}", "" if "artefacts" in reads else jobs.first_shown(scope, shown)).settings
        for name, scope in scopes.items()
    }
    methods = [_method(jobs, paper, name, chooses, list(settings), shown) for name in shown.shown]
    declared, audits = catalogue.declared("artefacts", shown.kind), catalogue.audits_with(shown.metrics)
    least = max((catalogue.declared("audits", name)["LEAST"] for name in audits), default=0)  # repeats that suffice
    for name, of in settings.items():
        if "examples" in reads and of.data.attack is None:
            raise UserError(f"{grid.where[paper]}: artefacts.{artefact}: {name!r} has no attack (data.attack) to show.")
    spec = publish.Spec(
        **{field: getattr(shown, field) for field in Display.model_fields},
        paper=paper,
        artefact=artefact,
        preset=jobs.config.preset,
        figures=jobs.config.figures if catalogue.drawn(shown.kind, shown.marks) else PLAIN,
        reads=reads,  # type: ignore[arg-type]
        firsts=tuple(number for number in jobs.firsts(paper) if number >= least) if declared.get("FIRSTS") else (),
        chooses=chooses,
        rule=_rule(jobs, paper, [method for method in methods if method.chosen]),
        citation=source.citation,
        published=checksum(digest.ROOT / numbers[0]) if numbers else None,
        seeds=tuple(jobs.seeds(paper)),
        metrics=metrics,
        also=catalogue.also(shown.kind),
        audits={name: _audit(name) for name in audits},
        spreads=tuple(known[metric.spread] for metric in metrics if metric.spread in known),
        scenarios=tuple(_scenario(jobs, preset, paper, shown, name, settings[name]) for name in settings),
        methods=tuple(methods),
        claims=claims,
        stated={key: tuple(grid.claimed[paper].get(key, claim.scenarios)) for key, claim in claims.items()},
        untuned={key: untuned for key, claim in claims.items() if (untuned := _untuned(jobs, paper, claim))},
        names={
            short: coordinate.label or short
            for name in scopes
            for short, coordinate in source.scenarios[name].vary.items()
        },
    )
    return spec.model_copy(update={"sources": tuple(sources.behind(jobs, shown, spec))})


def _untuned(jobs: Jobs, paper: str, claim: artefacts.Claim) -> dict[str, str]:
    """Return, by scenario, which learning rates of rivals were chosen from fewer values than the claim's own method's.

    Nothing is chosen where all points are shown.
    """
    source = jobs.papers[paper]
    shown, labels = source.artefacts[claim.artefact], {ORIGINAL: "ω⁰"}
    labels |= {name: entry.label for name, entry in (source.trainings | source.methods).items()}
    if not catalogue.chooses(shown.kind, shown.points):
        return {}
    p = plugins.params("claims", plugins.Choice(name=claim.kind, params=claim.params), f"{paper}: claims")
    own, *rivals = plugins.load("claims", claim.kind).operands(p)
    reasons = {}
    for scenario in claim.scenarios:
        most = _rates_tried(jobs, f"{paper}/{scenario}", own)
        fewer = [
            f"{key} of {labels[rival.method]} was chosen from {counted(tried, 'value')}, "
            f"of {labels[own.method]} from {most[key]}"
            for rival in rivals
            if rival.method != own.method
            for key, tried in _rates_tried(jobs, f"{paper}/{scenario}", rival).items()
            if tried < most.get(key, 0)
        ]
        if fewer:
            reasons[scenario] = "; ".join(fewer)
    return reasons


def _rates_tried(jobs: Jobs, scope: str, operand: Operand) -> dict[str, int]:
    """Return how many values of each learning rate were tried; {} for retraining, and where nobody trains."""
    rates: dict[str, set[float]] = {}
    for point in jobs.grid.names.get((scope, operand.method), ()):
        trial = jobs.grid.trials[scope, point]
        settings = trial.settings
        if trial.method is None:
            rates.setdefault(RATES["original"], set()).add(settings.training.lr)
        elif not trial.declared.get("RETRAINS"):
            if settings.unlearning and any(estimates.trained(trial).values()):
                rates.setdefault(RATES["unlearned"], set()).add(settings.unlearning.lr)
            if operand.stage == "recovered" and settings.recovery and trial.leaves_rounds:
                rates.setdefault(RATES["recovered"], set()).add(settings.recovery.lr)
    return {key: len(values) for key, values in rates.items()}


def _scenario(
    jobs: Jobs, preset: Preset, paper: str, shown: Artefact, name: str, settings: Settings
) -> artefacts.Scenario:
    scope, source = f"{paper}/{name}", jobs.papers[paper]
    stated, dataset = source.scenarios[name], settings.data.dataset
    papers_own = str(inherited(jobs.grid.where[paper], source, name)[0]["data"]["dataset"])
    is_replaced = preset.replace_datasets.get(papers_own, papers_own) != papers_own
    starts = {base.trained_by for one in shown.methods if (base := _base(source, one))}
    declared, about = catalogue.declared("artefacts", shown.kind), settings.relearning
    repeats = len(jobs.seeds(paper)[: about.repeats])
    relearning = artefacts.Relearning(rounds=about.rounds, samples=about.samples, repeats=repeats)
    coordinates = "".join(f", {short} = {stated.at[short]}" for short in stated.vary)
    on = f" [on {_called('datasets', dataset)}]" if is_replaced else ""
    return artefacts.Scenario(
        name=name,
        label=stated.label + on,
        family=stated.label.removesuffix(coordinates) + on if coordinates else None,
        dataset=dataset,
        data=_called("datasets", dataset),
        replaces=_called("datasets", papers_own) if is_replaced else None,
        rounds=(settings.training.rounds, None if shown.trains_only else settings.total_rounds),
        requests=settings.data.forget.requests if settings.data.forget else 1,
        at=dict(stated.at),
        original=_trial(jobs, scope, ORIGINAL) if ORIGINAL in starts else None,
        model=_called("models", settings.model.name),
        attacked=settings.data.attack is not None,
        sampling=_sampling(settings),
        asked=_asked(settings.data.forget) if declared.get("REQUESTS") else None,
        relearning=relearning if "relearning" in catalogue.reads(shown.kind) else None,
    )


def _method(
    jobs: Jobs, paper: str, name: str, chooses: bool, scenarios: Sequence[str], shown: Artefact
) -> artefacts.Method:
    source, grid, kind = jobs.papers[paper], jobs.grid, catalogue.declared("artefacts", shown.kind)
    entry, base = source.trainings.get(name) or source.methods[name], _base(source, name)
    plugin = str(base.plugin) if base else ""
    unlearns = catalogue.declared("methods", plugin) if plugin else {}
    declared = unlearns if entry is base else {}
    scopes = {scenario: f"{paper}/{scenario}" for scenario in scenarios}
    chosen = {
        scenario: _trial(jobs, scope, grid.chosen[scope, name])
        for scenario, scope in scopes.items()
        if chooses and (scope, name) in grid.chosen
    }
    return artefacts.Method(
        name=name,
        label=entry.label,
        in_paper=entry.in_paper,
        post_training=getattr(entry, "post_training", "none"),
        trains=name in source.trainings,
        retrains=bool(declared.get("RETRAINS")) and not {"LEFT", "CONTROL"} & declared.keys(),
        control=(unlearns if catalogue.audited(shown.kind) else declared).get("CONTROL") is True,
        hides=declared.get("CONTROL") == "hides",
        own_optimiser=unlearns.get("OWN_OPTIMISER", False),
        left=(plugin, base.params[unlearns["LEFT"]]) if base and "LEFT" in unlearns else None,
        reference=_reference(grid, scopes, name, shown),
        plugin=plugin,
        fidelity=unlearns.get("FIDELITY", {}).get("source", "") if kind.get("FIDELITY") else "",
        alike=any(declared.get(constant) for constant in ("RETRAINS", "CONTINUES")),
        trials={
            scenario: tuple(_trial(jobs, scope, point, scenario not in chosen) for point in grid.names[scope, name])
            for scenario, scope in scopes.items()
        },
        chosen=chosen,
    )


def _base(source: Paper, name: str) -> Method | None:
    """Return a method, or the one whose model it post-trains; None for a training."""
    method = source.methods.get(name)
    return source.methods[method.unlearned_from] if method and method.unlearned_from else method


def _reference(grid: Grid, scopes: Mapping[str, str], name: str, shown: Artefact) -> str:
    """Return the retraining with which audits compare a method; "" where nothing is audited."""
    if name in shown.against or not (catalogue.audited(shown.kind) or "relearning" in catalogue.reads(shown.kind)):
        return ""
    return grid.reference(next(iter(scopes.values())), name, shown.against) or ""


def _audit(name: str) -> artefacts.Audit:
    declared = catalogue.declared("audits", name)
    metrics = tuple(metric.name for metric in catalogue.metrics_of(name, "audits"))
    return artefacts.Audit(
        plugin=name,
        label=declared["LABEL"],
        score=declared["SCORE"],
        metrics=metrics,
        caveat=declared["CAVEAT"],
        p=declared.get("P", ""),
        sees=declared.get("SEES", ()),
    )


def _rule(jobs: Jobs, paper: str, methods: list[artefacts.Method]) -> str:
    """Return in words how points are chosen, and of whom otherwise."""
    labels: dict[str, list[str]] = {}
    for method in methods:
        scenario = f"{paper}/{next(iter(method.chosen))}"
        chosen = jobs.grid.trials[scenario, jobs.grid.chosen[scenario, method.name]]
        labels.setdefault(jobs.rule(*chosen.selection), []).append(method.label)
    usual, *others = sorted(labels, key=lambda rule: -len(labels[rule])) or [""]
    return "; ".join([usual, *(f"{', '.join(labels[rule])}: {rule}" for rule in others)])


def _trial(jobs: Jobs, scope: str, name: str, has_models: bool = True) -> artefacts.Trial:
    """Return a trial; `has_models`: false for the points of a grid of which only the chosen one is shown."""
    trial, models = jobs.grid.trials[scope, name], {}
    if has_models:
        models = {role: job.place for role, job in jobs.models(scope, name).items() if role != ORIGINAL}
    unlearning, recovery = trial.settings.unlearning, trial.settings.recovery
    rate: float | None = trial.settings.training.lr
    if trial.method and unlearning:
        rate = unlearning.lr if any(estimates.trained(trial).values()) else None
    return artefacts.Trial(
        name=name,
        rate=rate,
        recovery_rate=recovery.lr if recovery and trial.leaves_rounds else None,
        values=dict(trial.values),
        trained=jobs.of(scope, name, "train").place,
        points=dict(trial.points),
        **models,
    )


def _sampling(settings: Settings) -> artefacts.Sampling | None:
    """Return what a training draws; None where all clients take part or take epochs, not steps."""
    data, training = settings.data, settings.training
    if training.clients_per_round is None or training.local_steps is None:
        return None
    _, train, held_out = data.fewest
    natural = catalogue.declared("partitions", data.partition.name).get("NATURAL")  # clients are the data's own
    return artefacts.Sampling(
        clients=data.clients - data.absent,
        samples=train - held_out,
        clients_per_round=training.clients_per_round,
        rounds=training.rounds,
        steps=training.local_steps,
        batch_size=training.batch_size,
        fewest=plugins.params("partitions", data.partition, "data.partition").minimum if natural else None,
    )


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
