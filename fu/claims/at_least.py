"""Non-inferiority: one model is at most a margin worse than another, paired by seed."""

from pydantic import Field

from fu.claims.rows import Pair, Side, between, beyond, both

TIES = True  # worse by no more than the margin


class Params(Pair):
    """Two operands, the better side, and the non-inferiority margin."""

    side: Side = Field(examples=["above"], description="which side is better: above or below")
    margin: float = Field(gt=0, examples=[0.02], description="non-inferiority margin, in the metric's unit")


operands, statistics = both, between


def region(p: Params) -> tuple[float, float]:
    """Return the differences that are better, or worse by at most the margin."""
    return beyond(p.side, 0.0, -p.margin)
