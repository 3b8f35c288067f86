"""Checks, before the first job, that everything a table or figure shows exists."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any, get_args

from fu import plugins
from fu.artefacts.auditing import LEVEL
from fu.artefacts.entry import FORGET_SET, ORIGINAL, Claim, Role
from fu.audits.models import smallest_p
from fu.claims.rows import Operand, ends
from fu.data.dataset import about
from fu.errors import UserError, nearest
from fu.pipeline.plan.checks import NEEDS, evaluations_with, setting_at, supporting
from fu.pipeline.plan.specs import RELEARNED, Trial, Trials
from fu.pipeline.provenance import catalogue
from fu.pipeline.settings.records import Artefact, Settings
from fu.plugins import Choice

HEADINGS = ("Method", "Rate")  # of tables, which no metric may have


class EntryChecks:
    """Checks of a table or figure of a paper; each raises `UserError` with one sentence."""

    def __init__(self, grid: Trials, paper: str, entry: Artefact, where: str) -> None:
        """`where`: its place in the paper's file."""
        self.grid, self.paper, self.entry, self.where = grid, paper, entry, where
        self.declared, self.reads = catalogue.declared("artefacts", entry.kind), catalogue.reads(entry.kind)
        self.kind = f"kind {entry.kind}"

    def wrong(self, text: str) -> UserError:
        """Return an error that begins with the place of the entry."""
        return UserError(f"{self.where}: {text}")

    def of(self, scenario: str, shown: str) -> list[Trial]:
        """Return the trials of a training or a method in a scenario."""
        return self.grid.of(f"{self.paper}/{scenario}", shown)

    def original(self, scenario: str) -> Settings:
        """Return the settings of a scenario's original model."""
        return self.grid.trials[f"{self.paper}/{scenario}", ORIGINAL].settings

    def at(self, scenario: str) -> Mapping[str, float | int | str]:
        """Return the coordinates of a scenario."""
        return self.grid.at[f"{self.paper}/{scenario}"]

    @cached_property
    def trials(self) -> dict[tuple[str, str], list[Trial]]:
        """The trials of each training and method in each scenario."""
        return {
            (scenario, one): self.of(scenario, one) for scenario in self.entry.scenarios for one in self.entry.shown
        }

    @property
    def axes(self) -> list[tuple[str, str]]:
        """The coordinates and settings that it is drawn over, each with the field that names it."""
        entry = self.entry
        fields = {"x": [entry.x] if entry.x else [], "lines": entry.lines, "panels": entry.panels}
        return [(field, key) for field, keys in fields.items() for key in keys]

    def complete(self) -> None:
        """Check that the entry has what its kind needs."""
        entry, declared = self.entry, self.declared
        if self.reads and "artefacts" not in self.reads and not entry.scenarios:
            raise self.wrong(f"{self.kind} needs scenarios; name at least one.")
        if catalogue.measured(entry.kind) and not (entry.shown and entry.metrics):
            raise self.wrong(f"{self.kind} needs methods (or trainings) and metrics; name at least one of each.")
        traced = declared.get("SUMMED") or [*catalogue.traced(), *catalogue.COUNTS]
        curves = "traces" in self.reads and not catalogue.audited(entry.kind)
        untraced = [metric for metric in entry.metrics if curves and metric not in traced]
        if untraced:
            what = "cannot be summed over rounds" if "SUMMED" in declared else "is not measured per round"
            raise self.wrong(f"{untraced[0]!r} {what}; allowed: {', '.join(traced)}.")
        marks = declared.get("MARKS", {})
        if entry.marks and entry.marks not in marks:
            raise self.wrong(f"marks: {self.kind} has no {entry.marks!r}{nearest(entry.marks, marks)}.")
        if entry.highlight and not catalogue.drawn(entry.kind, entry.marks):
            raise self.wrong(f"highlight: {self.kind} shows a table; a highlight is a figure.")
        for field in declared.get("NEEDS", ()):
            if not getattr(entry, field):
                raise self.wrong(f"{self.kind} needs {field}.")
        labels = [metric.label for name in entry.metrics if (metric := catalogue.metrics().get(name))]
        if twice := [label for label in labels if labels.count(label) > 1 or label in HEADINGS]:
            raise self.wrong(f"metrics: two columns would be called {twice[0]!r}; give your metric another label.")
        if entry.judges and "artefacts" not in self.reads:
            raise self.wrong(f"judges: not allowed for {self.kind}, only for kind verdicts.")

    def planned(self, seeds: Sequence[int]) -> None:
        """Check what the kind reads, once the trials are expanded."""
        if catalogue.audited(self.entry.kind):
            self.audited(seeds)
        elif {"evaluations", "traces"}.intersection(self.reads):
            self.drawn()
        if "relearning" in self.reads:
            self.relearned(seeds)
        if not self.reads:
            self.sampled()

    def drawn(self) -> None:
        """Check that the metrics, roles and grid points to be shown exist."""
        entry, declared, trials = self.entry, self.declared, self.trials
        needs = [NEEDS.get(metric, "data") for metric in entry.metrics]
        if not any(
            setting_at(trial.settings, need) for points in trials.values() for trial in points for need in needs
        ):
            raise self.wrong(f"no scenario has the metric {entry.metrics[0]!r}; it needs settings.{needs[0]}.")
        for (scenario, method), points in trials.items() if "traces" in self.reads else ():
            phase = "training" if method in entry.trainings else "unlearning"
            for trial in points:
                traced = setting_at(trial.settings, f"{phase}.traced")
                measured = [*(declared.get("SUMMED") or catalogue.COUNTS), *catalogue.traced(traced)]
                lacking = [metric for metric in entry.metrics if metric not in measured]
                lacking += [one for one in declared.get("TRACED", ()) if one not in traced]
                if lacking:
                    raise self.wrong(
                        f"{self.kind} needs {lacking[0]!r} of {scenario!r}: "
                        f"add its evaluator to settings.{phase}.traced."
                    )
        able = declared.get("MARKS", {}).get(entry.marks, get_args(Role))
        roles = [role for role in entry.stages if role in able]
        read = "evaluations" in self.reads and catalogue.chooses(entry.kind, entry.points)
        for scenario in entry.scenarios if read and entry.methods else ():
            recovers = any(trial.recovers for method in entry.methods for trial in trials[scenario, method])
            lacking = [role for role in roles if role == "recovered" and not recovers]
            if lacking == roles or (lacking and entry.marks):
                allowed = ", ".join(role for role in able if role != "recovered" or recovers)
                raise self.wrong(
                    f"stages: {entry.marks or self.kind} has no {(lacking or entry.stages)[0]!r} model for "
                    f"{scenario!r}; allowed: {allowed}."
                )
        if declared.get("OPTIMA"):
            self.optima()
        if declared.get("RETRAINS") and not any(points[0].retrains for points in trials.values()):
            raise self.wrong(f"methods: {self.kind} needs one that retrains from scratch.")
        if "REPEATS" in declared:
            self.repeats(declared["REPEATS"])
        shown = [method for method in entry.shown if method not in entry.against]
        for (field, key), scenario in product(self.axes, entry.scenarios):
            grids = {value for method in shown for trial in trials[scenario, method] for value in trial.values}
            if key not in (places := [*self.at(scenario), *sorted(grids)]):
                hint = nearest(key, places) if places else ""
                raise self.wrong(f"{field}: {key!r} is neither a coordinate of {scenario!r} nor in a grid{hint}.")
        for (scenario, method), points in trials.items() if entry.points == "all" else ():
            at = self.at(scenario)
            distinct = {tuple(at.get(key, trial.values.get(key)) for _, key in self.axes) for trial in points}
            if len(distinct) < len(points) and not declared.get("POINTS"):
                raise self.wrong(
                    f"points of {method!r} in {scenario!r} cannot be told apart; put every setting "
                    "that its grid varies in x, lines or panels."
                )

    def optima(self) -> None:
        """Check that models are compared with two optima: of all clients and of the retained clients.

        Each must have trained for as many rounds as any model that is shown.
        """
        entry = self.entry
        for scenario in entry.scenarios:
            of = {one: self.of(scenario, one) for one in entry.shown}
            again = [one for one in entry.against if of[one][0].retrains]
            trains = [one for one in entry.against if of[one][0].method is None]
            if [len(trains), len(again), len(entry.against)] != [1, 1, 2]:
                raise self.wrong(
                    f"against: {self.kind} needs a training of all clients and a method that "
                    f"retrains without the forgotten clients, got {', '.join(entry.against) or 'nothing'}."
                )
            rounds = {one: max(map(_trained, trials)) for one, trials in of.items()}
            others = [one for one in entry.shown if one not in entry.against]
            for one, other in product(entry.against, others):
                if rounds[one] < rounds[other]:
                    raise self.wrong(
                        f"against: {one!r} has {rounds[one]} rounds in {scenario!r}, fewer than "
                        f"{other!r} with {rounds[other]}; an optimum needs at least as many."
                    )

    def repeats(self, least: int) -> None:
        """Check that `against` lists only retrainings, and at least `least` repeats for every training."""
        entry, trials = self.entry, self.trials
        others = [one for (_, one), points in trials.items() if one in entry.against and not points[0].retrains]
        if others:
            raise self.wrong(f"against: {others[0]!r} is not a retraining; {self.kind} needs repeats of one.")
        for (scenario, one), [first, *_] in trials.items():
            again = [other for other in entry.against if trials[scenario, other][0].training == first.training]
            if len(again) < least:
                raise self.wrong(
                    f"against: {self.kind} needs at least {least} repeats of retraining by {first.training!r}, "
                    f"which {one!r} starts from, got {len(again)}."
                )
            if one not in entry.against:
                continue
            same = [other for other in again if trials[scenario, other][0].params == first.params]
            if len(same) > 1:
                raise self.wrong(f"against: {' and '.join(same[:2])} are identical; give each its own params.repeat.")
            rounds, wanted = _trained(first), first.settings.training.rounds
            if rounds < wanted:
                raise self.wrong(
                    f"against: {one!r} has {rounds} rounds in {scenario!r}, fewer than the {wanted} of the "
                    "original model, which it replaces."
                )

    def sampled(self) -> None:
        """Check that scenarios that are not trained have the settings of client sampling and valid axes."""
        for scenario in self.entry.scenarios:
            training = self.original(scenario).training
            if training.clients_per_round is None or training.local_steps is None:
                raise self.wrong(
                    f"{self.kind} needs settings.training.clients_per_round and local_steps of {scenario!r}."
                )
        self.placed()

    def placed(self) -> None:
        """Check that `x` is a coordinate of every scenario, and each of `lines` and `panels` of at least one."""
        places = [self.at(scenario) for scenario in self.entry.scenarios]
        for field, key in self.axes:
            known_by = [key in at for at in places]
            if not (all(known_by) if field == "x" else any(known_by)):
                of = f"{self.entry.scenarios[known_by.index(False)]!r}" if field == "x" else "any scenario"
                short = sorted({short for at in places for short in at})
                hint = nearest(key, short) if short else ""
                raise self.wrong(f"{field}: {key!r} is not a coordinate of {of}{hint}.")

    def evaluated(self, scenario: str) -> None:
        """Check that the evaluations of a scenario measure every metric to be shown."""
        entry = self.entry
        first = next((trial for shown in entry.shown for trial in self.of(scenario, shown)), None)
        if first is None or "evaluations" not in self.reads:  # a preset may leave all of them out of a scenario
            return
        for metric in entry.metrics:
            if not evaluations_with([metric], first.settings.evaluations):
                raise self.wrong(f"no evaluation of {scenario!r} has the metric {metric!r}; add its evaluator.")
            if catalogue.metrics()[metric].per == "model":
                continue
            if not self.declared.get("CLIENTS"):
                raise self.wrong(
                    f"{self.kind} cannot show {metric!r}, which has a value per client; allowed: "
                    f"{supporting('artefacts', 'CLIENTS')}."
                )
            if first.settings.data.test == "global":
                raise self.wrong(f"{metric!r} needs a test set per client; set data.test: clients.")

    def audited(self, seeds: Sequence[int]) -> None:
        """Check that the seeds of every scenario are repeats of one request, and enough for every audit.

        Each training that a method starts from needs its own retraining in `against`.
        """
        entry, declared = self.entry, self.declared
        audits = catalogue.available("audits")
        home = {metric.name: audit for audit in audits for metric in catalogue.metrics_of(audit, "audits")}
        for metric in entry.metrics:
            if metric not in home:
                raise self.wrong(f"no audit has the metric {metric!r}{nearest(metric, home)}.")
            if len(seeds) < (least := catalogue.declared("audits", home[metric])["LEAST"]):
                raise self.wrong(
                    f"{metric!r} needs at least {least} repeats, got {len(seeds)} "
                    f"seed{'s' * (len(seeds) != 1)}; use more seeds, or leave this paper out (PAPERS=..., or papers in "
                    "config.yaml)."
                )
        if declared.get("FIRSTS"):
            lacking = [end for end in ends(entry.metrics[0]) if end not in entry.metrics]
            if lacking:
                raise self.wrong(f"metrics: {self.kind} needs {lacking[0]!r} as well as {entry.metrics[0]!r}.")
        if declared.get("SCORES"):
            scores = {catalogue.declared("audits", audit)["SCORE"] for audit in home.values()}
            self._each(sorted(scores), "an audit's score")
        if declared.get("DIFFERENCES"):
            differences = [one for one in home if {*ends(one), f"{one}_worse", f"{one}_p"} <= {*home}]
            self._each(differences, "differences that have an interval and a p-value")
        self.placed()
        pictures = "exposed" in self.reads
        if pictures:
            self.pictured(home)
        for scenario in entry.scenarios:
            self.repeated(scenario)
            data = self.original(scenario).data
            if pictures and about(data.dataset).text:
                raise self.wrong(f"{self.kind} needs images, but {data.dataset} of {scenario!r} has text.")
            firsts = {one: self.of(scenario, one)[0] for one in entry.methods}
            for one, trial in firsts.items():
                key, value = trial.declared.get("TESTS", ("", ""))  # by default no method reads them (tests/contract)
                if key and trial.params.get(key) == value:
                    raise self.wrong(
                        f"methods: {one!r} reads test samples ({key}: {value}), which audits probe; leave it out."
                    )
            left = {trial.params.get(trial.declared.get("LEFT", "")) for trial in firsts.values()}
            if not (pictures or {0, 1} <= left):
                raise self.wrong(
                    f"methods: {self.kind} needs two controls to validate the audits: one without the "
                    "forgotten client (retrain_partly with share: 0) and one with all of its data (share: 1)."
                )
        if {"FIRSTS", "SCORES", "DIFFERENCES"} & {*declared}:
            return
        # controls are corrected apart
        known = Counter(
            bool({"LEFT", "CONTROL"} & {*firsts[one].declared}) for one in firsts if one not in entry.against
        )
        deciding = {home[metric] for metric in entry.metrics if "P" in catalogue.declared("audits", home[metric])}
        tests = len(entry.scenarios) * max(known.values(), default=0) * len(deciding)
        if tests * smallest_p(len(seeds)) >= LEVEL:
            raise self.wrong(
                f"{len(seeds)} repeats cannot decide {tests} tests, as no p-value can be below {LEVEL} once it is "
                "corrected for all; use more seeds, or fewer methods, scenarios or metrics, or leave this paper out "
                "(PAPERS=..., or papers in config.yaml)."
            )

    def _each(self, able: Sequence[str], what: str) -> None:
        """Check that every metric is one of the allowed ones."""
        if wrong := next((one for one in self.entry.metrics if one not in able), None):
            raise self.wrong(f"metrics: {self.kind} needs {what}, and {wrong!r} is none; allowed: {', '.join(able)}.")

    def relearned(self, seeds: Sequence[int]) -> None:
        """Check that models of at least two seeds can relearn, and that what they relearn is measured."""
        entry = self.entry
        measured = [metric for one in RELEARNED for metric in catalogue.declared("evaluation", one)["TRACE"]]
        for metric in entry.metrics:
            if metric not in measured:
                raise self.wrong(
                    f"{metric!r} is not measured in relearning{nearest(metric, measured)}; allowed: "
                    f"{', '.join(measured)}."
                )
        if FORGET_SET not in entry.metrics:
            raise self.wrong(f"metrics: {self.kind} needs {FORGET_SET}.")
        for scenario in entry.scenarios:
            self.repeated(scenario)
            data, training = self.original(scenario).data, self.original(scenario).relearning
            if data.forget is None or data.forget.samples:
                raise self.wrong(f"{scenario!r} needs data.forget.clients: {self.kind} trains the forgotten clients.")
            if "asr" in entry.metrics and data.attack is None:
                raise self.wrong(f"asr needs data.attack, which {scenario!r} does not have.")
            if (number := len(seeds[: training.repeats])) < 2:
                raise self.wrong(f"{self.kind} needs at least 2 repeats of {scenario!r}, got {number}.")
            _, train, held_out = data.fewest
            if training.samples >= train - held_out:
                raise self.wrong(
                    f"relearning.samples of {scenario!r}: {training.samples} of the smallest client's at most "
                    f"{train - held_out} training samples leave none to measure on; use fewer."
                )

    def repeated(self, scenario: str) -> None:
        """Check that the seeds of a scenario are repeats, and that `against` lists the reference of every method.

        One that trains from scratch needs a reference with as many rounds.
        """
        entry = self.entry
        of = {one: self.of(scenario, one)[0] for one in entry.shown}
        data = next(iter(of.values())).settings.data
        if not data.one_partition:
            raise self.wrong(f"{scenario!r} needs data.one_partition: true, so that its seeds are repeats.")
        if data.forget is None:
            raise self.wrong(f"{scenario!r} needs data.forget.")
        if wrong := next((one for one in entry.against if not of[one].retrains), None):
            raise self.wrong(f"against: {wrong!r} is not a retraining; {self.kind} compares only with retrainings.")
        for one in entry.methods:
            again = self.grid.reference(f"{self.paper}/{scenario}", one, entry.against)
            if again is None:
                method = of[one].method
                own = method and method.reference
                lacking = repr(own) if own else f"retraining of {of[one].training!r}"
                raise self.wrong(f"against: lists no {lacking}, with which {one!r} is compared.")
            rounds, whole = (of[name].settings.total_rounds for name in (one, again))
            if of[one].declared.get("FROM_SCRATCH") and rounds != whole:
                raise self.wrong(
                    f"methods: {one!r} trains from scratch for {rounds} rounds, but its reference {again!r} for "
                    f"{whole}; name one with as many."
                )

    def pictured(self, home: Mapping[str, str]) -> None:
        """Check that exactly one audit that ranks samples and one method are named; `home`: metric -> audit."""
        entry = self.entry
        able = [one for one in catalogue.available("audits") if catalogue.defines("audits", one, "indices")]
        if len(used := {home[metric] for metric in entry.metrics}) != 1 or not used <= {*able}:
            allowed = ", ".join(metric for metric, audit in home.items() if audit in able)
            raise self.wrong(f"metrics: {self.kind} needs a metric of one audit that ranks samples: {allowed}.")
        shown = [one for one in entry.methods if one not in entry.against]
        if len(shown) != 1:
            raise self.wrong(f"methods: {self.kind} needs exactly one, got {', '.join(shown) or 'none'}.")

    def claimed(self, claim: Claim, stated: Mapping[str, Sequence[Any]]) -> None:
        """Check that the table or figure has the rows that a claim reads; a preset may leave out grid values.

        `stated`: the values that the paper itself gives the settings of its grids.
        """
        entry, place = self.entry, claim.artefact
        catalogue.check("claims", claim.kind, self.where)
        p = plugins.params("claims", Choice(name=claim.kind, params=claim.params), self.where)
        made = self.declared.get("BY_SEED", ())
        if not {"evaluations", "traces"}.intersection(self.reads) and not made:
            raise self.wrong(f"{self.kind} has no per-seed rows; choose another table or figure.")
        audited, judges = catalogue.audited(entry.kind), catalogue.declared("claims", claim.kind)
        if judges.get("INTERVAL") and not audited:
            raise self.wrong(f"kind {claim.kind} judges audit results, but {place} has none.")
        if audited and not {"EXACT", "INTERVAL"} & judges.keys():
            raise self.wrong(f"kind {claim.kind} judges seeds, but audits have none; allowed: exact, interval.")
        metrics = [one for one in entry.metrics if catalogue.metrics()[one].per == "model"] + [*made]
        along, all_points = getattr(p, "along", None), not catalogue.chooses(entry.kind, entry.points)
        keys = {key for scenario in claim.scenarios for key in self.at(scenario)} | {*(stated if all_points else ())}
        for one in plugins.load("claims", claim.kind).operands(p):
            for what, value, several in (
                ("method", one.method, [ORIGINAL, *entry.shown]),
                ("metric", one.metric, metrics),
            ):
                if value not in several:
                    raise self.wrong(f"{place} has no {what} {value!r}{nearest(value, several)}.")
            for key in (*one.at, *filter(None, [along])) if claim.scenarios else ():  # a preset may leave out all
                if key not in keys:
                    raise self.wrong(f"rows of {place} have no {key!r}{nearest(key, keys)}.")
            for scenario in claim.scenarios if one.method != ORIGINAL else ():
                trials = self.of(scenario, one.method)
                stages = [ORIGINAL] if trials[0].method is None else ["unlearned"] + ["recovered"] * trials[0].recovers
                if one.stage not in (None, *stages):
                    raise self.wrong(
                        f"{place}: {one.method!r} has no stage {one.stage!r}; allowed: {', '.join(stages)}."
                    )
                if all_points:
                    check_point(one, trials, stated, along, f"{self.where}: {place}")


def check_point(
    one: Operand, trials: Sequence[Trial], stated: Mapping[str, Sequence[Any]], along: str | None, where: str
) -> None:
    """Raise `UserError` where a claim names no point of a grid, or several."""
    wanted = {key: value for key, value in one.at.items() if key in stated}
    for key, value in wanted.items():
        values = [*dict.fromkeys([*stated[key], *(trial.values.get(key) for trial in trials)])]
        if value not in values:
            allowed = ", ".join(map(str, values))
            raise UserError(f"{where}: {one.method!r} has no point {key} = {value}; allowed: {allowed}.")
    matching = [trial for trial in trials if all(trial.values.get(key) == value for key, value in wanted.items())]
    if len(matching) > (len({trial.values.get(str(along)) for trial in matching}) if along in stated else 1):
        varied = ", ".join(sorted({key for trial in matching for key in trial.values} - {*wanted, along}))
        raise UserError(f"{where}: {one.method!r} has {len(matching)} points; select one with at: {varied}.")


def _trained(trial: Trial) -> int:
    """Return for how many rounds the model of a trial was trained in all."""
    after = trial.settings.total_rounds or 0
    if trial.method is None:
        return trial.settings.training.rounds
    return after if trial.retrains else trial.settings.training.rounds + after
