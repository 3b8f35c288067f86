"""What an artefact shows: its entry in a paper's file, with the labels of all that it names. Imports no torch."""

import re
from typing import Annotated, Any, Literal

from pydantic import Field

from fu.artefacts.style import Figures
from fu.plugins import Kind
from fu.types import Count, Different, Frozen, Name

ORIGINAL = "original"
OWN = ("our own control", "our criterion")  # how the places of claims begin that are not a paper's
MARKS = {"original": "", "unlearned": "¹", "recovered": "²"}
# What a model is to a trial. In the YAML and CSV files of people, and so in frames and entries, it is called its stage.
Role = Literal["original", "unlearned", "recovered"]
# The kinds of rows that a table or figure can be made from, as its own kind declares them in `INPUTS`.
Input = Literal[
    "evaluations",
    "agreement",
    "traces",
    "costs",
    "audits",
    "exposed",
    "relearning",
    "holdings",
    "examples",
    "artefacts",
]
RATES = {"original": "training.lr", "unlearned": "unlearning.lr", "recovered": "recovery.lr"}
HELD = "training_samples"  # metric of the rows that say, client by client, how many samples each trains on
FORGET_SET = "forget_set_accuracy"  # metric by which relearning is judged where there is no backdoor
SECONDS = "seconds"  # metric of the rows that say what a model took; they differ from run to run


class Metric(Frozen):
    """One metric, as its evaluator declares it. Shares are fractions, not percent.

    `better` says which direction is good, if either is; `spread` names the metric shown in parentheses behind it.
    `per`: whether there is one number of a model or one for every client.
    """

    name: str
    label: str
    unit: str
    better: Literal["lower", "higher", "neither"]
    formula: str
    source: str = ""
    spread: str | None = None
    per: Literal["model", "client"] = "model"


class Trial(Frozen):
    """A training or a method at one point of its grid: `values` is what the grid sets there.

    `rate`: its learning rate (None: nobody trains), `recovery_rate`: that of the post-training that follows, if any.
    Its models, as "scenario/trial": `trained`: the one that it starts from, or that it is; `unlearned` and `recovered`:
    its own, if it has them. Trials may share models.
    The chosen one of several is a trial, too: `points` says which one it is, by the one that is selected.
    """

    name: str
    rate: float | None
    recovery_rate: float | None = None
    values: dict[str, float | int | str]
    trained: str = ORIGINAL
    unlearned: str = ""
    recovered: str = ""
    points: dict[str, str] = Field(default_factory=dict)

    @property
    def models(self) -> dict[str, str]:
        """Role -> the model."""
        if not self.unlearned:
            return {"original": f"{self.trained}.trained"}
        found = {"unlearned": f"{self.unlearned}.unlearned"}
        return {**found, "recovered": f"{self.recovered}.recovered"} if self.recovered else found

    def setting(self, role: Role) -> str:
        """Return the rate behind a role and what else the grid sets for it, hyper-parameters with their names."""
        after = role == "recovered"
        shown = {key: value for key, value in self.values.items() if key.startswith("recovery.") == after}
        rate = self.recovery_rate if after else self.rate
        setting = RATES[role]
        if rate is None:
            shown.pop(setting, None)
        elif setting not in shown:
            shown = {setting: rate, **shown}
        texts = [(key, f"{value:g}" if isinstance(value, int | float) else str(value)) for key, value in shown.items()]
        named = [f"{key.rpartition('params.')[2]} {text}" if "params." in key else text for key, text in texts]
        return ", ".join(named) or "–"


class Sampling(Frozen):
    """What a training draws: K of M `clients` for each of R rounds, b of a client's N `samples` for each of E steps.

    `fewest`: how many the smallest client holds at least, where clients differ in size and N is a mean.
    """

    clients: int
    samples: int
    clients_per_round: int
    rounds: int
    steps: int
    batch_size: int
    fewest: int | None = None


class Asked(Frozen):
    """What a request names: so many clients, or so many samples, at once."""

    level: Literal["client", "sample"]
    number: int


class Relearning(Frozen):
    """How models of so many repeats train on: for how many rounds, on how many samples of each forgotten client."""

    rounds: int
    samples: int
    repeats: int


