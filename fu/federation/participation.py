"""Which clients take part in a round: drawn by name, hence the same in every method and after a resume."""

from collections.abc import Sequence

import numpy as np

from fu.seeds import derive_integer


def participants(population: Sequence[int], number: int | None, with_replacement: bool, *name: int | str) -> list[int]:
    """Return the clients of a round, in order; one that is drawn k times stands there k times.

    `number`: how many are drawn uniformly (None: all of the population). `name`: seed, stream and round. Raises
    `ValueError` where more are to be drawn without replacement than there are.
    """
    if number is None:
        return sorted(population)
    if not population or (number > len(population) and not with_replacement):
        raise ValueError(f"{number} clients cannot be drawn from {len(population)} without replacement")
    *stream, round = name
    random = np.random.default_rng(derive_integer(*stream, "clients", round))
    drawn = random.choice(np.sort(population), number, replace=with_replacement)
    return sorted(int(client) for client in drawn)
