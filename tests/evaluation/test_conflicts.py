"""NC: the number of clients whose gradients an update conflicts with."""

import pytest
import torch
from torch import Tensor

from fu.evaluation import conflicts
from fu.federation.local import Updates
from fu.federation.task import State, Task
from fu.methods import fedosd
from tests.factories import SIZES, make_data, make_federation, make_partition, make_task, params_of
from tests.federation.runs import count_calls


def test_conflicts_reuse_the_rounds_updates_and_cost_nothing() -> None:
    task = make_task()
    theta = task.original_model
    delta = task.federation.local_updates(theta, task.retained, 0).delta
    before = task.federation.cost.record()
    calls = count_calls(task.federation.model)
    assert conflicts.count(task, theta, theta - delta.sum(0), 0) == {"conflicts": 2}
    assert conflicts.count(task, theta, theta + delta.sum(0), 0) == {"conflicts": 0}
    assert calls == []
    assert conflicts.count(task, theta.clone(), theta, 0) == {"conflicts": 0}  # no update is against nobody
    assert sum(calls) == 2 * (SIZES[0] + SIZES[2])
    assert task.federation.cost.record() == before


ALONG = [1.0, 0, 0]


@pytest.mark.parametrize(
    ("update", "rows", "expected"),
    [
        (ALONG, [[1.0, 0, 0], [-1, 0, 0], [-1, 9, 0]], 2),
        (ALONG, [[0.0, 1, 0], [0, -1, 0], [0, 1, 1]], 0),
        (ALONG, [[-1e-9, 1, 0], [-1e-9, 0, 1], [1e-9, 1, 1]], 0),
        (ALONG, [[-1e-3, 1, 0], [-1e-3, 0, 1], [1e-3, 1, 1]], 2),
        (ALONG, [[-1e-9, 0, 0], [-1e-12, 1e-10, 0], [0, 0, 0]], 2),
        ([1e-3, 0, 0], [[-1e-5, 1, 0], [-1e-3, 1, 0], [-1, 1, 0]], 1),
        ([0.0, 0, 0], [[-1.0, 0, 0], [1, 0, 0], [0, 1, 0]], 0),
    ],
    ids=["against two", "orthogonal", "rounding", "more than rounding", "tiny updates", "a short step", "no step"],
)
def test_an_update_conflicts_with_those_whose_own_it_opposes_by_more_than_rounding(
    update: list[float], rows: list[list[float]], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model after the update is a hundred long, so that its rounding is a cosine of 1.2e-5 for a step of one."""
    task = make_task(make_federation(make_data(make_partition((7, 12, 9, 8)))))
    before = torch.zeros_like(task.original_model)
    before[3] = 100
    after, delta = before.clone(), torch.zeros(3, len(before))
    after[:3] += torch.tensor(update)
    delta[:, :3] = torch.tensor(rows)

    def given(theta: Tensor, clients: list[int], round: int, counted: bool) -> Updates:
        assert theta is before
        assert (clients, round, counted) == ([0, 2, 3], 5, False)
        return Updates(delta, torch.ones(3), torch.zeros(3))

    monkeypatch.setattr(task.federation, "local_updates", given)
    assert conflicts.count(task, before, after, 5) == {"conflicts": expected}


@pytest.mark.parametrize(("direction", "expected"), [("orthogonal", 0), ("common-descent", 0), ("target", 2)])
def test_rounds_of_fedosd_conflict_with_nobody_and_plain_ascent_does(direction: str, expected: int) -> None:
    def task() -> Task:
        return make_task(make_federation(make_data(make_partition((7, 12, 9, 8))), lr=0.05))

    theta = task().original_model
    after = fedosd.step(task(), params_of(fedosd, direction=direction, loss="ascent"), State(theta), 2).theta
    assert conflicts.count(task(), theta, after, 2) == {"conflicts": expected}
