"""What the forgotten clients train on: how much of their data carries the trigger."""

import numpy as np
import torch

from tests.factories import make_data, make_partition


def test_exactly_the_backdoored_samples_carry_trigger_and_flipped_label() -> None:
    part = make_partition((5, 10, 5))
    data = make_data(part, poison="share")
    x, y = data.train(1)
    rows = part.train[1]
    clean = data.x[rows].permute(0, 3, 1, 2)
    changed = (x != clean).flatten(1).any(1)
    assert changed.tolist() == np.isin(rows, part.backdoored).tolist()
    assert torch.equal(y, torch.where(changed, (data.y[rows] + 5) % 10, data.y[rows]))
    assert (x != clean)[changed].flatten(1).sum(1).tolist() == [3] * 8
