"""Unlearning times of requests after training with FATS: time steps re-computed, drawn through the sampling history."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fu.federation.exact import Requests
from fu.federation.sampling import begin

LOOKED_UP = 10  # requests in one history: drawing it costs as much as some ten of them


def request_times(requests: Requests, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Return unlearning times [histories, 10] of at least `count` requests; 0: nothing is computed again.

    Each is a request of its own after training, all of a row in one history, so that errors are those over histories.
    A history draws what requests look up, hence the batches of no client that none of them names.
    """
    clients, samples = requests.clients, int(requests.samples or 0)
    population = {client: np.arange(samples or 1) for client in range(clients)}

    def source(*name: int | str) -> Any:
        return random

    def time() -> int:
        targets = random.choice(clients, requests.targets, replace=False).tolist()
        found = {client: [int(random.integers(samples))] for client in targets} if samples else {}
        restart = history.without(() if samples else targets, found).restart
        return restart.steps if restart else 0

    times = []
    for _ in range(-(-count // LOOKED_UP)):
        history = begin(population, requests.shape, source)
        times.append([time() for _ in range(LOOKED_UP)])
    return np.array(times)


def standard_error(values: NDArray[Any]) -> float:
    """Return the standard error of the mean of values [histories, requests]; not a number for one history."""
    means = values.mean(axis=1)
    return float(means.std(ddof=1) / np.sqrt(len(means))) if len(means) > 1 else float("nan")
