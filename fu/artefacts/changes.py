"""V, S and Q of the losses of clients (Shao et al. 2024, Definitions 4.1 to 4.3), as pure functions.

A loss is what a client has less of at a model than at an optimum. Weights count in proportion alone.
"""

import pandas as pd


def gap(lost: "pd.Series[float]", weights: "pd.Series[float]") -> float:
    """Return the weighted mean of losses: V over the retained clients against w_r*, S over all against w*."""
    return float((lost * weights).sum() / weights.sum())


def spread(lost: "pd.Series[float]", weights: "pd.Series[float]") -> float:
    """Return Q: the weighted mean distance of the retained clients' losses from their weighted mean."""
    return gap((lost - gap(lost, weights)).abs(), weights)
