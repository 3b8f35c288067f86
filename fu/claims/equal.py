"""Two models are equal within a margin, paired by seed; tested as equivalence: no difference found is not enough."""

from pydantic import Field

from fu.claims.rows import Pair, between, both

TIES = True  # at the margin they are still equal


class Params(Pair):
    """Two operands and how far they may be apart."""

    margin: float = Field(gt=0, examples=[0.02], description="differences below it count as none, in the metric's unit")


operands, statistics = both, between


def region(p: Params) -> tuple[float, float]:
    """Return the differences within the margin."""
    return -p.margin, p.margin
