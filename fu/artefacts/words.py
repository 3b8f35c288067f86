"""Numbers as they are printed, and whether the backdoor took hold."""

from collections.abc import Mapping
from math import isnan, nan
from types import MappingProxyType

import pandas as pd

from fu.artefacts.entry import ORIGINAL, Entry, Scenario

BACKDOOR = ("asr", "asr_held_out", "asr_validation")  # metrics that mean nothing where the backdoor did not take hold
LEAST = 0.5  # ASR of the original model: below it there is little to forget
TOOK_HOLD = "The backdoor took hold"
HARDLY = "The backdoor hardly took hold"
FORGOT = 0.05  # a method forgot whose ASR is at most so much above retraining's


def as_printed(value: float) -> float:
    """Return a number as it is printed, with three digits: what is said of it is judged by these."""
    return float(f"{value:.3f}")


def plus_minus(mean: float, spread: float = nan, digits: int = 3) -> str:
    """Return a mean with its deviation or error, without where there is none, as of one seed; – of no number."""
    if pd.isna(mean):
        return "–"
    return f"{round(float(mean), digits) + 0.0:.{digits}f}" + (
        "" if isnan(spread) else f" ±{spread:.{digits}f}"
    )  # no -0.00


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
    """Return sentences on one panel of a table's tidy rows; none where it lacks ASR or a retrained model.

    `held_out`: ω⁰ has this ASR on validation data, which the choice of rates rests on; `seeds`: its ASR by seed.
    """
    here = frame[(frame["scenario"] == scenario.name) & (frame["diverged"] == 0) & frame["mean"].notna()]
    means = here.set_index(["method", "stage", "metric"])["mean"].to_dict()
    again = entry.retraining
    wanted = [(ORIGINAL, ORIGINAL, "asr")]
    wanted += [(again.name, list(entry.trial(scenario.name, again).models)[-1], "asr")] if again else []
    if len(wanted) < 2 or any(key not in means for key in wanted):
        return []
    before, retrained = (as_printed(means[key]) for key in wanted)
    if not took_hold(before):
        return [
            f"{HARDLY}: the ASR of ω⁰ is {before:.3f} (below {LEAST:g}) and that of retraining {retrained:.3f}, so "
            "this panel says little about forgetting."
        ]
    found = [
        f"{TOOK_HOLD}: the ASR of ω⁰ is {before:.3f}. Retraining, which never saw a triggered image, has "
        f"{retrained:.3f}."
    ]
    low = [f"{seed} ({asr:.3f})" for seed, asr in seeds.items() if not took_hold(asr)]
    if low:
        found.append(
            f"It did not in seed{'s' * (len(low) > 1)} {in_a_row(low)}, so means over seeds say less about forgetting."
        )
    if held_out is not None and not took_hold(held_out):
        found.append(
            "It was memorised, however: on the forgotten client's validation images the ASR of ω⁰ is only "
            f"{held_out:.3f}, so a choice on validation data hardly sees which methods forgot."
        )
    return found
