"""Epsilon over the first N repeats: which rows, and what is drawn."""

from typing import Any

import numpy as np
import pandas as pd

from tests.artefacts.factories import CHOSEN, cells, made, make_entry

NUMBERS = (4, 8, 16)


def rows() -> pd.DataFrame:
    """Return the frame of one method: N = 4 has epsilon .4, N = 8 .8 and so on, the ends a half below and one above."""
    about: dict[str, Any] = {"scenario": "small", "method": "ours", "trial": CHOSEN, "seed": -1, "stage": "recovered"}
    numbers = {
        n: {
            "repeats": n - (n == 16),  # one of sixteen diverged
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


def test_rows_and_points() -> None:
    result = made(make_entry("epsilon", firsts=NUMBERS), rows())
    assert result.frame.round(9).to_numpy().tolist() == [
        ["small", "ours", 4, 4, 0.4, -0.1, 1.4, 0.8, False],
        ["small", "ours", 8, 8, 0.8, 0.3, 1.8, 1.6, True],
        ["small", "ours", 16, 15, 1.6, 1.1, 2.6, 3.2, True],
    ]
    assert ["Ours *", "4", "0.40 (-0.10 to 1.40)", "0.80", "not shown"] in cells(result.body)
    assert ["Ours *", "15", "1.60 (1.10 to 2.60)", "3.20", "yes"] in cells(result.body)
    axis = result.figure.axes[0]
    points = [line for line in axis.lines if line.get_marker() == "o"]
    assert [(float(np.asarray(one.get_xdata())[0]), one.get_markerfacecolor() == "white") for one in points] == [
        *((4.0, True), (8.0, False), (16.0, False))
    ]
    assert [text.get_text() for text in axis.get_xticklabels()] == ["4", "8", "16"]


def test_too_few_models_are_named_and_drawn_as_nothing() -> None:
    few = rows()[lambda frame: frame["metric"] == "repeats"].assign(value=1.0)
    result = made(make_entry("epsilon", firsts=NUMBERS), few)
    assert result.frame.empty
    assert result.words == [["Too few models are left that did not diverge."]]
    assert not any(line.get_marker() == "o" for line in result.figure.axes[0].lines)


def test_lower_limits_by_delta_are_a_curve_of_all_repeats() -> None:
    limits = [
        {**row, "metric": f"ulira_epsilon_low_delta_{delta}", "value": value * row["first"]}
        for row in rows().drop_duplicates("first").to_dict("records")
        for delta, value in ((5, 0.05), (50, -1.0))
    ]
    entry = make_entry("epsilon", firsts=NUMBERS)
    metrics = [entry.metrics[-1].model_copy(update={"name": f"ulira_epsilon_low_delta_{delta}"}) for delta in (5, 50)]
    entry = entry.model_copy(update={"metrics": (*entry.metrics, *metrics)})
    result = made(entry, pd.concat([rows(), pd.DataFrame(limits)]))
    assert [*result.frame.columns[-3:]] == ["low_delta_5", "low_delta_50", "above_0"]
    assert ["Ours *", "15", "1.60 (1.10 to 2.60)", "3.20", "0.80", "0.00", "yes"] in cells(result.body)
    (line,) = (line for axis in result.figure.axes if axis.get_xlabel() == "delta" for line in axis.lines)
    assert np.asarray(line.get_data()).round(9).tolist() == [[0, 0.05, 0.5], [1.1, 0.8, 0]]
