"""Claims of papers: what the plan refuses in one sentence, and what of an artefact's rows is judged."""

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from fu.artefacts.entry import Claim, Entry
from fu.artefacts.rows import COLUMNS
from fu.claims.rows import Operand
from fu.errors import UserError
from fu.pipeline.plan.entry_checks import check_point
from fu.pipeline.plan.plan import Plan
from fu.pipeline.settings.papers import configured, read_paper, resolve
from fu.pipeline.stages.evidence import ADDED, SILENT, evidence
from tests.artefacts.factories import make_claim, make_entry
from tests.mistakes import has, sentence
from tests.pipeline.plans import PAPERS, made

OF = {"method": "stability", "metric": "V", "at": {"params.lambda": 1}}
CLAIM = {"text": "T", "place": "P", "artefact": "fig5", "kind": "limit"}


def claim(**changes: Any) -> dict[str, Any]:
    params = {"of": {**OF, **changes.pop("of", {})}, "side": "below", "limit": 1}
    return {"claims": {"mine": {**CLAIM, "params": params, **changes}}}


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "no such artefact": (claim(artefact="fig55"), "claims.mine.artefact: there is no artefact 'fig55'; did you mean"),
    "no such kind": (claim(kind="limits"), "claims.mine: there is no claims plug-in 'limits'; did you mean 'limit'?"),
    "a missing metric": (
        claim(of={"metric": "W"}),
        "claims.mine: fig5 has no metric 'W'; allowed: Q, S, V, V + S, harm.",
    ),
    "a method that is not shown": (claim(of={"method": "fairness"}), "claims.mine: fig5 has no method 'fairness'"),
    "a stage that it does not have": (
        claim(of={"stage": "recovered"}),
        "claims.mine: fig5: 'stability' has no stage 'recovered'; allowed: unlearned.",
    ),
    "no such point": (
        claim(of={"at": {"params.lambda": 7}}),
        "claims.mine: fig5: 'stability' has no point params.lambda = 7; allowed: 0, 1, 2, 3, 4, 5.",
    ),
    "several points": (
        claim(of={"at": {}}),
        "claims.mine: fig5: 'stability' has 3 points; select one with at: params.lambda.",
    ),
    "claims about nothing": (
        {"artefacts": {"verdicts": {"judges": ["fig55"]}}},
        "artefacts.verdicts.judges: there are no claims on 'fig55'; did you mean 'fig5'?",
    ),
    "a figure that judges": (
        {"artefacts": {"fig5": {"judges": ["fig5"]}}},
        "artefacts.fig5: judges: not allowed for kind tradeoffs, only for kind verdicts.",
    ),
    "no such coordinate": (claim(of={"at": {"lambda": 1}}), "claims.mine: rows of fig5 have no 'lambda'"),
    "a scenario that it does not show": (
        claim(scenarios=["cifar10"]),
        "claims.mine.scenarios: fig5 does not show 'cifar10'; allowed: mnist.",
    ),
    "a misspelt parameter": (claim(params={"of": OF, "side": "under", "limit": 1}), "claims.mine: params.side: "),
    "an interval where there is none": (
        claim(kind="interval"),
        "claims.mine: kind interval judges audit results, but fig5 has none.",
    ),
    "no rows seed by seed": (claim(artefact="fig6"), "claims.mine: kind holdings has no per-seed rows"),
    "a trend along nothing": (
        claim(kind="trend", params={"of": {**OF, "at": {}}, "along": "alpha", "way": "rising"}),
        "claims.mine: rows of fig5 have no 'alpha'",
    ),
}


@pytest.mark.parametrize(("laid", "wanted"), CASES.values(), ids=CASES)
def test_a_claim_over_rows_that_are_not_there_is_refused(laid: dict[str, Any], wanted: str) -> None:
    values = {"preset": "smoke", "papers": ["tradeoffs"], "overrides": {"tradeoffs": laid}}
    has(sentence(lambda: Plan(values)), wanted)


