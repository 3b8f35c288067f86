"""Epsilon over the first N repeats: which rows, since when a verdict stays, what is drawn."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fu.artefacts import epsilon
from fu.artefacts.entry import Entry
from tests.artefacts.factories import CHOSEN, cells, made, make_entry

FOUND = {4: 0.0, 8: 1.0, 16: 1.0}


def rows(found: dict[int, float]) -> pd.DataFrame:
    """Return the frame of one method: N = 4 has epsilon .4, N = 8 .8 and so on, the ends a half below and one above."""
    about: dict[str, Any] = {"scenario": "small", "method": "ours", "trial": CHOSEN, "seed": -1, "stage": "recovered"}
    numbers = {
        n: {
            "ulira_epsilon": n / 10,
            "ulira_epsilon_low": n / 10 - 0.5,
            "ulira_epsilon_high": n / 10 + 1,
            "ulira_epsilon_ceiling": n / 5,
            "ulira.found": told,
            "ulira_auc": 0.7,
        }
        for n, told in found.items()
    }
    listed = [
        {**about, "first": n, "metric": metric, "value": value}
        for n, of in numbers.items()
        for metric, value in of.items()
    ]
    return pd.DataFrame(listed).sample(frac=1, random_state=0)


def controlled(*firsts: int) -> Entry:
    """Return the entry, in which retraining stands for a control of the same training."""
    entry = make_entry("epsilon", firsts=firsts)
    marked = [one.model_copy(update={"control": one.name == "scratch"}) for one in entry.methods]
    return entry.model_copy(update={"methods": tuple(marked)})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({4: False, 8: True, 16: True}, 8),
        ({4: True, 8: False, 16: True}, None),
        ({4: True, 8: True, 16: True}, 4),
        ({4: False, 8: False, 16: True}, None),
        ({4: True, 8: False, 16: False}, 8),
        ({4: True}, None),
    ],
)
def test_a_verdict_has_settled_where_the_last_repeats_did_not_change_it(
    found: dict[int, bool], expected: int | None
) -> None:
    assert epsilon.settled(found) == expected


def test_rows_words_and_points() -> None:
    result = made(controlled(4, 8, 16), rows(FOUND))
    assert result.frame.round(9).to_numpy().tolist() == [
        ["small", "ours", 4, 0.4, -0.1, 1.4, 0.8, False],
        ["small", "ours", 8, 0.8, 0.3, 1.8, 1.6, True],
        ["small", "ours", 16, 1.6, 1.1, 2.6, 3.2, True],
    ]
    assert result.words == [["From N = 8 on told from retraining: Ours."]]
    assert ["Ours *", "8", "0.80 (0.30 to 1.80)", "1.60", "yes"] in cells(result.body)
    [axis] = result.figure.axes
    points = [line for line in axis.lines if line.get_marker() == "o"]
    assert [(float(np.asarray(one.get_xdata())[0]), one.get_markerfacecolor() == "white") for one in points] == [
        *((4.0, True), (8.0, False), (16.0, False))
    ]
    assert [text.get_text() for text in axis.get_xticklabels()] == ["4", "8", "16"]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({4: 0.0, 8: 1.0}, "Only with the last N = 8 told from retraining, so that the verdict has not settled: Ours."),
        ({4: 0.0, 8: 0.0}, "From N = 4 on not told from retraining: Ours."),
        ({4: 1.0}, "With N = 4 told from retraining, which no smaller N can be compared with: Ours."),
    ],
)
def test_what_is_said_of_few(found: dict[int, float], said: str) -> None:
    assert made(controlled(*found), rows(found)).words == [[said]]


def test_a_method_whose_training_no_control_shares_is_not_judged() -> None:
    result = made(make_entry("epsilon", firsts=(4, 8, 16)), rows(FOUND))
    assert result.words == [["Not judged, as no control has its training: Ours."]]
    assert ["Ours *", "8", "0.80 (0.30 to 1.80)", "1.60", "–"] in cells(result.body)
