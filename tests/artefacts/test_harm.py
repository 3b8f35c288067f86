"""Harm to retained clients: by hand, two methods in two scenarios of which one makes more errors than retraining."""

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.text import Text

from fu.artefacts.entry import Entry
from fu.pipeline.provenance import catalogue
from tests.artefacts.factories import made
from tests.artefacts.test_auditing import make_audit

METRICS = ("harm_near", "members_gap")
P = {  # raw p-values of six tests; those of "good" in the second scenario are missing, as all its models diverged
    ("small", "bad"): (0.001, 0.5),
    ("small", "good"): (0.012, 0.9),
    ("large", "bad"): (0.008, 0.02),
}


def harm_entry() -> Entry:
    plain = make_audit()
    known = catalogue.metrics()
    methods = tuple(one for one in plain.methods if one.name in ("again", "good", "bad"))
    trials = [dict.fromkeys(("small", "large"), one.trials["small"]) for one in methods]
    both = tuple(one.model_copy(update={"trials": of}) for one, of in zip(methods, trials, strict=True))
    large = plain.scenarios[0].model_copy(update={"name": "large", "label": "Large"})
    given: dict[str, Any] = {"kind": "harm", "scenarios": (*plain.scenarios, large), "methods": both, "audits": {}}
    return plain.model_copy(update={**given, "metrics": tuple(known[name] for name in METRICS), "seeds": (0, 1)})


def harm_rows() -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for (scenario, method), ps in P.items():
        numbers = {"repeats": 1.0 if method == "good" else 2.0}
        for metric, p, (middle, low, high) in zip(
            METRICS, ps, ((26.875, 20.5, 33.25), (-0.01, -0.04, 0.02)), strict=True
        ):
            numbers |= {metric: middle, f"{metric}_low": low, f"{metric}_high": high}
            numbers |= {f"{metric}_worse": 0.875, f"{metric}_p": p}
        about = {"scenario": scenario, "method": method, "trial": method, "seed": -1, "stage": "unlearned", "round": -1}
        rows += [{**about, "metric": metric, "value": value} for metric, value in numbers.items()]
    return pd.DataFrame([*rows, {**rows[0], "scenario": "large", "method": "good", "value": 0.0}])


def test_p_values_are_adjusted_for_all_that_is_shown() -> None:
    frame = made(harm_entry(), harm_rows()).frame
    found = frame.set_index(["scenario", "method", "metric"])["adjusted"].round(9).to_dict()
    assert found == {  # .001, .008, .012, .02, .5, .9 times 6, 5, 4, 3, 2, 1
        ("small", "good", "harm_near"): 0.048,
        ("small", "good", "members_gap"): 1,  # .9, and not below what comes before it
        ("small", "bad", "harm_near"): 0.006,
        ("small", "bad", "members_gap"): 1,
        ("large", "bad", "harm_near"): 0.04,
        ("large", "bad", "members_gap"): 0.06,
    }
    row = frame[(frame["scenario"] == "large") & (frame["metric"] == "members_gap")].iloc[0]
    assert [*row[3:8]] == [-0.01, -0.04, 0.02, 0.875, 0.02]


def test_cells() -> None:
    result = made(harm_entry(), harm_rows())
    (_, small), (_, large) = result.panels or []
    assert [*small.columns][1:4] == [("More errors, nearest", head) for head in ("difference", "chance", "p (Holm)")]
    assert [*small.iloc[0]] == [
        *("Good (1 models)", "26.9 (20.5 to 33.2)", "0.88", "**0.0480**"),
        *("-0.010 (-0.040 to 0.020)", "0.88", "1.0000"),
    ]
    assert [*large.iloc[0]] == ["Good (0 models)", *["–"] * 6]
    assert [large.iloc[1, 3], large.iloc[1, 6]] == ["**0.0400**", "0.0600"]
    assert "for the 6 tests shown here" in result.notes


def test_the_picture_fills_what_is_worse_and_shows_intervals() -> None:
    near, gap, large, other = made(harm_entry(), harm_rows()).figure.axes
    for axis, filled in ((near, [True, True]), (gap, [False, False]), (large, [True]), (other, [False])):
        points = [line for line in axis.lines if line.get_marker() not in ("None", "")]
        assert [point.get_markerfacecolor() != "white" for point in points] == filled
    [point, _] = [line for line in near.lines if line.get_marker() not in ("None", "")]
    assert np.asarray(point.get_xydata()).tolist() == [[26.875, 0]]
    [interval, *_] = near.collections
    assert isinstance(interval, LineCollection)
    assert np.asarray(interval.get_segments()).tolist() == [[[20.5, 0], [33.25, 0]]]
    assert [text.get_text() for text in near.get_yticklabels()] == ["Good", "Bad"]
    assert near.yaxis_inverted()
    assert large.get_xlabel() == "errors per\n100 samples"


def test_headings_keep_off_the_next_panel_however_long_the_names_of_methods_are() -> None:
    plain = harm_entry()
    methods = tuple(
        one.model_copy(update={"label": f"{one.label}, trained with 100% of the client, with this noise, continued"})
        for one in plain.methods
    )
    metrics = (plain.metrics[0], *plain.metrics)
    figure = made(plain.model_copy(update={"methods": methods, "metrics": metrics}), harm_rows()).figure
    figure.draw_without_rendering()
    for axis, following in pairwise(figure.axes[:3]):
        [heading] = [found for found in axis.findobj(Text) if found.get_text().startswith("More")]
        assert heading.get_window_extent().x1 < following.get_window_extent().x0
