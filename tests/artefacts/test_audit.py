"""The table of audits: by hand, on controls of which 0, .1, .5 and all is left and two methods."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fu.artefacts import audit
from fu.artefacts.entry import Entry, Method, Scenario, Trial
from fu.artefacts.panels import LIKE
from fu.pipeline import catalogue
from tests.artefacts.factories import made, make_entry
from tests.artefacts.factories import make_audit as audit_named

LEFT = {"none": 0.0, "tenth": 0.1, "half": 0.5, "all": 1.0}
NAMES = ("again", *LEFT, "nothing", "good", "bad")
METRICS = ("klom_p", "ulira_auc", "klom_forgotten_95", "neighbours_loss")
SCORES = {"none": 0.5, "tenth": 0.52, "half": 0.7, "all": 0.9, "nothing": 0.95, "good": 0.49, "bad": 0.8}
FOUND = {name: name not in ("none", "tenth", "good") for name in SCORES}


def make_audit(**changes: Any) -> Entry:
    """Return the table of two methods, four shares and doing nothing against retraining."""
    about: dict[str, Any] = {"in_paper": True, "post_training": "none"}
    methods = []
    for name in NAMES:
        trial = Trial(name=name, rate=0.1, values={}, unlearned=f"small/{name}")
        left = ("partly", LEFT[name]) if name in LEFT else None
        kind = {"control": name == "nothing", "retrains": name == "again", "left": left}
        methods.append(Method(name=name, label=name.title(), trials={"small": (trial,)}, **kind, **about))
    laid = (Scenario(name="small", label="Small", dataset="digits", data="digits", rounds=(2, 4)),)
    known = catalogue.metrics()
    audits = {
        name: audit_named(name).model_copy(update={"label": name.title()}) for name in ("klom", "neighbours", "ulira")
    }
    values: dict[str, Any] = {
        "scenarios": laid,
        "methods": tuple(methods),
        "against": ["again"],
        "x": None,
        "lines": [],
    }
    values |= {"metrics": tuple(known[name] for name in METRICS), "audits": audits, "reads": "repeats"}
    return make_entry("audit").model_copy(update={**values, "chosen": {}, **changes})


def make_rows(scores: dict[str, float] | None = None, found: dict[str, bool] | None = None) -> pd.DataFrame:
    """Return the frame: U-LiRA's numbers as given, KLoM's a tenth of its score, and neighbours, who decide nothing."""
    rows: list[dict[str, Any]] = []
    for name, score in {**SCORES, **(scores or {})}.items():
        finds = float({**FOUND, **(found or {})}[name])
        numbers = {"repeats": 2.0, "ulira_auc": score, "ulira.found": finds}
        numbers |= {"klom_p": 0.0312, "klom_forgotten_95": 10 * score, "klom.found": 1.0, "neighbours_loss": -0.001}
        about = {"scenario": "small", "method": name, "trial": name, "seed": -1, "stage": "unlearned", "round": -1}
        rows += [{**about, "metric": metric, "value": value} for metric, value in numbers.items()]
    return pd.DataFrame(rows).assign(published=False, model="")


def judged(scores: dict[str, float] | None = None, found: dict[str, bool] | None = None) -> audit.Judged:
    """Return what is made of U-LiRA."""
    entry = make_audit()
    several = audit.audits(make_rows(scores, found), entry, entry.scenarios[0])
    assert [one.audit.plugin for one in several] == ["klom", "ulira", "neighbours"]  # as the metrics stand
    return several[1]


def test_the_resolution_is_the_smallest_share_that_is_found() -> None:
    assert (judged().fails, judged().resolution) == ("", 0.5)
    assert judged(found={"tenth": True}).resolution == 0.1
    assert judged(found={"half": False}).resolution == 1.0


@pytest.mark.parametrize(
    ("scores", "found", "reason"),
    [
        ({}, {"none": True}, "“None” fails it"),
        ({}, {"all": False}, "“All” passes it"),
        ({}, {"nothing": False}, "“Nothing” passes it"),
        ({}, {"half": False, "tenth": True}, "“Tenth” fails it and “Half” passes it"),
        ({"half": 0.91}, {}, "it scores “Half” higher than “All”"),
        ({"half": 0.9}, {}, ""),  # a tie is in order
        ({"tenth": 0.8}, {}, ""),  # where nothing is found, nothing is ranked
        ({"bad": 0.99, "good": 0.1}, {"good": True}, ""),  # methods judge no audit
    ],
)
def test_an_audit_that_fails_its_controls_judges_nobody(
    scores: dict[str, float], found: dict[str, bool], reason: str
) -> None:
    one = judged(scores, found)
    assert one.fails == reason
    assert one.resolution == (None if reason else 0.5)


def test_weights_between_are_ranked_among_themselves_alone() -> None:
    entry = make_audit()
    mixed = entry.methods[1].model_copy(update={"name": "mixed", "label": "Mixed", "left": ("mixed", 0.5)})
    more = entry.model_copy(update={"methods": (*entry.methods, mixed)})
    assert audit.controlled(more, {**SCORES, "mixed": 2.0}, {**FOUND, "mixed": True}) == ("", 0.5)
    assert audit.controlled(more, {**SCORES, "mixed": 2.0}, {**FOUND, "mixed": False}) == ("", 0.5)


def test_cells_and_headings() -> None:
    result = made(make_audit(), make_rows())
    [(_, panel)] = result.panels or []
    shown = dict(zip(panel.iloc[:, 0], panel.iloc[:, 1:].itertuples(index=False, name=None), strict=True))
    assert [*panel.columns.get_level_values(1)] == [
        "Method",
        *("KLoM, p " + LIKE, "KLoM, forgotten, 95th percentile " + LIKE),  # it finds something in the retrained, too
        *("U-LiRA AUC", "Neighbours: loss"),
    ]
    assert shown["Good"] == ("0.031", "4.90", f"0.490 {LIKE}", "0.00")
    assert shown["Bad"] == ("0.031", "8.00", "0.800", "0.00")
    assert shown["Tenth"] == ("0.031", "5.20", f"0.520 {LIKE}", "0.00")
    assert "Again" not in shown


def test_an_audit_that_fails_marks_no_method_as_like_retraining() -> None:
    [(_, panel)] = made(make_audit(), make_rows(found={"none": True})).panels or []
    column = [label for label in panel.columns.get_level_values(1) if label.startswith("U-LiRA")]
    assert column == [f"U-LiRA AUC {LIKE}"]
    good = panel[panel.iloc[:, 0] == "Good"].iloc[0]
    assert [*good][3] == "0.490"


def test_fewer_models_than_seeds_are_said() -> None:
    frame = make_rows()
    frame.loc[(frame["method"] == "good") & (frame["metric"] == "repeats"), "value"] = 1.0
    [(_, panel)] = made(make_audit(), frame).panels or []
    assert "Good (1 models)" in {*panel.iloc[:, 0]}
    assert "Tenth" in {*panel.iloc[:, 0]}


def test_the_tidy_rows() -> None:
    frame = made(make_audit(), make_rows()).frame
    row = frame[(frame["method"] == "half") & (frame["metric"] == "ulira_auc")].iloc[0].to_dict()
    assert row == {
        **{"scenario": "small", "method": "half", "left": 0.5, "audit": "ulira", "metric": "ulira_auc"},
        **{"value": 0.7, "found": True, "fails": "", "resolution": 0.5},
    }
    assert set(frame[frame["audit"] == "neighbours"]["found"].isna()) == {True}
    assert set(frame[frame["audit"] == "klom"]["fails"]) == {"“None” fails it"}


def test_the_picture_fills_what_is_found_and_greys_who_judges_nobody() -> None:
    figure = made(make_audit(), make_rows()).figure
    klom, ulira, _ = figure.axes
    at = {int(np.asarray(line.get_ydata())[0]): line for line in ulira.lines}
    order = [name for name in NAMES if name != "again"]
    assert [np.asarray(at[k].get_xdata())[0] for k in range(len(order))] == [SCORES[name] for name in order]
    assert [at[k].get_markerfacecolor() == "white" for k in range(len(order))] == [not FOUND[name] for name in order]
    assert {line.get_color() for line in klom.lines} == {audit.GREY}
    assert [text.get_text() for text in klom.get_yticklabels()] == [name.title() for name in order]
    assert ulira.yaxis_inverted()


def test_a_method_without_models_has_a_row_without_numbers() -> None:
    frame = make_rows()
    frame = frame[(frame["method"] != "bad") | (frame["metric"] == "repeats")].copy()
    frame.loc[frame["method"] == "bad", "value"] = 0.0
    [(_, panel)] = made(make_audit(), frame).panels or []
    row = panel[panel.iloc[:, 0].str.startswith("Bad")].iloc[0]
    assert [*row] == ["Bad (0 models)", "–", "–", "–", "–"]


def test_rows_say_of_controls_what_every_audit_finds_and_of_methods_what_those_do_that_pass() -> None:
    found = audit.by_seed(make_rows(), make_audit())
    of = {(row["method"], row["metric"]): row["value"] for row in found.to_dict("records")}
    assert of["none", "found"] == 0.5  # KLoM finds something in it, and U-LiRA nothing
    assert of["all", "found"] == of["nothing", "found"] == 1
    assert (of["good", "found"], of["bad", "found"]) == (0, 1)  # of U-LiRA alone
    assert of["all", "in_order"] == 1
    assert of["bad", "ulira_auc"] == 0.8
    assert ("bad", "klom_p") not in of
    assert of["all", "klom_p"] == 0.0312
    assert ("bad", "in_order") not in of
    assert {*found["seed"]} == {-1}
    assert "again" not in {*found["method"]}


def test_scores_out_of_order_are_said_in_rows() -> None:
    found = audit.by_seed(make_rows({"half": 0.91}), make_audit())
    ranked = found[found["metric"] == "in_order"].set_index("method")["value"]
    assert ranked["all"] == 0  # of both audits: KLoM's score is ten times U-LiRA's
    assert found[(found["method"] == "bad")].empty  # no audit passes its controls


def elsewhere(entry: Entry, name: str) -> Entry:
    """Return the entry with one method that starts from another training than all others."""
    [method] = [one for one in entry.methods if one.name == name]
    (trial,) = method.trials["small"]
    other = method.model_copy(update={"trials": {"small": (trial.model_copy(update={"trained": "small/fats"}),)}})
    return entry.model_copy(update={"methods": tuple(other if one is method else one for one in entry.methods)})


def test_a_method_whose_training_no_control_shares_is_not_judged() -> None:
    entry = elsewhere(make_audit(), "good")
    several = audit.audits(make_rows(), entry, entry.scenarios[0])
    assert set(several[1].found) == {*FOUND} - {"good"}
    assert several[1].values["good"]["ulira_auc"] == 0.49
    result = made(entry, make_rows())
    [(_, panel)] = result.panels or []
    row = panel[panel.iloc[:, 0] == "Good (not judged: no controls)"].iloc[0]
    assert [*row][3] == "0.490"  # not grey
    rows = audit.by_seed(make_rows(), entry)
    assert {*rows["method"]} == {*FOUND} - {"good"}
    controlled = elsewhere(entry, "nothing")  # a control of its training
    assert audit.uncontrolled(controlled, controlled.scenarios[0]) == set()


def test_audits_that_only_describe_pass_nobody() -> None:
    frame = make_rows()
    frame = frame[~frame["metric"].isin(["ulira.found", "klom.found"])]
    notes = made(make_audit(), frame).notes
    assert "These audits only describe: no method passes or fails." in notes
    assert LIKE not in notes
    assert "passes the audit, which proves only" in made(make_audit(), make_rows()).notes
