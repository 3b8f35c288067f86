"""Repeats and audits in the plan: one partition for all seeds, one job of predictions a trial, what an edit runs."""

import re
from collections import Counter
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from fu.pipeline.plan import estimates
from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance.digest import ROOT
from fu.pipeline.settings.papers import read_paper
from tests.mistakes import has, sentence
from tests.pipeline.plans import made
from tests.pipeline.test_room import changed, jobs, of

CONTROLS = ["partly.0", "partly.all"]  # their reference is `retraining`
SEEDS = tuple(range(8))
ARTEFACTS = [name for name, about in read_paper("audit")["artefacts"].items() if about["kind"] != "verdicts"]
NATURAL: dict[str, dict[str, Any]] = {name: {"scenarios": ["mnist-pat50"]} for name in ARTEFACTS}
NATURAL["relearning"]["metrics"] = ["forget_set_accuracy"]
NATURAL["clients"] = {"scenarios": ["mnist-client0-share0.5"]}


def overrides(shown: dict[str, Any] | None = None, **parts: Any) -> dict[str, Any]:
    """Return eight repeats of a table of FedOSD, FATS and controls."""
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
    partition, request = (f"results/smoke/audit/mnist-pat50/seed0/{name}.npz" for name in ("partition", "request"))
    for seed in SEEDS:
        run = f"audit/mnist-pat50/seed{seed}"
        train = plain().job("train", {"run": run, "trial": "original"})
        unlearn = plain().job("unlearn", {"run": run, "trial": "fedosd"})
        assert train.inputs["partition"] == unlearn.inputs["partition"] == partition
        assert unlearn.inputs["request"] == [request]
        assert [job.spec.model_dump()["seed"] for job in (train, unlearn)] == [seed, seed]


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
        **{"recover": len(SEEDS), "predict": 8, "assess": 5 * 4, "publish": 1},  # five audits of all but retraining
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
        assert job.spec.model_dump() == {"audit": "ulira", "firsts": (2, 4, 8)}
    spec: Any = plain().job("publish", {"paper": "audit", "artefact": "remains"}).spec
    places = {method.name: method.trials["mnist-pat50"][0] for method in spec.methods}
    assert places["retraining.fats"].trained == places["fats"].trained != places["retraining"].trained
    left = {method.name: method.left for method in spec.methods if method.left}
    assert left == {"partly.0": ("retrain_partly", 0), "partly.all": ("retrain_partly", 1)}
    assert [method.name for method in spec.methods if method.retrains] == ["retraining", "retraining.fats"]


def test_a_method_may_name_its_reference_and_that_what_leaves_all_of_the_client_in() -> None:
    plan = made("reduced", "audit")
    spec: Any = plan.job("publish", {"paper": "audit", "artefact": "remains"}).spec
    references = {method.name: method.reference for method in spec.methods}
    assert {references[name] for name in ("fedosd", "partly.0.on", "untouched.on")} == {"retraining.on"}
    assert {references[name] for name in ("partly.0", "cheat", "stego")} == {"retraining"}
    assert (references["fedrecovery"], references["fats"]) == ("retraining.noisy", "retraining.fats")
    assert {references[name] for name in ("federaser", "fr2", "partly.short.0")} == {"retraining.short"}
    assert [one.name for one in spec.methods if one.own_optimiser] == ["fr2"]
    controls = {method.name for method in spec.methods if method.control}
    assert controls == {"untouched", "untouched.on", "untouched.fats"}
    assert references["retraining.on"] == ""
    attacked = {scenario.name: scenario.attacked for scenario in spec.scenarios}
    assert attacked == {"mnist-pat50": False, "mnist-iid": False, "mnist-backdoor": True}
    about = {method.name: (method.plugin, method.left) for method in spec.methods}
    assert about["partly.10.on"] == ("retrain_partly", ("retrain_partly", 0.1))
    assert about["partly.all.on"] == ("retrain_partly", ("retrain_partly", 1))  # as what it post-trains
    assert about["fedosd"] == ("fedosd", None)
    shares = {method.label: method.left[1] for method in spec.methods if method.name.startswith("partly.")}  # as stated
    stated = {
        label: 0 if label.startswith("Independent") else int(re.findall(r"(\d+)%", label)[0]) / 100 for label in shares
    }
    assert shares == stated
    flags = {method.name: (method.control, method.hides) for method in spec.methods}
    assert (flags["untouched"], flags["cheat"], flags["fedosd"]) == ((True, False), (False, True), (False, False))
    scenario, names = "audit/mnist-backdoor", {"trial": "fedosd", "against": "retraining.on", "audit": "line"}
    job = plan.job("assess", {"scenario": scenario, **names})
    kinds = {"unlearned": "fedosd", "retrained": "retraining.on", "original": "untouched.on"}
    assert job.inputs == {
        kind: plan.paths("predict", "predictions", scenario=scenario, trial=trial) for kind, trial in kinds.items()
    }


