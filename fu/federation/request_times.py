"""Unlearning times of requests after training with FATS: time steps re-computed, drawn through the sampling history."""

import numpy as np
from numpy.typing import NDArray

from fu.federation.exact import Requests
from fu.federation.sampling import begin


def request_times(requests: Requests, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Return the unlearning times of so many requests, each in a history of its own; 0: nothing is computed again.

    A history draws what a request looks up, hence the batches of no other client.
    """
    clients, samples = requests.clients, requests.samples
    population = {client: np.arange(samples or 1) for client in range(clients)}
    times = []
    for _ in range(count):
        history = begin(population, requests.shape, lambda *name: random)
        targets = random.choice(clients, requests.targets, replace=False).tolist()
        found = {client: [int(random.integers(samples))] for client in targets} if samples else {}
        restart = history.without(() if samples else targets, found).restart
        times.append(restart.steps if restart else 0)
    return np.array(times)
