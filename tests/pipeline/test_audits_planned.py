"""Repeats and audits in the plan: one partition for all seeds, one job of predictions a trial, what an edit runs."""

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fu.errors import UserError
from fu.pipeline.plan import Plan
from fu.pipeline.settings.papers import read_paper
from tests.pipeline.test_room import changed, jobs, of

CONTROLS = ["partly.0", "partly.all"]
SEEDS = (0, 1, 2, 3, 4)
ARTEFACTS = [name for name, about in read_paper("audit")["artefacts"].items() if about["kind"] != "verdicts"]
NATURAL: dict[str, dict[str, Any]] = {name: {"scenarios": ["mnist-pat50"]} for name in ARTEFACTS}
NATURAL["relearning"]["metrics"] = ["forget_set_accuracy"]


def overrides(shown: dict[str, Any] | None = None, **parts: Any) -> dict[str, Any]:
    """Return five repeats of a table of FedOSD, FATS and controls."""
    about = {"methods": [*CONTROLS, "fedosd", "fats"], "against": ["retraining", "retraining.fats"], **(shown or {})}
    return {"seeds": [*SEEDS], "artefacts": NATURAL | {"remains": {**NATURAL["remains"], **about}}, **parts}


def planned(shown: dict[str, Any] | None = None, **parts: Any) -> Plan:
    return Plan({"preset": "smoke", "papers": ["audit"], "overrides": {"audit": overrides(shown, **parts)}})


@cache
def plain() -> Plan:
    return planned()


def test_all_seeds_share_the_partition_and_the_request_of_the_first() -> None:
    assert of(plain(), "partition", "remains") == ["audit/mnist-pat50/seed0"]
    assert of(plain(), "request", "remains") == ["audit/mnist-pat50/seed0"]
    for seed in SEEDS:
        run = f"audit/mnist-pat50/seed{seed}"
        for stage in ("train", "unlearn"):
            job = plain().job(stage, {"run": run, "trial": "original" if stage == "train" else "fedosd"})
            home = plain().paths("partition", "partition", run="audit/mnist-pat50/seed0")
            assert job.inputs["partition"] == home
            assert job.spec.model_dump()["seed"] == seed
        asked = plain().paths("request", "request", run="audit/mnist-pat50/seed0")
        assert plain().job("unlearn", {"run": run, "trial": "fedosd"}).inputs["request"] == [asked]


def test_without_it_every_seed_has_its_own() -> None:
    plan = Plan({"preset": "smoke", "papers": ["fedosd"], "seeds": [3, 4]})
    found = {job.names["run"] for job in plan.jobs(("fedosd", "table8")) if job.stage == "partition"}
    assert found == {f"fedosd/mnist-{deal}/seed{seed}" for deal in ("iid", "pat20", "pat50") for seed in (3, 4)}


def test_the_jobs_behind_a_table() -> None:
    names = Counter(key.partition(" ")[0] for key in jobs(plain(), "remains"))
    trained = 2 * len(SEEDS)  # FedAvg's and FATS's
    unlearned = 6 * len(SEEDS)  # two retrainings, two controls, FedOSD, FATS
    assert names == {
        **{"data": 1, "partition": 1, "request": 1, "train": trained, "unlearn": unlearned},
        **{"recover": len(SEEDS), "predict": 8, "assess": 4 * 4, "publish": 1},  # four audits of all but retraining
    }


def test_predictions_are_of_the_last_models_of_all_seeds() -> None:
    job = plain().job("predict", {"scenario": "audit/mnist-pat50", "trial": "fedosd"})
    runs = [f"audit/mnist-pat50/seed{seed}" for seed in SEEDS]
    assert job.inputs["models"] == [plain().paths("recover", "model", run=run, trial="fedosd") for run in runs]
    original = plain().job("predict", {"scenario": "audit/mnist-pat50", "trial": "original"})
    assert original.inputs["models"] == [plain().paths("train", "model", run=run, trial="original") for run in runs]
    assert job.spec == original.spec
    assert job.stem == "results/smoke/audit/mnist-pat50/fedosd.predicted"


