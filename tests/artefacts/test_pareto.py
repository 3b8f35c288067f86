"""Costs against what is left: sums of phases, means over repeats, the front, and a legend."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fu.artefacts import pareto
from fu.artefacts.entry import Entry
from fu.artefacts.pareto import GREY
from fu.pipeline.provenance import catalogue
from tests.artefacts.factories import cells, made
from tests.artefacts.test_auditing import SCORES, make_audit, make_rows, method

BYTES = {"none": 90.0, "nothing": 0.0, "good": 40.0, "bad": 10.0, "half": 1.0, "all": 1.0, "tenth": 1.0}


def entry() -> Entry:
    known = catalogue.metrics()
    audits = {"ulira": make_audit().audits["ulira"]}
    return make_audit(kind="pareto", metrics=(known["ulira_auc"],), also=pareto.ALSO, audits=audits)


def rows(p: dict[str, float] | None = None) -> pd.DataFrame:
    """Return U-LiRA's scores, and bytes up in two phases of each of two seeds, of which the second has two more."""
    about = {"scenario": "small", "round": -1, "published": False, "device": None}
    spent = [
        {**about, "method": name, "trial": name, "seed": seed, "stage": stage, "metric": metric, "value": value}
        for name, number in BYTES.items()
        for seed in (0, 1)
        for stage, part in (("unlearned", 1.0), ("recovered", 2.0))
        for metric, value in (("bytes_up", part * number + 2 * seed * (name != "nothing")), ("stored", part * number))
    ]
    return pd.concat([make_rows(p).assign(device=None), pd.DataFrame(spent)], ignore_index=True)


def test_costs_add_up_phases_and_are_means_over_repeats() -> None:
    found = pareto.tidy(rows(), entry())
    up = found[found["cost"] == "bytes_up"].set_index("method")
    assert up["spent"].to_dict() == {"none": 272.0, "nothing": 0.0, "good": 122.0, "bad": 32.0}  # 3 n + 2
    assert up["left"].to_dict() == {name: SCORES[name] for name in ("none", "nothing", "good", "bad")}
    assert up["front"].to_dict() == {"none": False, "nothing": False, "good": True, "bad": True}
    stored = found[found["cost"] == "stored"].set_index("method")["spent"]
    assert stored.to_dict() == {"none": 180.0, "nothing": 0.0, "good": 80.0, "bad": 20.0}  # the larger phase
    assert found[found["cost"] == "seconds"]["spent"].isna().all()


def test_a_method_of_which_more_runs_diverged_than_of_a_control_is_on_no_front() -> None:
    given = rows()
    given.loc[(given["method"] == "good") & (given["metric"] == "repeats"), "value"] = 7.0
    own = entry().model_copy(update={"seeds": tuple(range(8))})
    up = pareto.tidy(given, own)[lambda found: found["cost"] == "bytes_up"].set_index("method")["front"]
    assert up.to_dict() == {"none": True, "nothing": False, "good": False, "bad": True}
    assert [row[0] for row in cells(made(own, given).body)[1:]] == ["None", "Nothing", "Good (7 models)", "Bad"]


def test_on_the_front_is_whom_nobody_beats() -> None:
    [method, *_] = entry().methods
    points = [pareto.Point(method, *one) for one in [(1, 5), (2, 5), (2, 3), (3, 3), (1, 5), (4, 1), (float("nan"), 0)]]
    assert [one[1:] for one in pareto.front(points)] == [(1, 5), (1, 5), (2, 3), (4, 1)]


def test_a_method_whose_reference_has_no_controls_is_on_no_front_of_an_audit_that_judges() -> None:
    own = entry()
    methods = [one for one in own.methods if one.name != "good"]
    methods[-1:-1] = [method("other", retrains=True, reference=""), method("good", reference="other")]
    other = own.model_copy(update={"methods": tuple(methods), "against": ["again", "other"]})
    result = made(other, rows())
    up = result.frame[result.frame["cost"] == "bytes_up"].set_index("method")["front"]
    assert up.to_dict() == {"none": True, "nothing": False, "good": False, "bad": True}
    assert [row[0] for row in cells(result.body)[1:]] == ["None", "Nothing", "Good (not judged: no controls)", "Bad"]
    given = rows()
    none = given[given["metric"] != "ulira_p"]
    silent = other.audits["ulira"].model_copy(update={"p": ""})  # an audit that only describes
    other = other.model_copy(update={"audits": {"ulira": silent}})
    assert pareto.tidy(none, other).set_index(["cost", "method"])["front"]["bytes_up", "good"]
    assert "not judged" not in made(other, none).body


def test_an_audit_that_fails_its_controls_has_grey_points_and_no_front() -> None:
    result = made(entry(), rows({"none": 0.0005}))
    assert not result.frame["front"].any()
    assert result.words == [["U-LiRA AUC judges no method here: “None” fails it."]]
    up = next(axis for axis in result.figure.axes if axis.get_xlabel() == "bytes up")
    assert {line.get_color() for line in up.lines} == {GREY}
    known = made(entry(), rows())
    shown = {row[0]: row[3] for row in cells(known.body)[1:]}
    assert shown == {"None": "272", "Nothing": "0", "Good": "**122**", "Bad": "**32**"}
    up = next(axis for axis in known.figure.axes if axis.get_xlabel() == "bytes up")
    assert GREY not in {line.get_color() for line in up.lines}
    steps = next(line for line in up.lines if line.get_drawstyle() == "steps-post")
    assert np.asarray(steps.get_xydata()).tolist() == [[32.0, 0.8], [122.0, 0.49]]


@pytest.mark.parametrize(
    ("value", "said"), [(0, "0"), (0.1, "0.1"), (999, "999"), (1000, "1k"), (2.5e6, "2.5M"), (3e9, "3G")]
)
def test_amounts_at_axes(value: float, said: str) -> None:
    assert pareto.amount(value) == said


def test_the_legend_names_each_marker_and_controls_are_hollow() -> None:
    figure = made(entry(), rows()).figure
    handles = {handle.get_label(): handle for handle in figure.legends[0].legend_handles if handle}
    shown = [method for method in entry().methods if method.name in ("none", "nothing", "good", "bad")]
    assert [*handles] == [*(method.marked for method in shown), "front: none is better in both"]
    looks: list[Any] = [handles[method.marked] for method in shown]
    assert len({(look.get_color(), look.get_marker()) for look in looks}) == len(shown)
    hollow = [bool(method.left or method.control) for method in shown]
    assert [look.get_markerfacecolor() == "white" for look in looks] == hollow
