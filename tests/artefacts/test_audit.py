"""The table of what remains, its rows and its picture: by hand, on the numbers of `test_auditing`."""

import numpy as np
import pandas as pd

from fu.artefacts import audit
from tests.artefacts.factories import made
from tests.artefacts.test_auditing import NAMES, PLACES, SCORES, make_audit, make_rows, method

TESTED = [name for name in NAMES if name != "again"]


def test_cells_and_headings() -> None:
    [(label, panel)] = made(make_audit(), make_rows()).panels or []
    assert label == "Small"
    heads = [*panel.columns.get_level_values(1)]
    assert heads == [
        *("Method", "Verdict", "Left, at most", "U-LiRA AUC", "U-LiRA: p", "Position", "Line: p"),
        "Membership advantage, gap",
    ]
    shown = {row[0]: row[1:] for row in panel.itertuples(index=False, name=None)}
    assert [*shown] == [name.title() for name in TESTED]
    assert shown["Good"] == ("bounded below 10%", "10%", "0.490", "0.600", "0.000", "0.600", "0.000")
    assert shown["Bad"] == ("**found**", "50%", "0.800", "0.002", "0.400", "0.001", "0.000")
    assert shown["Nothing"][1] == "> 100%"


def test_an_interval_stands_behind_its_metric() -> None:
    ends = make_rows()[lambda rows: (rows["metric"] == "ulira_auc") & (rows["method"] == "good")].iloc[[0, 0]]
    frame = pd.concat([make_rows(), ends.assign(metric=["ulira_auc_low", "ulira_auc_high"], value=[0.4, 0.61])])
    plain = make_audit().audits
    metrics = (*plain["ulira"].metrics, "ulira_auc_low", "ulira_auc_high")
    audits = {**plain, "ulira": plain["ulira"].model_copy(update={"metrics": metrics})}
    low = make_audit().metrics[0].model_copy(update={"name": "ulira_auc_low", "label": "the lower end"})
    found = made(make_audit(audits=audits, metrics=(low, *make_audit().metrics)), frame)
    [(_, panel)] = found.panels or []
    assert "the lower end" not in panel.columns.get_level_values(1)
    cells = dict(zip(panel.iloc[:, 0], panel.iloc[:, 3], strict=True))
    assert (cells["Good"], cells["Bad"]) == ("0.490 (0.400 to 0.610)", "0.800")
    words = "In parentheses: 95% intervals over models."
    assert words in found.notes
    without = make_audit(metrics=make_audit().metrics[:2], audits={name: plain[name] for name in ("line", "ulira")})
    assert words not in made(without, make_rows()).notes


def test_what_a_method_is_compared_with_is_named_where_there_are_several() -> None:
    entry = make_audit(against=["again", "other"])
    entry = entry.model_copy(
        update={"methods": (*entry.methods, method("other", reference=""), method("x", reference="other"))}
    )
    found = made(entry, make_rows())
    [(_, panel)] = found.panels or []
    shown = dict(zip(panel.iloc[:, 0], panel.iloc[:, 1], strict=True))
    assert (
        "Against Other no method can be bounded: no control keeps a share of the client within 10%." in found.words[0]
    )
    assert (shown["Good"], shown["X (0 models)"]) == ("Again", "Other")


def test_words_name_the_resolution_and_audits_that_judge_nobody() -> None:
    unseen = [
        "U-LiRA is not validated here on: noise.",
        "Line is not validated here on: retrain_mixed.",
    ]  # without a trigger no cheat
    assert made(make_audit(), make_rows()).words == [[*unseen, "Resolution against Again, by probe: held out 10%."]]
    [words] = made(make_audit(), make_rows({"none": 0.0005})).words
    assert words[:2] == [
        "“U-LiRA” judges no method here: “None” fails it.",
        "“Line” judges no method here: “None” fails it.",
    ]


def test_fewer_models_than_seeds_are_said_and_none_have_no_numbers() -> None:
    frame = make_rows()
    frame.loc[(frame["method"] == "good") & (frame["metric"] == "repeats"), "value"] = 1.0
    frame = frame[(frame["method"] != "bad") | (frame["metric"] == "repeats")]
    frame.loc[frame["method"] == "bad", "value"] = 0.0
    entry = make_audit(seeds=tuple(range(8)))
    [(_, panel)] = made(entry, frame).panels or []
    assert {"Good (1 models)", "Bad (0 models)", "None"} < {*panel.iloc[:, 0]}
    bad = panel[panel.iloc[:, 0] == "Bad (0 models)"].iloc[0]
    assert [*bad][1:] == ["**found**", "–", "–", "–", "–", "–", "–"]


