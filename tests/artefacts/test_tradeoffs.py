"""V, S, Q and harm: by hand on four clients of unequal size, of which one is forgotten."""

from collections.abc import Iterator, Mapping
from math import inf, nan
from typing import Any

import pandas as pd
import pytest
from matplotlib.container import BarContainer, ErrorbarContainer

from fu.artefacts.entry import ORIGINAL, Entry, Scenario, Trial
from fu.artefacts.rows import rows
from fu.artefacts.tradeoffs import by_seed
from tests.artefacts.factories import COLUMNS, LOST, cells, made, make_entry, method_of, scenario_of, training_of

SAMPLES = (50.0, 30.0, 20.0, 100.0)  # clients 0 to 2 stay, client 3 is forgotten
ACCURACY = {
    ORIGINAL: (0.8, 0.8, 0.8, 0.6),
    "best": (0.9, 0.8, 0.7, 0.6),
    "again": (0.95, 0.85, 0.75, 0.1),
    "ours+lambda0": (0.9, 0.8, 0.69, 0.2),
    "ours+lambda5": (0.95, 0.85, 0.75, 0.4),
}
# Against `again` ours loses 5, 5 and 6 points, against `best` 0, 0, 1 and, of the forgotten client, 40.
QUANTITIES = {"V": 5.2, "S": (0.2 * 100 + 40 * 100) / 200, "V + S": 25.3, "Q": 0.32, "harm": 11.0}
DIVERGED = {0: "", 1: "ours+lambda5", 2: "again"}


def entry_of(*scenarios: Scenario, metrics: tuple[str, ...] = ("client_accuracy",), **changes: Any) -> Entry:
    """Return the entry of a method with two values of lambda, against both optima."""
    named = {f"ours+lambda{k}": {"params.lambda": k} for k in (0, 5)}
    points = tuple(
        Trial(name=name, rate=0.1, values=values, unlearned=f"small/{name}") for name, values in named.items()
    )
    ours = method_of("ours", trials={"small": points})
    again = method_of("again", label="w_r*", retrains=True)
    values = {
        "scenarios": scenarios or (scenario_of(),),
        "methods": (ours, training_of("best", label="w*"), again),
        "against": ["best", "again"],
        "metrics": metrics,
        "chooses": False,
        "chosen": {},
        "seeds": (0,),
        "stages": [ORIGINAL, "unlearned"],
    }
    return make_entry("tradeoffs", **{**values, **changes})


def rows_of(
    accuracy: Mapping[str, tuple[float, ...]], seed: int = 0, scenario: str = "small", metric: str = "client_accuracy"
) -> Iterator[dict[str, Any]]:
    for trial, values in accuracy.items():
        stage = ORIGINAL if trial in (ORIGINAL, "best") else "unlearned"
        about: dict[str, Any] = {
            "scenario": scenario,
            "method": trial.partition("+")[0],
            "trial": trial,
            "stage": stage,
        }
        about |= {"model": f"{scenario}/{trial}", "seed": seed, "round": -1, "published": False}
        for client, value in enumerate(values):
            forgotten = float(client == 3)
            numbers = {metric: value, "client_samples": SAMPLES[client], "client_forgotten": forgotten}
            yield from (
                {**about, "metric": name, "client": client, "value": number} for name, number in numbers.items()
            )


def frame_of(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=[*COLUMNS, "client"]).drop_duplicates(
        ["scenario", "trial", "seed", "client", "metric", "published"]
    )


def lost(trial: str, seed: int = 0) -> dict[str, Any]:
    """Return the row of a model that diverged."""
    return {**next(rows_of({trial: (0.0,)}, seed)), "metric": "diverged_round", "value": LOST, "client": None}


def printed(metric: str, value: float) -> dict[str, Any]:
    """Return the row of a number of the paper."""
    about = {"scenario": "small", "method": "ours+lambda5", "stage": "unlearned", "seed": -1, "round": -1}
    return {**about, "metric": metric, "value": value, "published": True}


def numbers(frame: pd.DataFrame, trial: str, column: str = "mean") -> dict[str, float]:
    here = frame[frame["trial"] == trial]
    return dict(zip(here["quantity"], here[column], strict=True))


def test_v_s_q_and_harm_are_weighted_by_training_samples() -> None:
    found = made(entry_of(), frame_of(*rows_of(ACCURACY))).frame
    assert numbers(found, "ours+lambda0") == pytest.approx(QUANTITIES)