def test_another_rate_of_a_method_runs_its_models_alone() -> None:
    """Post-training and what they predict have the same specs and files, but other contents."""
    own = {f"unlearn audit/mnist-pat50/seed{seed} fedosd" for seed in SEEDS}
    rate = {"fedosd": {"settings": {"unlearning": {"lr": 0.07}}}}
    assert changed(plain(), planned(methods=rate), "remains") == own | {"publish audit remains"}  # which says the rate


def test_a_further_repeat_runs_its_own_jobs_and_what_compares() -> None:
    more = planned(seeds=[*SEEDS, 9])
    found = changed(plain(), more, "remains")
    assert {key for key in found if "seed" in key} == {key for key in jobs(more, "remains") if "seed9" in key}
    assert {key for key in found if "seed" not in key} == {
        *(key for key in jobs(more, "remains") if key.startswith(("predict ", "assess "))),
        "publish audit remains",
    }


def test_another_metric_makes_the_table_alone() -> None:
    other = planned({"metrics": ["ulira_auc", "klom_p"]})
    assert changed(plain(), other, "remains") == {"publish audit remains"}


def test_what_leaves_all_of_the_client_in_need_not_be_shown() -> None:
    shown = {"methods": ["fedosd", "partly.0.on", "partly.all.on"], "against": ["retraining.on"]}
    assert "predict audit/mnist-pat50 untouched.on" in jobs(planned(shown), "remains")


ALL = ["partly.0", "partly.all", "fedosd"]


def shown(artefact: str = "remains", **about: Any) -> dict[str, Any]:
    """Return the config with a part of an artefact replaced."""
    parts = overrides(about) if artefact == "remains" else {"artefacts": {artefact: about}}
    return {"preset": "smoke", "papers": ["audit"], "overrides": {"audit": parts}}


def laid(**parts: Any) -> dict[str, Any]:
    return {"preset": "smoke", "papers": ["audit"], "overrides": {"audit": overrides(**parts)}}


