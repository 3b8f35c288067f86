"""What FATS' unlearning takes on average, in closed form, beside the paper's bounds (Tao et al. 2024, 4.3 and 5.3).

A request after training names w different clients, or a sample of each of w different clients. A round draws its K
clients independently, so that j given ones are all absent with probability (1 - j / M)^K; a client that is there
spares its sample for s steps with probability v^s, v = 1 - b / N. With v^s of each target's chances to be spared apart
from those that need it to be absent, a round's first s steps spare all w with probability

    u(s) = sum_j C(w, j) (1 - v^s)^j (v^s)^(w - j) (1 - j / M)^K.

A client is a sample that every step uses, v = 0: u = (1 - w / M)^K. Rounds are independent, hence u(E)^R for the
training. Exact for different clients of equal size; samples drawn out of all may share a client, with probability of
about w^2 / (2 M), and are then met a little less often.
"""

from dataclasses import dataclass
from math import comb

import numpy as np

from fu.federation.sampling import Shape


@dataclass(frozen=True)
class Requests:
    """Targets that are to be forgotten at once: `targets` (w) of `clients` (M), or samples of as many clients.

    `samples`: how many each client holds (N); None: clients are to be forgotten.
    """

    shape: Shape
    clients: int
    samples: float | None = None
    targets: int = 1

    @property
    def rho(self) -> float:
        """rho_C = K R / M, or rho_S = b K T / (M N) (Algorithm 1, line 1)."""
        shape = self.shape
        drawn = shape.clients_per_round * shape.rounds / self.clients
        return drawn if self.samples is None else drawn * shape.batch_size * shape.steps / self.samples

    @property
    def probability(self) -> float:
        """The probability that a model is computed again."""
        return 1 - self._spared(self.shape.steps) ** self.shape.rounds

    @property
    def mean_time(self) -> float:
        """The mean number of time steps computed again, 0 where none: the sum over t of P(a target was met by t)."""
        within = [self._spared(step + 1) for step in range(self.shape.steps)]
        before = within[-1] ** np.arange(self.shape.rounds)
        return self.shape.time - float(before.sum()) * sum(within)

    @property
    def probability_bound(self) -> float:
        """What Theorem 1 says `probability` is at most: w rho."""
        return min(self.targets * self.rho, 1)

    @property
    def number_bound(self) -> float:
        """What section 5.3 says the number of re-computations is at most: 4 w min(rho, 1)."""
        return 4 * self.targets * min(self.rho, 1)

    def _spared(self, steps: int) -> float:
        """Return u(s): the probability that the first steps of a round use no target."""
        used = 1 if self.samples is None else min(self.shape.batch_size / self.samples, 1)
        v, w = (1 - used) ** steps, self.targets
        absent = [(1 - j / self.clients) ** self.shape.clients_per_round for j in range(w + 1)]
        return sum(comb(w, j) * (1 - v) ** j * v ** (w - j) * absent[j] for j in range(w + 1))
