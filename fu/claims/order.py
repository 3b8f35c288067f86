"""One model lies above, or below, another by more than a margin, paired by seed."""

from pydantic import Field

from fu.claims.rows import Pair, Side, between, beyond, both


class Params(Pair):
    """Two operands and how far they must be apart."""

    side: Side = Field(examples=["below"], description="above or below")
    margin: float = Field(0.0, ge=0, description="the difference must exceed this, in the metric's unit")


operands, statistics = both, between


def region(p: Params) -> tuple[float, float]:
    """Return the differences beyond the margin."""
    return beyond(p.side, 0.0, p.margin)