def test_the_tidy_rows() -> None:
    frame = made(make_audit(), make_rows()).frame
    row = frame[(frame["method"] == "half") & (frame["metric"] == "ulira_auc")].iloc[0].to_dict()
    assert row == {
        **{"scenario": "small", "method": "half", "reference": "again", "left": 0.5, "audit": "ulira"},
        **{
            "metric": "ulira_auc",
            "value": 0.7,
            "p": 0.0035,
            "found": True,
            "fails": "",
            "verdict": "found",
            "bound": 1.0,
        },
    }
    assert set(frame[frame["audit"] == "members"]["found"].isna()) == {True}


def test_rows_for_claims() -> None:
    found = audit.by_seed(make_rows({"good": 0.3}, {"good": 9.8}), make_audit())
    of = {(row["method"], row["metric"]): row["value"] for row in found.to_dict("records")}
    assert (of["bad", "found"], of["bad", "passes"]) == (1, 0)
    assert not {("good", "found"), ("good", "passes")} & {*of}  # undecided
    assert of["bad", "ulira_auc"] == SCORES["bad"]
    assert ("bad", "ulira_p") not in of  # which the table does not show
    assert (of["none", "found"], of["all", "found"], of["nothing", "found"]) == (0, 1, 1)
    assert "again" not in {*found["method"]}
    assert {*found["seed"]} == {-1}
    passing = audit.by_seed(make_rows(), make_audit())
    assert passing[(passing["method"] == "good") & (passing["metric"] == "passes")]["value"].tolist() == [1.0]
    silent = audit.by_seed(make_rows({"none": 0.0005}), make_audit())  # no audit judges methods
    assert "bad" not in {*silent["method"]}
    half = audit.by_seed(make_rows({"all": 0.018}), make_audit())  # one of both audits finds it
    assert half[(half["method"] == "all") & (half["metric"] == "found")]["value"].tolist() == [0.5]


def test_the_picture_shows_every_model_and_fills_what_is_found() -> None:
    figure = made(make_audit(), make_rows()).figure
    [axis] = figure.axes
    drawn = {int(np.asarray(line.get_ydata())[0]): line for line in axis.lines if line.get_marker() == "o"}
    assert [text.get_text() for text in axis.get_yticklabels()] == [name.title() for name in TESTED]
    assert axis.yaxis_inverted()
    bad, good = drawn[TESTED.index("bad")], drawn[TESTED.index("good")]
    assert np.allclose(np.asarray(bad.get_xdata(), float), (40 + PLACES) / 100)
    assert (bad.get_markerfacecolor(), good.get_markerfacecolor()) == (bad.get_color(), "white")
    undecided = made(make_audit(), make_rows({"good": 0.3}, {"good": 9.8})).figure.axes[0]
    line = next(one for one in undecided.lines if np.asarray(one.get_ydata())[0] == TESTED.index("good"))
    assert line.get_color() == audit.GREY


def test_the_picture_says_why_it_is_empty() -> None:
    rows, line = make_rows(), "line: held_out, "
    retrained = rows.loc[rows["metric"] == f"{line}retrained", "value"].to_numpy()
    rows.loc[rows["metric"].str.startswith(line), "value"] = np.tile(retrained[: len(PLACES)], 3 * len(NAMES[1:]))
    figure = made(make_audit(), rows).figure  # all models lie where retrained ones do
    [axis] = figure.axes
    assert [text.get_text() for text in axis.texts if text.get_text()][-1] == audit.NOWHERE
    assert figure.legends == []
    whole = made(make_audit(), make_rows()).figure
    assert audit.NOWHERE not in [text.get_text() for text in whole.axes[0].texts]
    assert len(whole.legends) == 1


def test_audits_that_only_describe_judge_nobody() -> None:
    entry = make_audit()
    entry = entry.model_copy(update={"audits": {"members": entry.audits["members"]}, "metrics": entry.metrics[2:]})
    result = made(entry, make_rows())
    assert "These audits only describe: no method passes or fails." in result.notes
    [(_, panel)] = result.panels or []
    assert [*panel.columns.get_level_values(1)] == ["Method", "Membership advantage, gap"]