class Scenario(Frozen):
    """A scenario: rounds of training and after the request (None: no request).

    `family`: the label without coordinates (None: it has none). `data` names the data set for people, `replaces` the
    paper's own where the preset has another in its place. `at`: its coordinates by their short names.
    `original`: the trial of the original model (None: it is not shown). `attacked`: the forgotten clients teach a
    backdoor. `sampling`: where a training draws clients and takes so many steps a round. `asked`: the request, if there
    is one and the kind of artefact draws requests; `requests`: how many come in a row, at equal distances in the rounds
    after the first.
    `relearning`: where that is read.
    """

    name: str
    label: str
    family: str | None = None
    dataset: str
    data: str
    replaces: str | None = None
    rounds: tuple[int, int | None]
    requests: int = 1
    at: dict[str, float | int | str] = Field(default_factory=dict)
    original: Trial | None = Trial(name=ORIGINAL, rate=None, values={})
    model: str = ""
    attacked: bool = False
    sampling: Sampling | None = None
    asked: Asked | None = None
    relearning: Relearning | None = None

    @property
    def request_rounds(self) -> list[int]:
        """The rounds after which requests come."""
        trained, after = self.rounds
        return [trained + k * (after or 0) // self.requests for k in range(self.requests)]


class Method(Frozen):
    """A method or a training (`trains`), and its trials in every scenario.

    `retrains`: from scratch, so that it shows what forgetting is. `alike`: it unlearns by training as the model that it
    starts from did. `control`: it is no attempt to forget, as doing nothing. `hides`: a control that keeps something of
    the client where some audits do not see it. `own_optimiser`: no retraining has its optimiser. `left`: of a control
    that forgets in part, its plug-in and how much of the forgotten client is left. `reference`: the retraining with
    which audits compare it. `plugin`: what it runs, before any post-training. `fidelity`: what it was implemented from,
    where the artefact shows it. `chosen`: by scenario, the one chosen from several trials, whichever it will be.
    """

    name: str
    label: str
    in_paper: bool
    post_training: Literal["after", "none", "own"]
    retrains: bool = False
    alike: bool = False
    control: bool = False
    hides: bool = False
    own_optimiser: bool = False
    left: tuple[str, float] | None = None
    reference: str = ""
    plugin: str = ""
    fidelity: str = ""
    trains: bool = False
    trials: dict[str, tuple[Trial, ...]]
    chosen: dict[str, Trial] = Field(default_factory=dict)

    @property
    def known(self) -> bool:
        """Whether it is a control: it is known what is left of the client."""
        return bool(self.left) or self.control or self.hides

    @property
    def marked(self) -> str:
        """The label, marked where the paper has no such method."""
        return self.label + ("" if self.in_paper else " *")


class Claim(Frozen):
    """What a paper says, as a predicate over the rows of one of its artefacts."""

    text: str = Field(description="the claim, in our words")
    place: str = Field(description="section, table or figure of the paper")
    artefact: Name = Field(description="the table or figure whose rows are judged")
    scenarios: Annotated[list[str], Different] = Field(
        default_factory=list,
        description="scenarios in which the claim is judged, as under artefacts; []: all of that table or figure",
    )
    kind: Annotated[Name, Kind("claims")] = Field(description="the predicate (fu/claims): order, limit, equal, ...")
    params: dict[str, Any] = Field(default_factory=dict, description="its parameters (class `Params` in that file)")

    @property
    def ours(self) -> bool:
        """Whether the claim is not a paper's."""
        return self.place.startswith(OWN)


class Audit(Frozen):
    """An audit of repeated models, as its file declares it: its metrics, and the one that grows with what is left.

    `p`: the metric that is the p-value of no difference; "": it only describes. `sees`: plug-ins of the controls that
    it must find.
    """

    plugin: Name
    label: str
    score: str
    metrics: tuple[str, ...]
    caveat: str
    p: str = ""
    sees: tuple[str, ...] = ()


class Display(Frozen):
    """How an artefact is shown, as a paper's file says it."""

    kind: Annotated[Name, Kind("artefacts")] = Field(
        description="kind of table or figure (fu/artefacts): table, curves, across, ..."
    )
    marks: Name | None = Field(
        None, description="how to draw the numbers, where the kind offers a choice: bars (table)"
    )
    title: str = Field(description="title")
    caption: str = Field(description="caption: what it shows")
    note: str = Field("", description="note on the paper's numbers, shown with them")
    in_paper: bool = Field(True, description="false: our own addition to the paper")
    stages: Annotated[list[Role], Different] = Field(
        ["original", "unlearned", "recovered"], min_length=1, description="which models to show"
    )
    x: str | None = Field(
        None, description="what the x axis shows: a coordinate of scenarios or a setting of grids (params.q)"
    )
    lines: Annotated[list[str], Different] = Field(
        default_factory=list, description="like x: one line or row for each value"
    )
    panels: Annotated[list[str], Different] = Field(
        default_factory=list, description="like x: one panel for each value"
    )
    against: Annotated[list[Name], Different] = Field(
        default_factory=list, description="reference trainings and methods that the others are compared with"
    )
    from_training: bool = Field(False, description="start curves with the rounds of the original training")
    draws: Count = Field(1000, description="number of requests drawn for each point (kind: unlearning_time)")


class Entry(Display):
    """One table or figure. `published`: the checksum of the paper's numbers. `chosen`: scenario -> method -> trial.

    `firsts`: of how many of the first repeats audits are read (none: of all alone). `spreads`: the metrics in
    parentheses; `also`: those that the kind reads beyond them; `audits`: those that have the metrics. `methods`:
    trainings, then methods. `chooses`: the chosen trial of each is shown, else all; `rule`: how it is chosen, in words.
    `names`: what people call a coordinate. `stated`: by claim, the scenarios of its table or figure as the paper's file
    has them, of which preset and configuration may leave out some and add others. `untuned`: by claim and scenario,
    which rate of a rival was chosen from fewer values than that of the claim's method.
    """

    paper: str
    artefact: str
    preset: str
    reads: tuple[Input, ...]
    firsts: tuple[int, ...] = ()
    chooses: bool
    rule: str = ""
    citation: str
    published: str | None
    seeds: tuple[int, ...]
    metrics: tuple[Metric, ...]
    spreads: tuple[Metric, ...] = ()
    also: tuple[str, ...] = ()
    audits: dict[str, Audit] = Field(default_factory=dict)
    scenarios: tuple[Scenario, ...]
    methods: tuple[Method, ...]
    claims: dict[str, Claim] = Field(default_factory=dict)
    stated: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    untuned: dict[str, dict[str, str]] = Field(default_factory=dict)
    names: dict[str, str] = Field(default_factory=dict)
    figures: Figures = Figures()  # type: ignore[call-arg]
    chosen: dict[str, dict[str, str]] = Field(default_factory=dict, exclude=True)

    def trial(self, scenario: str, method: Method) -> Trial:
        """Return the trial that is shown: the chosen one (any, before the choice is known), or the only one."""
        trials = method.trials[scenario]
        name = self.chosen.get(scenario, {}).get(method.name, trials[0].name)
        point, chosen = next(trial for trial in trials if trial.name == name), method.chosen.get(scenario)
        settings = {"name", "rate", "recovery_rate", "values"}
        return chosen.model_copy(update=point.model_dump(include=settings)) if chosen else point

    def trials(self, scenario: str, method: Method) -> tuple[Trial, ...]:
        """Return the trials that are shown: the chosen one, or all."""
        return (self.trial(scenario, method),) if self.chooses else method.trials[scenario]

    def scenario(self, name: str) -> Scenario:
        """Return a scenario by its name."""
        return next(scenario for scenario in self.scenarios if scenario.name == name)

    def at(self, name: str, scenario: str, trial: Trial | None = None) -> float | int | str | None:
        """Return a coordinate of a scenario, or what a trial's grid sets; None where neither has the name."""
        values = trial.values if trial else {}
        return self.scenario(scenario).at.get(name, values.get(name))

    def rows(self, scenario: str) -> list[tuple[str, Role, str]]:
        """Return (method, role, label) of every model that is shown for a scenario, in order."""
        rows: list[tuple[str, Role, str]] = []
        if ORIGINAL in self.stages:
            rows += [(ORIGINAL, ORIGINAL, "ω⁰")] if self.scenario(scenario).original else []
            rows += [(method.name, ORIGINAL, method.marked) for method in self.methods if method.trains]
        later: tuple[Role, ...] = ("unlearned", "recovered")
        for role in later:
            for method in self.methods if role in self.stages else ():
                models = self.trial(scenario, method).models
                if role in models:
                    mark = MARKS[role] if len(models) == 2 else ""
                    rows.append((method.name, role, f"{method.label}{mark}{'' if method.in_paper else ' *'}"))
        return rows

    @property
    def heading(self) -> str:
        """The title, marked where the paper has no such artefact or where other data stand for the paper's."""
        return self.title + ("" if self.in_paper else " (not in the paper)") + (f" [{self._on}]" if self._on else "")

    @property
    def tag(self) -> str:
        """What a picture says of itself where it is not made as the paper says: the preset, other data."""
        preset = "" if self.preset == "paper" or not self.scenarios else f"preset {self.preset}"
        return ", ".join(filter(None, [preset, self._on]))

    def heading_of(self, panel: str) -> str:
        """Return the heading of a panel of a picture: without what its tag says of all panels, [on digits]."""
        return re.sub(r" \[on [^]]*\]", "", panel) if self.replaced else panel

    @property
    def _on(self) -> str:
        """Which data stand for the paper's."""
        used = sorted({scenario.data for scenario in self.scenarios if scenario.replaces})
        return f"{'on' if self.replaced else 'partly on'} {', '.join(used)}" if used else ""

    @property
    def replaced(self) -> bool:
        """Whether every scenario has other data than the paper."""
        return bool(self.scenarios) and all(scenario.replaces for scenario in self.scenarios)

    @property
    def compares(self) -> bool:
        """Whether the paper's numbers stand beside ours: of other data they are not shown."""
        return bool(self.published) and not self.replaced

    @property
    def retraining(self) -> Method | None:
        """The method that retrains from scratch, if it is shown."""
        return next((method for method in self.methods if method.retrains), None)

    @property
    def setting(self) -> str:
        """One sentence on what the numbers were made with."""
        if not self.scenarios:
            return f"Preset {self.preset}; computed from the formulas alone, on no data."
        datasets = sorted({s.data + (f" in place of {s.replaces}" if s.replaces else "") for s in self.scenarios})
        seeds = f"{len(self.seeds)} seed{'s' if len(self.seeds) > 1 else ''} ({', '.join(map(str, self.seeds))})"
        if not self.reads:
            return (
                f"Preset {self.preset}; from the number of clients and samples alone ({', '.join(datasets)}); {seeds}."
            )
        rounds = [(one.rounds[0], one.rounds[1] or 0, one.requests) for one in self.scenarios]
        of: dict[str | None, set[tuple[int, int, int]]] = {}
        for about, scenario in zip(rounds, self.scenarios, strict=True):
            of.setdefault(scenario.family, set()).add(about)
        labels: dict[tuple[int, int, int], dict[str, None]] = {}
        for about, scenario in zip(rounds, self.scenarios, strict=True):
            alike = scenario.family if len(of[scenario.family]) == 1 else None  # one name for all of a family
            labels.setdefault(about, {})[alike or scenario.label.partition(" [")[0]] = None
        trained = "; ".join(
            f"{before} rounds of training"
            + (
                f" and {total} after the {f'first of {requests} requests' if requests > 1 else 'request'}"
                if total
                else ""
            )
            + (f" ({'; '.join(labels[before, total, requests])})" if len(labels) > 1 else "")
            for before, total, requests in sorted(labels)
        )
        models = ", ".join(dict.fromkeys(scenario.model for scenario in self.scenarios if scenario.model))
        return (
            f"Preset {self.preset}; data: {', '.join(datasets)}; {f'model: {models}; ' if models else ''}{trained}; "
            f"{seeds}."
        )

    @property
    def footnotes(self) -> str:
        """The marks of the rows, explained."""
        later = any(not method.trains for method in self.methods)
        text = "ω⁰: the original model; ¹ after unlearning; ² after post-training." if later else ""
        marked = [*(method.marked for method in self.methods), *(scenario.label for scenario in self.scenarios)]
        return f"{text} {'* not in the paper.' if any(' *' in label for label in marked) else ''}".strip()

    @property
    def definitions(self) -> str:
        """What the metrics are."""
        return " ".join(
            f"{metric.label}: {metric.formula}{f' ({metric.source})' if metric.source else ''}."
            for metric in self.metrics
        )
