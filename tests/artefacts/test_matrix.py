"""The matrix and its noise floor: by hand on two seeds of three repeats, and on 10,000 draws of further repeats."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import QuadMesh

from fu.artefacts.entry import ORIGINAL, Entry, Method
from fu.artefacts.floor import gap, noise_floor
from fu.artefacts.matrix import AGAIN, OWN, lost
from fu.pipeline.provenance import catalogue
from fu.pipeline.settings.sources import origin_of
from tests.artefacts.factories import LOST, cells, made, make_entry, method_of, scenario_of

# Within seeds, the squared deviations of ASR add up to .0008 and .0024: s² is their sum over 4 degrees of freedom.
AGAINST = ("again.1", "again.2", "again.3")
LABELS = {"near": "Near", "far": "Far", "nothing": "Doing nothing", "random": "Random weights"}
ASR = {
    "again.1": (0.10, 0.20),
    "again.2": (0.12, 0.20),
    "again.3": (0.14, 0.26),
    ORIGINAL: (0.90, 0.80),
    "near": (0.16, 0.30),  # .04 and .08 above the repeats of its seed
    "far": (0.20, 0.30),  # .08 and .08
    "nothing": (0.90, 0.80),
    "random": (0.10, 0.20),
}
S = 0.0008**0.5
HALF = 2.776445 * S * ((1 + 1 / 3) / 2) ** 0.5  # t of 4 degrees of freedom; .0641
R_ACC = {**dict.fromkeys(ASR, 0.5), "far": 0.9, "again.1": 0.4, "again.3": 0.6}  # both controls are at the mean
DISTANCE = {**dict.fromkeys(ASR, 5.0), "far": 6.0, "nothing": 0.0}  # repeats do not differ at all
ACCURACY = {  # clients 0 to 2 stay and hold 50, 30, 20 samples; client 3 is forgotten and holds 100
    ORIGINAL: (0.9, 0.8, 0.7, 0.6),
    "again.1": (0.8, 0.8, 0.7, 0.1),
    "again.2": (0.8, 0.6, 0.7, 0.1),
    "again.3": (0.8, 0.7, 0.7, 0.1),
    "near": (0.9, 0.8, 0.6, 0.5),
}
SAMPLES = (50.0, 30.0, 20.0, 100.0)
COSTS = {"client_rounds": (3.0, 4.0), "stored": (100.0, 40.0), "seconds": (1.5, 2.5)}  # of each phase


def make_matrix(*scenarios: str, **changes: Any) -> Entry:
    """Return the matrix of two methods and two controls against three repeats."""
    places = scenarios or ("small",)
    methods = []
    for name in (*LABELS, *AGAINST):
        kind = {"control": name in ("nothing", "random"), "retrains": name in AGAINST, "post_training": "after"}
        kind |= {"fidelity": "second-hand" if name == "near" else "", "label": LABELS.get(name, name)}
        models = {"unlearned": f"x/{name}", "recovered": f"x/{name}"}
        methods.append(method_of(name, *places, trial=models, **kind))
    known = catalogue.metrics()
    metrics = tuple(known[name] for name in ("client_rounds", "stored", "asr", "r_acc", "distance"))
    values: dict[str, Any] = {"scenarios": tuple(map(scenario_of, places)), "methods": tuple(methods)}
    values |= {"against": list(AGAINST), "x": None, "lines": [], "metrics": metrics, "chosen": {}}
    return make_entry("matrix").model_copy(update={**values, **changes})


def make_rows(scenario: str = "small") -> pd.DataFrame:
    """Return the frame of `make_matrix`: model by model and seed by seed, unlearned ones a lot worse."""
    rows: list[dict[str, Any]] = []
    for name in ASR:
        for seed in (0, 1):
            for k, stage in enumerate([ORIGINAL] if name == ORIGINAL else ["unlearned", "recovered"]):
                about = {"scenario": scenario, "method": name, "trial": name, "seed": seed, "stage": stage}
                numbers = {"asr": ASR[name][seed], "r_acc": R_ACC[name], "distance": DISTANCE[name]}
                last = stage != "unlearned"
                rows += [{**about, "metric": m, "value": v if last else v + 50} for m, v in numbers.items()]
                rows += [{**about, "metric": m, "value": spent[k], "device": "toy"} for m, spent in COSTS.items()]
                for client, accuracy in enumerate(ACCURACY.get(name, ()) if last else ()):
                    each = {"accuracy": accuracy, "samples": SAMPLES[client], "forgotten": float(client == 3)}
                    rows += [{**about, "client": client, "metric": f"client_{m}", "value": v} for m, v in each.items()]
    return pd.DataFrame(rows).assign(published=False, round=-1, model="")


def found(entry: Entry | None = None, frame: pd.DataFrame | None = None) -> dict[tuple[str, str], dict[str, Any]]:
    result = made(entry or make_matrix(), make_rows() if frame is None else frame)
    return {(row["method"], row["metric"]): row for row in result.frame.to_dict("records")}  # type: ignore[misc]


def diverge(frame: pd.DataFrame, method: str, *seeds: int) -> pd.DataFrame:
    """Return the frame of a method whose post-training diverged."""
    gone = (frame["method"] == method) & frame["seed"].isin(seeds) & (frame["stage"] == "recovered")
    told = frame[gone].drop_duplicates("seed").assign(metric="diverged_round", value=float(LOST), client=np.nan)
    return pd.concat([frame[~gone], told], ignore_index=True)


# ---- the floor -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seeds", "repeats"), [(1, 5), (3, 3)])
def test_a_further_repeat_is_inside_in_ninety_five_of_a_hundred_draws(seeds: int, repeats: int) -> None:
    draws = np.random.default_rng(7)
    inside = 0
    for _ in range(10_000):
        centre = 10 * draws.normal(size=seeds)  # what a seed has in common
        values = centre[:, None] + draws.normal(size=(seeds, repeats + 1))
        floor = noise_floor({seed: row[1:].tolist() for seed, row in enumerate(values)})
        inside += gap(floor, dict(enumerate(values[:, 0].tolist()))).inside
    assert 9_400 <= inside <= 9_600


NOISES = ("probabilities", "classes", "some worse", "unequal seeds")
PROBES, DRAWS = 60, 2_000


def draw_models(noise: str, size: tuple[int, int, int], draws: np.random.Generator) -> np.ndarray:
    """Return what models [draws, seeds, models, PROBES] say: a part that all of a seed share, and one of their own."""
    common = 1.5 * draws.normal(size=(*size[:2], 1, PROBES))
    own = draws.normal(size=(*size, PROBES))
    if noise == "some worse":
        own *= np.exp(0.3 * draws.normal(size=(*size, 1)))
    if noise == "unequal seeds":
        own *= np.array([0.5, 1.0, 2.0])[: size[1], None, None]
    logits = common + 0.5 * own
    return 1 / (1 + np.exp(-logits)) if noise == "probabilities" else (logits > 0).astype(float)


def share_outside(noise: str, seeds: int, repeats: int, pairwise: bool) -> float:
    """Return the share of further repeats, model 0, that the floor of the others' mean distances leaves outside."""
    draws = np.random.default_rng([repeats, seeds, NOISES.index(noise)])
    models = draw_models(noise, (DRAWS, seeds, repeats + 1), draws)
    apart = np.zeros((*models.shape[:3], repeats + 1))
    for k in range(repeats + 1):
        apart[:, :, k] = np.abs(models[:, :, [k]] - models).mean(-1)
    further, among = apart[:, :, 0, 1:].mean(-1), apart[:, :, 1:, 1:].sum(-1) / (repeats - 1)
    outside = 0
    for values, own in zip(among.tolist(), further.tolist(), strict=True):
        outside += not gap(noise_floor(dict(enumerate(values)), pairwise), dict(enumerate(own))).inside
    return outside / DRAWS


