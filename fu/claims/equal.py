"""Equivalence: two models differ by at most a margin, paired by seed; finding no difference is not enough."""

from pydantic import Field

from fu.claims.rows import Pair, between, both

TIES = True  # at the margin they are still equal


class Params(Pair):
    """Two operands and how far they may be apart."""

    margin: float = Field(gt=0, examples=[0.02], description="equivalence margin, in the metric's unit")


operands, statistics = both, between


def region(p: Params) -> tuple[float, float]:
    """Return the differences within the margin."""
    return -p.margin, p.margin