def test_a_method_is_compared_with_the_retraining_of_its_own_training() -> None:
    scenario = "audit/mnist-pat50"
    for method, against, trained in (
        ("fats", "retraining.fats", "fats.training"),
        ("fedosd", "retraining", "original"),
    ):
        names = {"scenario": scenario, "trial": method, "against": against, "audit": "ulira"}
        assert f"assess {scenario} {method} {against} ulira" in jobs(plain(), "remains")
        job = plain().job("assess", names)
        kinds = {"unlearned": method, "retrained": against, "original": trained}
        assert job.inputs == {
            kind: plain().paths("predict", "predictions", scenario=scenario, trial=trial)
            for kind, trial in kinds.items()
        }
        assert job.spec.model_dump() == {"audit": "ulira", "firsts": (2, 4, 5)}
    spec: Any = plain().job("publish", {"paper": "audit", "artefact": "remains"}).spec
    places = {method.name: method.trials["mnist-pat50"][0] for method in spec.methods}
    assert places["retraining.fats"].trained == places["fats"].trained != places["retraining"].trained
    left = {method.name: method.left for method in spec.methods if method.left}
    assert left == {"partly.0": ("retrain_partly", 0), "partly.all": ("retrain_partly", 1)}
    assert [method.name for method in spec.methods if method.retrains] == ["retraining", "retraining.fats"]


def test_a_control_trains_on_as_what_it_is_compared_with_does_or_is_none() -> None:
    on = [f"{name}.on" for name in CONTROLS]
    for against, controls, trained in (("retraining", CONTROLS, on), ("retraining.on", on, CONTROLS)):
        plan = planned({"methods": [*CONTROLS, *on], "against": [against]})
        spec: Any = plan.job("publish", {"paper": "audit", "artefact": "remains"}).spec
        left = {method.name: method.left for method in spec.methods}
        assert {name: left[name] for name in controls} == dict(
            zip(controls, [("retrain_partly", 0), ("retrain_partly", 1)], strict=True)
        )
        assert [left[name] for name in trained] == [None, None]
    names = {"run": "audit/mnist-pat50/seed3", "trial": "partly.0"}
    job = plan.job("recover", {**names, "trial": "partly.0.on"})
    assert job.inputs["unlearned"] == plan.paths("unlearn", "model", **names)


def test_the_whole_of_smoke_stays_within_its_jobs() -> None:
    assert len([*Plan({"preset": "smoke", "papers": ["audit"]}).jobs()]) <= 380


RATE = {"methods": {"fedosd": {"settings": {"unlearning": {"lr": 0.07}}}}}


def test_another_rate_of_a_method_runs_its_models_alone() -> None:
    """Post-training and what they predict have the same specs and files, but other contents."""
    own = {f"unlearn audit/mnist-pat50/seed{seed} fedosd" for seed in SEEDS}
    assert changed(plain(), planned(**RATE), "remains") == own | {"publish audit remains"}  # which says the rate


def test_a_further_repeat_runs_its_own_jobs_and_what_compares() -> None:
    more = planned(seeds=[*SEEDS, 5])
    found = changed(plain(), more, "remains")
    assert {key for key in found if "seed" in key} == {key for key in jobs(more, "remains") if "seed5" in key}
    assert {key for key in found if "seed" not in key} == {
        *(key for key in jobs(more, "remains") if key.startswith(("predict ", "assess "))),
        "publish audit remains",
    }


def test_another_metric_makes_the_table_alone() -> None:
    other = planned({"metrics": ["ulira_auc", "klom_p"]})
    assert changed(plain(), other, "remains") == {"publish audit remains"}


