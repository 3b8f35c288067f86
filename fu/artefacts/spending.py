"""What unlearning and post-training take together."""

import pandas as pd

from fu.artefacts.entry import ORIGINAL, SECONDS
from fu.evaluation.trace import COUNTS

SPENT = (*COUNTS, SECONDS)


def spent(rows: pd.DataFrame) -> pd.DataFrame:
    """Return metric, seed and value of what the models of a trial took, from the rows of all its phases.

    Of bytes stored the larger number counts, of all else the sum. A model that was not asked to forget has no costs:
    its training is none.
    """
    counted = rows[rows["metric"].isin(SPENT) & (rows["stage"] != ORIGINAL)]
    phases = counted.groupby(["metric", "seed"])["value"].agg(["sum", "max"]).reset_index()
    phases["value"] = phases["sum"].where(phases["metric"] != "stored", phases["max"])
    return phases