@pytest.mark.whole
@pytest.mark.parametrize("noise", NOISES)
def test_of_further_repeats_five_of_a_hundred_lie_outside_at_most_where_values_share_pairs(noise: str) -> None:
    levels = {(n, s): share_outside(noise, s, n, pairwise=True) for n in range(3, 9) for s in (1, 2, 3)}
    assert max(levels.values()) <= 0.05 + 3 * (0.05 * 0.95 / DRAWS) ** 0.5  # and three standard errors: .065
    assert min(levels.values()) >= 0.01  # no floor that lets everything pass


def test_where_values_share_pairs_the_deviation_is_the_jackknifes_and_two_repeats_say_nothing() -> None:
    # Pairs of three repeats differ by .1, .2, .6, of four by 0, .1, .2, .3, .4, .8: these are means over the others.
    values = {0: [0.15, 0.35, 0.4], 1: [0.1, 0.7 / 3, 0.4, 1.4 / 3], 2: [0.7, 0.7]}
    pseudo = {0: [-0.3, 0.1, 0.2], 1: [-0.3, -0.1, 0.15, 0.25]}  # (n - 1) / (n - 2) times from .3 and from .3
    s = (sum(value**2 for several in pseudo.values() for value in several) / 5) ** 0.5
    floor = noise_floor(values, pairwise=True)
    assert floor.means == pytest.approx({0: 0.3, 1: 0.3})
    assert (floor.numbers, floor.freedom) == ({0: 3, 1: 4}, 5)
    assert floor.deviation == pytest.approx(s)
    assert gap(floor, {1: 0.35}).half_width == pytest.approx(2.570582 * s * 1.25**0.5, rel=1e-5)
    alone = noise_floor({2: [0.7, 0.7], 5: [0.3, 0.3]}, pairwise=True)
    assert alone.means == {2: 0.7, 5: 0.3}
    assert np.isnan(gap(alone, {2: 0.7}).half_width)
    assert not gap(alone, {2: 0.7}).inside


