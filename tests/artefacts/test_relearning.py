"""The table and curves of relearning: rounds worked out by hand, on written curves of eight models each."""

from math import inf
from typing import Any

import pandas as pd
import pytest

from fu.artefacts import relearning
from fu.artefacts.entry import Entry, Relearning
from fu.artefacts.panels import LIKE
from fu.artefacts.relearning import until
from fu.pipeline.provenance import catalogue
from tests.artefacts.factories import make_entry, method_of, scenario_of

LAST = 3
LEFT = {"none": 0.0, "half": 0.5, "all": 1.0}
# Method -> the round after which each of eight models is back where its retained clients train.
ROUNDS: dict[str, list[float]] = {
    "again": [3, inf, inf, 3],
    "none": [inf, 3, 3, inf],
    "half": [1, 0, 1, 1],
    "all": [0, 0, 0, 0],
    "soon": [0, 1, 0, 0],
    "late": [inf, inf, inf, inf],
    "sampled": [2, 2, 2, 2],
    "sampled.again": [1, 2, 2, 2],
}
ROUNDS = {name: of * 2 for name, of in ROUNDS.items()}
LOWEST = 1 / 12_870  # of 16 models, where eight are all sooner
REFERENCES = {"again": "", "sampled.again": "", "sampled": "sampled.again"}
SAMPLED = "Sampled (not judged: no controls)"
ORIGINALS = ("ω⁰ before Again", "ω⁰ before Sampled.Again")
LEVEL = 0.8  # of the original model: .76 is back


def make(**changes: Any) -> Entry:
    """Return the artefact of controls and three methods, one of another training."""
    methods = []
    for name in ROUNDS:
        trained = f"small/{'fats' if name.startswith('sampled') else 'original'}"
        left = ("partly", LEFT[name]) if name in LEFT else None
        kind = {"left": left, "plugin": name, "reference": REFERENCES.get(name, "again")}
        methods.append(method_of(name, trial={"trained": trained}, **kind))
    laid = scenario_of(relearning=Relearning(rounds=LAST, samples=5, repeats=8))
    known = catalogue.metrics()
    values = {"scenarios": (laid,), "methods": tuple(methods), "against": ["again", "sampled.again"], "chosen": {}}
    values |= {"metrics": (known["forget_set_accuracy"], known["retained_accuracy"])}
    return make_entry("relearning").model_copy(update={**values, **changes})


def curve(back: float) -> list[float]:
    """Return values by round that are back at one round for the first time, and not thereafter."""
    return [0.76 if round == back else 0.7599 for round in range(LAST + 1)]


def make_rows(rounds: dict[str, list[float]] | None = None, metric: str = "forget_set_accuracy") -> pd.DataFrame:
    """Return the frame: where the forgotten client trains, all are back after one round."""
    rows: list[dict[str, Any]] = []
    for name, of in {**ROUNDS, **(rounds or {})}.items():
        for seed, back in enumerate(of):
            about = {"scenario": "small", "method": name, "trial": name, "seed": seed, "metric": metric}
            values = {"original": [LEVEL], "retained": curve(back), "forgotten": curve(1)}
            rows += [
                {**about, "attack": attack, "round": round, "value": value}
                for attack, several in values.items()
                for round, value in enumerate(several)
            ]
    return pd.DataFrame(rows)


def judged(rounds: dict[str, list[float]] | None = None, attack: str = "retained") -> relearning.Judged:
    return judged_of(make(), make_rows(rounds), attack)


def judged_of(entry: Entry, frame: pd.DataFrame, attack: str = "retained") -> relearning.Judged:
    return relearning.judge(entry, until(frame, entry))[0]["small"][attack]


def test_it_is_back_in_the_first_round_at_95_percent_of_the_original_s_level() -> None:
    assert judged().rounds == ROUNDS
    assert judged(attack="forgotten").rounds == {name: [1.0] * 8 for name in ROUNDS}


def test_each_model_is_measured_by_its_own_original() -> None:
    frame = make_rows()
    here = (frame["attack"] == "original") & (frame["method"] == "soon") & (frame["seed"] == 1)
    times = until(frame.assign(value=frame["value"].mask(here, 0.81)), make())  # .7695 of it is never reached
    soon = times[(times["method"] == "soon") & (times["attack"] == "retained")]
    assert [*soon["rounds"]] == [0, inf, 0, 0, 0, 1, 0, 0]