def test_an_optimum_is_at_no_distance_from_itself_and_gains_are_negative() -> None:
    found = made(entry_of(), frame_of(*rows_of(ACCURACY))).frame
    best, again = numbers(found, "best"), numbers(found, "again")
    assert (best["S"], best["Q"], again["V"]) == (0, 0, 0)
    assert best["V"] == pytest.approx(5)
    assert again["S"] == pytest.approx((-5 * 100 + 50 * 100) / 200)
    assert numbers(found, ORIGINAL)["harm"] == 0
    assert again["harm"] == pytest.approx(5)  # client 2


def test_models_are_paired_with_the_optima_of_their_own_seed() -> None:
    shifted = {name: tuple(value - 0.1 for value in values) for name, values in ACCURACY.items()}
    found = made(entry_of(seeds=(0, 1)), frame_of(*rows_of(ACCURACY), *rows_of(shifted, 1))).frame
    assert numbers(found, "ours+lambda0") == pytest.approx(QUANTITIES)
    assert set(numbers(found, "ours+lambda0", "n").values()) == {2}
    assert numbers(found, "ours+lambda0", "std") == pytest.approx(dict.fromkeys(QUANTITIES, 0), abs=1e-9)


def test_of_a_loss_more_is_lost_in_its_own_unit() -> None:
    rows = rows_of({name: tuple(1 - v for v in of) for name, of in ACCURACY.items()}, metric="client_loss")
    result = made(entry_of(metrics=("client_loss",)), frame_of(*rows))
    assert numbers(result.frame, "ours+lambda0") == pytest.approx({k: v / 100 for k, v in QUANTITIES.items()})
    said = "In nats; weighted by training samples: V: mean loss of accuracy of the retained clients against w_r*"
    assert said in result.notes


def test_a_seed_in_which_an_optimum_diverged_is_left_out() -> None:
    whole = {name: values for name, values in ACCURACY.items() if name != "again"}
    result = made(entry_of(seeds=(0, 1)), frame_of(*rows_of(ACCURACY), *rows_of(whole, 1), lost("again", 1)))
    assert set(numbers(result.frame, "ours+lambda0", "n").values()) == {1}
    alone = made(entry_of(seeds=(1,)), frame_of(*rows_of(whole, 1), lost("again", 1)))
    assert set(numbers(alone.frame, "ours+lambda0", "n").values()) == {0}
    assert "–: a model or an optimum diverged." in alone.notes
    assert "w_r* (1 of 2 diverged)" in result.body


def test_claims_count_a_model_that_diverged_as_infinitely_bad_and_none_whose_optimum_did() -> None:
    entry = entry_of(seeds=(0, 1, 2))
    frames = [rows_of({k: v for k, v in ACCURACY.items() if k != gone}, seed) for seed, gone in DIVERGED.items()]
    frame = frame_of(*(row for part in frames for row in part), lost("ours+lambda5", 1), lost("again", 2))
    own = rows(frame, entry, by_seed)
    found = own[own["metric"].isin(QUANTITIES)].set_index(["point", "seed", "metric"])["value"]
    assert found["ours+lambda0"].to_dict() == pytest.approx(
        {(k, name): v for k in (0, 1) for name, v in QUANTITIES.items()}
    )
    assert found["ours+lambda5"][0].to_dict() == pytest.approx(
        {"V": 0, "S": 7.5, "V + S": 7.5, "Q": 0, "harm": 5}, abs=1e-9
    )
    assert found["ours+lambda5"][1].to_dict() == dict.fromkeys(QUANTITIES, inf)
    assert found["again"][2].to_dict() == dict.fromkeys(QUANTITIES, inf)
    assert len(found) == 5 * 5 * 2 + 5  # of seed 2 those of w_r* alone


def test_without_an_original_model_a_diverged_one_has_no_harm() -> None:
    small = scenario_of(original=None)
    found = by_seed(frame_of(*rows_of({"best": ACCURACY["best"]}, 1), lost("again", 1)), entry_of(small, seeds=(1,)))
    assert dict(zip(found["metric"], found["value"], strict=True)) == dict.fromkeys(("V", "S", "V + S", "Q"), inf)


def test_a_point_of_a_grid_that_diverged_is_a_cross() -> None:
    whole = {name: values for name, values in ACCURACY.items() if name != "ours+lambda5"}
    result = made(entry_of(x="params.lambda", marks="lines"), frame_of(*rows_of(whole), lost("ours+lambda5")))
    assert "Ours, λ = 5 (1 of 1 diverged)" in result.body
    assert "diverged" in [text.get_text() for text in result.figure.legends[0].get_texts()]


