"""The backdoor and label flipping: which samples are marked, the pattern and its place, which label becomes which."""

from types import ModuleType

import numpy as np
import pytest
import torch

from fu.attacks import label_flip, patch
from fu.data.partition import Drawn
from tests.factories import CLASSES
from tests.systems import random

ROWS = [np.arange(20), np.arange(50, 90)]  # the training samples of two clients


def drawn(seed: int = 0, classes: int = CLASSES, **params: float) -> Drawn:
    return patch.draw(ROWS, classes, patch.Params(**params), np.random.default_rng(seed))[1]  # type: ignore[arg-type]


@pytest.mark.parametrize("attack", [patch, label_flip], ids=lambda attack: attack.__name__)
@pytest.mark.parametrize("share", [0.0, 0.25, 0.8, 1.0])
def test_the_share_of_each_clients_samples_is_marked_and_which_ones_the_seed_says(
    share: float, attack: ModuleType
) -> None:
    p = attack.Params(share=share)
    found = [attack.draw(ROWS, CLASSES, p, np.random.default_rng(seed))[0] for seed in (0, 0, 1)]
    for marked in found:
        assert marked.tolist() == sorted(set(marked.tolist()))
        assert [int(np.isin(rows, marked).sum()) for rows in ROWS] == [round(share * 20), round(share * 40)]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2]) == (share in (0.0, 1.0))


@pytest.mark.parametrize("attack", [patch, label_flip], ids=lambda attack: attack.__name__)
def test_a_shift_that_flips_no_label_is_refused(attack: ModuleType) -> None:
    attack.check((28, 28, 1), CLASSES, attack.Params(label_shift=0.1))
    for shift in (0.0, 0.09, 1.0):
        with pytest.raises(ValueError, match=f"label_shift: {shift} of 10 classes flips nothing"):
            attack.check((28, 28, 1), CLASSES, attack.Params(label_shift=shift))


@pytest.mark.parametrize(("classes", "share", "moved"), [(10, 0.5, 5), (10, 0.1, 1), (5, 0.5, 2)])
def test_label_flip_moves_labels_and_leaves_images(classes: int, share: float, moved: int) -> None:
    _, drawn = label_flip.draw(ROWS, classes, label_flip.Params(label_shift=share), np.random.default_rng(0))
    x, y = random(classes, 8, 8, 1), torch.arange(classes)
    images, labels = label_flip.mark(drawn, x, y, classes)
    assert torch.equal(images, x)
    assert images.data_ptr() != x.data_ptr()
    assert labels.tolist() == [(label + moved) % classes for label in range(classes)]
    assert y.tolist() == [*range(classes)]


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
