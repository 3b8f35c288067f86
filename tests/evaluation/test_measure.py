"""The measurements of a model after a round."""

from fu.evaluation import backdoor, distance, utility, values
from fu.federation.task import Task
from tests.factories import make_context, make_task


def measured(task: Task, *traced: str) -> dict[str, float]:
    return values.measured(task, task.federation.data, traced)(task.original_model + 1)


def test_only_what_is_traced_is_measured_in_its_order() -> None:
    task = make_task()
    context = make_context(task, task.original_model + 1)
    expected = {**distance.trace(context), **utility.trace(context), **backdoor.trace(context)}
    found = measured(task, "distance", "conflicts", "utility", "backdoor")
    assert list(found.items()) == list(expected.items())
    assert measured(task, "conflicts") == measured(task) == {}
