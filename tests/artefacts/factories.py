"""An entry in memory and the frame that belongs to it, with numbers that are known by name.

One scenario, two seeds, two methods: `ours`, which the paper lacks, has a grid of three rates, of which one is chosen,
and post-training; `scratch`, the paper's, has one trial and none.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import inf, nan
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fu import plugins
from fu.artefacts.entry import HELD, ORIGINAL, Asked, Audit, Claim, Entry, Method, Relearning, Sampling, Scenario, Trial
from fu.artefacts.result import Result, write
from fu.pipeline.provenance import catalogue
from fu.pipeline.provenance.paths import PICTURES
from fu.seeds import derive_integer

COLUMNS = ["scenario", "method", "trial", "model", "seed", "stage", "round", "metric", "value", "device", "published"]
SEEDS = (0, 1)
RATES = (0.1, 0.2, 0.4)
CHOSEN = "ours+lr0.2"
ROUNDS = {"unlearned": range(3), "recovered": range(2, 5)}  # of a trace: before the first round, and after each
DEVICE = {"device": "toy", "threads": 1}
CLIENTS = 3  # of metrics that every client has
AUDITED = ("ulira_auc", "members_unlearned")
RELEARNED = ("forget_set_accuracy", "retained_accuracy")
EPSILON = ("ulira_epsilon", "ulira_epsilon_low", "ulira_epsilon_high", "ulira_epsilon_ceiling")
HARM = ("harm_near", "harm_test")
ENDS = (("low", -0.5), ("high", 1.0))
LOST = 3  # the round in which a run diverges

# Evaluation -> its metrics: two of them, as a scenario may have several.
_METRICS = {metric.name: metric for name in catalogue.available("evaluation") for metric in catalogue.metrics_of(name)}
OF_MODELS = [name for name, metric in _METRICS.items() if metric.per == "model" and name != "conflicts"]
EVALUATIONS = {"evaluation": OF_MODELS, "conflicts": ["conflicts"]}


def number(*name: int | str) -> float:
    """Return the number in [0, 1) of this name."""
    return derive_integer(*name) / 2**63


def make_trial(rate: float, values: Mapping[str, float | int | str] | None = None) -> Trial:
    """Return a trial of `ours`; `values` (default: the rate) are what the grid sets."""
    name = f"ours+lr{rate}"
    given = {"unlearning.lr": rate} if values is None else values
    models = {"trained": f"small/{ORIGINAL}", "unlearned": f"small/{name}", "recovered": f"small/{name}"}
    return Trial(name=name, rate=rate, recovery_rate=0.05, values=dict(given), **models)


def make_method(*trials: Trial) -> Method:
    """Return `ours` with these trials."""
    return Method(name="ours", label="Ours", in_paper=False, post_training="after", trials={"small": trials})


def make_scratch() -> Method:
    """Return `scratch`."""
    trial = Trial(name="scratch", rate=0.3, values={}, trained=f"small/{ORIGINAL}", unlearned="small/scratch")
    about = {"label": "Scratch", "in_paper": True, "post_training": "own", "retrains": True}
    return Method(name="scratch", trials={"small": (trial,)}, **about)


def scenario_of(name: str = "small", **about: Any) -> Scenario:
    """Return a scenario of this name on digits."""
    plain = {"name": name, "label": name.title(), "dataset": "digits", "data": "digits", "rounds": (2, 4)}
    return Scenario(**{**plain, **about})


def method_of(name: str, *places: str, trial: Mapping[str, Any] = MappingProxyType({}), **about: Any) -> Method:
    """Return a method of the paper with one trial, which unlearns, in each of these scenarios (default: small)."""
    plain = {"name": name, "rate": 0.1, "values": {}}
    trials = {place: (Trial(**{**plain, "unlearned": f"{place}/{name}", **trial}),) for place in places or ("small",)}
    given = {"label": name.title(), "in_paper": True, "post_training": "none", "trials": trials}
    return Method(name=name, **{**given, **about})


def training_of(name: str, *places: str, **about: Any) -> Method:
    """Return a training of the paper with one trial in each of these scenarios."""
    return method_of(name, *places, trial={"trained": name, "unlearned": ""}, trains=True, **about)


def make_entry(
    kind: str, *, rates: tuple[float, ...] = RATES, metrics: tuple[str, ...] | None = None, **changes: Any
) -> Entry:
    """Return the entry of an artefact of a kind, with these trials of `ours`; `changes`: other values of its fields.

    Where a kind compares trainings, `ours` and `scratch` are trainings.
    """
    declared = catalogue.declared("artefacts", kind)
    optima = bool(declared.get("OPTIMA"))
    compares = "against" in declared.get("NEEDS", ()) and not optima
    if metrics is None:
        metrics = ("client_accuracy",) if optima else ("r_acc",) if compares else ("asr", "r_acc")
    reads, chooses = catalogue.reads(kind), catalogue.chooses(kind)
    needs, measured = declared.get("NEEDS", ()), catalogue.measured(kind)
    ours = make_method(*(make_trial(rate) for rate in rates))
    scenario = scenario_of(
        at={"size": 8},
        original=Trial(name=ORIGINAL, rate=None, values={}, trained=f"small/{ORIGINAL}"),
        sampling=Sampling(clients=8, samples=6, clients_per_round=2, rounds=3, steps=2, batch_size=2),
        asked=Asked(level="client", number=1),
    )
    known = catalogue.metrics()
    metrics = RELEARNED if "relearning" in reads else metrics
    if catalogue.audited(kind):
        scored = ("exposed_auc",) if "exposed" in reads else ("ulira_auc",) if declared.get("SCORES") else AUDITED
        metrics = EPSILON if declared.get("FIRSTS") else HARM if declared.get("DIFFERENCES") else scored
    shown = tuple(known[name] for name in metrics) if measured else ()
    values: dict[str, Any] = {
        "paper": "toy",
        "artefact": "thing",
        "preset": "smoke",
        "kind": kind,
        "reads": reads,
        "chooses": chooses,
        "title": "A thing",
        "caption": "What it shows.",
        "citation": "Somebody 2024.",
        "in_paper": True,
        "published": None,
        "seeds": SEEDS,
        "metrics": shown,
        "spreads": tuple(known[metric.spread] for metric in shown if metric.spread),
        "stages": ("original", "unlearned", "recovered"),
        "scenarios": () if not reads and "scenarios" not in needs else (scenario,),
        "methods": (make_scratch(), ours) if measured else (),
        "x": "size" if "x" in needs else None,
        "chosen": {"small": {"ours": CHOSEN}} if chooses and len(rates) > 1 else {},
    }
    if "artefacts" in reads:
        values["claims"] = {"first": make_claim("Ours is above 0."), "second": make_claim("It is so again.")}
    if catalogue.audited(kind):
        used = catalogue.audits_with(metrics)
        values |= {"audits": {name: make_audit(name) for name in used}, "against": ("scratch",)}
        values |= {"also": catalogue.also(kind)}
        values["firsts"] = (4, 8) if declared.get("FIRSTS") else ()
    elif "relearning" in reads:
        about = Relearning(rounds=3, samples=5, repeats=len(SEEDS))
        values |= {"scenarios": (scenario.model_copy(update={"relearning": about}),), "against": ("scratch",)}
    elif declared.get("REPEATS"):
        values["against"] = ("scratch",)
    elif compares:
        values["scenarios"] = (scenario.model_copy(update={"at": {"p": 1, "n": 50}}),)
        values["methods"] = tuple(as_training(method) for method in values["methods"])
        values |= {"x": "p", "lines": ("n",), "against": ("scratch",), "stages": ("original",)}
    if catalogue.audited(kind) or "relearning" in reads:
        scratch, *several = values["methods"]
        several = [one.model_copy(update={"reference": "scratch"}) for one in several]
        if kind == "controls":
            several = [one.model_copy(update={"hides": True}) for one in several]
            shares = {"none": 0.0, "all": 1.0}
            ours = several[0]
            for name, left in shares.items():
                fixed: dict[str, Any] = {"trials": {"small": (make_trial(0.1),)}, "hides": False, "chosen": {}}
                several.append(ours.model_copy(update={**fixed, "name": name, "label": name, "left": ("partly", left)}))
        values["methods"] = (scratch, *several)
    if optima:
        best = as_training(make_scratch()).model_copy(update={"name": "best", "label": "Best"})
        values |= {"methods": (*values["methods"], best), "against": ("best", "scratch"), "x": None}
    return Entry(**{**values, **changes})


def make_audit(name: str) -> Audit:
    """Return an audit as its file declares it."""
    about, metrics = catalogue.declared("audits", name), catalogue.metrics_of(name, "audits")
    given = {"label": about["LABEL"], "score": about["SCORE"], "caveat": about["CAVEAT"]}
    given |= {"p": about.get("P", ""), "sees": about.get("SEES", ())}
    return Audit(plugin=name, metrics=tuple(metric.name for metric in metrics), **given)


def make_across(*trials: Trial, x: str = "unlearning.lr", **changes: Any) -> Entry:
    """Return the entry of all these trials of `ours` (default: one at each rate) across a setting of their grid."""
    ours = make_method(*(trials or [make_trial(rate, {x: rate}) for rate in RATES]))
    return make_entry("across", **{"chooses": False, "chosen": {}, "methods": (ours,), "x": x, **changes})


def as_training(method: Method) -> Method:
    """Return a training with the name and the trials of a method."""
    trials = {
        scenario: tuple(
            trial.model_copy(update={"trained": f"small/{trial.name}", "unlearned": "", "recovered": ""})
            for trial in found
        )
        for scenario, found in method.trials.items()
    }
    about = {"trains": True, "retrains": False, "post_training": "none"}
    return method.model_copy(update={**about, "trials": trials})


def make_frame(entry: Entry, published: Mapping[tuple[str, str, str], float] | None = None) -> pd.DataFrame:
    """Return the frame of an entry; `published`: the paper's numbers by method, stage and metric."""
    if "artefacts" in entry.reads:
        return judged({"first": {"small": [2.0, 3.0, 4.0]}, "second": {"small": [-1.0, 1.0]}})
    if "examples" in entry.reads:
        return pd.DataFrame(_examples())
    if "holdings" in entry.reads:
        return pd.DataFrame(_holdings())
    if "relearning" in entry.reads:
        return pd.DataFrame(_relearned(entry))
    rows: list[dict[str, Any]] = []
    if "exposed" in entry.reads:
        return pd.DataFrame(_exposed(entry))
    if entry.audits:
        rows = [*_audited(entry), *(_spent(entry) if entry.also else [])]
    evaluated = "evaluations" in entry.reads
    shown = _shown(entry) if (evaluated or "traces" in entry.reads) and not entry.audits else ()
    for scenario, method, trial, models in shown:
        for seed in entry.seeds:
            about = {"scenario": scenario, "method": method, "trial": trial, "seed": seed}
            found = _evaluated(entry, trial, models, seed) if evaluated else _traced(entry, models, seed)
            rows += [{**about, **row} for row in found]
    for one in entry.scenarios:
        if one.asked and one.asked.level == "sample" and one.sampling:
            rows += held(one.name, [one.sampling.samples] * one.sampling.clients)
    theirs = {"scenario": "small", "seed": -1, "round": -1, "published": True}
    for (method, stage, metric), value in (published or {}).items():
        rows.append({**theirs, "method": method, "stage": stage, "metric": metric, "value": value})
    frame = pd.DataFrame(rows, columns=[*COLUMNS[:8], "client", *COLUMNS[8:], "first", "run"])
    frame["published"] = frame["published"].eq(True).astype(bool)
    return frame.astype({"seed": int, "round": int, "value": float})


