"""IID: every client holds an equal share of every class."""

import numpy as np

from fu.partitions import iid
from tests.data.draws import LABELS, SIZES


def test_an_iid_client_holds_an_equal_share_of_every_class() -> None:
    pools = iid.deal(LABELS, 10, 10, iid.Params(), np.random.default_rng(0))
    counts = np.stack([np.bincount(LABELS[pool], minlength=10) for pool in pools])
    assert counts.shape == (10, 10)
    np.testing.assert_array_equal(counts.sum(0), SIZES)
    for label, size in enumerate(SIZES):
        assert set(counts[:, label].tolist()) <= {size // 10, -(-size // 10)}


def test_an_iid_draw_mixes_the_order_of_the_data_set() -> None:
    pools = [iid.deal(LABELS, 10, 10, iid.Params(), np.random.default_rng(seed))[0] for seed in (0, 0, 1)]
    one, again, other = (set(pool.tolist()) for pool in pools)
    assert one == again != other
    assert len(one & other) < len(one) / 2
