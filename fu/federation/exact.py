"""The expected unlearning time of FATS, in closed form, and the paper's bounds (Tao et al. 2024, 4.3 and 5.3).

A request after training names w clients, each as likely as any other, or one sample out of all n, which a client with
N_c of them holds with probability N_c / n. A round draws its K clients independently, so that it misses all of w given
ones with probability a = (1 - w / M)^K; a client that takes part spares its sample for s steps with probability v^s,
v = 1 - min(b, N_c) / N_c. A round's first s steps spare the targets with probability

    u(s) = a + (1 - a) v^s,

where v = 0 for clients. Rounds are independent, hence u(E)^R for the training, and the mean over who holds the sample.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fu.federation.sampling import Shape


@dataclass(frozen=True)
class Requests:
    """Targets that are to be forgotten at once: `targets` (w) of `clients` (M), or as many samples.

    `sizes`: how many samples each client holds (N_c [M]); None: clients are to be forgotten.
    """

    shape: Shape
    clients: int
    sizes: tuple[int, ...] | None = None
    targets: int = 1

    @property
    def rho(self) -> float:
        """rho_C = K R / M, or rho_S = b K T / n, n = M N in the paper (Algorithm 1, line 1)."""
        shape = self.shape
        if self.sizes is None:
            return shape.clients_per_round * shape.rounds / self.clients
        return shape.batch_size * shape.clients_per_round * shape.time / sum(self.sizes)

    @property
    def probability(self) -> float:
        """The probability that a model is computed again; not a number for several samples, as they may share a
        client.
        """
        return 1 - self._mean(self._spared()[:, -1] ** self.shape.rounds)

    @property
    def mean_time(self) -> float:
        """The mean number of time steps computed again, 0 where none: the sum over t of P(a target was met by t); not a
        number for several samples.
        """
        within = self._spared()
        before = within[:, -1:] ** np.arange(self.shape.rounds)
        return self.shape.time - self._mean(before.sum(1) * within.sum(1))

    @property
    def probability_bound(self) -> float:
        """What Theorem 1 says `probability` is at most: w rho."""
        return min(self.targets * self.rho, 1)

    @property
    def number_bound(self) -> float:
        """What section 5.3 says the number of re-computations is at most: 4 w min(rho, 1)."""
        return 4 * self.targets * min(self.rho, 1)

    def _spared(self) -> NDArray[np.float64]:
        """Return u(s) [M, E] for a sample of each client, [1, E] for clients: the first s steps use no target."""
        shape, sizes = self.shape, np.array(self.sizes or [1])
        used = np.minimum(shape.batch_size, sizes) / sizes
        absent = (1 - self.targets / self.clients) ** shape.clients_per_round
        return absent + (1 - absent) * (1 - used[:, None]) ** np.arange(1, shape.steps + 1)

    def _mean(self, values: NDArray[np.float64]) -> float:
        """Return the mean of values [M] over the sample that is asked for."""
        if self.sizes and self.targets > 1:
            return float("nan")
        return float(np.average(values, weights=self.sizes))
