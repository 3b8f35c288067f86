"""What every plug-in promises, whatever it is: one test for each file that the plan can name."""

import ast
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from fu import plugins
from fu.evaluation.context import Context
from fu.evaluation.measure import measure
from fu.evaluation.metrics import METRICS
from fu.evaluation.watch import conflicts
from fu.federation.checkpoint import Checkpoint
from fu.federation.driver import Outcome, drive
from fu.federation.layout import Layout
from fu.federation.task import State, Task, theta_of
from fu.plan.digest import module_file
from fu.plan.inputs import available, needs, reads
from fu.publishing.result import Result, write
from fu.stages.compute import TRACE
from tests.toys import (
    CLASSES,
    COLOUR,
    GREY,
    KINDS,
    default_params,
    make_data,
    make_federation,
    make_histories,
    make_partition,
    make_task,
)

METHODS, TRAINING, MODELS = available("methods"), available("training"), available("models")
EVALUATORS, ARTEFACTS = available("evaluation"), available("publishing")
WITH_PARAMS = [(kind, name) for kind in ("methods", "training", "models") for name in available(kind)]
WITH_STEPS = [(kind, name) for kind in ("methods", "training") for name in available(kind)]


def documentation(kind: str, name: str) -> str:
    return " ".join((plugins.load(kind, name).__doc__ or "").split())


def test_every_kind_has_the_plugins_that_this_project_is_about() -> None:
    assert {"retrain", "fedosd", "fupga", "ewcsga"} <= set(METHODS)
    assert "fedavg" in TRAINING
    assert {"mlp", "lenet5", "cnn"} <= set(MODELS)
    assert {"utility", "backdoor", "distance", "conflicts", "cost"} <= set(EVALUATORS)
    assert {"table", "curves", "losses", "images"} <= set(ARTEFACTS)


# ---- documentation and hyper-parameters ----------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "name"), WITH_PARAMS)
def test_a_plugin_names_its_source(kind: str, name: str) -> None:
    assert re.search(r"et al\. (19|20)\d\d|FedOSD|our choice", documentation(kind, name))


@pytest.mark.parametrize("name", METHODS)
def test_a_method_says_what_it_stores_and_communicates(name: str) -> None:
    text = documentation("methods", name)
    assert re.search(r"\b[Ss]tores\b", text)
    assert re.search(r"\bcommunicates\b", text)


@pytest.mark.parametrize(("kind", "name"), WITH_PARAMS)
def test_hyper_parameters_are_documented_and_unknown_ones_refused(kind: str, name: str) -> None:
    model = plugins.load(kind, name).Params
    for field, about in model.model_fields.items():
        assert about.description, field
        assert not about.is_required() or about.examples, f"{field} has neither a default nor an example"
    assert default_params(model) == default_params(model)
    assert model.model_config["extra"] == "forbid"


@pytest.mark.parametrize(("kind", "name"), WITH_STEPS)
def test_functions_are_documented(kind: str, name: str) -> None:
    module = plugins.load(kind, name)
    for function in ("start", "step", *(["project"] if hasattr(module, "project") else [])):
        assert getattr(module, function).__doc__


@pytest.mark.parametrize("name", METHODS)
def test_a_method_needs_histories_that_the_training_can_record(name: str) -> None:
    assert plugins.load("methods", name).needs == needs(name)
    assert needs(name) <= set(KINDS)


# ---- methods and training ------------------------------------------------------------------------------------------

ROUNDS = 3


class KilledError(Exception):
    """Stands for whatever ends a job in the middle."""


def task_for(kind: str, name: str) -> Task:
    """Return a toy with what the plug-in is given: its histories, and the original model where there is one.

    The rate is low: ascent and penalties need it to stay among the finite numbers.
    """
    original = kind == "methods"
    data = make_data(make_partition(), poison="all" if original else "share")
    stream = "unlearning" if original else "training"
    task = make_task(make_federation(data, lr=0.001, stream=stream), rounds=ROUNDS, trained=original)
    if not original:
        return task
    recorded = make_histories(make_task(make_federation(data, stream="training")))
    return replace(task, histories={key: recorded[key] for key in needs(name)})