REFUSED: list[tuple[dict[str, Any], str]] = [
    (laid(seeds=[0, 1, 2]), "'line_position' needs at least 4 repeats, got 3 seeds; use more seeds, or leave"),
    (laid(seeds=[0, 1, 2, 3]), "4 repeats cannot decide 10 tests, as no p-value can be below 0.05 once it is"),
    (shown(metrics=["asr"]), "no audit has the metric 'asr'"),
    (laid(settings={"data": {"one_partition": False}}), "'mnist-pat50' needs data.one_partition: true"),
    (laid(settings={"data": {"forget": {"clients": 2, "requests": 2}}}), "retrain_partly supports only one request"),
    (shown(against=["retraining", "partly.all"]), "'partly.all' is not a retraining"),
    (shown(against=["retraining", "cheat"]), "'cheat' is not a retraining"),
    (shown(against=["retraining"]), "against: lists no retraining of 'fats.training', with which 'fats'"),
    (shown(methods=[*ALL, "fedrecovery"]), "lists no 'retraining.noisy', with which 'fedrecovery' is"),
    (laid(shown={"methods": [*ALL, "federaser"], "against": ["retraining"]},
          methods={"federaser": {"reference": "retraining"}}),
     "methods: 'federaser' trains from scratch for 18 rounds, but its reference 'retraining' for 40; name one"),
    (shown(methods=["partly.0", "fedosd"], against=["retraining"]), "needs two controls to validate the audits"),
    (laid(shown={"methods": [*ALL, "fairness"], "against": ["retraining"]},
          methods={"fairness": {"params": {"variant": "as-published"}}}),
     "methods: 'fairness' reads test samples (variant: as-published), which audits probe; leave it out"),
    (shown("clients", x="clint"), "x: 'clint' is not a coordinate of 'mnist-client0-share0.5'; did you mean 'client'?"),
    (shown("settles", metrics=["ulira_epsilon", "ulira_epsilon_low"]), "epsilon needs 'ulira_epsilon_high' as well"),
    (shown("costs", metrics=["ulira_epsilon"]), "an audit's score, and 'ulira_epsilon' is none; allowed: exposed"),
    (shown("exposed", metrics=["ulira_auc"]),
     "kind exposed needs a metric of one audit that ranks samples: exposed_auc, "),
    (shown("harm", metrics=["harm_near", "ulira_epsilon"]),
     "kind harm needs differences that have an interval and a p-value, and 'ulira_epsilon' is none; allowed: "
     "harm_near, harm_test, members_gap."),
    (shown("exposed", methods=["fedosd", "mode"]), "methods: kind exposed needs exactly one, got fedosd, mode"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_cannot_be_audited_is_refused(config: dict[str, Any], words: str) -> None:
    has(sentence(lambda: Plan(config)), words)


def test_pictures_of_text_are_refused() -> None:
    text = {
        "data": {"dataset": "letters", "samples": 2000, "split": "official", "test": "global", "train_share": None}
        | {"partition": {"name": "natural", "params": {"minimum": 15}}},
        "model": {"name": "lstm", "params": {"hidden": 4}},
    }
    scenarios = {"letters": {"label": "Letters", "settings": text}}
    for artefact, methods, wrong in (
        ("exposed", ["fedosd"], "kind exposed needs images, but letters of 'letters' has text."),
        ("remains", [*CONTROLS, "stego"], "scenario letters, method stego: stego needs images, but letters has text."),
    ):
        artefacts = {artefact: {"scenarios": ["letters"], "methods": methods, "against": ["retraining"]}}
        config = {"overrides": {"audit": {"scenarios": scenarios, "artefacts": artefacts}}}
        has(sentence(partial(Plan, {"preset": "smoke", "papers": ["audit"], **config})), wrong)


def test_an_audit_shown_over_repeats_is_run_on_the_first_ones_and_the_plot_names_those_that_suffice() -> None:
    plan = Plan({"preset": "smoke", "papers": ["audit"], "seeds": [*range(11)]})
    firsts = {
        name: plan.job("publish", {"paper": "audit", "artefact": name}).spec.model_dump()["firsts"]
        for name in ("settles", "remains")
    }
    assert firsts == {"settles": (4, 8, 11), "remains": ()}
    assessed = [job for job in plan.jobs() if job.stage == "assess"]
    assert {job.names["audit"] for job in assessed} == {"ulira", "klom", "line", "runs", "harm", "members", "weights"}
    firsts_of = {
        (job.names["scenario"], job.names["audit"], job.names["trial"]): job.spec.model_dump()["firsts"]
        for job in assessed
    }
    settles = plan.papers["audit"].artefacts["settles"]
    shown = {
        (f"audit/{scenario}", "ulira", name)
        for scenario in settles.scenarios
        for name in settles.methods
        if name not in settles.against
    }
    assert {key for key, firsts in firsts_of.items() if firsts == (2, 4, 8, 11)} == shown
    assert {firsts for key, firsts in firsts_of.items() if key not in shown} == {(11,)}


def test_an_audit_that_relabels_models_takes_its_time_and_another_that_of_any_job() -> None:
    plan = Plan({"preset": "smoke", "papers": ["audit"], "seeds": [*range(8)]})
    seconds = {
        job.names["audit"]: job.estimate for job in plan.jobs() if job.stage == "assess" and "ulira" not in job.stem
    }
    assert (
        seconds["line"] == seconds["runs"] == pytest.approx(estimates.JOB_S + 1.5e-5 * 8 * 70 * 70)
    )  # two halves of four
    assert seconds["harm"] == estimates.JOB_S
    assert estimates.assessment_seconds((8, 32)) == pytest.approx(
        seconds["line"] + 1.5e-5 * 32 * 50_000
    )  # as many drawn


def test_costs_are_read_from_the_traces_of_all_phases_and_pictures_from_archive_and_partition() -> None:
    plan = made("smoke", "audit")
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


def test_an_audit_and_a_kind_of_claim_of_ones_own_are_a_file_each_and_their_entries(mine: Path) -> None:
    for kind, copied in (("audits", "line"), ("claims", "exact")):
        (mine / kind).mkdir()
        text = (ROOT / f"fu/{kind}/{copied}.py").read_text().replace('"line_', '"mine_')
        (mine / kind / "mine.py").write_text(text)
    of = {"method": "fedosd", "metric": "mine_position", "stage": "recovered"}
    claim = {"text": "T", "place": "P", "artefact": "remains", "kind": "mine", "params": {"of": of, "value": 0}}
    about = overrides({"metrics": ["mine_position", "ulira_auc"]}, claims={"own": claim})
    plan = Plan({"preset": "smoke", "papers": ["audit"], "plugins": str(mine), "overrides": {"audit": about}})
    found = [job for job in plan.jobs(("audit", "verdicts")) if job.stage == "assess"]
    assert {job.spec.model_dump()["audit"] for job in found} == {"mine", "ulira"}
    spec: Any = plan.job("publish", {"paper": "audit", "artefact": "verdicts"}).spec
    assert spec.claims["own"].kind == "mine"