def judged(claims: Mapping[str, Mapping[str, Sequence[float]]], **changes: Any) -> pd.DataFrame:
    """Return the frame of verdicts: what each claim, which wants more than 0, makes of its rows by unit and seed."""
    about = {"against": "", "published": False, "low": 0.0, "high": inf, "exact": False}
    about |= {"error": nan, "ties": False, "reason": "", **changes}
    rows = [
        {"claim": claim, "unit": unit, "seed": seed, "value": value, **about}
        for claim, units in claims.items()
        for unit, values in units.items()
        for seed, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


def make_claim(text: str, **changes: Any) -> Claim:
    """Return a claim about an artefact `thing`."""
    about: dict[str, Any] = {"place": "Table 1", "artefact": "thing", "scenarios": ["small"], "kind": "limit"}
    params = {"of": {"method": "ours", "metric": "r_acc"}, "side": "above", "limit": 0}
    return Claim(**{"text": text, **about, "params": params, **changes})


def held(scenario: str, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Return the rows that say how many samples each client of a scenario trains on."""
    return [{"scenario": scenario, "seed": 0, "round": -1, "metric": HELD, "value": size} for size in sizes]


def _shown(entry: Entry) -> Iterator[tuple[str, str, str, dict[str, str]]]:
    for scenario in entry.scenarios:
        yield scenario.name, ORIGINAL, ORIGINAL, {ORIGINAL: f"small/{ORIGINAL}.trained"}
        for method in entry.methods:
            trials = method.trials[scenario.name]
            for trial in (entry.trial(scenario.name, method),) if entry.chooses else trials:
                yield scenario.name, method.name, trial.name, trial.models


def _audited(entry: Entry) -> Iterator[dict[str, Any]]:
    for (scenario, method, trial, models), first in product(_shown(entry), entry.firsts or (len(entry.seeds),)):
        if method not in (ORIGINAL, *entry.against):
            role, model = [*models.items()][-1]
            about = {"scenario": scenario, "method": method, "trial": trial, "seed": -1, "round": -1}
            about |= {"stage": role, "model": model, "first": first}
            yield {**about, "metric": "repeats", "value": len(entry.seeds)}
            for audit in entry.audits.values():
                of = {metric: number(trial, metric) for metric in audit.metrics}
                of |= {audit.p: of[audit.p] / 1000} if audit.p else {}
                of |= {f"ulira_epsilon_{end}": of["ulira_epsilon"] + by for end, by in ENDS} if entry.firsts else {}
                yield from ({**about, "metric": metric, "value": value} for metric, value in of.items())


def _relearned(entry: Entry) -> Iterator[dict[str, Any]]:
    """Yield curves under both attacks, and the original models' levels."""
    for scenario, method, trial, _ in _shown(entry):
        for seed, metric in product(entry.seeds, entry.metrics) if method != ORIGINAL else ():
            about = {"scenario": scenario, "method": method, "trial": trial, "seed": seed, "metric": metric.name}
            yield {**about, "attack": ORIGINAL, "round": 0, "value": number(trial, metric.name, seed)}
            for attack, round in product(("retained", "forgotten"), range(4)):
                value = number(trial, metric.name, seed, attack, round)
                yield {**about, "attack": attack, "round": round, "value": value}


def _spent(entry: Entry) -> Iterator[dict[str, Any]]:
    device = f"{DEVICE['device']}, {DEVICE['threads']} thread(s)"
    for (scenario, method, trial, models), seed in product(_shown(entry), entry.seeds):
        about = {"scenario": scenario, "method": method, "trial": trial, "seed": seed, "round": -1}
        for (stage, model), metric in product(models.items(), entry.also):
            if method not in (ORIGINAL, *entry.against):
                value = number(trial, stage, metric, seed)
                yield {**about, "stage": stage, "model": model, "metric": metric, "value": value, "device": device}


def _exposed(entry: Entry) -> Iterator[dict[str, Any]]:
    image, methods = np.linspace(0, 1, 64).reshape(8, 8, 1), [one for one in entry.methods if one.name != "scratch"]
    for method, (which, places) in product(methods, {"most": (1, 2), "least": (9, 10)}.items()):
        for place in places:
            trial = entry.trial("small", method).name
            margins = {kind: number(trial, kind, place) for kind in ("original", "retrained", "unlearned")}
            about = {"scenario": "small", "method": method.name, "exposed": which, "place": place, "of": 10}
            yield {**about, "sample": 100 + place, "label": place % 10, **margins, "pixels": image}


def _evaluated(entry: Entry, trial: str, models: dict[str, str], seed: int) -> Iterator[dict[str, Any]]:
    read = [*(metric.name for metric in entry.metrics), *catalogue.also(entry.kind)]
    of_clients = [name for name in read if name in _METRICS and _METRICS[name].per == "client"]
    for metrics, (stage, model) in product(EVALUATIONS.values(), models.items()):
        for metric in metrics:
            value = number(trial, stage, metric, seed)
            yield {"model": model, "stage": stage, "round": -1, "metric": metric, "value": value}
    for stage, model in models.items():
        about = {"model": model, "stage": stage, "round": -1}
        for metric, client in product(of_clients, range(CLIENTS)):
            values = {"client_samples": 10.0 + client, "client_forgotten": float(client == 1)}
            value = values.get(metric, number(trial, stage, metric, seed, client))
            yield {**about, "metric": metric, "client": client, "value": value}


def _traced(entry: Entry, models: dict[str, str], seed: int) -> Iterator[dict[str, Any]]:
    if ORIGINAL in models:
        return
    shares = ["predicted_0", "predicted_1"] if entry.kind == "classes" else []
    for metric in [*(metric.name for metric in entry.metrics), *shares]:
        for stage, model in models.items():
            for round in ROUNDS[stage]:
                value = number(model.rpartition("/")[2], metric, seed, round)
                yield {"model": model, "stage": stage, "round": round, "metric": metric, "value": value}
    device = f"{DEVICE['device']}, {DEVICE['threads']} thread(s)"
    for stage, model in models.items():
        spent = {"metric": "seconds", "value": 10 * number(model.rpartition("/")[2], "seconds", seed), "device": device}
        yield {"model": model, "stage": stage, "round": ROUNDS[stage][-1], **spent}


def _examples() -> Iterator[dict[str, Any]]:
    image = np.linspace(0, 1, 64).reshape(8, 8, 1)
    for k in range(2):
        about = {"scenario": "small", "client": 1, "sample": 7 + k, "label": k, "label_with_trigger": k + 5}
        yield {**about, "changed_pixels": 64, "changed": image[..., 0] >= 0, "clean": image, "marked": 1 - image}


def _holdings() -> Iterator[dict[str, Any]]:
    for client, label, train in ((0, 0, 5), (0, 1, 3), (1, 1, 4)):
        yield {"scenario": "small", "client": client, "label": label, "train": train}


def diverge(frame: pd.DataFrame, trial: str = CHOSEN, seeds: tuple[int, ...] = (0,)) -> pd.DataFrame:
    """Return the frame of runs that diverged in unlearning: no metrics, and no round of post-training."""
    if "trial" not in frame:
        return frame
    here = (frame["trial"] == trial) & frame["seed"].isin(seeds)
    if "attack" in frame:  # of relearning, in which such a seed has no rows
        return frame[~here]
    if (frame["round"] >= 0).any():  # of traces
        gone, seconds = here & (frame["stage"] == "recovered"), frame["metric"] == "seconds"
        left = frame[~gone | seconds].copy()
        left.loc[gone & seconds, "round"] = -1
        return left
    lost = frame[here].drop_duplicates(["seed", "stage"]).assign(metric="diverged_round", value=float(LOST))
    return pd.concat([frame[~here], lost], ignore_index=True)


class Drawn(Result):
    """What a kind made whose figure a test looks at."""

    figure: Figure


def made(entry: Entry, frame: pd.DataFrame | None = None) -> Drawn:
    """Return the artefact of an entry, from its own frame unless another is given."""
    found = plugins.load("artefacts", entry.kind).make(make_frame(entry) if frame is None else frame, entry)
    assert not re.search(r"\b(nan|inf)\b", found.body, re.IGNORECASE)
    return cast(Drawn, found)


def written(result: Result, entry: Entry, folder: Path) -> list[Path]:
    """Write the files into a folder."""
    suffixes = ("csv", "md", "html", "tex", *(PICTURES if result.figure else ()))
    files = [folder / f"thing.{suffix}" for suffix in suffixes]
    folder.mkdir(exist_ok=True)
    write(result, entry, *files)
    return files


def readable(text: str) -> bool:
    """Whether pdflatex reads the text: it knows ASCII and the letters of Western Europe but four."""
    return all(sign.isascii() or (sign.isalpha() and ord(sign) < 256 and sign not in "ÐÞðþ") for sign in text)


def cells(body: str) -> list[list[str]]:
    """Return the cells of all lines of tables in a text, headings included."""
    lines = [line for line in body.splitlines() if line.startswith("|") and not line.startswith("|:")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