def driven(kind: str, name: str, folder: Path, killed_after: int | None = None) -> tuple[Task, Outcome]:
    module, task = plugins.load(kind, name), task_for(kind, name)
    p = default_params(module.Params)

    def step(state: State, round: int) -> State:
        if round == killed_after:
            raise KilledError
        return module.step(task, p, state, round)

    checkpoint = Checkpoint(folder / "job.checkpoint", {"key": "key"}, 0.0)
    return task, drive(
        task,
        lambda: module.start(task, p),
        step,
        partial(measure, task),
        checkpoint,
        name,
        watch=partial(conflicts, task) if kind == "methods" else None,
        recorders=KINDS if kind == "training" else None,
    )


def assert_equal_states(one: State, two: State) -> None:
    assert one.keys() == two.keys()
    for key, value in one.items():
        other = two[key]
        if isinstance(value, Tensor):
            assert isinstance(other, Tensor)
            assert value.numpy().tobytes() == other.numpy().tobytes(), key
        else:
            assert value == other, key


@pytest.mark.parametrize(("kind", "name"), WITH_STEPS)
def test_a_start_and_two_steps_are_finite_and_move(kind: str, name: str) -> None:
    module, task = plugins.load(kind, name), task_for(kind, name)
    p = default_params(module.Params)
    state = module.start(task, p)
    for round in range(2):
        following = module.step(task, p, state, round)
        theta = theta_of(following)
        assert theta.shape == (task.federation.layout.size,)
        assert theta.dtype == torch.float32
        assert not theta.requires_grad
        assert torch.isfinite(theta).all()
        assert not torch.equal(theta, theta_of(state))
        assert all(isinstance(value, Tensor | float | int) for value in following.values())
        assert following.keys() == state.keys()
        state = following
    assert task.federation.cost.client_rounds > 0


