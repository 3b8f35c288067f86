"""Verdicts by hand: two audits of two methods, four shares of the client and doing nothing, against one retraining."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fu.artefacts import audit, auditing
from fu.artefacts.auditing import Judged, audits, families
from fu.artefacts.bounding import judge, remaining
from fu.artefacts.entry import Entry, Method
from fu.audits import share
from fu.pipeline.provenance import catalogue
from fu.pipeline.provenance.digest import ROOT
from tests.artefacts.factories import made, make_entry, method_of, scenario_of
from tests.artefacts.factories import make_audit as audit_named

LEFT = {"none": 0.0, "tenth": 0.1, "half": 0.5, "all": 1.0}
NAMES = ("again", *LEFT, "nothing", "good", "bad")
METRICS = ("ulira_auc", "line_position", "members_gap")
SCORES = {"none": 0.5, "tenth": 0.52, "half": 0.7, "all": 0.9, "nothing": 0.95, "good": 0.49, "bad": 0.8}
P = {"none": 0.5, "tenth": 0.004, "half": 0.0005, "all": 0.0005, "nothing": 0.0005, "good": 0.6, "bad": 0.0005}
PLACES = np.array([-1.5, -0.5, 0, 0, 0, 0, 0.5, 1.5])  # of eight models on the line, around their mean
AT = {"none": 0.0, "tenth": 10.0, "half": 50, "all": 100, "nothing": 100, "good": 0, "bad": 40}


def method(name: str, **about: Any) -> Method:
    plugin = "retrain_partly" if name in LEFT else {"nothing": "untouched"}.get(name, name)
    given = {"control": name == "nothing", "retrains": name == "again", "plugin": plugin}
    given |= {"left": (plugin, LEFT[name]) if name in LEFT else None, "reference": "" if name == "again" else "again"}
    return method_of(name, **{**given, **about})


def make_audit(**changes: Any) -> Entry:
    """Return a table of all of them."""
    known = catalogue.metrics()
    values: dict[str, Any] = {"scenarios": (scenario_of(),), "methods": tuple(map(method, NAMES)), "against": ["again"]}
    values |= {"x": None, "lines": [], "metrics": tuple(known[name] for name in METRICS), "chosen": {}}
    names = {"line": "Line", "members": "Members", "ulira": "U-LiRA"}
    audits = {name: audit_named(name).model_copy(update={"label": label}) for name, label in names.items()}
    return make_entry("audit").model_copy(update={**values, "audits": audits, **changes})


def make_rows(p: Mapping[str, float] | None = None, at: Mapping[str, float] | None = None) -> pd.DataFrame:
    """Return the frame: U-LiRA's p as given, the line's half as large, projections on one probe, and members."""
    rows: list[dict[str, Any]] = []
    for name, chance in {**P, **(p or {})}.items():
        numbers = {"repeats": 8.0, "ulira_auc": SCORES[name], "ulira_p": chance, "members_gap": -0.0001}
        numbers = {metric: value for metric, value in numbers.items() if not np.isnan(value)}
        numbers |= {"line_position": {**AT, **(at or {})}[name] / 100, "line_p": chance / 2}
        about = {"scenario": "small", "method": name, "trial": name, "seed": -1, "stage": "unlearned", "round": -1}
        rows += [{**about, "metric": metric, "value": value} for metric, value in numbers.items()]
        kinds = {"unlearned": {**AT, **(at or {})}[name], "retrained": 0.0, "original": 100.0}
        rows += [
            {**about, "metric": f"line: held_out, {kind}", "run": run, "value": mean + place}
            for kind, mean in kinds.items()
            for run, place in enumerate(PLACES)
        ]
    return pd.DataFrame(rows).assign(published=False, model="")


def judged(entry: Entry, rows: pd.DataFrame) -> dict[str, Judged]:
    return {one.audit.plugin: one for one in audits(rows, entry, entry.scenarios[0])}


def said(rows: pd.DataFrame, entry: Entry | None = None) -> dict[str, str]:
    entry = entry or make_audit()
    return judge(rows, entry, entry.scenarios[0]).verdicts


def test_all_tests_of_methods_are_one_family_and_those_of_controls_another() -> None:
    methods, known = families(make_rows(), make_audit())
    assert (len(methods), len(known)) == (4, 10)  # two audits that decide something; two methods, five controls
    # sorted: .00025, .0005, .3, .6
    assert methods["small", "bad", "line"] == pytest.approx(4 * 0.00025)
    assert methods["small", "bad", "ulira"] == pytest.approx(3 * 0.0005)
    assert methods["small", "good", "line"] == methods["small", "good", "ulira"] == pytest.approx(0.6)
    # sorted: three of .00025, three of .0005, .002, .004, .25, .5
    assert known["small", "all", "line"] == pytest.approx(10 * 0.00025)
    assert known["small", "all", "ulira"] == pytest.approx(7 * 0.0005)
    assert known["small", "tenth", "line"] == pytest.approx(4 * 0.002)
    assert known["small", "tenth", "ulira"] == pytest.approx(3 * 0.004)
    assert known["small", "none", "ulira"] == 0.5


def test_audits_stand_in_the_order_of_the_metrics() -> None:
    assert [*judged(make_audit(), make_rows())] == ["ulira", "line", "members"]
    one = judged(make_audit(), make_rows())["ulira"]
    assert one.values["half"] == {"ulira_auc": 0.7, "ulira_p": 0.0005}
    assert (one.found("tenth"), one.found("good"), one.fails) == (True, False, {})
    assert judged(make_audit(), make_rows())["members"].p == {}


@pytest.mark.parametrize(
    ("p", "reason"),
    [
        ({"none": 0.0005}, "“None” fails it"),
        ({"all": 0.3}, "“All” passes it"),
        ({"nothing": 0.3}, "“Nothing” passes it"),
        ({"tenth": 0.3, "half": 0.3}, ""),  # which no audit claims to find
        ({"good": 0.0005}, ""),  # methods judge no audit
        ({"nothing": np.nan}, "it has no result for “Nothing”"),
        ({"none": np.nan}, "it has no result for “None”"),
        ({"half": np.nan}, ""),
    ],
)
def test_an_audit_that_its_controls_contradict_judges_nobody(p: dict[str, float], reason: str) -> None:
    found = judged(make_audit(), make_rows(p))
    assert found["ulira"].fails == ({"again": reason} if reason else {})


@pytest.mark.parametrize(("attacked", "fails"), [(False, {}), (True, {"again": "“Cheat” passes it"})])
def test_the_cheat_must_be_found_where_there_is_a_trigger(attacked: bool, fails: dict[str, str]) -> None:
    entry, rows = make_audit(scenarios=(scenario_of(attacked=attacked),)), make_rows()
    entry = entry.model_copy(update={"methods": (*entry.methods, method("cheat", hides=True))})
    found = judged(entry, pd.concat([rows, rows[rows["method"] == "good"].assign(method="cheat")]))
    assert ("cheat" in found["line"].sees, found["line"].fails, found["ulira"].fails) == (attacked, fails, {})


def test_steganography_is_claimed_by_no_audit() -> None:
    sees = [catalogue.declared("audits", name).get("SEES", ()) for name in catalogue.available("audits")]
    assert any("cheat" in of for of in sees)
    assert not any("stego" in of for of in sees)
    assert (
        "| `stego` | one picture, in a unit that is switched off | none |"
        in (ROOT / "docs/threat-model.md").read_text()
    )


def test_verdicts() -> None:
    assert said(make_rows()) == {
        **{"none": "bounded below 10%", "good": "bounded below 10%", "bad": "found", "tenth": "found"},
        **{"half": "found", "all": "found", "nothing": "found"},
    }
    # what nothing finds, but what is no less than the smallest share, is undecided
    assert said(make_rows({"good": 0.3}, {"good": 9.8}))["good"] == "undecided"
    # without a result of every audit nothing is bounded
    assert said(make_rows({"good": np.nan}))["good"] == "undecided"
    # an audit that judges nobody finds nobody, and without it nobody passes
    rows, entry = make_rows({"none": 0.0005}), make_audit()
    unfit = said(rows)
    assert (unfit["bad"], unfit["good"]) == ("undecided", "undecided")
    assert judge(rows, entry, entry.scenarios[0]).left.bound == {}  # the line judges nobody either
    assert judge(make_rows(), entry, entry.scenarios[0]).left.bound["good"] == 0.1


def test_a_method_of_which_a_run_diverged_is_found_unless_its_controls_lost_it_too() -> None:
    rows = make_rows()
    rows.loc[(rows["method"] == "good") & (rows["metric"] == "repeats"), "value"] = 7.0
    assert said(rows)["good"] == "found"
    rows.loc[(rows["metric"] == "repeats") & (rows["method"] != "bad"), "value"] = 7.0  # those of all controls
    assert said(rows)["good"] == "bounded below 10%"


def test_bounds_hold_for_all_methods_and_probes_of_a_table_together() -> None:
    entry, rows = make_audit(), make_rows({}, {"good": 9.2})  # .8 below a tenth of the client: p = .04
    one = entry.model_copy(update={"methods": tuple(one for one in entry.methods if one.name != "bad")})
    assert remaining(rows, one, one.scenarios[0]).bound["good"] == 0.1
    assert remaining(rows, entry, entry.scenarios[0]).bound["good"] == 0.5
    line = rows[rows["metric"].str.startswith("line: ")]
    two = pd.concat([rows, line.assign(metric=line["metric"].str.replace("held_out", "augmented"))])
    assert remaining(two, one, one.scenarios[0]).bound["good"] == 0.5


def test_power_is_at_the_level_of_the_tests_of_methods() -> None:
    left = remaining(make_rows({}, {"tenth": 2.0}), make_audit(), make_audit().scenarios[0])
    at = {number: share.power(PLACES + 2, PLACES, 0.05 / number) for number in (4, 10)}  # of methods, of controls
    assert left.power["tenth"]["held_out"] == at[4] > at[10]


def test_where_no_p_value_can_be_small_enough_there_is_no_power() -> None:
    rows = make_rows()
    for runs, power in ((4, 0.0), (5, 1.0)):  # smallest p: 1/36, 1/120; of each of four tests: 1/80
        few = rows[rows["run"].isna() | (rows["run"] < runs)]
        assert remaining(few, make_audit(), make_audit().scenarios[0]).power["all"]["held_out"] == power


def test_random_weights_do_not_stand_in_for_a_control_with_all_of_the_client() -> None:
    entry = make_audit()
    few = [one for one in entry.methods if one.name not in ("half", "all", "nothing")]
    entry = entry.model_copy(update={"methods": (*few, method("random_weights", control=True))})
    assert auditing.uncontrolled(entry) == {"none", "tenth", "good", "bad", "random_weights"}


def test_a_method_without_controls_of_its_reference_is_not_judged() -> None:
    entry = make_audit(against=["again", "other"])
    others = [method("other", retrains=True, reference=""), method("good", reference="other")]
    entry = entry.model_copy(update={"methods": (*(one for one in entry.methods if one.name != "good"), *others)})
    assert auditing.uncontrolled(entry) == {"good"}
    assert said(make_rows(), entry)["good"] == "not judged"
    assert [len(of) for of in families(make_rows(), entry)] == [2, 10]
    labels = {one.name: auditing.marked(entry, one) for one in entry.methods}
    assert (labels["good"], labels["bad"]) == ("Good (not judged: no controls)", "Bad")


def test_a_method_whose_optimiser_no_retraining_has_is_not_judged() -> None:
    entry = make_audit()
    others = [method("bad", own_optimiser=True) if one.name == "bad" else one for one in entry.methods]
    entry = entry.model_copy(update={"methods": (*others,)})
    assert auditing.uncontrolled(entry) == {"bad"}
    assert said(make_rows(), entry)["bad"] == "not judged"
    assert auditing.marked(entry, entry.methods[-1]) == "Bad (not judged: its own optimiser)"
    [words] = made(entry, make_rows()).words
    assert "Bad is not judged: no retraining has its optimiser." in words


def test_a_control_that_an_audit_claims_to_find_counts_against_its_own_reference() -> None:
    entry, rows = make_audit(against=["again", "other"]), make_rows({"nothing": 0.3})
    again = rows[rows["method"] == "nothing"].assign(method="nothing2")
    again.loc[again["metric"].isin(["ulira_p", "line_p"]), "value"] = 0.0005
    moved = [
        method("other", retrains=True, reference=""),
        method("nothing", reference="other"),
        method("none2", reference="other", left=("retrain_partly", 0.0)),
        method("nothing2", plugin="untouched", control=True),
    ]
    both = (*(one for one in entry.methods if one.name != "nothing"), *moved)
    fails = judged(entry.model_copy(update={"methods": both}), pd.concat([rows, again]))["ulira"].fails
    assert fails == {"other": "“Nothing” passes it"}


def test_a_control_that_an_audit_claims_to_find_counts_where_a_reference_has_none_of_its_own() -> None:
    entry = make_audit(against=["again", "other"])
    moved = [
        method("other", retrains=True, reference=""),
        method("nothing", reference="other"),
        method("none2", reference="other", left=("retrain_partly", 0.0)),
    ]
    entry = entry.model_copy(update={"methods": (*(one for one in entry.methods if one.name != "nothing"), *moved)})
    fails = judged(entry, make_rows({"nothing": 0.3}))["ulira"].fails
    assert fails == {"again": "“Nothing” passes it", "other": "“Nothing” passes it"}


def test_the_resolution_is_the_least_share_that_has_power_and_bounds_are_of_probes_that_have_it() -> None:
    entry = make_audit()
    left = remaining(make_rows(), entry, entry.scenarios[0])
    assert left.resolution == {"again": {"held_out": 0.1}}
    assert left.power["tenth"]["held_out"] == 1.0
    assert left.bound["none"] == left.bound["good"] == 0.1
    assert left.bound["bad"] == 0.5  # 40 of 100
    assert left.bound["nothing"] is None
    blurred = make_rows(at={"tenth": 0.5})  # a twentieth of what it takes
    found = remaining(blurred, entry, entry.scenarios[0])
    assert found.power["tenth"]["held_out"] < 0.1
    assert (found.resolution, found.bound) == ({"again": {"held_out": 0.5}}, {})


def test_the_largest_bound_over_probes_counts() -> None:
    rows = make_rows()
    more = rows[rows["metric"].str.startswith("line: ")].copy()
    more["metric"] = more["metric"].str.replace("held_out", "augmented")
    hidden = (more["method"] == "good") & more["metric"].str.endswith("unlearned")
    more.loc[hidden, "value"] += 30
    entry = make_audit()
    left = remaining(pd.concat([rows, more]), entry, entry.scenarios[0])
    assert (left.bound["good"], left.bound["none"]) == (0.5, 0.1)
    more.loc[hidden, "value"] += 70
    assert remaining(pd.concat([rows, more]), entry, entry.scenarios[0]).bound["good"] is None


@pytest.mark.parametrize(
    ("probe", "attacked", "bounded"),
    [
        ("forgotten", False, False),
        ("augmented", False, False),
        ("held_out", False, True),
        ("held_out", True, False),
        ("triggered", True, True),
    ],
)
def test_nothing_is_bounded_by_probes_that_a_method_can_prepare_for(probe: str, attacked: bool, bounded: bool) -> None:
    rows, entry = make_rows(), make_audit(scenarios=(scenario_of(attacked=attacked),))
    rows["metric"] = rows["metric"].str.replace("held_out", probe)
    left = remaining(rows, entry, entry.scenarios[0])
    assert left.bound.get("good") == (0.1 if bounded else None)
    assert ("good" in left.bound) == bounded
    note = "Against Again no method is bounded: a method can prepare for every probe with a resolution within 10%."
    assert (note in audit.make(rows, entry).body.replace("\n", " ")) == (not bounded)


def test_an_independent_retraining_that_is_found_counts_against_its_own_reference_alone() -> None:
    entry, rows = make_audit(against=["again", "other"]), make_rows({"none": 0.0005})
    moved = [method(name, reference="other") for name in ("none", "nothing")]
    stay = [one for one in entry.methods if one.name not in ("none", "nothing")]
    known = [
        method("other", retrains=True, reference=""),
        method("zero", reference="again", left=("retrain_partly", 0.0)),
    ]
    entry = entry.model_copy(update={"methods": (*stay, *known, *moved)})
    assert judged(entry, rows)["ulira"].fails == {"other": "“None” fails it"}