def test_the_floor_is_pooled_within_seeds_and_paired_by_seed() -> None:
    rows = found()
    near, far, again = rows["near", "asr"], rows["far", "asr"], rows[AGAIN, "asr"]
    assert (again["mean"], again["std"], again["n"]) == pytest.approx((0.17, S, 6))
    assert (near["mean"], near["std"], near["n"]) == pytest.approx((0.23, 0.0989949, 2))
    for row in (near, far):
        assert (row["floor"], row["halfwidth"]) == pytest.approx((0.17, HALF), rel=1e-5)
    assert near["inside"] is True  # .06
    assert far["inside"] is False  # .08


def test_what_repeats_share_to_the_last_digit_must_be_shared() -> None:
    rows = found()
    assert {name: rows[name, "distance"]["inside"] for name in LABELS} == {
        **dict.fromkeys(("near", "random"), True),
        **dict.fromkeys(("far", "nothing"), False),
    }
    floor = noise_floor({0: [0.055] * 3, 1: [0.1] * 3})
    assert floor.deviation == 0
    assert gap(floor, {0: 0.055, 1: 0.1}).inside


def test_a_repeat_that_diverged_is_left_out_of_its_seed() -> None:
    row = found(frame=diverge(make_rows(), "again.3", 1))["near", "asr"]
    assert row["floor"] == pytest.approx((0.12 + 0.20) / 2)
    assert row["halfwidth"] == pytest.approx(3.182446 * (0.0008 / 3) ** 0.5 * ((4 / 3 + 3 / 2) / 4) ** 0.5, rel=1e-5)


def test_a_method_is_compared_over_the_seeds_that_it_has() -> None:
    result = made(make_matrix(), diverge(make_rows(), "near", 1))
    [row] = result.frame[(result.frame["method"] == "near") & (result.frame["metric"] == "asr")].to_dict("records")
    assert (row["mean"], row["floor"], row["n"]) == pytest.approx((0.16, 0.12, 1))
    assert row["halfwidth"] == pytest.approx(HALF * 2**0.5, rel=1e-5)
    assert "| Near (1 of 2 diverged) " in result.body