@pytest.mark.parametrize(("kind", "name"), WITH_STEPS)
def test_a_run_is_repeatable_bit_for_bit(kind: str, name: str, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    torch.manual_seed(0)
    one_task, one = driven(kind, name, tmp_path / "one")
    torch.manual_seed(1)  # the global generators are nobody's
    np.random.default_rng()
    two_task, two = driven(kind, name, tmp_path / "two")
    assert_equal_states(one.state, two.state)
    assert one.rows == two.rows
    assert one_task.federation.cost == two_task.federation.cost


@pytest.mark.parametrize(("kind", "name"), WITH_STEPS)
def test_a_run_leaves_its_inputs_unchanged(kind: str, name: str, tmp_path: Path) -> None:
    task = task_for(kind, name)
    data = task.federation.data
    inputs: list[Tensor] = [data.x, data.y, *(part for client in range(3) for part in data.train(client))]
    inputs += [] if task.original is None else [task.original]
    inputs += [value for record in task.histories.values() for value in record.values()]
    copies = [value.clone() for value in inputs]
    module = plugins.load(kind, name)
    p = default_params(module.Params)
    state = module.start(task, p)
    for round in range(2):
        given = {key: value.clone() if isinstance(value, Tensor) else value for key, value in state.items()}
        following = module.step(task, p, state, round)
        assert_equal_states(state, given)
        state = following
    again = [data.x, data.y, *(part for client in range(3) for part in data.train(client)), *inputs[8:]]
    assert len(again) == len(copies)
    assert all(torch.equal(now, before) for now, before in zip(again, copies, strict=True))


@pytest.mark.parametrize("killed_after", [1, 2])
@pytest.mark.parametrize(("kind", "name"), WITH_STEPS)
def test_a_killed_run_resumes_to_the_same_bytes(kind: str, name: str, killed_after: int, tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    whole_task, whole = driven(kind, name, tmp_path / "whole")
    with pytest.raises(KilledError):
        driven(kind, name, tmp_path, killed_after)
    assert (tmp_path / "job.checkpoint").exists()
    task, resumed = driven(kind, name, tmp_path)
    assert_equal_states(resumed.state, whole.state)
    assert resumed.rows == whole.rows
    assert resumed.diverged is whole.diverged is None
    assert task.federation.cost == whole_task.federation.cost
    assert resumed.histories.keys() == whole.histories.keys()
    for key, record in whole.histories.items():
        assert record.keys() == resumed.histories[key].keys()
        assert all(torch.equal(value, resumed.histories[key][part]) for part, value in record.items())


@pytest.mark.parametrize("name", [name for name in METHODS if hasattr(plugins.load("methods", name), "project")])
def test_a_projection_returns_finite_updates_and_leaves_its_inputs_unchanged(name: str) -> None:
    module, task = plugins.load("methods", name), task_for("methods", name)
    p = default_params(module.Params)
    theta = task.original_model + 0.1
    delta = torch.randn(2, len(theta), generator=torch.Generator().manual_seed(0))
    copies = [value.clone() for value in (theta, delta, task.original_model)]
    found = module.project(task, p, theta, delta)
    assert found.shape == delta.shape
    assert torch.isfinite(found).all()
    assert torch.equal(found, module.project(task, p, theta, delta))
    assert all(torch.equal(*pair) for pair in zip((theta, delta, task.original_model), copies, strict=True))


@pytest.mark.parametrize("kind", list(KINDS))
def test_recording_a_history_is_repeatable_and_leaves_the_model_unchanged(kind: str) -> None:
    task = make_task()
    theta = task.original_model.clone()
    one = KINDS[kind](task, {}, theta, 0)
    two = KINDS[kind](make_task(), {}, theta.clone(), 0)
    assert torch.equal(theta, task.original_model)
    assert one.keys() == two.keys() != set()
    assert all(torch.equal(value, two[name]) and torch.isfinite(value).all() for name, value in one.items())


# ---- models --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [GREY, COLOUR])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_takes_images_to_outputs_and_is_drawn_by_the_seed(name: str, shape: tuple[int, int, int]) -> None:
    module = plugins.load("models", name)
    p = default_params(module.Params)
    nets = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        nets.append(module.build(shape, CLASSES, p))
    one, same, other = (Layout(net).flatten(dict(net.named_parameters())) for net in nets)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    height, width, channels = shape
    x = torch.randn(2, channels, height, width, generator=torch.Generator().manual_seed(0))
    y = nets[0](x)
    assert y.shape == (2, CLASSES)
    assert torch.isfinite(y).all()
    assert torch.equal(y, nets[0](x))  # no dropout
    torch.testing.assert_close(nets[0](x[:1]), y[:1])  # a sample does not see the others
    assert module.build(shape, 7, p)(x).shape == (2, 7)


# ---- evaluators ----------------------------------------------------------------------------------------------------


@pytest.fixture
def trace(tmp_path: Path) -> list[dict[str, str]]:
    """The trace of a run, as the stage reads it."""
    _, outcome = driven("methods", "retrain", tmp_path)
    return [{name: str(row.get(name, "")) for name in TRACE} for row in outcome.rows]


@pytest.mark.parametrize("trigger", [True, False])
@pytest.mark.parametrize("name", EVALUATORS)
def test_an_evaluator_returns_its_finite_registered_metrics(
    name: str, trigger: bool, trace: list[dict[str, str]]
) -> None:
    module = plugins.load("evaluation", name)
    task = make_task(make_federation(make_data(make_partition(trigger=trigger))))
    theta = task.original_model + 0.1
    copy = theta.clone()
    found = module.evaluate(Context(task, "unlearned", theta, trace))
    assert set(found) <= set(module.METRICS)
    assert set(module.METRICS) <= set(METRICS)
    assert len(set(module.METRICS)) == len(module.METRICS)
    if trigger:
        assert set(found) == set(module.METRICS)
    assert all(isinstance(value, float) and np.isfinite(value) for value in found.values())
    assert all(0 <= value <= 1 for metric, value in found.items() if METRICS[metric].unit == "fraction")
    assert torch.equal(theta, copy)
    assert found == module.evaluate(Context(task, "unlearned", theta, trace))


def test_no_two_evaluators_return_the_same_metric() -> None:
    returned = [metric for name in EVALUATORS for metric in plugins.load("evaluation", name).METRICS]
    assert sorted(returned) == sorted(set(METRICS) - {"diverged_round"})


@pytest.mark.parametrize("name", EVALUATORS)
def test_an_evaluator_knows_no_method(name: str) -> None:
    path = module_file(f"fu.evaluation.{name}")
    assert path is not None
    source = path.read_text()
    code = ast.parse(source)
    code.body = code.body[1:]  # the docstring may cite a paper that is called as its method
    for method in METHODS:
        assert not re.search(rf"\b{method}\b", source)
        for node in ast.walk(code):
            named = {getattr(node, field, None) for field in ("id", "attr", "name", "arg", "module")}
            assert method not in {str(value).lower() for value in named}


# ---- artefacts -----------------------------------------------------------------------------------------------------


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder with everything that an artefact may read, for one scenario, one method and two seeds."""
    random = np.random.default_rng(0)
    (tmp_path / "data").mkdir()
    part = make_partition((7, 12, 9))
    images = random.integers(0, 256, (43, 28, 28, 1), dtype=np.uint8)
    labels = random.integers(0, CLASSES, 43, dtype=np.uint8)
    np.savez(
        tmp_path / "data/digits.npz", x_train=images[:40], y_train=labels[:40], x_test=images[40:], y_test=labels[40:]
    )
    for seed in (0, 1):
        folder = tmp_path / "toy" / "small" / f"seed{seed}"
        folder.mkdir(parents=True)
        np.savez(folder / "partition.npz", **part.arrays())  # type: ignore[arg-type]
        for method, roles in {"original": ["original"], "ours": ["unlearned", "recovered"]}.items():
            rows = [
                (role, metric, random.random()) for role in roles for metric in METRICS if metric != "diverged_round"
            ]
            frame = pd.DataFrame(rows, columns=["role", "metric", "value"])
            frame.to_csv(folder / f"{method}.evaluation.csv", index=False)
            for k, role in enumerate(roles):
                steps = pd.DataFrame(random.random((3, len(TRACE))), columns=TRACE).assign(
                    round=range(2 * k, 2 * k + 3)
                )
                name = "original" if method == "original" else f"ours.{role}"
                steps.to_csv(folder / f"{name}.csv", index=False)
    return tmp_path


def entry(kind: str) -> dict[str, Any]:
    empty = reads(kind) == "nothing"
    scenario = {"label": "Small", "dataset": "digits", "rounds": [2, 4]}
    method = {"label": "Ours", "in_paper": False, "roles": {"small": 2}}
    return {
        "paper": "toy",
        "artefact": "thing",
        "preset": "smoke",
        "kind": kind,
        "title": "A thing",
        "caption": "What it shows.",
        "citation": "Somebody 2024.",
        "in_paper": True,
        "published": False,
        "seeds": [0, 1],
        "metrics": ["asr", "r_acc"],
        "scenarios": {} if empty else {"small": scenario},
        "methods": {} if empty else {"ours": method},
    }


@pytest.mark.parametrize("kind", ARTEFACTS)
def test_an_artefact_is_made_the_same_twice_with_preset_and_data_stated(kind: str, results: Path) -> None:
    assert reads(kind) in {"evaluations", "traces", "data", "nothing"}
    module, spec = plugins.load("publishing", kind), entry(kind)
    assert module.make.__doc__
    files = [[results / f"{k}.{suffix}" for suffix in ("csv", "md", "pdf", "png")] for k in (1, 2)]
    for four in files:
        made: Result = module.make(spec, results)
        assert len(made.frame) > 0
        write(made, spec, *four)
    for one, two in zip(*files, strict=True):
        assert one.read_bytes() == two.read_bytes()
    text = files[0][1].read_text()
    assert text.startswith("# A thing\n\nWhat it shows.\n\nPreset smoke; ")
    assert ("data: digits; " in text) is (reads(kind) != "nothing")
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)
    assert files[0][2].read_bytes().startswith(b"%PDF")
    assert files[0][3].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", [kind for kind in ARTEFACTS if reads(kind) in ("evaluations", "traces")])
def test_rows_of_methods_that_the_paper_lacks_are_marked(kind: str, results: Path) -> None:
    make: Callable[..., Result] = plugins.load("publishing", kind).make
    spec = entry(kind)
    assert re.search(r"Ours\S* \*", make(spec, results).body)
    spec = json.loads(json.dumps(spec).replace('"in_paper": false', '"in_paper": true'))
    assert not re.search(r"Ours\S* \*", make(spec, results).body)


@pytest.mark.parametrize("seeds", [[0], [0, 1]], ids=["one seed", "one seed of two"])
@pytest.mark.parametrize("kind", ARTEFACTS)
def test_a_diverged_run_does_not_block_an_artefact(kind: str, seeds: list[int], results: Path) -> None:
    folder = results / "toy" / "small" / "seed0"  # as the stages leave it: no metrics, and no round of post-training
    lost = "role,metric,value\nunlearned,diverged_round,3\nrecovered,diverged_round,3\n"
    (folder / "ours.evaluation.csv").write_text(lost)
    (folder / "ours.recovered.csv").write_text(",".join(TRACE) + "\n")
    made: Result = plugins.load("publishing", kind).make({**entry(kind), "seeds": seeds}, results)
    assert len(made.frame) > 0
    if reads(kind) == "evaluations":
        assert "diverged" in made.body
        assert "nan" not in made.body
        cells = made.frame[made.frame["method"] == "ours"]
        assert set(cells["diverged"]) == {1}
        assert set(cells["diverged_round"]) == {3}
        assert set(cells["n"]) == {len(seeds) - 1}
