"""The backdoor of several triggers: which image carries which, where it lies, and what does not fit."""

import numpy as np
import pytest
import torch

from fu.attacks import patch, patches
from fu.data.partition import Drawn
from tests.systems import random

ROWS = [np.arange(20), np.arange(50, 90)]  # the training samples of two clients


def drawn(seed: int = 0, **params: int) -> tuple[list[int], Drawn]:
    marked, what = patches.draw(ROWS, 10, patches.Params(**params), np.random.default_rng(seed))  # type: ignore[arg-type]
    return marked.tolist(), what


def test_patterns_differ_and_the_samples_are_those_of_one_patch() -> None:
    marked, what = drawn()
    assert what["trigger"].shape == (4, 3, 3)
    assert len({one.tobytes() for one in what["trigger"]}) == 4
    one, single = patch.draw(ROWS, 10, patch.Params(), np.random.default_rng(0))
    assert marked == one.tolist()
    assert np.array_equal(what["trigger"][0], single["trigger"])
    assert what["label_shift"] == 5


@pytest.mark.parametrize("triggers", [2, 3, 4])
def test_an_image_carries_the_trigger_of_its_label_in_its_corner_alone(triggers: int) -> None:
    _, what = drawn(triggers=triggers, size=2, margin=1)
    x, y = random(20, 10, 8, 3), torch.arange(20) % 10
    before = x.clone()
    marked, flipped = patches.mark(what, x, y, 10)
    corners = [((7, 8), (5, 6)), ((1, 2), (1, 2)), ((1, 2), (5, 6)), ((7, 8), (1, 2))]  # rows and columns, of 10 and 8
    for image, label in enumerate(y.tolist()):
        rows, columns = corners[label % triggers]
        changed = (marked[image] != before[image]).any(-1).nonzero().tolist()
        assert len(changed) == what["trigger"][label % triggers].sum()
        assert all(row in rows and column in columns for row, column in changed)
        assert (marked[image][(marked[image] != before[image])] == 0.8333).all()
    assert flipped.tolist() == [(label + 5) % 10 for label in y.tolist()]
    assert torch.equal(x, before)


def test_triggers_fit_side_by_side_and_need_a_label_each() -> None:
    patches.check((28, 28, 1), 10, patches.Params(size=13, margin=1))
    with pytest.raises(ValueError, match="two patches of 14 with margins of 1 do not fit 28 pixels"):
        patches.check((32, 28, 1), 10, patches.Params(size=14, margin=1))
    with pytest.raises(ValueError, match="triggers: 4 are more than the 3 classes that choose them"):
        patches.check((28, 28, 1), 3, patches.Params())
    with pytest.raises(ValueError, match="flips nothing"):
        patches.check((28, 28, 1), 10, patches.Params(label_shift=0.0))
