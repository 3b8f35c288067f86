"""What the plan hands to jobs and stages hand to the science: seeds, scenarios, streams, poison, the choice."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from fu import plugins
from fu.artefacts.entry import Entry
from fu.pipeline.plan.plan import Plan
from fu.pipeline.stages import compute, publish, recover, train, unlearn
from fu.pipeline.stages.common import Options, canonical
from fu.plugins import Choice
from tests.pipeline.configs import toy
from tests.pipeline.plans import made, plan


def entries(planned: Plan) -> list[Entry]:
    return [job.spec for job in planned.jobs() if isinstance(job.spec, publish.Spec)]


def test_every_job_of_a_run_has_the_run_s_seed() -> None:
    jobs = [job for job in made("paper").jobs() if "run" in job.names and job.stage not in ("agree", "examples")]
    assert {job.stage for job in jobs} == {"partition", "train", "request", "shadow", "unlearn", "recover", "evaluate"}
    found = [(spec.model_dump()["seed"], job.names["run"].rpartition("/seed")[2]) for job in jobs for spec in job.specs]
    assert all(seed == int(of_run) for seed, of_run in found)
    assert len(set(found)) > 1


@pytest.mark.usefixtures("with_toy")
def test_the_user_s_seeds_win() -> None:
    overridden = toy(seeds=[5, 6])
    configs: list[dict[str, Any]] = [{}, {"seeds": [7, 8]}, overridden, {**overridden, "seeds": [7, 8]}]
    assert [Plan({**toy(), **config}).seeds("toy") for config in configs] == [[0], [7, 8], [5, 6], [7, 8]]
    assert [made(preset).seeds("fedosd") for preset in ("smoke", "paper")] == [[0], [0, 1, 2, 3, 4]]


def test_an_artefact_states_each_of_its_scenarios_as_it_is() -> None:
    planned = made("smoke")
    seen = set()
    for entry in entries(planned):
        for scenario in entry.scenarios:
            settings = planned.trials[f"{entry.paper}/{scenario.name}", "original"].settings
            assert scenario.dataset == settings.data.dataset
            assert scenario.rounds == (settings.training.rounds, settings.total_rounds)
            seen.add((scenario.dataset, scenario.rounds))
    assert len(seen) > 1


TUNED = {"label": "Tuned", "plugin": "fedavg", "source": "a test"}
SHOWN = {"kind": "table", "title": "T", "caption": "C", "scenarios": ["mnist-iid"], "metrics": ["r_acc"]}


def shown(planned: Plan) -> Entry:
    """Return the entry of a test."""
    return next(entry for entry in entries(planned) if entry.artefact == "mine")


def test_an_artefact_of_trainings_alone_has_their_rounds_alone() -> None:
    planned = plan("smoke", trainings={"tuned": TUNED}, artefacts={"mine": {**SHOWN, "trainings": ["tuned"]}})
    (scenario,) = shown(planned).scenarios
    assert scenario.rounds == (80, None)
    assert "80 rounds of training;" in shown(planned).setting


@pytest.mark.parametrize("trained_by", ["original", "tuned"])
def test_the_original_model_is_shown_where_a_method_starts_from_it_itself_or_through_another(trained_by: str) -> None:
    methods = {
        "base": {"label": "Base", "plugin": "fedosd", "source": "a test", "trained_by": trained_by},
        "later": {"label": "Later", "source": "a test", "unlearned_from": "base"},
    }
    artefacts = {"mine": {**SHOWN, "methods": ["later"]}}
    planned = plan("smoke", trainings={"tuned": TUNED}, methods=methods, artefacts=artefacts)
    assert [bool(scenario.original) for scenario in shown(planned).scenarios] == [trained_by == "original"]


def test_the_rates_of_a_trial_are_those_it_unlearns_and_post_trains_with() -> None:
    """FedRecovery and FedAU train nobody while they unlearn, and so do controls; retraining is not post-trained."""
    planned = plan("smoke", methods={"mode": {"settings": {"recovery": {"lr": 0.5}}}})
    seen = set()
    for entry in entries(planned):
        for method in entry.methods:
            for scenario, trials in method.trials.items():
                for trial in trials:
                    settings = planned.trials[f"{entry.paper}/{scenario}", trial.name].settings
                    idle, follows = method.name.startswith(("fedrecovery", "fedau")), method.post_training == "after"
                    assert settings.unlearning is not None
                    idle = idle or method.control
                    assert trial.rate == (None if idle else settings.unlearning.lr)
                    assert trial.recovery_rate == (settings.recovery.lr if follows and settings.recovery else None)
                    seen.add((idle, follows, trial.recovery_rate == 0.5))
    cases = {
        (True, True, False),
        (False, True, True),
        (False, True, False),
        (False, False, False),
        (True, False, False),
    }
    assert seen == cases


def test_a_spec_names_all_its_plugins() -> None:
    jobs = list(made("smoke").jobs())
    evaluation = next(job.spec for job in jobs if job.stage == "evaluate")
    named = {f"fu.evaluation.{name}" for name in json.loads(canonical(evaluation))["evaluators"]}
    assert len(named) > 1
    assert named <= set(plugins.named_by(evaluation))
    pictures = next(job.spec for job in jobs if job.stage == "examples")
    assert set(plugins.named_by(pictures)) == {"fu.attacks.patch", "fu.datasets.digits"}
    audits = Plan({"preset": "smoke", "papers": ["audit"]})
    for job in (job for job in audits.jobs() if job.stage == "assess"):
        assert plugins.named_by(job.spec) == [f"fu.audits.{job.names['audit']}"]
    entry = next(entry for entry in entries(audits) if entry.audits)
    assert plugins.named_by(entry) == [f"fu.artefacts.{entry.kind}"]  # an edit of an audit may change no number


def test_what_was_chosen_is_no_part_of_a_spec() -> None:
    entry = entries(made("smoke"))[0]
    assert canonical(entry.model_copy(update={"chosen": {"a": {"b": "c"}}})) == canonical(entry)


class StopError(Exception):
    """Ends a stage where the test has seen enough."""


@pytest.mark.parametrize(
    ("main", "method", "expected"),
    [
        (train.main, "fedavg", ("training", "share")),
        (unlearn.main, "retrain", ("unlearning", "all")),
        (unlearn.main, "retrain_partly", ("unlearning", "share")),
        (unlearn.main, "cheat", ("unlearning", "share")),
        (recover.main, "retrain_partly", ("unlearning", "all")),
    ],
)
def test_a_stage_draws_from_its_stream_and_marks_what_it_should(
    main: Callable[..., None], method: str, expected: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def seen(spec: Any, poison: str, stream: str, seed: int, **more: Any) -> None:
        raise StopError(stream, poison)

    monkeypatch.setattr(compute, "data_of", lambda spec, files, options, poison: poison)
    monkeypatch.setattr(compute, "task_of", seen)
    needed: dict[str, dict[str, Any]] = {"retrain_partly": {"share": 0.5}, "cheat": {"steps": 1}}
    chosen = Choice(name=method, params=needed.get(method, {}))
    with pytest.raises(StopError) as stopped:
        main(SimpleNamespace(method=chosen, seed=0), SimpleNamespace(), Options())
    assert stopped.value.args == expected


def test_a_table_reads_the_evaluation_that_its_marks_need() -> None:
    """`distance` says whether a model comes back; here it stands in an evaluation of its own."""
    evaluations = {"evaluation": ["backdoor", "utility", "conflicts", "cost"], "far": ["distance"]}
    planned = plan("smoke", settings={"evaluations": evaluations}, artefacts={"table2": {"metrics": ["r_acc"]}})
    spec: Any = planned.job("publish", {"paper": "fedosd", "artefact": "table2"}).spec
    read: dict[tuple[str, str], list[str]] = {}
    for source in (one for one in spec.sources if one.kind == "evaluations"):
        read.setdefault((source.scenario, source.trial), []).append(source.path.split(".")[-2])
    assert {*map(tuple, read.values())} == {("evaluation", "far")}
