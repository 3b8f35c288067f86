"""What stands below a figure in words, computed: rates, marks, spread, and where there was no backdoor to forget."""

from collections.abc import Mapping

import pandas as pd

from fu.artefacts.drawing import number, setting_name
from fu.artefacts.entry import ORIGINAL, Entry, Method
from fu.artefacts.words import HARDLY, in_a_row, took_hold

RATE, AFTER = "unlearning.lr", "recovery.lr"


def no_backdoor(entry: Entry, asr: Mapping[str, float]) -> list[str]:
    """Name the scenarios, if any, in which the backdoor hardly took hold, given the original model's ASR in each."""
    low = {s.label: asr[s.name] for s in entry.scenarios if s.name in asr and not took_hold(asr[s.name])}
    if not low or "asr" not in [metric.name for metric in entry.metrics]:
        return []
    shown = [f"{name} ({'' if k else 'ASR of ω⁰: '}{value:.3f})" for k, (name, value) in enumerate(low.items())]
    return [f"{HARDLY} in {in_a_row(shown)}, so what is shown there says little about forgetting."]


def original_asr(frame: pd.DataFrame, value: str = "value") -> dict[str, float]:
    """Return the original model's ASR by scenario, mean over seeds, from rows of evaluations."""
    rows = frame[(frame["stage"] == ORIGINAL) & (frame["metric"] == "asr") & frame[value].notna()]
    return {str(name): float(part.mean()) for name, part in rows.groupby("scenario")[value]}


def rates(entry: Entry, *varied: str) -> list[str]:
    """Return the unlearning rates that are shown, once for scenarios that have the same; none where they vary.

    In parentheses: what else a grid sets, but for the settings that vary, and a rate of post-training that differs.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for scenario in entry.scenarios if RATE not in varied else ():
        shown = [method for method in entry.methods if not method.trains and method.trials[scenario.name]]
        each = {method.label: _rate(entry, scenario.name, method, varied) for method in shown}
        said = ("Unlearning rates", "; ".join(f"{name} {rate}" for name, rate in each.items() if rate))
        if len(set(each.values())) == 1:
            said = ("Unlearning rate", next(iter(each.values())))
        found.setdefault(said, []).append(scenario.label)
    where = [f" in {in_a_row(names)}" if len(found) > 1 else "" for names in found.values()]
    return [f"{head}{place}: {said}." for place, (head, said) in zip(where, found, strict=True) if said]


def _rate(entry: Entry, scenario: str, method: Method, varied: tuple[str, ...]) -> str:
    """Return the rate (– where nobody trains) and what belongs to it; nothing where there is neither."""
    trial = entry.trial(scenario, method)
    others = {key: value for key, value in trial.values.items() if key not in (RATE, AFTER, *varied)}
    if AFTER not in varied and trial.recovery_rate not in (None, trial.rate):
        others[AFTER] = trial.recovery_rate
    shown = ", ".join(f"{setting_name(key).removeprefix('params.')} {number(value)}" for key, value in others.items())
    rate = "–" if trial.rate is None else number(trial.rate)
    return f"{rate} ({shown})" if shown else rate.replace("–", "")


def marks(entry: Entry, said: str = "") -> list[str]:
    """Explain the marks of methods, scenarios and data that are shown, as far as it is not said already."""
    labels = [*(scenario.label for scenario in entry.scenarios), *(method.marked for method in entry.methods)]
    found = ["* not in the paper."] if any(" *" in label for label in labels) else []
    found += ["[on ...]: other data than the paper's."] if any(s.replaces for s in entry.scenarios) else []
    return [mark for mark in found if mark.partition(":")[0] not in said]


def comparison(entry: Entry, diff: bool = True) -> list[str]:
    """Say what the paper's numbers are compared with, or why they are not shown; `diff`: the difference is shown."""
    parts = []
    if entry.compares:
        parts += [*(["diff: ours minus paper."] if diff else []), *([entry.note] if entry.note else [])]
    if any(scenario.replaces for scenario in entry.scenarios):
        unseen = ", whose numbers are therefore not shown" if entry.published else ""
        parts.append(f"[on ...]: other data than the paper's{unseen}.")
    return parts


def averages(entry: Entry) -> list[str]:
    """Explain means and deviations, where there are several seeds."""
    several = len(entry.seeds)
    return [f"Means over {several} seeds; ±: sample standard deviation."] if several > 1 else []


def deviations(entry: Entry) -> list[str]:
    """Explain what stands behind ± in a table, where there are several seeds."""
    return ["±: sample standard deviation over seeds."] if len(entry.seeds) > 1 else []


def left_out(found: pd.DataFrame) -> list[str]:
    """Explain what a table says of runs that diverged, if any did."""
    text = "Diverged: the round, or the seeds that all means of the method leave out."
    return [text] if found["diverged"].any() else []


def spread(entry: Entry, what: str) -> list[str]:
    """Explain what shows the deviation over seeds, where there are several."""
    return [f"{what}: one standard deviation over seeds."] if len(entry.seeds) > 1 else []


def seeds(entry: Entry, lost: int) -> str:
    """Say over which seeds the means of curves are; `lost`: how many runs diverged."""
    parts = [f"Means over {len(entry.seeds)} seeds."] if len(entry.seeds) > 1 else []
    if lost and len(entry.seeds) > 1:
        parts.append("A seed that diverged is left out in every round, unless all did.")
    return " ".join(parts)
