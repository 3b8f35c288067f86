"""Oracles in the plan: which scenarios have some, what their job reads and states, and where settings are from."""

from typing import Any

import pytest

from tests.mistakes import has, sentence
from tests.pipeline.plans import made
from tests.pipeline.test_audits_planned import SEEDS, planned

NAME = "audit/mnist-pat50"
PAT = "Pan et al. 2025 (FedOSD), section 4.1; authors' code: classes in a fixed order, where appendix B.1 draws them"


def test_a_scenario_has_oracles_where_its_seeds_are_repeats_and_something_retrains() -> None:
    assert made("smoke", "audit").repeated == dict.fromkeys(
        ("audit/mnist-backdoor", "audit/mnist-client0-share0.5"), "retraining"
    )
    several = [f"client{client}-share{share}" for client in (0, 4, 8) for share in (0.5, 0.2)]
    names = {f"audit/mnist-{name}" for name in ("backdoor", "iid", "pat50", *several)}
    assert {*made("reduced", "audit").repeated} == names
    assert made("smoke").repeated == {}  # each seed of FedOSD's has its own partition
    shown = {"methods": ["partly.0.on", "partly.all.on"], "against": ["retraining.on"]}
    assert planned().repeated[NAME] == "retraining"
    assert planned(shown=shown).repeated[NAME] == "retraining"  # from which the continued one starts
    other = {"against": ["retraining.fats", "retraining"]}
    assert planned(shown=other).repeated[NAME] == "retraining"  # of the original training, whichever is named first


def test_the_job_reads_a_model_of_each_kind_and_seed_and_what_they_predict() -> None:
    plan = planned()
    job, runs = plan.job("oracles", {"scenario": NAME}), [f"{NAME}/seed{seed}" for seed in SEEDS]
    original = [plan.paths("train", "model", run=run, trial="original") for run in runs]
    retrained = [plan.paths("unlearn", "model", run=run, trial="retraining") for run in runs]
    assert job.inputs == {
        "data": plan.paths("data", "archive", dataset="digits"),
        "partition": plan.paths("partition", "partition", run=runs[0]),
        "request": [plan.paths("request", "request", run=runs[0])],
        "original": original,
        "retrained": retrained,
        "predicted": [
            plan.paths("predict", "predictions", scenario=NAME, trial=trial) for trial in ("original", "retraining")
        ],
        "costs": [path.replace(".safetensors", ".cost.json") for path in (*original, *retrained)],
    }
    assert job.outputs["archive"] == "results/smoke/oracles/audit/mnist-pat50.zip"
    assert plan.asked([NAME]) == [job]
    assert job not in plan.asked(["all"])
    assert {one.stage for one in plan.behind([job])} == {
        *("data", "partition", "request", "train", "unlearn", "predict", "oracles")
    }
    has(sentence(lambda: plan.asked(["audit/mnist-pat5"])), "did you mean 'audit/mnist-pat50'?")


def test_the_card_says_where_settings_are_from() -> None:
    stated: dict[str, Any] = {
        "settings": {"training": {"lr": 0.3}, "data": {"partition": {"params": {"class_share": 0.2}}}},
        "scenarios": {"mnist-pat50": {"settings": {"total_rounds": 20}}},
    }
    spec: Any = planned(**stated).job("oracles", {"scenario": NAME}).spec
    assert (spec.preset, spec.paper, spec.scenario, spec.seeds) == ("smoke", "audit", "mnist-pat50", SEEDS)
    assert spec.label == "MNIST, Pat-50 [on digits]"
    settings, sources = spec.settings, spec.sources
    assert {*settings} == {"data", "model", "training", "unlearning", "recovery", "total_rounds", "retraining"}
    for name, value, source in (
        ("training.lr", 0.3, "config.yaml"),
        ("training.rounds", 40, "smoke.yaml"),
        ("training.lr_decay", 0.999, "Pan et al. 2025 (FedOSD), section 4.1"),
        ("data.dataset", "digits", "smoke.yaml, in place of mnist"),
        ("data.partition", {"name": "pat", "params": {"class_share": 0.5}}, PAT),  # of the scenario
        ("total_rounds", 20, "config.yaml"),
        ("model.name", "mlp", "smoke.yaml"),
        ("unlearning.rounds", 6, "smoke.yaml"),
        ("retraining.unlearning.rounds", 40, "our choice: as many as in training"),
        ("retraining.unlearning.lr_decay", 0.999, "Pan et al. 2025 (FedOSD), section 4.1"),
    ):
        found = settings
        for key in name.split("."):
            found = found[key]
        assert (found, sources[name]) == (value, source), name
    # A scenario's partition replaces all of the partition below it, and what was stated of its parts.
    assert "data.partition.params.class_share" not in sources


@pytest.mark.parametrize("words", [[], ["fedosd_table8"]])
def test_the_command_names_the_scenarios_that_have_oracles(words: list[str]) -> None:
    from fu.pipeline.cli import show

    text = sentence(lambda: [*show.oracles(made("smoke", "fedosd", "audit"), words)])
    has(text, "TARGETS: ", "allowed: audit/mnist-backdoor")
    assert [*show.oracles(made("smoke", "audit"), ["audit/mnist-backdoor"])] == []
