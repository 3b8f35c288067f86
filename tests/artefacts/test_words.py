"""What is said below a panel, from numbers that are known."""

from typing import Any

import pandas as pd
import pytest

from fu.artefacts.entry import Entry, Method, Trial
from fu.artefacts.words import TOOK_HOLD, forgets, in_words
from tests.artefacts.factories import make_entry


def method(name: str, post_training: Any = "after") -> Method:
    trial = Trial(name=name, rate=0.1, values={}, unlearned=name, recovered=name if post_training == "after" else "")
    about = {"label": name.title(), "in_paper": True, "post_training": post_training}
    return Method(name=name, retrains=post_training == "own", trials={"small": (trial,)}, **about)


METHODS = (method("scratch", "own"), method("alpha"), method("beta"), method("gamma"))
ENTRY = make_entry("table", methods=METHODS, chosen={})
NUMBERS = {  # ASR and R-Acc after unlearning, and after post-training; retraining's limit is .04 + .05
    "original": (0.98, 0.90),
    "scratch": (0.04, 0.89),
    "alpha": (0.09, 0.70, 0.10, 0.91),
    "beta": (0.00, 0.55, 0.04, 0.92),
    "gamma": (0.10, 0.88, 0.03, 0.93),
}


def words(
    diverged: tuple[str, ...] = (),
    held_out: float | None = None,
    seeds: dict[int, float] | None = None,
    entry: Entry = ENTRY,
    **changes: tuple[float, ...],
) -> list[str]:
    rows = []
    for name, numbers in {**NUMBERS, **changes}.items():
        stages = ("original",) if name == "original" else ("unlearned", "unlearned", "recovered", "recovered")
        for place, value in enumerate(numbers):
            stage, metric = stages[0] if name == "original" else stages[place], ("asr", "r_acc")[place % 2]
            about = {"scenario": "small", "method": name, "stage": stage, "metric": metric, "mean": value}
            rows.append({**about, "diverged": int(name in diverged)})
    return in_words(pd.DataFrame(rows), entry, entry.scenarios[0], held_out, seeds or {})


def test_the_words_say_whether_the_backdoor_took_hold() -> None:
    assert words() == [
        "The backdoor took hold: the ASR of ω⁰ is 0.980. Retraining, which never saw a triggered image, has 0.040."
    ]


@pytest.mark.parametrize(("asr", "hold"), [(0.5, True), (0.4996, True), (0.4994, False)])
def test_a_backdoor_that_did_not_take_hold_is_the_only_sentence(asr: float, hold: bool) -> None:
    found = words(original=(asr, 0.9))
    assert len(found) == 1
    if not hold:
        assert found == [
            "The backdoor hardly took hold: the ASR of ω⁰ is 0.499 (below 0.5) and that of retraining 0.040, so this "
            "panel says little about forgetting."
        ]
    assert (TOOK_HOLD in found[0]) is hold
    assert ("0.500" if hold else "0.499") in found[0]


@pytest.mark.parametrize(("held_out", "said"), [(0.06, True), (0.49, True), (0.5, False), (None, False)])
def test_a_backdoor_that_held_out_images_do_not_trigger_was_memorised(held_out: float | None, said: bool) -> None:
    found = words(held_out=held_out)
    assert len(found) == 1 + said
    assert not said or found[1] == (
        f"It was memorised, however: on the forgotten client's validation images the ASR of ω⁰ is only {held_out:.3f}, "
        "so a choice on validation data hardly sees which methods forgot."
    )
    assert found[0].startswith(TOOK_HOLD)
    assert len(words(held_out=held_out, original=(0.4, 0.9))) == 1


def test_seeds_in_which_the_backdoor_did_not_take_hold_are_named() -> None:
    assert words(seeds={0: 0.5, 4: 0.99}) == words()
    one = "It did not in seed 4 (0.126), so means over seeds say less about forgetting."
    assert words(seeds={0: 0.99, 4: 0.126})[1] == one
    assert "in seeds 0 (0.499) and 4 (0.126)," in words(seeds={0: 0.4994, 1: 0.99, 4: 0.126})[1]


def test_a_method_forgets_by_the_printed_digits() -> None:
    assert forgets(0.0904, 0.0396)  # .090 and .040
    assert not forgets(0.0905001, 0.0404)  # .091 and .040


def test_without_retraining_there_are_no_words() -> None:
    assert words(diverged=("scratch",)) == []
    assert words(entry=ENTRY.model_copy(update={"methods": METHODS[1:]})) == []
