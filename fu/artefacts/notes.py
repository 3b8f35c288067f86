"""The notes below a table or figure: rates, marks, spread, and where there was no backdoor to forget."""

from collections.abc import Mapping

import pandas as pd

from fu.artefacts.drawing import number, setting_name
from fu.artefacts.entry import ORIGINAL, Entry, Method
from fu.artefacts.words import HARDLY, in_a_row, took_hold

RATE, AFTER = "unlearning.lr", "recovery.lr"
LEFT_OUT = "Diverged: the round, or the seeds that all means of the method leave out."


def joined(entry: Entry, *parts: str) -> str:
    """Join the sentences that are not empty, and append what the marks of methods, scenarios and data mean."""
    text = " ".join(filter(None, parts))
    labels = [*(scenario.label for scenario in entry.scenarios), *(method.marked for method in entry.methods)]
    new = "* not in the paper."
    marks = [new] if any(" *" in label for label in labels) and new not in text else []
    if any(scenario.replaces for scenario in entry.scenarios):
        unseen = ", whose numbers are therefore not shown" if entry.published else ""
        marks.append(f"[on ...]: other data than the paper's{unseen}.")
    return " ".join(filter(None, [text, *marks]))


def no_backdoor(entry: Entry, asr: Mapping[str, float]) -> str:
    """Name the scenarios, if any, in which the backdoor hardly took hold, given the original model's ASR in each."""
    low = {s.label: asr[s.name] for s in entry.scenarios if s.name in asr and not took_hold(asr[s.name])}
    if not low or "asr" not in [metric.name for metric in entry.metrics]:
        return ""
    shown = [f"{name} ({'' if k else 'ASR of ω⁰: '}{value:.3f})" for k, (name, value) in enumerate(low.items())]
    return f"{HARDLY} in {in_a_row(shown)}, so what is shown there says little about forgetting."


def original_asr(frame: pd.DataFrame, value: str = "value") -> dict[str, float]:
    """Return the original model's ASR by scenario, mean over seeds, from rows of evaluations."""
    rows = frame[(frame["stage"] == ORIGINAL) & (frame["metric"] == "asr") & frame[value].notna()]
    return {str(name): float(part.mean()) for name, part in rows.groupby("scenario")[value]}


def rates(entry: Entry, *varied: str) -> str:
    """Return the unlearning rates that are shown, once for scenarios that have the same; none where they vary.

    In parentheses: what else a grid sets, but for the settings that vary, and a rate of post-training that differs.
    """
    shown: dict[tuple[str, str], list[str]] = {}
    for scenario in entry.scenarios if RATE not in varied else ():
        methods = [method for method in entry.methods if not method.trains and method.trials[scenario.name]]
        each = {method.label: _rate(entry, scenario.name, method, varied) for method in methods}
        rate = ("Unlearning rates", "; ".join(f"{name} {rate}" for name, rate in each.items() if rate))
        if len(set(each.values())) == 1:
            rate = ("Unlearning rate", next(iter(each.values())))
        shown.setdefault(rate, []).append(scenario.label)
    where = [f" in {in_a_row(names)}" if len(shown) > 1 else "" for names in shown.values()]
    return " ".join(f"{head}{place}: {rate}." for place, (head, rate) in zip(where, shown, strict=True) if rate)


def _rate(entry: Entry, scenario: str, method: Method, varied: tuple[str, ...]) -> str:
    """Return the rate (– where nobody trains) and what belongs to it; nothing where there is neither."""
    trial = entry.trial(scenario, method)
    others = {key: value for key, value in trial.values.items() if key not in (RATE, AFTER, *varied)}
    if AFTER not in varied and trial.recovery_rate not in (None, trial.rate):
        others[AFTER] = trial.recovery_rate
    shown = ", ".join(f"{setting_name(key).removeprefix('params.')} {number(value)}" for key, value in others.items())
    rate = "–" if trial.rate is None else number(trial.rate)
    return f"{rate} ({shown})" if shown else rate.replace("–", "")


def comparison(entry: Entry, diff: bool = True) -> str:
    """Say what the paper's numbers are compared with, where they are shown; `diff`: the difference is shown."""
    return f"{'diff: ours minus paper. ' if diff else ''}{entry.note}".strip() if entry.compares else ""


def deviations(entry: Entry, what: str = "±") -> str:
    """Explain what shows the deviation over seeds, where there are several."""
    return f"{what}: sample standard deviation over seeds." if len(entry.seeds) > 1 else ""


def seeds(entry: Entry, lost: int) -> str:
    """Say over which seeds the means of curves are; `lost`: how many runs diverged."""
    if len(entry.seeds) == 1:
        return ""
    left_out = " A seed that diverged is left out in every round, unless all did." if lost else ""
    return f"Means over {len(entry.seeds)} seeds.{left_out}"
