"""Unlearning times of requests after training with FATS: recomputed time steps, simulated with the sampling history."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fu.federation.exact import Requests
from fu.federation.sampling import History, begin

LOOKED_UP = 10  # requests in one history: drawing it costs as much as some ten of them


def request_times(requests: Requests, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Return unlearning times [histories, 10] of at least `count` requests; 0: nothing is computed again.

    Each is a request of its own after training, all of a row in one history, so that errors are those over histories.
    A history draws what requests look up, hence the batches of no client that none of them names.
    """
    population = {k: np.arange(size) for k, size in enumerate(requests.sizes or [1] * requests.clients)}
    times = []
    for _ in range(-(-count // LOOKED_UP)):
        history = begin(population, requests.shape, lambda *name: random)
        times.append([_time(requests, history, random) for _ in range(LOOKED_UP)])
    return np.array(times)


def _time(requests: Requests, history: History, random: np.random.Generator) -> int:
    """Return how many steps a request computes again whose targets are drawn as `fu.data.request` draws them."""
    shape, ends = history.shape, np.cumsum(requests.sizes or [1] * requests.clients)
    first: list[int | None] = []
    for row in random.choice(int(ends[-1]), requests.targets, replace=False):
        client = int(np.searchsorted(ends, row, side="right"))
        if requests.sizes is None:
            round = history.first_round(client)
            first.append(None if round is None else round * shape.steps)
        else:
            first.append(history.first_step(client, int(row - ends[client] + requests.sizes[client])))
    return shape.time - min((time for time in first if time is not None), default=shape.time)


def standard_error(values: NDArray[Any]) -> float:
    """Return the standard error of the mean of values [histories, requests]; not a number for one history."""
    means = values.mean(axis=1)
    return float(means.std(ddof=1) / np.sqrt(len(means))) if len(means) > 1 else float("nan")