def test_a_run_of_a_method_that_diverges_is_back_at_once_and_one_of_retraining_is_not() -> None:
    frame = make_rows({"soon": [inf] * 8, "again": [inf] * 8})
    lost = frame["method"].isin(["soon", "again"]) & (frame["seed"] == 2) & (frame["attack"] == "retained")
    times = until(frame[~(lost & (frame["round"] == LAST))], make())
    rounds = times[times["attack"] == "retained"].groupby("method")["rounds"]
    assert [*rounds.get_group("soon")] == [inf, inf, 0, inf, inf, inf, inf, inf]
    assert [*rounds.get_group("again")] == [inf] * 8


def test_a_backdoor_is_what_counts_where_there_is_one() -> None:
    frame = pd.concat([make_rows(metric="asr"), make_rows({"soon": [2] * 8})])
    times = until(frame, make())
    assert [*times[(times["method"] == "soon") & (times["attack"] == "retained")]["rounds"]] == ROUNDS["soon"]
    assert len(times) == len(ROUNDS) * 8 * 2


def test_a_seed_in_which_the_backdoor_did_not_take_hold_does_not_count() -> None:
    frame = make_rows(metric="asr")
    here = (frame["attack"] == "original") & (frame["method"] == "soon") & (frame["seed"] == 1)
    times = until(frame.assign(value=frame["value"].mask(here, 0.49)), make())
    assert [*times[(times["method"] == "soon") & (times["attack"] == "retained")]["seed"]] == [0, 2, 3, 4, 5, 6, 7]
    frame = make_rows()  # an accuracy on forgotten samples may be as low
    assert len(until(frame.assign(value=frame["value"].mask(here, 0.49)), make())) == len(ROUNDS) * 8 * 2


@pytest.mark.parametrize(
    ("own", "control", "p"),
    [
        ([0, 0, 0, 0], [3, 3, inf, inf], 1 / 70),  # the lowest of 70 labellings of eight
        ([3, 3, inf, inf], [0, 0, 0, 0], 1.0),
        ([0, 2], [1, 3], 2 / 6),  # ranks 1 + 3: as low are {1, 2} and {1, 3}
        ([1, 1], [1, 1], 1.0),
        ([inf, inf], [inf, inf], 1.0),
    ],
)
def test_the_p_value_counts_labellings(own: list[float], control: list[float], p: float) -> None:
    assert relearning.p_value(own, control) == pytest.approx(p)


def with_control() -> Entry:
    """Return the entry where an independent retraining and all of the client stand beside the sampled training, too."""
    entry, more = make(), {"none.sampled": ("partly", 0.0), "all.sampled": ("partly", 1.0)}
    sampled = next(one for one in entry.methods if one.name == "sampled")
    known = [sampled.model_copy(update={"name": name, "label": name, "left": left}) for name, left in more.items()]
    return entry.model_copy(update={"methods": (*entry.methods, *known)})


def test_p_values_are_those_of_the_retraining_of_the_same_training_corrected_by_holm() -> None:
    assert relearning.judge(make(), until(make_rows(), make()))[1] == 4  # two methods, two attacks
    assert judged().p["soon"] == pytest.approx(4 * LOWEST)
    assert judged().p["all"] == judged().p["half"] == pytest.approx(6 * LOWEST)  # of three controls, two attacks
    one = judged_of(with_control(), make_rows())
    assert one.p["soon"] == pytest.approx(6 * LOWEST)  # of three methods
    assert one.p["sampled"] == 1.0  # against its own retraining, which is sooner; against the other it would be low
    assert one.p["late"] == 1.0
    assert "again" not in one.p


def test_three_models_judge_nobody() -> None:
    frame = make_rows()
    few = judged_of(make(), frame[frame["seed"] < 3])
    why = "of so few models no p, corrected for all tests, can be below 0.05"
    assert (few.p, few.fails) == ({}, {"again": why, "sampled.again": why})
    four, five = (judged_of(make(), frame[frame["seed"] < number]) for number in (4, 5))
    assert four.fails == {"again": why, "sampled.again": why}  # 6 / 70
    assert five.fails == {}  # 6 / 252


