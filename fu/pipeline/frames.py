"""The tidy data frame behind a table or figure: its input files and their rows.

Columns: scenario, method, trial, model, seed, stage, round, metric, client, value, device, published, first. Rows with
`published` are the paper's own numbers. Seed and round are -1 where a row has none, client is NaN; `device` is given
with the seconds of a run, `first` (how many of the first repeats were audited) with audit results.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from fu import plugins
from fu.artefacts.entry import HELD, ORIGINAL, SECONDS, Entry, Scenario, Trial
from fu.artefacts.rows import FORMULAS
from fu.artefacts.words import took_hold
from fu.data import archives, partition
from fu.errors import UserError
from fu.evaluation.trace import COUNTS, TIMES
from fu.pipeline.paths import Paths

if TYPE_CHECKING:
    from torch import Tensor

    from fu.audits.models import Models
    from fu.data.dataset import Dataset

COLUMNS = [
    *("scenario", "method", "trial", "model", "seed", "stage", "round"),
    *("metric", "client", "value", "device", "published", "first"),
]
COMPARED = ("forgotten", "retained")  # probes on which models are compared
BACKDOOR = ("asr", "asr_validation")  # metrics that say nothing where the backdoor did not take hold
SILENT = "no numbers: runs diverged, the preset leaves them out, or an audit fails its own controls or has none"
EXAMPLES = 4  # samples of a forgotten client in the frame of a `data` artefact
EXPOSED = 7  # pictures of those that are most exposed, and as many of those that are least


class Shown(NamedTuple):
    """A trial of a training or a method (or the original model) in a scenario."""

    scenario: str
    method: str
    trial: Trial


def shown(entry: Entry) -> list[Shown]:
    """Return every trial that an artefact may show, in the order of its rows."""
    trials = []
    for scenario in entry.scenarios:
        trials += [Shown(scenario.name, ORIGINAL, scenario.original)] if scenario.original else []
        for method in entry.methods:
            trials += [Shown(scenario.name, method.name, trial) for trial in entry.trials(scenario.name, method)]
    return trials


def inputs(entry: Entry, paths: Paths) -> list[str]:
    """Return the files that an artefact is made from, other than the published numbers and the costs."""
    files: list[str] = []
    if entry.reads == "data":
        for scenario in entry.scenarios:
            files.append(paths("data", "archive", dataset=scenario.dataset))
            files.append(_partition(entry, paths, scenario))
    elif entry.reads == "artefacts":
        files += [paths("publish", "rows", paper=entry.paper, artefact=name) for name in _judged(entry)]
    elif entry.reads == "repeats":
        files += [_predicted(entry, paths, place) for part in shown(entry) for place in part.trial.predicted]
        files += list(selections(entry, paths).values())
        for part in _tested(entry) if entry.also else ():
            files += [path for seed in entry.seeds for _, _, path in _traced(entry, paths, part, seed)]
        for scenario in entry.scenarios if entry.pictures else ():
            files += [paths("data", "archive", dataset=scenario.dataset), _partition(entry, paths, scenario)]
    elif entry.reads == "relearned":
        files += [_relearned(entry, paths, part) for part in _attacked(entry)]
        files += list(selections(entry, paths).values())
    else:
        for part in shown(entry):
            for seed in entry.seeds:
                files += _files(entry, paths, part, seed)
                files += [_predictions(entry, paths, part, seed)] if entry.predictions else []
        files += [_partition(entry, paths, scenario) for scenario in _sized(entry)]
        files += list(selections(entry, paths).values())
    return list(dict.fromkeys(files))


def costs(entry: Entry, paths: Paths) -> list[str]:
    """Return the cost files of the models behind an artefact, for its provenance and for run times."""
    if entry.reads not in ("evaluations", "traces", "repeats", "relearned"):
        return []
    models = [model for part in shown(entry) for model in part.trial.models.values()]
    return list(dict.fromkeys(_model(entry, paths, model, seed, "cost") for model in models for seed in entry.seeds))


def selections(entry: Entry, paths: Paths) -> dict[tuple[str, str], str]:
    """Return, by scenario and method, the file that names the chosen one of several trials."""
    return {
        (scenario, method.name): _selection(entry, paths, trial.selection)
        for method in entry.methods
        for scenario, trial in sorted(method.chosen.items())  # as in a spec that a job reads, whose keys are sorted
    }


def with_choice(entry: Entry, paths: Paths) -> Entry:
    """Return the entry with the trials that were chosen."""
    chosen: dict[str, dict[str, str]] = {}
    points = {(scenario, m.name): trial.points for m in entry.methods for scenario, trial in m.chosen.items()}
    for (scenario, method), path in selections(entry, paths).items():
        try:
            selected = json.loads(Path(path).read_text())["selected"]
            chosen.setdefault(scenario, {})[method] = points[scenario, method][selected]
        except (OSError, json.JSONDecodeError, KeyError):
            raise UserError(f"{path}: the file is missing or damaged; delete it and run snakemake again.") from None
    return entry.model_copy(update={"chosen": chosen})


def read(entry: Entry, paths: Paths, published: Path | None) -> pd.DataFrame:
    """Return the frame of an entry with its chosen trials."""
    if entry.reads == "data":
        return pd.DataFrame(_examples(entry, paths) if entry.attacks else _held(entry, paths))
    if entry.reads == "relearned":
        return pd.concat([_came_back(entry, paths, part) for part in _attacked(entry)], ignore_index=True)
    if entry.reads == "artefacts":
        of = {name: _csv(Path(path)) for name, path in zip(_judged(entry), inputs(entry, paths), strict=True)}
        return pd.concat([_statistics(entry, name, of) for name in entry.claims], ignore_index=True)
    if entry.pictures:
        return pd.DataFrame([row for scenario in entry.scenarios for row in _exposed(entry, paths, scenario)])
    parts = [_audits(entry, paths, scenario) for scenario in entry.scenarios] if entry.reads == "repeats" else []
    if entry.reads == "repeats" and entry.also:
        parts.append(pd.DataFrame(_spending(entry, paths)))
    for part in shown(entry) if entry.reads in ("evaluations", "traces") else ():
        for seed in entry.seeds:
            rows = (
                _evaluations(entry, paths, part, seed)
                if entry.reads == "evaluations"
                else _traces(entry, paths, part, seed)
            )
            parts.append(rows.assign(scenario=part.scenario, method=part.method, trial=part.trial.name, seed=seed))
    if entry.predictions:
        parts += [_agreement(entry, paths, scenario, seed) for scenario in entry.scenarios for seed in entry.seeds]
    for scenario in _sized(entry):
        held = partition.load(Path(_partition(entry, paths, scenario)))
        about = {"scenario": scenario.name, "metric": HELD, "seed": entry.seeds[0], "round": -1}
        parts.append(pd.DataFrame([{**about, "value": len(held.train[client])} for client in held.present]))
    if published:
        parts.append(_csv(published).assign(published=True, seed=-1, round=-1))
    frame = pd.concat(parts, ignore_index=True).reindex(columns=COLUMNS) if parts else pd.DataFrame(columns=COLUMNS)
    frame["published"] = frame["published"] == True  # noqa: E712 (NaN in our own rows)
    return frame.astype({"seed": int, "round": int, "value": float})


def _judged(entry: Entry) -> list[str]:
    """Return the artefacts that an entry's claims are about."""
    return sorted({claim.artefact for claim in entry.claims.values()})


