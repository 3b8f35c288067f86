"""Run a method round by round and request by request."""

from types import ModuleType
from typing import Any

from fu.federation.checkpoint import Checkpoint
from fu.federation.driver import Outcome, drive
from fu.federation.plugged import Measure, kind_of, state_of
from fu.federation.task import State, Task


def unlearn(
    task: Task, method: ModuleType, params: Any, measure: Measure, checkpoint: Checkpoint, label: str, **options: Any
) -> Outcome:
    """Run a method's rounds, from request to request; `options`: those of `drive`."""
    models = len(task.kept.rounds) * task.original_model.nbytes if task.kept else 0
    records = sum(tensor.nbytes for record in task.histories.values() for tensor in record.values())
    task.federation.cost.stored = models + records
    asked = [task.after(number + 1) for number in range(task.requests)]
    kind = task.training.state if task.training else kind_of(method)

    def now(round: int) -> Task:
        return asked[round * len(asked) // task.rounds]

    def again(state: State, round: int) -> State:
        if hasattr(method, "again"):
            return state_of(kind, method, "again", now(round), params, state, round)
        return state_of(kind, method, "start", now(round), params)

    return drive(
        task,
        lambda: state_of(kind, method, "start", now(0), params),
        lambda state, round: state_of(kind, method, "step", now(round), params, state, round),
        measure,
        checkpoint,
        label,
        requests=task.requests,
        again=again,
        finished=getattr(method, "done", None),
        kind=kind,
        **options,
    )
