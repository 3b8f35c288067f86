"""Run evaluators on a model, and check the numbers that they return."""

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

from torch import Tensor

from fu import plugins
from fu.data.clients import ClientData
from fu.errors import UserError
from fu.evaluation.context import Context
from fu.federation.task import Task


def values_of(plugin: ModuleType, context: Context) -> Iterator[dict[str, Any]]:
    """Yield metric, client and value of what an evaluator says of a model; a client only where the metric has each."""
    numbers: dict[str, float | dict[int, float]] = plugin.evaluate(context)
    _check_numbers(plugin, "evaluate", numbers, float, int, dict)
    for name, values in numbers.items():
        if isinstance(values, dict):
            _check_numbers(plugin, "evaluate", values, float, int)
        for client, value in values.items() if isinstance(values, dict) else [("", values)]:
            yield {"metric": name, "client": client, "value": value}


def _check_numbers(plugin: ModuleType, function: str, numbers: Any, *kinds: type) -> None:
    """Raise `UserError` where a function of an evaluator returned something else than numbers by name."""
    if got := plugins.mismatch(numbers, *kinds) or plugins.mismatch(
        {name: value for name, value in numbers.items() if isinstance(value, bool)}, dict
    ):  # a bool is an int, but True is no number in a CSV
        where = plugins.place_of(plugin, function)
        raise UserError(f"{where}: {function} must return one number per metric, got {got}.")


def measured(task: Task, data: ClientData, traced: Sequence[str]) -> Callable[[Tensor], dict[str, float]]:
    """Return a function that measures a model after a round, by those of the traced evaluators that measure models.

    `data`: with the test samples, which the task's own lack.
    """
    network, evaluators = task.federation.network, [plugins.load("evaluation", name) for name in traced]
    tracing = [evaluator for evaluator in evaluators if hasattr(evaluator, "trace")]

    def measure_round(theta: Tensor) -> dict[str, float]:
        context = Context(network, data, theta, task.original)
        numbers: dict[str, float] = {}
        for evaluator in tracing:
            traced = evaluator.trace(context)
            _check_numbers(evaluator, "trace", traced, float, int)
            numbers |= traced
        return numbers

    return measure_round