def test_a_seed_without_repeats_does_not_count() -> None:
    frame = make_rows()
    for name in AGAINST:
        frame = diverge(frame, name, 1)
    result = made(make_matrix(), frame)
    [row] = result.frame[(result.frame["method"] == "near") & (result.frame["metric"] == "asr")].to_dict("records")
    assert (row["mean"], row["floor"], row["n"]) == pytest.approx((0.16, 0.12, 1))
    assert row["halfwidth"] == pytest.approx(4.302653 * 0.02 * (4 / 3) ** 0.5, rel=1e-5)
    assert "| Retraining, 3 repeats (3 of 6 diverged) " in result.body


PAIRS = {  # disagreement on forgotten samples; of the repeats from pairs that differ by .1, .2, .6 and by .2, .2, .5
    **{"again.1": (0.15, 0.2), "again.2": (0.35, 0.35), "again.3": (0.4, 0.35), ORIGINAL: (0.9, 0.7)},
    **{"near": (0.5, 0.6), "far": (0.8, 0.9), "nothing": (0.9, 0.7), "random": (1.0, 0.9)},
}


def make_pairs(repeats: int) -> pd.DataFrame:
    """Return the rows of the matrix with disagreements, of as many repeats in each seed."""
    frame = make_rows()
    last = frame[(frame["metric"] == "asr") & (frame["stage"] != "unlearned")]
    there = last[~last["method"].isin(AGAINST[repeats:])]
    values = [PAIRS[method][seed] for method, seed in zip(there["method"], there["seed"], strict=True)]
    return pd.concat([frame, there.assign(metric="disagreement_forgotten", value=values)], ignore_index=True)


def test_columns_that_compare_pairs_have_the_jackknifes_floor() -> None:
    rows = found(frame=make_pairs(3))
    s = 2 * ((0.15**2 + 0.05**2 + 0.1**2 + 0.1**2 + 0.05**2 + 0.05**2) / 4) ** 0.5
    again, near = rows[AGAIN, "disagreement_forgotten"], rows["near", "disagreement_forgotten"]
    assert (again["mean"], again["std"], again["n"]) == pytest.approx((0.3, s, 6))
    assert near["halfwidth"] == pytest.approx(2.776445 * s * (2 / 3) ** 0.5, rel=1e-5)  # .4994
    assert (near["inside"], rows["far", "disagreement_forgotten"]["inside"]) == (True, False)  # .25 and .55


def test_two_repeats_judge_no_column_that_compares_pairs() -> None:
    rows = found(frame=make_pairs(2))
    assert rows["near", "disagreement_forgotten"]["inside"] is None
    assert rows["near", "disagreement_forgotten"]["mean"] == pytest.approx(0.55)


def test_one_repeat_is_no_floor() -> None:
    result = made(make_matrix(against=["again.1"]), make_rows())
    assert result.frame["inside"].isna().all()
    assert "≈ |" not in result.body


# ---- columns ---------------------------------------------------------------------------------------------------------


def test_v_s_and_q_are_of_the_last_models_clients() -> None:
    rows = found()
    means = {(name, metric): rows[name, metric]["mean"] for name in (ORIGINAL, AGAIN, "near") for metric in "VSQ"}
    assert means == pytest.approx(
        {
            ("near", "V"): -6.0,  # .5 (-10) + .3 (-10) + .2 * 10, against the repeats' .8, .7, .7
            ("near", "S"): 6.0,  # (20 * 10 + 100 * 10) / 200
            ("near", "Q"): 3.2,  # losses 0, 0, 10 at .5, .3, .2
            (ORIGINAL, "V"): -8.0,
            (ORIGINAL, "S"): 0.0,
            (ORIGINAL, "Q"): 0.0,
            (AGAIN, "V"): 0.0,
            (AGAIN, "S"): (50 * 10 + 30 * 10 + 100 * 50) / 200,
            (AGAIN, "Q"): (5.0 + 5.4 + 3.2) / 3,  # losses 10, 0, 0; 10, 20, 0; 10, 10, 0
        },
        abs=1e-9,
    )
    assert rows[AGAIN, "V"]["std"] == pytest.approx(3.0)  # -3, 3 and 0, twice


