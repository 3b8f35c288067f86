"""Unlearning times of requests after training with FATS: time steps re-computed, drawn through the sampling history."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fu.federation.exact import Requests
from fu.federation.sampling import begin


def request_times(requests: Requests, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Return the unlearning time of so many requests, each in a history of its own; 0 where nothing is computed again.

    A history draws what a request looks up, hence no other client's batches.
    """
    clients, samples = requests.clients, int(requests.samples or 1)
    population = {client: np.arange(samples) for client in range(clients)}
    times = []
    for _ in range(count):
        history = begin(population, requests.shape, lambda *name: random)
        targets = random.choice(clients, requests.targets, replace=False).tolist()
        if requests.samples is None:
            restart = history.without(targets).restart
        else:
            restart = history.without(samples={client: [int(random.integers(samples))] for client in targets}).restart
        times.append(restart.steps if restart else 0)
    return np.array(times)