def test_bars_are_means_over_seeds_with_deviations_and_empty_where_every_seed_diverged() -> None:
    """Ours at 0 has 0, 3 and 9 points more of client 2, whose weight is a tenth, and nothing at 5."""
    kept = {name: values for name, values in ACCURACY.items() if name != "ours+lambda5"}
    rows = [
        row
        for seed, more in enumerate((0.0, 0.03, 0.09))
        for row in rows_of({**kept, "ours+lambda0": (0.9, 0.8, 0.69 + more, 0.2)}, seed)
    ]
    gone = [lost("ours+lambda5", seed) for seed in range(3)]
    result = made(entry_of(marks="clients", stages=["unlearned"], seeds=(0, 1, 2)), frame_of(*rows, *gone))
    first, second = (
        [bar.get_height() for bar in several]
        for several in result.figure.axes[0].containers
        if isinstance(several, BarContainer)
    )
    assert first == pytest.approx([0, 0, 3, -40, -19.7])  # -20.1 + .4
    assert second == pytest.approx([nan] * 5, nan_ok=True)
    [[_, _, [bars]]] = [
        several for several in result.figure.axes[0].containers if isinstance(several, ErrorbarContainer)
    ]
    lengths = [high - low for (_, low), (_, high) in bars.get_segments()]
    assert lengths == pytest.approx([2 * std for std in (0, 0, 21**0.5, 0, 21**0.5 / 10)], abs=1e-6)


def test_the_papers_numbers_stand_beside_those_of_the_same_point_of_a_grid() -> None:
    result = made(entry_of(published="x"), frame_of(*rows_of(ACCURACY), printed("V", 0.5)))
    head, *rows = cells(result.body)
    shown = {row[0]: dict(zip(head, row, strict=True)) for row in rows if len(row) == len(head)}
    assert (shown["Ours, λ = 5"]["V paper"], shown["Ours, λ = 5"]["V diff"]) == ("0.50", "-0.50")
    assert shown["Ours, λ = 0"]["V paper"] == "–"
    assert "S paper" not in head


def test_the_papers_numbers_stand_beside_the_first_metric_alone() -> None:
    losses = {name: tuple(1 - v for v in of) for name, of in ACCURACY.items()}
    rows = [*rows_of(ACCURACY), *rows_of(losses, metric="client_training_loss")]
    metrics = ("client_training_loss", "client_accuracy")
    result = made(entry_of(published="x", metrics=metrics), frame_of(*rows, printed("S", 2.0)))
    found = result.frame[result.frame["published"].notna()]
    assert found[["trial", "metric", "quantity", "published"]].to_numpy().tolist() == [
        ["ours+lambda5", "client_training_loss", "S", 2.0]
    ]
    assert found["difference"].tolist() == pytest.approx([0.075 - 2])
    assert [name for name in cells(result.body)[0] if "paper" in name] == ["S, nats paper"]


def test_a_page_says_where_the_sum_goes_and_how_far_the_optima_moved() -> None:
    values = {  # of three seeds; each training has both numbers, of which one is said
        "best": {"all_moved": (0.3, 1.23, -0.5), "retained_moved": (7.0, 8.0, 9.0)},
        "again": {"retained_moved": (-0.404, -0.4, -0.398), "all_moved": (7.0, 8.0, 9.0)},
        "ours+lambda0": {"all_moved": (-9.0, 9.0, 0.0), "retained_moved": (-9.0, 9.0, 0.0)},
    }
    moved = [
        {**next(rows_of({trial: (0.0,)}, seed)), "metric": metric, "value": value, "client": None}
        for trial, metrics in values.items()
        for metric, of in metrics.items()
        for seed, value in enumerate(of)
    ]
    result = made(entry_of(x="params.lambda", marks="lines"), frame_of(*rows_of(ACCURACY), *moved))
    assert "w* is approximated by 'w*'; its last ten rounds move S by -0.50 to +1.23 points." in result.notes
    assert "w_r* is approximated by 'w_r*'; its last ten rounds move V by -0.40 points." in result.notes
    axes = {axis.get_ylabel(): axis for axis in result.figure.axes}
    assert [*axes] == [f"{name}, points" for name in ("V", "S", "V + S")]
    assert axes["V + S, points"].lines[0].get_ydata() == pytest.approx([25.3, 7.5])
