"""Epsilon over the first N repeats: which rows, and what is drawn."""

from typing import Any

import numpy as np
import pandas as pd

from fu.artefacts.entry import Entry
from tests.artefacts.factories import CHOSEN, cells, made, make_entry

NUMBERS = (4, 8, 16)


def rows() -> pd.DataFrame:
    """Return the frame of one method: N = 4 has epsilon .4, N = 8 .8 and so on, the ends a half below and one above."""
    about: dict[str, Any] = {"scenario": "small", "method": "ours", "trial": CHOSEN, "seed": -1, "stage": "recovered"}
    numbers = {
        n: {
            "ulira_epsilon": n / 10,
            "ulira_epsilon_low": n / 10 - 0.5,
            "ulira_epsilon_high": n / 10 + 1,
            "ulira_epsilon_ceiling": n / 5,
            "ulira_auc": 0.7,
        }
        for n in NUMBERS
    }
    listed = [
        {**about, "first": n, "metric": metric, "value": value}
        for n, of in numbers.items()
        for metric, value in of.items()
    ]
    return pd.DataFrame(listed).sample(frac=1, random_state=0)


def controlled(*firsts: int) -> Entry:
    """Return the entry with an independent retraining and doing nothing, both compared with the same retraining."""
    entry = make_entry("epsilon", firsts=firsts)
    again = entry.against[0]
    methods = [one.model_copy(update={"reference": "" if one.name == again else again}) for one in entry.methods]
    ours = next(one for one in methods if one.name == "ours")
    known: list[dict[str, Any]] = [
        {"name": "none", "left": ("partly", 0.0)},
        {"name": "nothing", "plugin": "untouched", "control": True},
    ]
    return entry.model_copy(update={"methods": (*methods, *(ours.model_copy(update=one) for one in known))})


def test_rows_and_points() -> None:
    result = made(controlled(4, 8, 16), rows())
    assert result.frame.round(9).to_numpy().tolist() == [
        ["small", "ours", 4, 0.4, -0.1, 1.4, 0.8, False],
        ["small", "ours", 8, 0.8, 0.3, 1.8, 1.6, True],
        ["small", "ours", 16, 1.6, 1.1, 2.6, 3.2, True],
    ]
    assert ["Ours *", "8", "0.80 (0.30 to 1.80)", "1.60", "yes"] in cells(result.body)
    axis = result.figure.axes[0]
    points = [line for line in axis.lines if line.get_marker() == "o"]
    assert [(float(np.asarray(one.get_xdata())[0]), one.get_markerfacecolor() == "white") for one in points] == [
        *((4.0, True), (8.0, False), (16.0, False))
    ]
    assert [text.get_text() for text in axis.get_xticklabels()] == ["4", "8", "16"]


def test_a_method_whose_training_no_control_shares_is_not_judged() -> None:
    result = made(make_entry("epsilon", firsts=(4, 8, 16)), rows())
    assert ["Ours *", "8", "0.80 (0.30 to 1.80)", "1.60", "–"] in cells(result.body)


def test_lower_limits_by_delta_are_a_curve_of_all_repeats() -> None:
    limits = [
        {**row, "metric": f"ulira_epsilon_low_delta_{delta}", "value": value * row["first"]}
        for row in rows().drop_duplicates("first").to_dict("records")
        for delta, value in ((5, 0.05), (50, -1.0))
    ]
    entry = controlled(4, 8, 16)
    metrics = [entry.metrics[-1].model_copy(update={"name": f"ulira_epsilon_low_delta_{delta}"}) for delta in (5, 50)]
    entry = entry.model_copy(update={"metrics": (*entry.metrics, *metrics)})
    result = made(entry, pd.concat([rows(), pd.DataFrame(limits)]))
    assert [*result.frame.columns[-3:]] == ["low_delta_5", "low_delta_50", "found"]
    assert ["Ours *", "16", "1.60 (1.10 to 2.60)", "3.20", "0.80", "0.00", "yes"] in cells(result.body)
    (line,) = (line for axis in result.figure.axes if axis.get_xlabel() == "delta" for line in axis.lines)
    assert np.asarray(line.get_data()).round(9).tolist() == [[0, 0.05, 0.5], [1.1, 0.8, 0]]
