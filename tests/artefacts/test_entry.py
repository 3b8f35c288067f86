"""What an entry says of itself: trials, rows, marks, the sentence on its setting."""

import pytest

from tests.artefacts.factories import CHOSEN, make_entry, make_scratch, make_trial


def test_a_trial_names_its_models_by_role() -> None:
    trial = make_trial(0.1)
    assert trial.models == {"unlearned": "small/ours+lr0.1.unlearned", "recovered": "small/ours+lr0.1.recovered"}
    shared = trial.model_copy(update={"unlearned": "base/ours"})
    assert shared.models == {"unlearned": "base/ours.unlearned", "recovered": "small/ours+lr0.1.recovered"}
    assert shared.model_copy(update={"recovered": ""}).models == {"unlearned": "base/ours.unlearned"}


@pytest.mark.parametrize(
    ("values", "unlearning", "post_training"),
    [
        ({}, "0.1", "0.5"),
        ({"unlearning.lr": 0.025}, "0.025", "0.5"),
        ({"recovery.lr": 1e-6}, "0.1", "1e-06"),
        ({"unlearning.lr": 0.001, "params.clip": 1, "params.lambda": 100}, "0.001, clip 1, lambda 100", "0.5"),
        ({"params.loss": "uce", "unlearning.rounds": 10}, "0.1, loss uce, 10", "0.5"),
    ],
)
def test_the_setting_of_a_stage_is_its_rate_and_what_the_grid_sets_for_it(
    values: dict[str, float | int | str], unlearning: str, post_training: str
) -> None:
    trial = make_trial(0.1, values).model_copy(update={"recovery_rate": 0.5})
    assert (trial.setting("unlearned"), trial.setting("recovered")) == (unlearning, post_training)


def test_a_stage_in_which_nobody_trains_has_no_rate() -> None:
    trial = make_trial(0.1).model_copy(update={"rate": None, "recovery_rate": None})
    assert (trial.setting("unlearned"), trial.setting("recovered")) == ("–", "–")
    assert trial.model_copy(update={"values": {"unlearning.lr": 0.1, "params.noise": 2}}).setting("unlearned") == (
        "noise 2"
    )


def test_the_trial_that_is_shown_is_the_chosen_one_or_the_first() -> None:
    ours = make_entry("table").methods[1]
    assert make_entry("table").trial("small", ours).name == CHOSEN
    assert make_entry("table", chosen={}).trial("small", ours).name == "ours+lr0.1"
    assert make_entry("table", chosen={"other": {"ours": CHOSEN}}).trial("small", ours).name == "ours+lr0.1"


def test_rows_come_stage_by_stage_with_marks_where_post_training_follows() -> None:
    rows = [
        ("original", "original", "ω⁰"),
        ("scratch", "unlearned", "Scratch"),
        ("ours", "unlearned", "Ours¹ *"),
        ("ours", "recovered", "Ours² *"),
    ]
    assert make_entry("table").rows("small") == rows
    assert make_entry("table", stages=("recovered",)).rows("small") == rows[3:]
    assert make_entry("table", stages=("original", "unlearned")).rows("small") == rows[:3]


def test_what_the_paper_lacks_is_marked() -> None:
    assert make_entry("table", in_paper=False).heading == "A thing (not in the paper)"
    marks = "ω⁰: the original model; ¹ after unlearning; ² after post-training."
    assert make_entry("table").footnotes == f"{marks} * not in the paper."
    plain = make_entry("table", methods=(make_scratch(),))
    assert plain.footnotes == marks
    other = (plain.scenarios[0].model_copy(update={"label": "Small, MLP * [on digits]"}),)
    assert plain.model_copy(update={"scenarios": other}).footnotes == f"{marks} * not in the paper."


def test_the_setting_names_preset_data_rounds_and_seeds() -> None:
    rounds = "2 rounds of training and 4 after the request"
    assert make_entry("table").setting == f"Preset smoke; data: digits; {rounds}; 2 seeds (0, 1)."
    assert make_entry("table", seeds=(7,)).setting == f"Preset smoke; data: digits; {rounds}; 1 seed (7)."
    (small,) = make_entry("table").scenarios
    large = small.model_copy(update={"name": "large", "label": "Large [on MNIST]", "data": "MNIST", "rounds": (10, 20)})
    other = small.model_copy(update={"name": "other", "label": "Other"})
    more = f"{rounds} (Small; Other); 10 rounds of training and 20 after the request (Large)"
    setting = make_entry("table", scenarios=(large, small, other)).setting
    assert setting == f"Preset smoke; data: MNIST, digits; {more}; 2 seeds (0, 1)."
    of = [other.model_copy(update={"label": f"Other, K = {k}", "family": "Other"}) for k in (1, 2)]
    assert f"{rounds} (Small; Other); 10" in make_entry("table", scenarios=(large, small, *of)).setting
    of[1] = of[1].model_copy(update={"rounds": (10, 20)})
    assert f"{rounds} (Small; Other, K = 1); 10" in make_entry("table", scenarios=(small, *of)).setting
    assert make_entry("losses").setting == "Preset smoke; computed from the formulas alone, on no data."


def test_metrics_are_defined_with_their_source() -> None:
    (metric,) = make_entry("table", metrics=("distance",)).metrics
    entry = make_entry("table", metrics=("distance", "conflicts"))
    assert entry.definitions.startswith(f"Distance: {metric.formula} (FedOSD section 4.2, Figure 5). NC: ")
    bare = entry.model_copy(update={"metrics": (metric.model_copy(update={"source": ""}),)})
    assert bare.definitions == f"Distance: {metric.formula}."


@pytest.mark.parametrize(
    ("replaces", "data", "heading", "compares"),
    [
        ((None, None), "digits", "A thing", True),
        (("MNIST", None), "digits, digits in place of MNIST", "A thing [partly on digits]", True),
        (("MNIST", "CIFAR10"), "digits in place of CIFAR10, digits in place of MNIST", "A thing [on digits]", False),
    ],
    ids=["the paper's data", "in part", "all replaced"],
)
def test_data_that_stand_for_the_papers_are_named_and_not_compared(
    replaces: tuple[str | None, ...], data: str, heading: str, compares: bool
) -> None:
    (small,) = make_entry("table").scenarios
    scenarios = tuple(small.model_copy(update={"name": f"s{k}", "replaces": paper}) for k, paper in enumerate(replaces))
    entry = make_entry("table", scenarios=scenarios, published="checksum")
    assert f"; data: {data}; " in entry.setting
    assert entry.heading == heading
    assert entry.compares is compares
    assert not entry.model_copy(update={"published": None}).compares


@pytest.mark.parametrize(
    ("rounds", "requests", "asked"),
    [((30, 30), 1, [30]), ((30, 90), 3, [30, 60, 90]), ((5, 5), 5, [5, 6, 7, 8, 9]), ((7, None), 1, [7])],
)
def test_requests_come_at_equal_distances_in_the_rounds_after_training(
    rounds: tuple[int, int | None], requests: int, asked: list[int]
) -> None:
    scenario = make_entry("curves").scenarios[0].model_copy(update={"rounds": rounds, "requests": requests})
    assert scenario.request_rounds == asked
    said = make_entry("curves", scenarios=(scenario,)).setting
    after = "the request" if requests == 1 else f"the first of {requests} requests"
    assert (f" and {rounds[1]} after {after};" in said) is (rounds[1] is not None)