def test_a_claim_that_is_tested_over_seeds_is_refused_of_an_audit_which_has_none() -> None:
    of = {"method": "fats", "metric": "ulira_auc"}
    laid = {"claims": {"mine": {**CLAIM, "artefact": "remains", "params": {"of": of, "side": "below", "limit": 1}}}}
    values = {"preset": "smoke", "papers": ["audit"], "overrides": {"audit": laid}}
    has(sentence(lambda: Plan(values)), "claims.mine: kind limit judges seeds, but audits have none; allowed: exact, i")


@pytest.mark.parametrize("laid", [claim(), claim(of={"at": {"params.lambda": 3}})], ids=["a point", "one of the paper"])
def test_a_claim_may_name_a_point_that_the_preset_leaves_out(laid: dict[str, Any]) -> None:
    Plan({"preset": "smoke", "papers": ["tradeoffs"], "overrides": {"tradeoffs": laid}})


def test_a_claim_over_rows_that_an_override_leaves_out_is_no_mistake_of_its_author() -> None:
    laid = {"artefacts": {"table8": {"methods": ["retraining", "fedosd"]}, "table5": {"points": "all"}}}
    Plan({"preset": "smoke", "papers": ["fedosd"], "overrides": {"fedosd": laid}})


def test_an_entry_has_the_scenarios_in_which_the_paper_states_each_claim() -> None:
    few = {"fedosd": {"artefacts": {"table8": {"scenarios": ["mnist-pat50"]}, "verdicts": {"judges": ["table8"]}}}}
    plan = Plan({"preset": "reduced", "papers": ["fedosd"], "overrides": few})
    spec: Any = plan.job("publish", {"paper": "fedosd", "artefact": "verdicts"}).spec
    assert spec.claims["forgets-at-once"].scenarios == ["mnist-pat50"]
    assert spec.stated["forgets-at-once"] == ("mnist-pat20", "mnist-pat50", "mnist-iid")


def test_where_a_preset_has_other_values_of_a_coordinate_these_are_the_ones_that_count() -> None:
    spec: Any = made("reduced", "fats").job("publish", {"paper": "fats", "artefact": "verdicts"}).spec
    own = read_paper("fats")["scenarios"]
    assert own["femnist-km"]["vary"]["M"]["values"] != [400, 550, 711]
    assert [*spec.stated["half-the-time"]] == spec.claims["half-the-time"].scenarios
    assert any("M711" in name for name in spec.stated["half-the-time"])
    few = {"fats": {"scenarios": {"mnist-b": {"vary": {"b": {"values": [5, 10]}}}}}}
    plan = Plan({"preset": "paper", "papers": ["fats"], "overrides": few})
    spec = plan.job("publish", {"paper": "fats", "artefact": "verdicts"}).spec
    assert {*spec.claims["accuracy-rises-with-rho-s"].scenarios} < {*spec.stated["accuracy-rises-with-rho-s"]}


