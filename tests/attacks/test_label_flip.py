"""Label flipping: which samples have wrong labels, and which label becomes which."""

import numpy as np
import pytest
import torch

from fu.attacks import label_flip
from tests.systems import random

ROWS = [np.arange(20), np.arange(50, 90)]  # the training samples of two clients


@pytest.mark.parametrize("share", [0.0, 0.25, 0.8, 1.0])
def test_the_share_of_each_clients_samples_is_drawn(share: float) -> None:
    p = label_flip.Params(share=share)
    found = [label_flip.draw(ROWS, 10, p, np.random.default_rng(seed))[0] for seed in (0, 0, 1)]
    assert [int(np.isin(rows, found[0]).sum()) for rows in ROWS] == [round(share * 20), round(share * 40)]
    assert found[0].tolist() == found[1].tolist() == sorted(found[0].tolist())
    assert np.array_equal(found[0], found[2]) == (share in (0.0, 1.0))


@pytest.mark.parametrize(("classes", "share", "moved"), [(10, 0.5, 5), (10, 0.1, 1), (5, 0.5, 2)])
def test_labels_move_and_images_stay(classes: int, share: float, moved: int) -> None:
    p = label_flip.Params(label_shift=share)
    label_flip.check((8, 8, 1), classes, p)
    _, drawn = label_flip.draw(ROWS, classes, p, np.random.default_rng(0))
    x, y = random(classes, 8, 8, 1), torch.arange(classes)
    images, labels = label_flip.mark(drawn, x, y, classes)
    assert torch.equal(images, x)
    assert images.data_ptr() != x.data_ptr()
    assert labels.tolist() == [(label + moved) % classes for label in range(classes)]
    assert y.tolist() == [*range(classes)]


@pytest.mark.parametrize("share", [0.0, 0.05, 1.0])
def test_a_shift_that_flips_nothing_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=f"label_shift: {share} of 10 classes flips nothing"):
        label_flip.check((8, 8, 1), 10, label_flip.Params(label_shift=share))