def test_an_attack_that_fails_its_controls_judges_nobody() -> None:
    assert judged().fails == {}
    assert judged({"none": [0] * 8}).fails == {"again": "“None” fails it"}
    assert judged({"all": [3, 3, 3, inf] * 2}).fails == {"again": "“All” passes it"}
    assert judged(attack="forgotten").fails == {"again": "“All” passes it"}  # retrained models are back as soon


@pytest.mark.parametrize(
    ("rounds", "text"),
    [
        ([0.0, 1.0, 0.0, 0.0], "0.2"),
        ([3.0, inf, inf, 3.0], "> 3.0"),
        ([1.0, inf], "> 2.0"),
        ([3.0, 2.0], "2.5"),
        ([], "–"),
    ],
)
def test_rounds_in_a_cell(rounds: list[float], text: str) -> None:
    assert relearning.mean_rounds(rounds, LAST) == text


def test_cells_and_headings() -> None:
    result = relearning.make(make_rows(), make())
    [(label, panel)] = result.panels or []
    shown = {row[0]: row[1:] for row in panel.itertuples(index=False, name=None)}
    assert label == "Small"
    assert [*panel.columns] == [
        ("", "Method"),
        *(("retained clients train", name) for name in ("rounds", "Forget-set accuracy", "Accuracy, retained clients")),
        *(
            ("the forgotten client trains", name)
            for name in ("rounds", "Forget-set accuracy", "Accuracy, retained clients")
        ),
    ]
    assert [*shown] == ["Again", "Sampled.Again", "None", "Half", "All", "Soon", "Late", SAMPLED, *ORIGINALS]
    assert shown["Again"][:3] == ("> 3.0", "0.760 → 0.760", "– → –")  # .7599 and .76
    assert shown["Soon"][0] == "0.2"
    assert shown["Late"][0] == f"> 3.0 {LIKE}"
    assert shown[SAMPLED][0] == "2.0"
    assert {row[3] for name, row in shown.items() if name not in ORIGINALS} == {"1.0"}
    assert shown[ORIGINALS[0]] == ("–", "0.800", "–") * 2
    assert result.words == [
        ["The attack in which the forgotten client trains judges no method compared with “Again”: “All” passes it."]
    ]


def test_cells_hold_the_values_before_and_after_the_attack() -> None:
    frame = make_rows()
    ours = (frame["method"] == "late") & (frame["attack"] == "forgotten")
    frame.loc[ours, "value"] = [0.1, 0.6, 0.9, 0.4] * 8  # by round; the last is neither the largest nor the next
    [(_, panel)] = relearning.make(frame, make()).panels or []
    row = panel[panel.iloc[:, 0] == "Late"].iloc[0]
    assert row["the forgotten client trains", "Forget-set accuracy"] == "0.100 → 0.400"


def test_fewer_models_than_repeats_are_said() -> None:
    frame = make_rows()
    frame = frame[(frame["method"] != "late") | (frame["seed"] > 1)]
    [(_, panel)] = relearning.make(frame, make()).panels or []
    assert "Late (6 models)" in {*panel.iloc[:, 0]}
    lost = frame[frame["method"] != "late"]
    [(_, panel)] = relearning.make(lost, make()).panels or []
    row = panel[panel.iloc[:, 0] == "Late (0 models)"].iloc[0]
    assert [*row][1:3] == ["–", "– → –"]


def test_without_a_retrained_model_nobody_is_judged() -> None:
    frame = make_rows()
    assert set(judged_of(with_control(), frame[frame["method"] != "again"]).p) == {"sampled"}
    alone = frame[~frame["method"].isin(["again", "sampled.again"]) | (frame["seed"] == 0)]
    assert set(judged_of(with_control(), alone).p) == set()


@pytest.mark.parametrize("lost", ["none", "all"])
def test_an_attack_without_a_result_for_a_control_judges_nobody(lost: str) -> None:
    frame = make_rows()
    few = frame[(frame["method"] != lost) | (frame["seed"] < 3)]
    assert judged_of(make(), few).fails == {"again": f"it has no result for “{lost.title()}”"}


def test_the_rows_by_seed() -> None:
    rows = relearning.by_seed(make_rows(), make())
    again = rows[(rows["method"] == "again") & (rows["metric"] == "rounds_retained")]
    assert [*zip(again["seed"], again["value"], strict=True)] == [*enumerate([3, 4, 4, 3] * 2)]
    assert set(rows["metric"]) == set(relearning.BY_SEED)
    assert set(rows["stage"]) == {"unlearned"}
