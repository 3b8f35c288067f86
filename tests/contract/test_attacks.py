"""An attack: its draw is repeatable and marks given samples; its mark changes labels and may change images."""

import numpy as np
import pytest
import torch

from fu import plugins
from fu.data.partition import Drawn, Indices
from tests.contract.names import plugins_of
from tests.factories import CLASSES, COLOUR, GREY, default_params

SHAPES = [GREY, COLOUR]


def drawn(name: str, given: list[Indices], shape: tuple[int, int, int] = GREY) -> tuple[Indices, Drawn]:
    module = plugins.load("attacks", name)
    p = default_params(module.Params)
    module.check(shape, CLASSES, p)
    found: tuple[Indices, Drawn] = module.draw(given, CLASSES, p, np.random.default_rng(0))
    return found


def samples() -> list[Indices]:
    """Return the training samples of two forgotten clients."""
    order = np.random.default_rng(1).permutation(100)
    return [order[:20], order[50:90]]


@pytest.mark.parametrize("name", plugins_of("attacks"))
def test_a_draw_is_repeatable_and_marks_a_share_of_every_clients_samples(name: str) -> None:
    """`draw` is reproducible from its generator. It returns arrays and some samples of every client, each once."""
    given = samples()
    (marked, one), (again, two) = drawn(name, given), drawn(name, given)
    assert [part.tolist() for part in given] == [part.tolist() for part in samples()]
    assert marked.tolist() == again.tolist()
    assert one.keys() == two.keys() != set()
    for key, value in one.items():
        assert isinstance(value, np.ndarray)
        assert value.dtype != object  # the partition's file holds plain arrays
        assert value.tobytes() == two[key].tobytes()
    assert len(np.unique(marked)) == len(marked)
    assert set(marked.tolist()) <= {sample for part in given for sample in part.tolist()}
    assert all(np.isin(part, marked).any() for part in given)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", plugins_of("attacks"))
def test_a_mark_changes_labels_and_leaves_its_inputs_unchanged(name: str, shape: tuple[int, int, int]) -> None:
    """`mark` returns finite copies of images and changed labels, and does not modify its arguments."""
    module, (_, what) = plugins.load("attacks", name), drawn(name, samples(), shape)
    random = torch.Generator().manual_seed(0)
    x, y = torch.randn(20, *shape, generator=random), torch.randint(CLASSES, (20,), generator=random)
    copies = x.clone(), y.clone()
    marked, flipped = module.mark(what, x, y, CLASSES)
    assert torch.equal(x, copies[0])
    assert torch.equal(y, copies[1])
    assert (marked.shape, marked.dtype) == (x.shape, x.dtype)
    assert (flipped.shape, flipped.dtype) == (y.shape, y.dtype)
    assert torch.isfinite(marked).all()
    assert (flipped != y).any()
    assert set(flipped.tolist()) <= set(range(CLASSES))
    twice = module.mark(what, x, y, CLASSES)
    assert torch.equal(marked, twice[0])
    assert torch.equal(flipped, twice[1])