def untuned(preset: str, **table8: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return which rates of rivals have fewer values in claims on Table 8, where some methods have other settings."""
    over = {
        "methods": {name: {"settings": settings} for name, settings in table8.items()},
        "artefacts": {"table8": {"scenarios": ["mnist-pat50"]}, "verdicts": {"judges": ["table8"]}},
    }
    plan = Plan({"preset": preset, "papers": ["fedosd"], "overrides": {"fedosd": over}})
    spec: Any = plan.job("publish", {"paper": "fedosd", "artefact": "verdicts"}).spec
    return dict(spec.untuned)


FEWER = {"mnist-pat50": "unlearning.lr of MoDe was chosen from 1 value, of FedOSD from 2"}


def test_a_rival_whose_rate_is_chosen_from_fewer_values_is_named() -> None:
    claims = read_paper("fedosd")["claims"]
    found = untuned("reduced", mode={"grid": {"unlearning.lr": [0.1]}})
    assert found["ahead-of-mode"] == FEWER
    assert {*found} == {
        name
        for name, one in claims.items()
        if one["artefact"] == "table8" and "'mode'" in str([one["params"].get("among"), one["params"].get("than")])
    }
    two = untuned("reduced", mode={"grid": {"unlearning.lr": [0.1]}}, ewcsga={"grid": {"unlearning.lr": [0.001]}})
    assert two["keeps-most-r-acc"]["mnist-pat50"].count("; unlearning.lr of EWCSGA was chosen from 1 value") == 1


def test_a_rate_of_post_training_counts_where_its_models_are_compared() -> None:
    found = untuned("reduced", fedosd={"grid": {"recovery.lr": [0.025, 0.1]}, "recovery": {"lr": None}})
    assert found["ahead-of-mode"] == {"mnist-pat50": "recovery.lr of MoDe was chosen from 1 value, of FedOSD from 2"}
    assert {"keeps-most-r-acc", "stays-forgotten", "recovers-r-acc"}.isdisjoint(found)  # unlearned; no rivals
    # At `paper` post-training has the rate of unlearning, of which nobody in FedRecovery makes use.
    found = untuned("paper", fedrecovery={"grid": {"unlearning.lr": []}})
    assert found == {
        "best-after-post-training": {
            "mnist-pat50": "recovery.lr of FedRecovery was chosen from 1 value, of FedOSD from 4"
        }
    }


def test_rates_of_trainings_count_too() -> None:
    over: dict[str, Any] = {
        "trainings": {"safari": {"grid": {"params.q": [0.5], "training.lr": [0.1, 0.2]}}},
        "artefacts": {
            "table1": {"scenarios": ["mnist-server-p5-s4-n50"]},
            "q": {"trainings": ["safari.rates"]},
            "verdicts": {"judges": ["table1"]},
        },
    }
    plan = Plan({"preset": "paper", "papers": ["safari"], "overrides": {"safari": over}})
    spec: Any = plan.job("publish", {"paper": "safari", "artefact": "verdicts"}).spec
    assert spec.untuned["no-gain-where-clients-are-alike"] == {
        "mnist-server-p5-s4-n50": "training.lr of FedAvg was chosen from 1 value, of SAFARI from 2"
    }


def test_where_all_points_are_shown_nothing_is_chosen() -> None:
    over = {"methods": {"fedosd.rates-free": {"settings": {"grid": {"recovery.lr": [0.025, 0.1]}}}}}
    plan = Plan({"preset": "reduced", "papers": ["fedosd"], "overrides": {"fedosd": over}})
    found: Any = plan.job("publish", {"paper": "fedosd", "artefact": "verdicts"}).spec
    assert found.untuned == {}


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("preset", ["smoke", "reduced", "paper"])
def test_no_rival_has_fewer_rates_in_any_preset(preset: str, paper: str) -> None:
    spec: Any = made(preset, paper).job("publish", {"paper": paper, "artefact": "verdicts"}).spec
    assert spec.untuned == {}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_paper_has_claims_and_an_artefact_with_their_verdicts(paper: str) -> None:
    planned = made("paper", paper)
    assert 8 <= len(planned.papers[paper].claims) <= 20
    assert resolve(configured({"preset": "paper", "papers": [paper]})).claims == {
        paper: {*planned.papers[paper].claims}
    }
    job = planned.job("publish", {"paper": paper, "artefact": "verdicts"})
    judged = {one.artefact for one in planned.papers[paper].claims.values()}
    assert sorted(job.files) == sorted(f"results/paper/artefacts/{paper}/{name}.rows.csv" for name in judged)


@pytest.mark.parametrize("paper", PAPERS)
def test_a_claims_text_names_the_margin_or_limit_by_which_it_is_judged(paper: str) -> None:
    words = {0.005: "half a point", 0.5: "half"}
    for name, claim in read_paper(paper)["claims"].items():
        for number in (abs(claim["params"].get(key, 0)) for key in ("margin", "limit")):
            if number > 1e-6:
                said = (f"{number:g}".lstrip("0"), f"{100 * number:g} points", words.get(number, "?"))
                assert any(text in claim["text"] for text in said), name


def test_claims_about_what_was_made_are_judged_alone() -> None:
    over = {"fedosd": {"artefacts": {"table8": {"scenarios": ["mnist-pat50"]}, "verdicts": {"judges": ["table8"]}}}}
    planned = Plan({"preset": "paper", "papers": ["fedosd"], "overrides": over})
    job = planned.job("publish", {"paper": "fedosd", "artefact": "verdicts"})
    assert [*job.files] == ["results/paper/artefacts/fedosd/table8.rows.csv"]
    claims = job.spec.model_dump()["claims"]
    assert len(claims) == 9
    assert {(claim["artefact"], *claim["scenarios"]) for claim in claims.values()} == {("table8", "mnist-pat50")}


def test_a_claim_is_remade_alone_when_its_wording_changes() -> None:
    before, after = (
        Plan({"preset": "smoke", "papers": ["tradeoffs"], "overrides": over})
        for over in ({}, {"tradeoffs": {"claims": {"penalty-raises-v": {"text": "Otherwise."}}}})
    )
    changed = [job.stem for job in before.jobs() if after.job(job.stage, job.names).keys != job.keys]
    assert changed == ["results/smoke/artefacts/tradeoffs/verdicts"]


# ---- what is judged --------------------------------------------------------------------------------------------------


def read(
    claims: dict[str, Claim],
    rows: list[dict[str, Any]],
    *stated: str,
    untuned: dict[str, dict[str, str]] | None = None,
    **scenario: Any,
) -> pd.DataFrame:
    """Return the statistics of claims on one artefact, `thing`, with these rows; `stated`: the paper's scenarios."""
    entry: Entry = make_entry("verdicts")
    scenarios = tuple(
        one.model_copy(update={"name": name, **scenario})
        for one in entry.scenarios
        for name in ("small", "other", "third", "toy-k1", "toy-k2", "toy-k3")
    )
    of = dict.fromkeys(claims, stated) if stated else {}
    entry = entry.model_copy(update={"claims": claims, "scenarios": scenarios, "stated": of, "untuned": untuned or {}})
    about = {"method": "ours", "stage": "unlearned", "metric": "r_acc", "published": 0, "round": -1, "client": None}
    frame = pd.DataFrame([{"scenario": "small", "seed": 0, **about, **row} for row in rows])
    columns = [*COLUMNS, *frame.columns.difference(COLUMNS)]
    return evidence(entry, {"thing": frame.assign(point=frame["method"]).reindex(columns=columns)})


def test_ours_and_the_papers_numbers_are_told_apart() -> None:
    rows = [{"value": 0.5}, {"value": 0.6, "seed": 1}, {"value": 0.9, "published": 1, "seed": -1}]
    found = read({"one": make_claim("One.")}, rows)
    assert list(found["value"]) == [0.5, 0.6, 0.9]
    assert list(found["published"]) == [False, False, True]
    assert set(found["unit"]) == {"small"}
    assert set(found["reason"]) == {""}
    assert {*zip(found["low"], found["high"], strict=True)} == {(0.0, float("inf"))}


ORIGINAL = {"metric": "asr", "method": "original", "stage": "original"}
ASR: dict[str, Any] = {"of": {"method": "ours", "metric": "asr"}, "side": "below", "limit": 0.1}


@pytest.mark.parametrize(
    ("kind", "params", "exact", "ties"),
    [
        ("limit", {"side": "above", "limit": 0}, False, False),
        ("exact", {"value": 0.5}, True, False),
        ("equal", {"than": {"method": "theirs", "metric": "r_acc"}, "margin": 0.1}, False, True),
        ("at_least", {"than": {"method": "theirs", "metric": "r_acc"}, "side": "above", "margin": 0.1}, False, True),
    ],
)
def test_a_kind_says_what_is_exact_and_whose_bounds_are_inside(
    kind: str, params: dict[str, Any], exact: bool, ties: bool
) -> None:
    claim = make_claim("One.", kind=kind, params={"of": {"method": "ours", "metric": "r_acc"}, **params})
    found = read({"one": claim}, [{"value": 0.5}, {"value": 0.4, "method": "theirs"}])
    assert (set(found["exact"]), set(found["ties"])) == ({exact}, {ties})


def test_a_trend_without_one_of_its_scenarios_says_so() -> None:
    params = {"of": {"method": "ours", "metric": "r_acc"}, "along": "k", "way": "rising"}
    claim = make_claim("One.", kind="trend", params=params, scenarios=["small", "other", "third"])
    rows = [{"value": value, "scenario": name, "k": k} for name, value, k in (("small", 0.5, 1), ("other", 0.7, 2))]
    found = read({"one": claim}, rows)
    assert {*found[found["reason"] == ""]["unit"]} == {"small, other"}
    [silent] = found[found["reason"] != ""].to_dict("records")
    assert (silent["unit"], silent["reason"]) == ("third", SILENT)


@pytest.mark.parametrize(("paper", "printed"), [((1, 2, 5), [0.4]), ((0, 5), [0.5]), ((1, 2), []), ((2, 5), [])])
def test_a_trend_of_the_paper_over_part_of_the_way_is_left_out(paper: tuple[int, ...], printed: list[float]) -> None:
    """Ours goes from 1 to 5; the paper's number is a tenth of the coordinate."""
    params = {"of": {"method": "ours", "metric": "r_acc"}, "along": "params.k", "way": "rising"}
    rows: list[dict[str, Any]] = [{"params.k": k, "value": k} for k in (1, 2, 5)]
    rows += [{"params.k": k, "value": k / 10, "published": 1, "seed": -1} for k in paper]
    found = read({"one": make_claim("One.", kind="trend", params=params)}, rows)
    assert [*found[found["published"]]["value"]] == pytest.approx(printed)
    assert len(found) == 1 + len(printed)


def test_a_trend_of_the_paper_is_compared_with_ours_over_its_own_scenarios() -> None:
    params = {"of": {"method": "ours", "metric": "r_acc"}, "along": "k", "way": "rising"}
    claim = make_claim("One.", kind="trend", params=params, scenarios=["toy-k1", "toy-k2", "toy-k3"])
    places = [("toy-k1", 1), ("toy-k2", 2), ("toy-k3", 3)]
    rows: list[dict[str, Any]] = [{"value": k / 2, "scenario": name, "k": k} for name, k in places]
    rows += [{"value": k / 4, "scenario": name, "k": k, "published": 1, "seed": -1} for name, k in places[:2]]
    found = read({"one": claim}, rows, "toy-k1", "toy-k2")
    assert [*found[found["published"]]["value"]] == [0.25]
    assert [*found[found["reason"] == ADDED]["unit"]] == ["toy-k3"]


def test_scenarios_without_numbers_are_named() -> None:
    claims = {"one": make_claim("One.", scenarios=["small", "other"])}
    found = read(claims, [{"value": 0.5}])
    [silent] = found[found["reason"] != ""].to_dict("records")
    assert (silent["unit"], silent["reason"]) == ("other", SILENT)


@pytest.mark.parametrize(("place", "judged"), [("Table 1", ["small"]), ("our criterion", ["small", "other"])])
def test_a_claim_of_the_paper_is_not_judged_in_scenarios_that_its_table_lacks(place: str, judged: list[str]) -> None:
    claims = {"one": make_claim("One.", place=place, scenarios=["small", "other"])}
    found = read(claims, [{"value": 0.5}, {"value": 0.6, "scenario": "other"}], "small", "third")
    assert [*found[found["reason"] == ""]["unit"]] == judged
    assert [*found[found["reason"] == ADDED]["unit"]] == [one for one in ("other",) if one not in judged]


def test_where_a_rivals_rate_was_chosen_from_fewer_values_nothing_is_judged() -> None:
    claims = {name: make_claim(name, scenarios=["small", "other"]) for name in ("one", "two")}
    rows: list[dict[str, Any]] = [{"value": 0.5}, {"value": 0.6, "scenario": "other"}]
    found = read(claims, rows, untuned={"one": {"other": "fewer"}})
    assert [*zip(found["claim"], found["unit"], found["reason"], strict=True)] == [
        ("one", "small", ""),
        ("one", "other", "fewer"),
        ("two", "small", ""),
        ("two", "other", ""),
    ]


def test_other_data_are_not_judged_but_the_papers_numbers_are() -> None:
    rows = [{"value": 0.5}, {"value": 0.9, "published": 1, "seed": -1}]
    found = read({"one": make_claim("One.")}, rows, replaces="MNIST")
    assert list(found[found["published"]]["value"]) == [0.9]
    [out] = found[~found["published"]].to_dict("records")
    assert out["reason"] == "digits in place of MNIST"
    [out] = read({"one": make_claim("One.")}, rows[:1], "other", replaces="MNIST").to_dict("records")
    assert out["reason"] == "digits in place of MNIST"  # which is told first


@pytest.mark.parametrize("metric", ["asr", "asr_held_out"])
@pytest.mark.parametrize(("asr", "judged"), [(0.5, True), (0.4994, False)])
def test_where_the_backdoor_did_not_take_hold_nothing_is_said_of_it(metric: str, asr: float, judged: bool) -> None:
    rows: list[dict[str, Any]] = [
        {"value": 0.05, "metric": metric},
        {"value": 0.8},
        {"value": asr, **ORIGINAL},
    ]
    below = {**ASR, "of": {"method": "ours", "metric": metric}}
    found = read({"asr": make_claim("A.", params=below), "r_acc": make_claim("R.")}, rows)
    reasons = found.groupby("claim")["reason"].first()
    assert reasons["r_acc"] == ""
    assert reasons["asr"] == ("" if judged else f"the backdoor did not take hold: ω⁰ has an ASR of {asr:.3f}")


def test_the_backdoor_is_judged_on_the_seeds_in_which_it_took_hold() -> None:
    rows: list[dict[str, Any]] = [
        {"value": value, "seed": seed, **about}
        for seed, ours, r_acc, asr in ((0, 0.01, 0.7, 0.99), (1, 0.02, 0.8, 0.126), (2, 0.03, 0.9, 0.5))
        for value, about in ((ours, {"metric": "asr"}), (r_acc, {}), (asr, ORIGINAL))
    ]
    rows += [{"value": 0.04, "metric": "asr", "published": 1, "seed": -1}]
    found = read({"asr": make_claim("A.", params=ASR), "r_acc": make_claim("R.")}, rows)
    judged = found[~found["published"]]
    assert list(judged[judged["claim"] == "asr"]["seed"]) == [0, 2]
    assert list(judged[judged["claim"] == "r_acc"]["seed"]) == [0, 1, 2]
    assert list(found[found["published"] & (found["claim"] == "asr")]["value"]) == [0.04]


def test_a_claim_along_an_axis_names_one_point_of_every_other_setting() -> None:
    points: Any = [SimpleNamespace(values={"lr": lr, "rate": rate}) for lr in (1, 2, 3) for rate in (8, 9)]
    stated = {"lr": [1, 2, 3], "rate": [8, 9]}
    of = Operand(method="ours", metric="asr", at={"rate": 9})
    check_point(of, points, stated, "lr", "here")
    with pytest.raises(UserError, match=r"^here: 'ours' has 3 points; select one with at: lr\.$"):
        check_point(of, points, stated, None, "here")
    with pytest.raises(UserError, match=r"^here: 'ours' has 6 points; select one with at: rate\.$"):
        check_point(of.model_copy(update={"at": {}}), points, stated, "lr", "here")


def test_the_papers_own_numbers_are_judged_where_its_own_backdoor_took_hold() -> None:
    """As in FedOSD's Table 5: the original model of CIFAR-100 has an ASR of .433. Ours is the other way round."""
    rows: list[dict[str, Any]] = [
        {"value": value, "scenario": scenario, **about, **whose}
        for scenario, ours, before, theirs, printed in (
            ("small", 0.01, 0.3, 0.02, 0.754),
            ("other", 0.03, 0.99, 0.04, 0.433),
        )
        for value, about, whose in (
            (ours, {"metric": "asr"}, {}),
            (before, ORIGINAL, {}),
            (theirs, {"metric": "asr"}, {"published": 1, "seed": -1}),
            (printed, ORIGINAL, {"published": 1, "seed": -1}),
            (theirs + 0.5, {}, {"published": 1, "seed": -1}),
        )
    ]
    both = ["small", "other"]
    claims = {"asr": make_claim("A.", params=ASR, scenarios=both), "r_acc": make_claim("R.", scenarios=both)}
    found = read(claims, rows)
    told = {
        key: dict(zip(part["unit"], part["value"], strict=True))
        for key, part in found[found["reason"] == ""].groupby(["claim", "published"])
    }
    assert told == {
        ("asr", False): {"other": 0.03},
        ("asr", True): {"small": 0.02},
        ("r_acc", True): {"small": 0.52, "other": 0.54},
    }
