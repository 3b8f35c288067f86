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
from fu.errors import UserError
from fu.evaluation.context import Context
from fu.evaluation.measure import measure
from fu.evaluation.metrics import METRICS
from fu.evaluation.selection import RULE
from fu.evaluation.watch import conflicts
from fu.federation.checkpoint import Checkpoint
from fu.federation.driver import Outcome, drive
from fu.federation.flat import Layout
from fu.federation.task import State, Task, theta_of
from fu.plan import inputs
from fu.plan.digest import module_file
from fu.plan.inputs import available, needs, reads, selects
from fu.plan.plan import Plan
from fu.publishing.result import Result, write
from fu.stages.compute import TRACE
from tests.factories import (
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
PROJECTIONS, EVALUATORS, ARTEFACTS = available("projections"), available("evaluation"), available("publishing")
WITH_PARAMS = [(kind, name) for kind in ("methods", "training", "models", "projections") for name in available(kind)]
WITH_STEPS = [(kind, name) for kind in ("methods", "training") for name in available(kind)]


def documentation(kind: str, name: str) -> str:
    return " ".join((plugins.load(kind, name).__doc__ or "").split())


def test_every_kind_has_the_plugins_that_this_project_is_about() -> None:
    assert {"retrain", "federaser", "fedrecovery", "mode", "sfu", "ewcsga", "fupga", "fedosd"} <= set(METHODS)
    assert "fedavg" in TRAINING
    assert "away_from_original" in PROJECTIONS
    assert {"target_model", "update_norms", "update_sums"} <= set(KINDS)
    assert {"mlp", "lenet5", "cnn", "nfresnet18"} <= set(MODELS)
    assert {"utility", "backdoor", "distance", "conflicts", "cost"} <= set(EVALUATORS)
    assert {"table", "bars", "curves", "sweep", "runtime", "losses", "images"} <= set(ARTEFACTS)


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
    assert module.start.__doc__
    assert module.step.__doc__


@pytest.mark.parametrize("name", PROJECTIONS)
def test_a_projection_is_documented(name: str) -> None:
    assert plugins.load("projections", name).project.__doc__


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
    trains = "communicates nothing" not in documentation(kind, name)  # what a method says of itself
    assert (task.federation.cost.client_rounds > 0) is trains
    assert (task.federation.cost.bytes_up > 0) is trains


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


@pytest.mark.parametrize("name", PROJECTIONS)
def test_a_projection_returns_finite_updates_and_leaves_its_inputs_unchanged(name: str) -> None:
    module, task = plugins.load("projections", name), make_task()
    p = default_params(module.Params)
    theta = task.original_model + 0.1
    delta = torch.randn(6, len(theta), generator=torch.Generator().manual_seed(0))
    copies = [value.clone() for value in (theta, delta, task.original_model)]
    found = module.project(task, p, theta, delta)
    assert found.shape == delta.shape
    assert found.dtype == delta.dtype
    assert torch.isfinite(found).all()
    assert not torch.equal(found, delta)
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
        nets.append(module.build(shape, CLASSES, p).eval())
    one, same, other = (Layout(net).flatten(dict(net.named_parameters())) for net in nets)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    height, width, channels = shape
    x = torch.randn(2, channels, height, width, generator=torch.Generator().manual_seed(0))
    y = nets[0](x)
    assert y.shape == (2, CLASSES)
    assert torch.isfinite(y).all()
    assert torch.equal(y, nets[0](x))
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
    assert sorted(returned) == sorted(set(METRICS) - {"diverged_round", "seconds"})


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


RATES = (0.1, 0.2, 0.4)
CHOSEN = "ours+lr0.2"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder with everything that an artefact may read: one scenario, two seeds, and two methods.

    `ours` has a grid of three rates, of which one is chosen; `scratch` has one point and no post-training.
    """
    random = np.random.default_rng(0)
    (tmp_path / "data").mkdir()
    part = make_partition((7, 12, 9))
    images = random.integers(0, 256, (43, 28, 28, 1), dtype=np.uint8)
    labels = random.integers(0, CLASSES, 43, dtype=np.uint8)
    np.savez(
        tmp_path / "data/digits.npz", x_train=images[:40], y_train=labels[:40], x_test=images[40:], y_test=labels[40:]
    )
    evaluated = [metric for metric in METRICS if metric not in ("diverged_round", "seconds")]
    points = {"original": ["original"], "scratch": ["unlearned"]}
    points |= {f"ours+lr{rate}": ["unlearned", "recovered"] for rate in RATES}
    for seed in (0, 1):
        folder = tmp_path / "toy" / "small" / f"seed{seed}"
        folder.mkdir(parents=True)
        np.savez(folder / "partition.npz", **part.arrays())  # type: ignore[arg-type]
        for point, roles in points.items():
            rows = [(role, metric, random.random()) for role in roles for metric in evaluated]
            frame = pd.DataFrame(rows, columns=["role", "metric", "value"])
            frame.to_csv(folder / f"{point}.evaluation.csv", index=False)
            for k, role in enumerate(roles):
                steps = pd.DataFrame(random.random((3, len(TRACE))), columns=TRACE).assign(
                    round=range(2 * k, 2 * k + 3)
                )
                stem = "original" if point == "original" else f"{point}.{role}"
                steps.to_csv(folder / f"{stem}.csv", index=False)
                cost = {"seconds": 10 * random.random(), "device": "toy", "threads": 1}
                (folder / f"{stem}.cost.json").write_text(json.dumps(cost))
    (tmp_path / "toy/small/ours.selected.json").write_text(json.dumps({"selected": CHOSEN, "rule": "", "scores": {}}))
    return tmp_path


def point_of(rate: float) -> list[Any]:
    point = f"ours+lr{rate}"
    models = [f"{point}.unlearned", f"{point}.recovered"]
    return [point, {"lr": rate, "coordinates": {"unlearning.lr": rate}, "models": models}]


def entry(kind: str, *, rates: tuple[float, ...] = RATES) -> dict[str, Any]:
    """Return the spec of an artefact of a kind as the stage hands it over, with these points of `ours`."""
    empty = reads(kind) == "nothing"
    scenario = {"label": "Small", "dataset": "digits", "rounds": [2, 4]}
    ours = {"label": "Ours", "in_paper": False, "post_training": "after"}
    methods = {"ours": {**ours, "points": {"small": [point_of(rate) for rate in rates]}}}
    if kind != "sweep":  # there every method has the setting that varies
        one = ["scratch", {"lr": 0.3, "coordinates": {}, "models": ["scratch.unlearned"]}]
        about = {"label": "Scratch", "in_paper": True, "post_training": "own"}
        methods = {"scratch": {**about, "points": {"small": [one]}}, **methods}
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
        "metrics": ["steps", "client_rounds"] if kind == "runtime" else ["asr", "r_acc"],
        "stages": ["original", "unlearned", "recovered"],
        "scenarios": {} if empty else {"small": scenario},
        "methods": {} if empty else methods,
        "numbers": [],
    }


def test_the_spec_of_these_tests_has_the_shape_that_the_plan_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "CACHE", tmp_path / "plan.json")
    plan = Plan({"preset": "smoke", "papers": ["fedosd"]})
    spec, ours = json.loads(plan.spec_publish("fedosd", "table8")), entry("table")
    assert set(spec) == set(ours)
    for key in ("scenarios", "methods"):
        given, expected = dict(spec[key]), ours[key]
        assert {name for about in given.values() for name in about} == set(next(iter(expected.values())))
    for method in dict(spec["methods"]).values():
        for points in method["points"].values():
            assert all(set(found) == set(point_of(0.1)[1]) for _, found in points)
            assert [found["models"][0].rpartition(".")[2] for _, found in points] == ["unlearned"] * len(points)


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


@pytest.mark.parametrize("kind", [kind for kind in ARTEFACTS if selects(kind)])
def test_only_the_chosen_point_is_shown(kind: str, results: Path) -> None:
    make: Callable[..., Result] = plugins.load("publishing", kind).make
    folder = results / "toy" / "small"
    alone = make(entry(kind, rates=(0.2,)), results).frame
    among = make(entry(kind), results).frame
    pd.testing.assert_frame_equal(among, alone)
    (folder / "ours.selected.json").write_text(json.dumps({"selected": "ours+lr0.4"}))
    other = make(entry(kind), results).frame
    pd.testing.assert_frame_equal(other, make(entry(kind, rates=(0.4,)), results).frame)
    ours = alone["method"] == "ours"
    assert ours.any()
    assert (alone[ours]["mean"] != other[ours]["mean"]).all()
    assert (alone[~ours]["mean"] == other[~ours]["mean"]).all()
    for file in [*folder.glob("seed*/ours+lr0.1.*"), *folder.glob("seed*/ours+lr0.2.*")]:
        file.unlink()
    pd.testing.assert_frame_equal(make(entry(kind), results).frame, other)  # the rest is not even read


@pytest.mark.parametrize("kind", [kind for kind in ARTEFACTS if selects(kind)])
def test_a_choice_that_is_missing_or_damaged_is_one_sentence(kind: str, results: Path) -> None:
    make: Callable[..., Result] = plugins.load("publishing", kind).make
    for content in (None, "{", "{}"):
        path = results / "toy/small/ours.selected.json"
        path.unlink() if content is None else path.write_text(content)
        with pytest.raises(UserError, match=r"ours\.selected\.json: the file is missing or damaged"):
            make(entry(kind), results)
        path.touch()


def test_a_table_says_which_rates_were_chosen_and_which_were_given(results: Path) -> None:
    body = plugins.load("publishing", "table").make(entry("table"), results).body
    rates = {
        cells[1].strip(): cells[2].strip() for cells in (line.split("|") for line in body.splitlines() if "|" in line)
    }
    assert rates == {**rates, "Scratch": "(0.3)", "Ours¹ *": "0.2", "Ours² *": "0.2", "ω⁰": "–"}
    assert f"the rule: {RULE}." in body
    assert RULE not in plugins.load("publishing", "table").make(entry("table", rates=(0.2,)), results).body


def test_a_sweep_shows_every_point_and_chooses_none(results: Path) -> None:
    (results / "toy/small/ours.selected.json").unlink()
    made: Result = plugins.load("publishing", "sweep").make(entry("sweep"), results)
    assert set(made.frame["setting"]) == {"unlearning.lr"}
    assert len(made.frame) == len(RATES) * 2 * 2  # stages and metrics
    for rate in RATES:
        files = [results / f"toy/small/seed{seed}/ours+lr{rate}.evaluation.csv" for seed in (0, 1)]
        pair = [pd.read_csv(file).set_index(["role", "metric"])["value"].to_dict() for file in files]
        for row in made.frame[made.frame["x"] == rate].to_dict("records"):
            values = [found[row["stage"], row["metric"]] for found in pair]
            assert row["mean"] == pytest.approx(np.mean(values))
            assert row["std"] == pytest.approx(np.std(values, ddof=1))
            assert row["n"] == 2


@pytest.mark.parametrize(
    "coordinates",
    [
        [{}, {}],
        [{"unlearning.lr": 0.1}, {"unlearning.lr": 0.1}],
        [{"unlearning.lr": 0.1, "recovery.lr": 0.1}, {"unlearning.lr": 0.2, "recovery.lr": 0.2}],
    ],
    ids=["none", "one value", "two settings"],
)
def test_a_sweep_over_anything_but_one_setting_is_refused(coordinates: list[dict[str, float]], results: Path) -> None:
    spec = entry("sweep", rates=(0.1, 0.2))
    for point, values in zip(spec["methods"]["ours"]["points"]["small"], coordinates, strict=True):
        point[1]["coordinates"] = values
    with pytest.raises(UserError, match="a sweep needs methods whose grids vary one setting"):
        plugins.load("publishing", "sweep").make(spec, results)


def test_a_sweep_leaves_settings_that_all_points_share_alone(results: Path) -> None:
    spec = entry("sweep")
    for _, found in spec["methods"]["ours"]["points"]["small"]:
        found["coordinates"]["params.lambda"] = 0.5
    assert set(plugins.load("publishing", "sweep").make(spec, results).frame["setting"]) == {"unlearning.lr"}


def test_a_sweep_needs_its_setting_of_every_method(results: Path) -> None:
    spec = entry("sweep")
    spec["methods"]["scratch"] = entry("table")["methods"]["scratch"]
    with pytest.raises(UserError, match="a sweep needs"):
        plugins.load("publishing", "sweep").make(spec, results)


def test_a_sweep_may_be_over_words(results: Path) -> None:
    spec, losses = entry("sweep"), ["uce", "ascent", "uce-undivided"]
    for (_, found), loss in zip(spec["methods"]["ours"]["points"]["small"], losses, strict=True):
        found["coordinates"] = {"params.loss": loss}
    made: Result = plugins.load("publishing", "sweep").make(spec, results)
    write(made, spec, *(results / f"thing.{suffix}" for suffix in ("csv", "md", "pdf", "png")))
    assert made.frame["x"].unique().tolist() == losses
    heads = [cell.strip() for cell in made.body.split("\n| Method")[1].splitlines()[0].split("|")]
    assert [head for head in heads if head in losses] == losses


def test_a_sweep_shows_a_number_before_only_where_all_points_begin_from_it(results: Path) -> None:
    make: Callable[..., Result] = plugins.load("publishing", "sweep").make

    def before() -> set[str]:
        lines = [[cell.strip() for cell in line.split("|")] for line in make(entry("sweep"), results).body.splitlines()]
        (heads,) = {tuple(line) for line in lines if "Method" in line}
        return {line[heads.index("before")] for line in lines if "Ours *" in line}

    assert before() == {"–"}
    for rate in RATES:
        for seed in (0, 1):
            path = results / f"toy/small/seed{seed}/ours+lr{rate}.evaluation.csv"
            rows = pd.read_csv(path)
            rows.loc[rows["role"] == "unlearned", "value"] = 0.25
            rows.to_csv(path, index=False)
    assert before() == {"0.250"}


def test_runtime_is_the_sum_of_both_phases_scaled_to_two_hundred_rounds(results: Path) -> None:
    made: Result = plugins.load("publishing", "runtime").make(entry("runtime"), results)
    found = made.frame.set_index(["method", "metric"])
    stems = {"ours": [f"{CHOSEN}.unlearned", f"{CHOSEN}.recovered"], "scratch": ["scratch.unlearned"]}
    for method, scale in {"ours": 200 / 4, "scratch": 200 / 2}.items():  # the last round of each
        seconds, steps = [], []
        for seed in (0, 1):
            folder = results / f"toy/small/seed{seed}"
            costs = [json.loads((folder / f"{stem}.cost.json").read_text()) for stem in stems[method]]
            seconds.append(scale * sum(cost["seconds"] for cost in costs))
            steps.append(scale * sum(pd.read_csv(folder / f"{stem}.csv")["steps"].iloc[-1] for stem in stems[method]))
        assert found.loc[(method, "seconds"), "mean"] == pytest.approx(np.mean(seconds))
        assert found.loc[(method, "seconds"), "std"] == pytest.approx(np.std(seconds, ddof=1))
        assert found.loc[(method, "steps"), "mean"] == pytest.approx(np.mean(steps))
    assert "Ours: toy, 1 thread(s)." in made.body


@pytest.mark.parametrize("seeds", [[0], [0, 1]], ids=["one seed", "one seed of two"])
@pytest.mark.parametrize("kind", ARTEFACTS)
def test_a_diverged_run_does_not_block_an_artefact(kind: str, seeds: list[int], results: Path) -> None:
    folder = results / "toy" / "small" / "seed0"  # as the stages leave it: no metrics, and no round of post-training
    lost = "role,metric,value\nunlearned,diverged_round,3\nrecovered,diverged_round,3\n"
    (folder / f"{CHOSEN}.evaluation.csv").write_text(lost)
    (folder / f"{CHOSEN}.recovered.csv").write_text(",".join(TRACE) + "\n")
    spec = {**entry(kind), "seeds": seeds}
    made: Result = plugins.load("publishing", kind).make(spec, results)
    assert len(made.frame) > 0
    assert not re.search(r"\b(nan|inf)\b", made.body, re.IGNORECASE)
    write(made, spec, *(results / f"thing.{suffix}" for suffix in ("csv", "md", "pdf", "png")))
    if reads(kind) == "evaluations":
        assert "diverged" in made.body
        cells = made.frame[made.frame["method"] == "ours"]
        if selects(kind):
            assert set(cells["diverged"]) == {1}
            assert set(cells["diverged_round"]) == {3}
            assert set(cells["n"]) == {len(seeds) - 1}
        else:  # the point itself is left out
            left = cells[cells["x"] == 0.2]
            assert set(left["n"]) == ({1} if len(seeds) > 1 else set())
            assert set(cells[cells["x"] != 0.2]["n"]) == {len(seeds)}
    if kind == "runtime":
        left = made.frame[made.frame["method"] == "ours"]
        assert set(left["n"]) == ({1} if len(seeds) > 1 else set())
    if kind == "runtime":
        assert ("diverged" in made.body) is (len(seeds) == 1)
    if kind == "curves":
        assert ("(1 of 2 seeds diverged after 2)" if len(seeds) == 2 else "→ diverged after 2") in made.body


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("kind", [kind for kind in ARTEFACTS if reads(kind) == "traces"])
def test_a_run_that_diverged_early_shows_no_infinite_number(kind: str, rounds: int, results: Path) -> None:
    for seed in (0, 1):
        for stem in (f"{CHOSEN}.unlearned", "scratch.unlearned"):  # without post-training: the only trace there is
            path = results / f"toy/small/seed{seed}/{stem}.csv"
            rows = pd.read_csv(path).iloc[:rounds]
            rows.assign(steps=range(rounds), client_rounds=range(rounds)).to_csv(path, index=False)
        (results / f"toy/small/seed{seed}/{CHOSEN}.recovered.csv").write_text(",".join(TRACE) + "\n")
    made: Result = plugins.load("publishing", kind).make(entry(kind), results)
    assert not re.search(r"\b(nan|inf)\b", made.body, re.IGNORECASE)
    assert np.isfinite(made.frame["mean"].astype(float)).all()


def test_a_sweep_all_of_whose_points_diverged_says_so(results: Path) -> None:
    lost = "role,metric,value\nunlearned,diverged_round,3\nrecovered,diverged_round,3\n"
    for file in results.glob("toy/small/seed*/ours+lr*.evaluation.csv"):
        file.write_text(lost)
    spec = entry("sweep")
    made: Result = plugins.load("publishing", "sweep").make(spec, results)
    write(made, spec, *(results / f"thing.{suffix}" for suffix in ("csv", "md", "pdf", "png")))
    assert "diverged" in made.body
    assert not re.search(r"\b(nan|inf)\b", made.body, re.IGNORECASE)


@pytest.mark.parametrize("seeds", [[1], [0, 1]], ids=["one of two seeds", "both seeds"])
def test_curves_show_where_a_run_diverged(seeds: list[int], results: Path) -> None:
    make: Callable[..., Result] = plugins.load("publishing", "curves").make
    whole = make(entry("curves"), results)
    assert "diverged" not in whole.body
    for seed in seeds:
        for stem in point_of(RATES[1])[1]["models"]:
            path = results / f"toy/small/seed{seed}/{stem}.csv"
            trace = pd.read_csv(path)
            trace[trace["round"] <= 1].to_csv(path, index=False)
    made = make(entry("curves"), results)
    said = "diverged after 1, 1" if len(seeds) == 2 else "(1 of 2 seeds diverged after 1)"
    assert made.body.count(said) == 2  # metrics
    for axis in made.figure.axes:
        marks = [np.asarray(line.get_xdata()).tolist() for line in axis.lines if line.get_marker() == "X"]
        assert [mark for mark in marks if mark] == [[1]] * len(seeds)
    legend = made.figure.axes[0].get_legend()
    assert legend is not None
    assert "diverged" in [text.get_text() for text in legend.get_texts()]
