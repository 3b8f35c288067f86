"""The backdoor: which samples it marks, its pattern, where the pattern lies, which label becomes which."""

import numpy as np
import pytest
import torch

from fu.attacks import patch
from fu.data.partition import Drawn
from tests.factories import CLASSES
from tests.systems import random

ROWS = [np.arange(20), np.arange(50, 90)]  # the training samples of two clients


def drawn(seed: int = 0, classes: int = CLASSES, **params: float) -> Drawn:
    return patch.draw(ROWS, classes, patch.Params(**params), np.random.default_rng(seed))[1]  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [0.0, 0.25, 0.8, 1.0])
def test_the_share_of_each_clients_samples_is_marked_and_which_ones_the_seed_says(share: float) -> None:
    found = [patch.draw(ROWS, CLASSES, patch.Params(share=share), np.random.default_rng(seed))[0] for seed in (0, 0, 1)]
    for marked in found:
        assert marked.tolist() == sorted(set(marked.tolist()))
        assert [int(np.isin(rows, marked).sum()) for rows in ROWS] == [round(share * 20), round(share * 40)]
        assert len(marked) == round(share * 20) + round(share * 40)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2]) == (share in (0.0, 1.0))


def test_the_trigger_is_a_drawn_pattern_with_at_least_one_pixel() -> None:
    patterns = [drawn(seed)["trigger"] for seed in range(20)]
    assert {pattern.shape for pattern in patterns} == {(3, 3)}
    assert all(pattern.dtype == bool and pattern.any() for pattern in patterns)
    assert len({pattern.tobytes() for pattern in patterns}) >= 15
    single = [drawn(seed, size=1)["trigger"].tolist() for seed in range(8)]
    assert single == [[[True]]] * 8


@pytest.mark.parametrize(("classes", "shift"), [(10, 5), (100, 50), (5, 2)])
def test_labels_shift_by_half_the_classes(classes: int, shift: int) -> None:
    assert drawn(classes=classes)["label_shift"] == shift


@pytest.mark.parametrize(("side", "channels"), [(28, 1), (32, 3)])
@pytest.mark.parametrize(("margin", "value"), [(1, 0.8333), (0, -2.0), (4, 0.5)])
def test_the_trigger_sets_its_ones_and_leaves_every_other_pixel(
    side: int, channels: int, margin: int, value: float
) -> None:
    what = drawn(margin=margin, value=value)
    x, y = random(50, side, side, channels), torch.arange(50) % CLASSES
    before, labels = x.clone(), y.clone()
    marked, flipped = patch.mark(what, x, y, CLASSES)
    ones = {(row, column) for row in range(3) for column in range(3) if what["trigger"][row, column]}
    expected = before.clone()
    for row, column in ones:
        expected[:, side - margin - 3 + row, side - margin - 3 + column] = value
    assert torch.equal(marked, expected)
    assert torch.equal(flipped, (labels + 5) % 10)
    assert torch.equal(x, before)
    assert torch.equal(y, labels)


def test_a_patch_fits_the_image_up_to_its_border_and_no_further() -> None:
    patch.check((28, 32, 1), CLASSES, patch.Params(size=27, margin=1))
    with pytest.raises(ValueError, match="a patch of 28 does not fit 28 pixels"):
        patch.check((28, 28, 1), CLASSES, patch.Params(size=28, margin=1))


@pytest.mark.parametrize("label_shift", [0.0, 0.09, 1.0])
def test_a_shift_that_flips_no_label_is_refused(label_shift: float) -> None:
    patch.check((28, 28, 1), CLASSES, patch.Params(label_shift=0.1))
    with pytest.raises(ValueError, match=f"label_shift: {label_shift} of 10 classes flips nothing"):
        patch.check((28, 28, 1), CLASSES, patch.Params(label_shift=label_shift))