ALL = ["partly.0", "partly.all", "fedosd"]


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"seeds": [0, 1, 2, 3]}, "'nearest_position' needs at least 5 repeats, got 4 seeds"),
        ({"shown": {"metrics": ["asr"]}}, "no audit has the metric 'asr'"),
        ({"shown": {"metrics": ["ulira_acu"]}}, "there is no metric 'ulira_acu'; did you mean 'ulira_auc'?"),
        ({"settings": {"data": {"one_partition": False}}}, "'mnist-pat50' needs data.one_partition: true"),
        ({"shown": {"against": ["retraining", "partly.all"]}}, "'partly.all' is not a retraining"),
        ({"shown": {"against": ["retraining"]}}, "against: lists no retraining of 'fats.training', from which 'fats'"),
        ({"shown": {"methods": ALL, "against": []}}, "kind audit needs against"),
        (
            {"shown": {"methods": ["partly.0", "fedosd"], "against": ["retraining"]}},
            "needs two controls to validate the audits",
        ),
        ({"settings": {"data": {"forget": {"clients": 2, "requests": 2}}}}, "needs data.forget with one request"),
    ],
)
def test_what_cannot_be_audited_is_refused(parts: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        planned(**parts)
    assert sentence in str(caught.value)
    assert str(caught.value).count(". ") == 0


PLOTS = [
    ({"settles": {"metrics": ["ulira_epsilon", "ulira_epsilon_low"]}}, "epsilon needs 'ulira_epsilon_high' as well"),
    (
        {"costs": {"metrics": ["ulira_epsilon"]}},
        "an audit's score, and 'ulira_epsilon' is none; allowed: exposed",
    ),
    (
        {"exposed": {"metrics": ["ulira_auc"]}},
        "kind exposed needs a metric of one audit that ranks samples: exposed_auc, ",
    ),
    ({"exposed": {"methods": ["fedosd", "mode"]}}, "methods: kind exposed needs exactly one, got fedosd, mode"),
]


@pytest.mark.parametrize(("changed_parts", "sentence"), PLOTS)
def test_what_cannot_be_plotted_is_refused(changed_parts: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        Plan({"preset": "smoke", "papers": ["audit"], "overrides": {"audit": {"artefacts": changed_parts}}})
    assert sentence in str(caught.value)
    assert str(caught.value).count(". ") == 0


def test_pictures_of_text_are_refused() -> None:
    text = {
        "data": {"dataset": "letters", "samples": 2000, "split": "official", "test": "global", "train_share": None}
        | {"partition": {"name": "natural", "params": {"minimum": 15}}},
        "model": {"name": "lstm", "params": {"hidden": 4}},
    }
    scenarios = {"letters": {"label": "Letters", "settings": text}}
    artefacts = {"exposed": {"scenarios": ["letters"]}}
    laid = {"overrides": {"audit": {"scenarios": scenarios, "artefacts": artefacts}}}
    with pytest.raises(UserError, match="kind exposed needs images, but letters of 'letters' has text\\."):
        Plan({"preset": "smoke", "papers": ["audit"], **laid})


def test_a_plot_of_repeats_names_their_numbers_and_reads_the_same_predictions() -> None:
    plan = Plan({"preset": "smoke", "papers": ["audit"], "seeds": [*range(11)]})
    spec: Any = plan.job("publish", {"paper": "audit", "artefact": "settles"}).spec
    assert spec.firsts == (4, 8, 11)
    assert plan.job("publish", {"paper": "audit", "artefact": "remains"}).spec.model_dump()["firsts"] == ()


def test_a_plot_of_repeats_shows_no_number_for_which_an_audit_has_too_few() -> None:
    """`nearest` needs five models; every audit is run on the same numbers of repeats, so that one plot can show two."""
    metrics = ["ulira_epsilon", "ulira_epsilon_low", "ulira_epsilon_high", "nearest_p"]
    shown = {"overrides": {"audit": {"artefacts": {"settles": {"metrics": metrics}}}}}
    plan = Plan({"preset": "smoke", "papers": ["audit"], "seeds": [*range(11)], **shown})
    spec: Any = plan.job("publish", {"paper": "audit", "artefact": "settles"}).spec
    jobs = [plan.job(*plan.producers[f"results/smoke/{one.path}"]) for one in spec.sources if one.kind == "audits"]
    assert {job.names["audit"] for job in jobs} == {"ulira", "nearest"}
    assert {job.spec.model_dump()["firsts"] for job in jobs} == {(2, 4, 8, 11)}
    assert spec.firsts == (8, 11)


def test_costs_are_read_from_the_traces_of_all_phases_and_pictures_from_archive_and_partition() -> None:
    plan = Plan({"preset": "smoke", "papers": ["audit"]})
    read = {
        name: plan.job("publish", {"paper": "audit", "artefact": name}).inputs["results"]
        for name in ("costs", "exposed")
    }
    run = "results/smoke/audit/mnist-backdoor/seed7"
    assert {f"{run}/fedosd.unlearned.csv", f"{run}/fedosd.recovered.csv"} <= {*read["costs"]}
    assert not [path for path in read["costs"] if "retraining" in Path(path).name]
    (pictures,) = map(str, read["exposed"])
    job = plan.job(*plan.producers[pictures])
    assert job.stage == "expose"
    assert job.inputs["data"] == "results/smoke/data/digits.npz"
    assert job.inputs["partition"] == "results/smoke/audit/mnist-backdoor/seed0/partition.npz"
    assert job.spec.model_dump() == {"dataset": "digits", "attack": "patch", "audit": "exposed"}


def test_seeds_of_the_config_are_counted_too() -> None:
    with pytest.raises(UserError, match="'ulira_auc' needs at least 4 repeats, got 1 seed; use more seeds, or leave"):
        Plan({"preset": "smoke", "papers": ["audit"], "seeds": [7]})
