"""A panel of a table in words, computed from its numbers: did the backdoor take hold, who forgot, what came back."""

from collections.abc import Mapping
from math import isnan
from types import MappingProxyType

import pandas as pd

from fu.artefacts.entry import ORIGINAL, Entry, Scenario

LEAST = 0.5  # ASR of the original model: below it there is little to forget
TOOK_HOLD = "The backdoor took hold"
HARDLY = "The backdoor hardly took hold"
FORGOT = 0.05  # a method forgot whose ASR is at most so much above retraining's


def as_printed(value: float) -> float:
    """Return a number as it is printed, with three digits: what is said of it is judged by these."""
    return float(f"{value:.3f}")


def known(value: float, digits: int = 3) -> str:
    """Return a number with so many digits; a dash where there is none."""
    return "–" if isnan(value) else f"{value:.{digits}f}"


def plus_minus(mean: float, spread: float, digits: int = 3) -> str:
    """Return a mean with its deviation or error; without where there is none, as of one seed."""
    return f"{mean:.{digits}f}" + ("" if isnan(spread) else f" ±{spread:.{digits}f}")


def took_hold(asr: float) -> bool:
    """Whether the original model's ASR leaves something to forget."""
    return as_printed(asr) >= LEAST


def forgets(asr: float, retrained: float) -> bool:
    """Whether an ASR is low enough, given the retrained model's."""
    return as_printed(as_printed(asr) - as_printed(retrained)) <= FORGOT


def in_a_row(names: list[str]) -> str:
    """Return one, two and three as they stand in a sentence."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def in_words(
    frame: pd.DataFrame,
    entry: Entry,
    scenario: Scenario,
    held_out: float | None = None,
    seeds: Mapping[int, float] = MappingProxyType({}),
) -> list[str]:
    """Return sentences on one panel of a table's tidy rows; none where it lacks ASR, R-Acc or a retrained model.

    `held_out`: ω⁰ has this ASR on validation data, which the choice of rates rests on; `seeds`: its ASR by seed.
    """
    here = frame[(frame["scenario"] == scenario.name) & (frame["diverged"] == 0) & frame["mean"].notna()]
    means = here.set_index(["method", "stage", "metric"])["mean"].to_dict()
    again = entry.retraining
    wanted = [(ORIGINAL, ORIGINAL, "asr"), (ORIGINAL, ORIGINAL, "r_acc")]
    wanted += [(again.name, list(entry.trial(scenario.name, again).models)[-1], "asr")] if again else []
    if len(wanted) < 3 or any(key not in means for key in wanted):
        return []
    before, utility, retrained = (as_printed(means[key]) for key in wanted)
    if not took_hold(before):
        return [
            f"{HARDLY}: ω⁰ has an ASR of {before:.3f} (below {LEAST:g}), the retrained model of {retrained:.3f}, so "
            "this panel says little about forgetting."
        ]
    found = [
        f"{TOOK_HOLD}: ω⁰ has an ASR of {before:.3f}, the retrained model, which never saw a triggered image, of "
        f"{retrained:.3f}."
    ]
    low = [f"{seed} ({asr:.3f})" for seed, asr in seeds.items() if not took_hold(asr)]
    if low:
        found.append(f"But not in seed{'s' * (len(low) > 1)} {in_a_row(low)}: means over seeds say less of forgetting.")
    if held_out is not None and not took_hold(held_out):
        found.append(
            f"But it was memorised: on held-out triggered images ω⁰ has an ASR of {held_out:.3f} only, so that a "
            "choice on validation data hardly sees who forgot."
        )
    labels = {method.name: method.marked for method in entry.methods if method.post_training != "own"}
    asr = {name: means[name, "unlearned", "asr"] for name in labels if (name, "unlearned", "asr") in means}
    if not asr:
        return found
    forgot = [name for name in asr if forgets(asr[name], retrained)]
    kept = [name for name in asr if name not in forgot]

    def listed(names: list[str], stage: str, metric: str) -> str:
        return in_a_row([f"{labels[name]} ({means[name, stage, metric]:.3f})" for name in names])

    if not forgot:
        whole = "" if len(asr) == len(labels) else " without a diverged seed"
        return [*found, f"No method{whole} forgot it: ASR after unlearning is {listed(kept, 'unlearned', 'asr')}."]
    failed = f"; {listed(kept, 'unlearned', 'asr')} did not" if kept else ""
    found.append(
        f"Forgotten (ASR at most {FORGOT:g} above retraining's) by {listed(forgot, 'unlearned', 'asr')}{failed}. "
        f"R-Acc went from {utility:.3f} to: {listed(forgot, 'unlearned', 'r_acc')}."
    )
    after = [name for name in forgot if (name, "recovered", "asr") in means]
    back = [name for name in after if not forgets(means[name, "recovered", "asr"], retrained)]
    if after:
        rest = [name for name in after if name not in back]
        says = [f"above that limit for {listed(back, 'recovered', 'asr')}"] if back else []
        says += [f"still within that limit for {listed(rest, 'recovered', 'asr')}"] if rest else []
        found.append(
            f"After post-training ASR is {', and '.join(says)}; R-Acc is {listed(after, 'recovered', 'r_acc')}."
        )
    return found
