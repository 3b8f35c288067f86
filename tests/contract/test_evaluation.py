"""An evaluator: returns the finite metrics that it declares, tells a good model from a bad one, knows no method."""

import ast
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fu import plugins
from fu.evaluation.context import Context
from fu.evaluation.trace import COUNTS
from fu.federation.task import Task
from fu.pipeline.provenance.catalogue import available, metrics_of
from fu.pipeline.provenance.digest import module_file
from tests.contract.names import plugins_of, sound
from tests.contract.runs import TRACED, driven, rows_of
from tests.contract.three_models import complaints, make_three
from tests.evaluation.shadows import record_of
from tests.factories import make_context, make_data, make_federation, make_partition, make_task


@pytest.fixture(scope="session")
def trace(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """The trace of a run, as the stage reads it."""
    _, outcome = driven("methods", "retrain", tmp_path_factory.mktemp("run"))
    return rows_of(outcome)


def scene(trigger: bool) -> Task:
    """Return a toy with held-out samples and a client that never takes part, who alone holds class 9."""
    part = make_partition((7, 12, 9, 6), absent=(3,), held_out=5, trigger=trigger)
    data = make_data(part, asked=None if trigger else (1,))
    for client in part.present:
        data.y[part.train[client]] %= 9
    data.y[part.test[0]] = 9
    return make_task(make_federation(data))


@pytest.mark.parametrize("trigger", [True, False])
@pytest.mark.parametrize("name", plugins_of("evaluation", TRACED.__contains__))
def test_an_evaluator_traces_the_columns_that_it_declares(name: str, trigger: bool) -> None:
    """`trace` (or `count`) returns finite floats under the names in `TRACE`, all of them if there is a backdoor."""
    module, task = plugins.load("evaluation", name), scene(trigger)
    theta = task.original_model + 0.1
    if hasattr(module, "trace"):
        found = module.trace(make_context(task, theta))
    else:
        found = module.count(task, task.original_model, theta, 0)
    assert set(found) <= set(module.TRACE) or not module.TRACE
    if trigger and module.TRACE:
        assert tuple(found) == module.TRACE
    assert not {"round", *COUNTS} & set(found)
    assert all(isinstance(value, float) and np.isfinite(value) for value in found.values())


@pytest.mark.parametrize("trigger", [True, False])
@pytest.mark.parametrize("name", plugins_of("evaluation"))
@torch.no_grad()
def test_an_evaluator_returns_the_finite_metrics_that_it_declares(
    name: str, trigger: bool, trace: list[dict[str, str]]
) -> None:
    """`evaluate` is deterministic, returns finite floats under the names in `METRICS`, fractions within [0, 1], and
    does not change the model.
    """
    module, declared = plugins.load("evaluation", name), {metric.name: metric for metric in metrics_of(name)}
    task = scene(trigger)
    theta, rows = task.original_model + 0.1, [dict(row) for row in trace]
    copy = theta.clone()
    data = task.federation.data
    context = replace(make_context(task, theta, trace=rows), shadows=record_of(data) if trigger else None)
    found = module.evaluate(context)
    assert set(found) <= set(declared)
    if trigger:
        assert set(found) == set(declared)
    present = data.partition.present
    for metric, about in declared.items() if found else ():
        each = found.get(metric, {}) if about.per == "client" else dict.fromkeys(present, found.get(metric, 0.0))
        assert list(each) == present
        assert all(isinstance(value, float) and np.isfinite(value) for value in each.values())
        assert about.unit != "fraction" or all(0 <= value <= 1 for value in each.values())
    assert torch.equal(theta, copy)
    assert rows == trace
    assert found == module.evaluate(context)


@pytest.fixture(scope="session")
def three(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Context]:
    """A retrained model, the untouched original with its backdoor, a broken one."""
    return make_three(tmp_path_factory.mktemp("three"))


def test_the_three_models_are_what_they_are_called(three: dict[str, Context]) -> None:
    found = {model: context.trace[-1] for model, context in three.items()}
    asr, r_acc = ({model: float(row[metric]) for model, row in found.items()} for metric in ("asr", "r_acc"))
    assert asr["original"] > 0.8
    assert asr["retrained"] < 0.2
    assert min(r_acc["original"], r_acc["retrained"]) > 0.9
    assert r_acc["broken"] < 0.2


@pytest.mark.parametrize("name", plugins_of("evaluation"))
@torch.no_grad()
def test_an_evaluator_tells_the_untouched_original_or_a_broken_model_from_a_retrained_one(
    name: str, three: dict[str, Context]
) -> None:
    """A metric's `tells` is true: it distinguishes the original model, or a broken one, from a retrained one by a
    factor of two. At least one metric has `tells`.
    """
    module = plugins.load("evaluation", name)
    found = {model: module.evaluate(context) for model, context in three.items()}
    if wrong := complaints(name, module.METRICS, found):
        pytest.fail(" ".join(wrong), pytrace=False)


@pytest.mark.parametrize("model", ["original", "broken"])
def test_some_evaluator_tells_each_bad_model(model: str) -> None:
    declared = [about for name in sound("evaluation") for about in declared_of(name).values()]
    assert any(model in about.get("tells", {}) for about in declared)


def declared_of(name: str) -> dict[str, dict[str, Any]]:
    metrics: dict[str, dict[str, Any]] = plugins.load("evaluation", name).METRICS
    return metrics


@pytest.mark.parametrize(
    ("tells", "words"),
    [
        ({"original": "higher"}, []),
        ({}, ["no metric tells the untouched original or a broken model from a retrained one; say which does"]),
        ({"original": "lower"}, ["tells the original model by a lower number than the retrained one's, but is 0.9 of"]),
        ({"original": "higher", "broken": "higher"}, ["but is 0.15 of the broken and 0.1 of the retrained model."]),
        ({"nobody": "lower"}, ["but is nan of the nobody and 0.1 of the retrained model."]),
    ],
    ids=["told", "silent", "the wrong side", "hardly apart", "without a number"],
)
def test_what_an_evaluator_cannot_tell_is_said(tells: dict[str, str], words: list[str]) -> None:
    numbers = {"retrained": {"m": 0.1}, "original": {"m": 0.9}, "broken": {"m": 0.15}, "nobody": {}}
    found = complaints("mine", {"m": {"tells": tells}}, numbers)
    assert len(found) == len(words)
    assert all(word in text for word, text in zip(words, found, strict=True))


@pytest.mark.parametrize("name", plugins_of("evaluation"))
def test_the_metrics_of_an_evaluator_are_described(name: str) -> None:
    """Every metric has a label, a unit and a formula. A `spread` names a metric of the same evaluator."""
    declared = metrics_of(name)
    assert [metric.name for metric in declared] == list(plugins.load("evaluation", name).METRICS)
    for metric in declared:
        assert all((metric.label, metric.unit, metric.formula)), metric.name
        assert metric.spread is None or metric.spread in {other.name for other in declared}


@pytest.mark.parametrize("name", plugins_of("evaluation"))
def test_an_evaluator_shares_no_name_with_another(name: str) -> None:
    """Names of metrics and trace columns are unique. `diverged_round` and `seconds` are reserved for the stages."""
    mine, others = columns_of(name), [columns_of(other) for other in sound("evaluation") if other != name]
    assert not mine & {"diverged_round", "seconds"}.union(*others)


def columns_of(name: str) -> set[str]:
    return {*declared_of(name), *(plugins.load("evaluation", name).TRACE if name in TRACED else ())}


@pytest.mark.parametrize("name", plugins_of("evaluation"))
def test_an_evaluator_knows_no_method(name: str) -> None:
    """The code names no method: an evaluator judges models, whichever method made them."""
    path = module_file(f"fu.evaluation.{name}")
    assert path is not None
    source = path.read_text()
    code = ast.parse(source)
    code.body = code.body[1:]  # the docstring may cite a paper that is called as its method
    for method in available("methods"):
        assert not re.search(rf"\b{method}\b", source)
        for node in ast.walk(code):
            named = {getattr(node, field, None) for field in ("id", "attr", "name", "arg", "module")}
            assert method not in {str(value).lower() for value in named}
