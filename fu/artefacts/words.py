"""Numbers as they are printed, and whether the backdoor took hold."""

from math import isnan, nan

import pandas as pd

LEAST = 0.5  # ASR of the original model: below it there is little to forget
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