def test_costs_are_of_both_phases_and_not_tested() -> None:
    rows = found()
    assert [rows["near", name]["mean"] for name in COSTS] == [7.0, 100.0, 4.0]
    assert [rows["near", name]["floor"] for name in COSTS] == [7.0, 100.0, 4.0]
    assert all(rows["near", name]["inside"] is None and rows["near", name]["told"] for name in COSTS)
    assert all(rows[ORIGINAL, name]["n"] == 0 for name in COSTS)  # its training is no cost of a request


def test_a_column_that_has_both_controls_inside_tells_nothing() -> None:
    told = {row["metric"]: row["told"] for row in found().values()}
    assert {name for name, tells in told.items() if not tells} == {"r_acc"}
    alone = make_matrix()
    methods = tuple(m.model_copy(update={"control": m.name == "random"}) for m in alone.methods)
    assert all(row["told"] for row in found(alone.model_copy(update={"methods": methods})).values())


def test_the_table_says_what_is_like_retraining_and_bolds_nobody() -> None:
    entry = make_matrix()
    result = made(entry, make_rows())
    head, original, again, near, far, *_ = cells(result.body)
    shown = ["ASR", "R-Acc ≈", "Distance", "V", "S", "Q", "Client-rounds", "Bytes stored", "Seconds"]
    assert head == ["Method", "Implemented from", "Grid", *shown]
    assert original[:5] == ["ω⁰", "–", "–", "0.850", "0.500 ≈"]
    assert again[:6] == ["Retraining, 3 repeats", "–", "–", "0.170 ±0.028", "0.500 ±0.100", "5.00 ±0.00"]
    assert again[6:] == ["0.00 ±3.00", "29.00 ±1.50", "4.53 ±1.17", "7 ±0", "100 ±0", "4.00 ±0.00"]
    assert near == [
        "Near",
        "second-hand",
        "1",
        "0.230 ≈",
        "0.500 ≈",
        "5.00 ≈",
        "-6.00 ≈",
        "6.00",
        "3.20 ≈",
        "7",
        "100",
        "4.00",
    ]
    assert far[:6] == ["Far", "–", "1", "0.250", "0.900", "6.00"]
    assert "**" not in result.body


def test_a_method_that_diverged_has_no_numbers() -> None:
    result = made(make_matrix(), diverge(make_rows(), "near", 0, 1))
    [near] = [line for line in cells(result.body) if line[0] == "Near"]
    assert near[2:] == ["1", "diverged", *["–"] * 8]
    assert [text.get_text() for text in result.figure.axes[0].texts] == ["diverged"]


def test_a_method_is_compared_with_the_retraining_of_its_own_training() -> None:
    entry = make_matrix()
    other = ("other.1", "other.2", "other.3")  # as the repeats, but .1 higher
    rows = make_rows()
    rows.loc[(rows["method"] == "near") & (rows["metric"] == "asr"), "value"] += 0.1
    added = rows[rows["method"].isin(AGAINST)].copy()
    added[["method", "trial"]] = added[["method", "trial"]].replace(dict(zip(AGAINST, other, strict=True)))
    added.loc[added["metric"] == "asr", "value"] += 0.1
    added.loc[added["metric"] == "client_accuracy", "value"] -= 0.1

    def of(name: str, method: Method) -> Method:
        [trial] = method.trials["small"]
        trials = {"small": (trial.model_copy(update={"name": name, "trained": "fats.training"}),)}
        return method.model_copy(update={"name": name, "label": name.title(), "trials": trials})

    kept = [method for method in entry.methods if method.name != "near"]
    again = [of(name, method) for name, method in zip(other, kept[-3:], strict=True)]
    entry = entry.model_copy(
        update={"methods": (of("near", entry.methods[0]), *kept, *again), "against": [*AGAINST, *other]}
    )
    result = made(entry, pd.concat([rows, added], ignore_index=True))
    by = {(row["method"], row["metric"]): row for row in result.frame.to_dict("records")}
    near, far = by["near", "asr"], by["far", "asr"]
    assert (near["mean"], near["floor"], near["halfwidth"]) == pytest.approx((0.33, 0.27, HALF), rel=1e-5)
    assert (far["floor"], near["inside"], far["inside"]) == (pytest.approx(0.17), True, False)
    assert by["near", "V"]["mean"] == pytest.approx(-16.0)  # .1 below the other repeats
    heads = [line[0] for line in cells(result.body)]
    assert heads[1:5] == ["ω⁰", "Retraining, 3 repeats", "Other.1, 3 repeats", "Near"]
    assert "A method is compared with the retraining of the training that it starts from." in result.notes
    labels = [label.get_text() for label in result.figure.axes[0].get_yticklabels()]
    assert labels == ["ω⁰", "Near", "Far", "Doing nothing", "Random weights"]