def _statistics(entry: Entry, name: str, of: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return what a claim's predicate makes of the rows of its artefact, ours and the paper's, and what is not judged.

    `of`: artefact -> its rows.
    """
    claim = entry.claims[name]
    kind = plugins.load("claims", claim.kind)
    p = plugins.params("claims", plugins.Choice(name=claim.kind, params=claim.params), f"claims.{name}")
    rows = of[claim.artefact]
    rows = rows[rows["scenario"].isin([*claim.scenarios, FORMULAS])]
    attacked = any(one.metric in BACKDOOR for one in kind.operands(p))
    rates, printed = (_backdoors([*of.values()], attacked, published) for published in (0, 1))
    out = {one: why for one in claim.scenarios if (why := _excluded(entry.scenario(one), rates))}
    own = rows[(rows["published"] == 0) & ~rows["scenario"].isin(out)]
    judged = kind.statistics(_that_took_hold(own, rates), p)
    units = set(judged["unit"])
    if units <= {*claim.scenarios}:  # else scenarios along a coordinate are one unit
        out |= {one: SILENT for one in claim.scenarios if one not in {*units, *out}}
    elif FORMULAS not in units:
        known = {name for one in kind.operands(p) for name in one.pick(own)["scenario"]}
        out |= {one: SILENT for one in claim.scenarios if one not in {*known, *out}}
    if not (units or out):
        out[claim.artefact] = SILENT
    reasons = pd.DataFrame([*out.items()], columns=["unit", "reason"])
    theirs = kind.statistics(_that_took_hold(rows[rows["published"] == 1], printed), p)
    parts = [judged, theirs.assign(published=True), reasons]
    least, most = kind.region(p)
    about = {"claim": name, "low": least, "high": most}
    about |= {flag.lower(): getattr(kind, flag, False) for flag in ("EXACT", "TIES")}
    found = pd.concat([part for part in parts if len(part)], ignore_index=True)
    found = found.reindex(columns=[*judged.columns, "published", "reason"]).assign(**about)
    found["published"] = found["published"] == True  # noqa: E712 (NaN in our own rows)
    return found.assign(**{text: found[text].astype(object).fillna("") for text in ("reason", "against")})


def _backdoors(of: list[pd.DataFrame], attacked: bool, published: int) -> pd.Series:
    """Return the original model's ASR by scenario and seed, from the rows of artefacts, ours or the paper's."""
    if not attacked:
        return pd.Series(dtype=float)
    rows = pd.concat(of, ignore_index=True)
    own = rows[(rows["method"] == ORIGINAL) & (rows["metric"] == "asr") & (rows["published"] == published)]
    return own[np.isfinite(own["value"])].groupby(["scenario", "seed"])["value"].mean()


def _that_took_hold(rows: pd.DataFrame, rates: pd.Series) -> pd.DataFrame:
    """Return the rows without the scenarios and seeds in which the backdoor did not take hold."""
    low = rates.index[~rates.map(took_hold).astype(bool)]
    return rows[~pd.MultiIndex.from_frame(rows[["scenario", "seed"]]).isin(low)]


def _excluded(scenario: Scenario, rates: pd.Series) -> str:
    """Return why a claim is not judged in a scenario, or ""; `rates`: the backdoors that it is about."""
    if scenario.replaces:
        return f"{scenario.data} in place of {scenario.replaces}"
    own = rates[rates.index.get_level_values(0) == scenario.name] if len(rates) else rates
    if len(own) and not own.map(took_hold).any():
        return f"the backdoor did not take hold: ω⁰ has an ASR of {own.mean():.3f}"
    return ""


def _sized(entry: Entry) -> list[Scenario]:
    """Return the scenarios in which samples are asked for: each is as likely as any other, so that sizes count."""
    return [scenario for scenario in entry.scenarios if scenario.asked and scenario.asked.level == "sample"]


def _selection(entry: Entry, paths: Paths, place: str) -> str:
    scenario, _, method = place.rpartition("/")
    return paths("select", "selection", scenario=f"{entry.paper}/{scenario}", method=method)


def _partition(entry: Entry, paths: Paths, scenario: Scenario) -> str:
    return paths("partition", "partition", run=f"{entry.paper}/{scenario.partition}/seed{entry.seeds[0]}")


def _model(entry: Entry, paths: Paths, model: str, seed: int, output: str) -> str:
    """Return a file of a model, as a trial names it, on one seed."""
    scenario, _, name = model.rpartition("/")
    return paths.model(f"{entry.paper}/{scenario}/seed{seed}", name, output)


def _evaluation(entry: Entry, paths: Paths, place: str, seed: int, output: str = "evaluation") -> str:
    scenario, _, name = place.rpartition("/")
    trial, _, evaluation = name.rpartition(".")
    run = f"{entry.paper}/{scenario}/seed{seed}"
    return paths("evaluate", output, run=run, trial=trial, evaluation=evaluation)


def _predictions(entry: Entry, paths: Paths, part: Shown, seed: int) -> str:
    """Return what a trial's models predict: any of its evaluations has it."""
    return _evaluation(entry, paths, part.trial.evaluated[0], seed, "predictions")


def _files(entry: Entry, paths: Paths, part: Shown, seed: int) -> list[str]:
    if entry.reads == "evaluations":
        return [_evaluation(entry, paths, place, seed) for place in part.trial.evaluated]
    return [path for _, _, path in _traced(entry, paths, part, seed)] if entry.reads == "traces" else []


def _traced(entry: Entry, paths: Paths, part: Shown, seed: int) -> list[tuple[str, str, str]]:
    """Return role, model and trace of each model whose rounds are shown; of the original model alone none are."""
    if part.method == ORIGINAL:
        return []
    models = part.trial.models
    if entry.from_training and ORIGINAL not in models:
        models = {ORIGINAL: f"{part.trial.trained}.trained", **models}
    return [(role, model, _model(entry, paths, model, seed, "trace")) for role, model in models.items()]


def _evaluations(entry: Entry, paths: Paths, part: Shown, seed: int) -> pd.DataFrame:
    rows = pd.concat([_csv(Path(path)) for path in _files(entry, paths, part, seed)], ignore_index=True)
    rows = rows[rows["client"].isna() | rows["metric"].isin([*(metric.name for metric in entry.metrics), *entry.also])]
    rows = rows.rename(columns={"role": "stage"})
    rows = rows.drop_duplicates(["stage", "metric", "client"])  # each evaluation reports a divergence
    if SECONDS in entry.also:
        spent = [{"stage": role, **_spent(entry, paths, model, seed)} for role, model in part.trial.models.items()]
        rows = pd.concat([rows, pd.DataFrame(spent)], ignore_index=True)
    return rows.assign(model=rows["stage"].map(part.trial.models), round=-1)


def _spent(entry: Entry, paths: Paths, model: str, seed: int) -> dict[str, Any]:
    """Return the row of the seconds that a model took, and on what device."""
    cost = json.loads(Path(_model(entry, paths, model, seed, "cost")).read_text())
    return {"metric": SECONDS, "value": cost["seconds"], "device": f"{cost['device']}, {cost['threads']} thread(s)"}


def _agreement(entry: Entry, paths: Paths, scenario: Scenario, seed: int) -> pd.DataFrame:
    """Return how far each model of a run is from the last ones of the other methods in `against`, on average.

    These are the ones that start from the same trained model. A model that diverged predicts nothing: it has no rows
    and is in no average.
    """
    from fu.evaluation import predictions
    from fu.evaluation.agreement import disagreement, total_variation

    models = [
        (part, role, predictions.load(Path(_predictions(entry, paths, part, seed)), role))
        for part in shown(entry)
        if part.scenario == scenario.name
        for role in part.trial.models
    ]
    last = [(part, says) for part, role, says in models if role == [*part.trial.models][-1]]
    rows = []
    for part, role, says in models:
        others = [
            theirs
            for other, theirs in last
            if other.method in entry.against
            and other.method != part.method
            and other.trial.trained == part.trial.trained
        ]
        about = {"scenario": scenario.name, "method": part.method, "trial": part.trial.name, "seed": seed, "round": -1}
        about |= {"stage": role, "model": part.trial.models[role]}
        for name, compared in (("disagreement", disagreement), ("variation", total_variation)):
            for probe in COMPARED:
                values = [
                    compared(says[probe], theirs[probe]) for theirs in others if probe in says and probe in theirs
                ]
                rows += [{**about, "metric": f"{name}_{probe}", "value": fmean(values)}] if values else []
    return pd.DataFrame(rows)


def _predicted(entry: Entry, paths: Paths, place: str) -> str:
    scenario, _, trial = place.rpartition("/")
    return paths("predict", "predictions", scenario=f"{entry.paper}/{scenario}", trial=trial)


def _audits(entry: Entry, paths: Paths, scenario: Scenario) -> pd.DataFrame:
    """Return what every audit says of the models of each method, whether it finds anything, and how many models it has.

    Where the entry names numbers of `firsts`, it is said of so many of the first repeats, too.
    """
    models, rows = _models(entry, paths, scenario), []
    for first in entry.firsts or (len(entry.seeds),):
        said = _said(entry, {method: of.first(first) for method, of in models.items()})
        for part in (one for one in _tested(entry) if one.scenario == scenario.name):
            role, model = [*part.trial.models.items()][-1]
            about = {"scenario": scenario.name, "method": part.method, "trial": part.trial.name, "seed": -1}
            about |= {"round": -1, "stage": role, "model": model, "first": first}
            rows += [{**about, "metric": metric, "value": value} for metric, value in said[part.method].items()]
    return pd.DataFrame(rows)


def _tested(entry: Entry) -> list[Shown]:
    """Return what is audited: methods, but not the retraining that they are compared with."""
    return [part for part in shown(entry) if part.method not in (ORIGINAL, *entry.against)]


def _models(entry: Entry, paths: Paths, scenario: Scenario) -> "dict[str, Models]":
    """Return by method what its models and those that it is compared with say of an audit's probes.

    These are of the retraining in `against` that has the same training, and of that training.
    """
    from fu.audits.models import Models, finite
    from fu.evaluation import predictions

    here = [part for part in shown(entry) if part.scenario == scenario.name]
    again = {part.trial.trained: part.trial for part in here if part.method in entry.against}
    models = {}
    for part in (one for one in _tested(entry) if one.scenario == scenario.name):
        places = [part.trial.predicted[0], again[part.trial.trained].predicted[0], part.trial.predicted[1]]
        files = [Path(_predicted(entry, paths, place)) for place in places]
        loaded = [predictions.load(files[0], predictions.LABELS)]
        loaded += [predictions.load(file, predictions.REPEATS) for file in files]
        labels, *kinds = ({name: value.numpy() for name, value in one.items()} for one in loaded)
        models[part.method] = Models(labels, *map(finite, kinds))
    return models


def _said(entry: Entry, models: "dict[str, Models]") -> dict[str, dict[str, float]]:
    """Return by method what every audit says, and how many models there are.

    Where too many have diverged, an audit says nothing. No p-value is corrected for the number of methods, so that
    controls and methods are judged by one rule, and a further method changes nothing for the others.
    """
    said: dict[str, dict[str, float]] = {method: {"repeats": of.repeats["unlearned"]} for method, of in models.items()}
    for name in entry.audits:
        audit = plugins.load("audits", name)
        values = {method: audit.audit(of) for method, of in models.items() if min(of.repeats.values()) >= audit.LEAST}
        for method, of in values.items():
            said[method] |= of
            if hasattr(audit, "found"):
                said[method][entry.audits[name].found] = float(audit.found(of))
    return said


def _spending(entry: Entry, paths: Paths) -> Iterator[dict[str, Any]]:
    """Yield what each phase of every method took in all, repeat by repeat; of one that diverged up to there."""
    for part in _tested(entry):
        for seed in entry.seeds:
            about = {"scenario": part.scenario, "method": part.method, "trial": part.trial.name, "seed": seed}
            for role, model, path in _traced(entry, paths, part, seed):
                phase = {**about, "round": -1, "stage": role, "model": model}
                for row in _csv(Path(path)).tail(1).to_dict("records"):
                    yield from ({**phase, "metric": name, "value": row[name]} for name in entry.also if name in row)
                if SECONDS in entry.also:
                    yield {**phase, **_spent(entry, paths, model, seed)}


def _exposed(entry: Entry, paths: Paths, scenario: Scenario) -> Iterator[dict[str, Any]]:
    """Yield the forgotten samples that original models expose most, then those that they expose least.

    Each with its place among all (1: most), its row in the data set, label and picture [h, w, c] in [0, 1] as it was
    trained on, and its mean margin under original, retrained and unlearned models. Where too many have diverged: none.
    """
    import torch

    from fu.audits.models import FORGOTTEN, margins
    from fu.data import clients
    from fu.data.dataset import about
    from fu.evaluation import predictions

    [part] = [one for one in _tested(entry) if one.scenario == scenario.name]
    [name] = entry.audits
    audit, models = plugins.load("audits", name), _models(entry, paths, scenario)[part.method]
    if min(models.repeats.values()) < audit.LEAST:
        return
    rows = predictions.load(Path(_predicted(entry, paths, part.trial.predicted[0])), predictions.ROWS)[FORGOTTEN]
    archive = Path(paths("data", "archive", dataset=scenario.dataset))
    held = Path(_partition(entry, paths, scenario))
    data = clients.load(archive, held, scenario.dataset, scenario.attack, torch.device("cpu"), "share")
    x, y = data.trained_on(rows.numpy())
    facts, order = about(scenario.dataset), audit.indices(models)
    pixels = _pixels(x.permute(0, 2, 3, 1), facts)
    kinds = {"original": models.original, "retrained": models.retrained, "unlearned": models.unlearned}
    means = {kind: margins(of[FORGOTTEN], models.labels[FORGOTTEN]).mean(0) for kind, of in kinds.items()}
    number = min(EXPOSED, len(order) // 2)
    for which, places in (("most", range(number)), ("least", range(len(order) - number, len(order)))):
        for place in places:
            k = order[place]
            yield {
                **{"scenario": scenario.name, "method": part.method, "exposed": which, "place": place + 1},
                **{"of": len(order), "sample": int(rows[k]), "label": int(y[k])},
                **{kind: float(mean[k]) for kind, mean in means.items()},
                "pixels": pixels[k],
            }


def _attacked(entry: Entry) -> list[Shown]:
    """Return the trials whose last models train on: the original model is what they are compared with."""
    return [part for part in shown(entry) if part.method != ORIGINAL]


def _relearned(entry: Entry, paths: Paths, part: Shown) -> str:
    scenario, _, trial = part.trial.relearned.rpartition("/")
    return paths("relearn", "relearned", scenario=f"{entry.paper}/{scenario}", trial=trial)


def _came_back(entry: Entry, paths: Paths, part: Shown) -> pd.DataFrame:
    """Return seed, attack, round, metric and value of a trial; the attack `original`: of the model it starts from."""
    rows = _csv(Path(_relearned(entry, paths, part)))
    return rows.assign(scenario=part.scenario, method=part.method, trial=part.trial.name)


def _traces(entry: Entry, paths: Paths, part: Shown, seed: int) -> pd.DataFrame:
    """Return the rows of all models by metric, whatever else was traced, and the seconds at the last round.

    Where curves begin with the trained model's rounds, those after the request count on from them, and time is read.
    """
    names = [*dict.fromkeys([*(metric.name for metric in entry.metrics), *(TIMES if entry.from_training else ())])]
    traces, spent = [], []
    for role, model, path in _traced(entry, paths, part, seed):
        trace = _csv(Path(path)).assign(stage=role, model=model)
        if entry.from_training and role != ORIGINAL:
            trace["round"] += entry.scenario(part.scenario).rounds[0]
        last = int(trace["round"].iloc[-1]) if len(trace) else -1
        spent.append({"stage": role, "model": model, "round": last, **_spent(entry, paths, model, seed)})
        traces.append(trace)
    if not traces:
        return pd.DataFrame(columns=COLUMNS)
    joined = pd.concat([trace for trace in traces if len(trace)] or traces)
    names += [name for name in joined.columns if name not in ("round", "stage", "model", *COUNTS, *names)]
    tidy = joined.melt(["round", "stage", "model"], names, "metric").dropna(subset="value")
    return pd.concat([tidy, pd.DataFrame(spent)], ignore_index=True)


def _csv(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path)
    except (FileNotFoundError, pd.errors.ParserError, pd.errors.EmptyDataError):
        raise UserError(f"{path}: the file is missing or damaged; delete it and run snakemake again.") from None


def _held(entry: Entry, paths: Paths) -> Iterator[dict[str, Any]]:
    """Yield how many training samples of each class each client of a scenario holds."""
    for scenario in entry.scenarios:
        archive = Path(paths("data", "archive", dataset=scenario.dataset))
        arrays = archives.read(archive, scenario.dataset, mapped=True)
        labels = np.concatenate([arrays["y_train"], arrays["y_test"]])
        part = partition.load(Path(_partition(entry, paths, scenario)))
        for client in part.present:
            for label, count in zip(*np.unique(labels[part.train[client]], return_counts=True), strict=True):
                yield {"scenario": scenario.name, "client": client, "label": int(label), "train": int(count)}


def _examples(entry: Entry, paths: Paths) -> Iterator[dict[str, Any]]:
    """Yield the first samples of each scenario's first forgotten client, without and with the trigger, in [0, 1]."""
    import torch

    from fu.data import clients
    from fu.data.dataset import about

    for scenario, attack in zip(entry.scenarios, entry.attacks, strict=True):
        facts = about(scenario.dataset)
        archive = Path(paths("data", "archive", dataset=scenario.dataset))
        held = Path(_partition(entry, paths, scenario))
        data = clients.load(archive, held, scenario.dataset, attack, torch.device("cpu"), "all")
        assert data.mark is not None
        client = data.forgotten[0]
        index = data.partition.train[client][:EXAMPLES]
        clean, labels = (of.index_select(0, torch.from_numpy(index)) for of in (data.inputs, data.y))
        marked, flipped = data.mark(clean, labels)
        changed = (clean != marked).any(-1).numpy()
        shown = [_pixels(x, facts) for x in (clean, marked)]
        for k in range(len(index)):
            yield {
                "scenario": scenario.name,
                "client": client,
                "sample": int(index[k]),
                "label": int(labels[k]),
                "label_with_trigger": int(flipped[k]),
                "changed_pixels": int(changed[k].sum()),
                "changed": changed[k],
                "clean": shown[0][k],
                "marked": shown[1][k],
            }


def _pixels(x: "Tensor", facts: "Dataset") -> Any:
    """Return normalised images [n, h, w, c] as the archive has them, in [0, 1]."""
    import torch

    return (x * torch.tensor(facts.std) + torch.tensor(facts.mean)).clamp(0, 1).numpy()