def test_each_scenario_has_its_own_floor() -> None:
    other = make_rows("other")
    other.loc[(other["method"] == "again.1") & (other["metric"] == "asr"), "value"] -= 0.3
    entry = make_matrix("small", "other")
    frame = made(entry, pd.concat([make_rows(), other], ignore_index=True)).frame
    far = frame[(frame["method"] == "far") & (frame["metric"] == "asr")].set_index("scenario")["inside"]
    assert far.to_dict() == {"small": False, "other": True}


# ---- the picture -----------------------------------------------------------------------------------------------------


def test_the_picture_shows_half_widths_beyond_the_floor() -> None:
    result = made(make_matrix(), make_rows())
    axis = result.figure.axes[0]
    [mesh] = [drawn for drawn in axis.collections if isinstance(drawn, QuadMesh)]
    numbers = np.ma.filled(np.asanyarray(mesh.get_array()), np.nan)
    labels = [label.get_text() for label in axis.get_xticklabels()]
    assert labels == ["ASR", "R-Acc ≈", "Distance", "V", "S", "Q"]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["ω⁰", *LABELS.values()]
    by = pd.DataFrame(numbers, index=[ORIGINAL, *LABELS], columns=labels)
    assert by["ASR"].tolist() == pytest.approx([0.68 / HALF, 0, 0.08 / HALF, 0.68 / HALF, 0], rel=1e-5)
    assert by["R-Acc ≈"].tolist() == [0] * 5
    assert by["Distance"].tolist() == [0, 0, 100, -100, 0]
    assert by["V"].isna().tolist() == [False, False, True, True, True]


def test_a_cell_like_retraining_is_grey_one_above_red_and_one_below_blue() -> None:
    axis = made(make_matrix(), make_rows()).figure.axes[0]
    [mesh] = [drawn for drawn in axis.collections if isinstance(drawn, QuadMesh)]
    colours = [tuple(rgba[:3]) for rgba in mesh.to_rgba(np.array([-100, -1.5, 0, 1.5, 100]))]
    assert colours[2] == (0.82, 0.82, 0.82)
    assert all(low[2] > low[0] for low in colours[:2])
    assert all(high[0] > high[2] for high in colours[3:])
    assert len(set(colours)) == 5


def test_a_column_of_its_own_has_a_source() -> None:
    assert [metric.name for metric in OWN if not origin_of(metric.source)] == []


def test_a_method_has_a_v_only_where_a_retraining_is_there_to_be_compared_with() -> None:
    values = {"client_accuracy": (0.5, 0.7), "client_samples": (10, 30), "client_forgotten": (0, 1)}
    about = {"seed": 0, "method": "alone"}
    rows = pd.DataFrame(
        [{**about, "client": k, "metric": name, "value": pair[k]} for name, pair in values.items() for k in (0, 1)]
    )
    assert [*lost(rows, {"alone": []})] == []
    assert [*lost(rows, {"alone": ["alone"]})] == [{**about, "metric": "V", "value": 0.0}]


def test_the_note_says_how_settings_were_chosen_where_any_were() -> None:
    start = "number of settings from which the method's were chosen"
    assert f"{start}: the best on seed 0." in made(make_matrix(rule="the best on seed 0"), make_rows()).notes
    assert f"{start}." in made(make_matrix(rule=""), make_rows()).notes
