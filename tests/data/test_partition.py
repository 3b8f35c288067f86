"""The partition: who trains, validates and tests on what, who is attacked, what is backdoored."""

from pathlib import Path

import numpy as np
import pytest

from fu.attacks import patch
from fu.data import partition
from fu.data.partition import SPLITS, Partition, load
from fu.errors import UserError
from tests.data.draws import BACKDOOR, KINDS, LABELS, Kind, draw, equal, pat, pools


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("samples", [None, 200, len(LABELS) - 1])
def test_as_many_samples_as_stated_lie_in_exactly_one_split_of_one_client(kind: Kind, samples: int | None) -> None:
    part = draw(kind=kind, samples=samples)
    assert len(part.train) == len(part.validation) == len(part.test) == part.clients == 10
    used = np.concatenate(pools(part))
    assert len(used) == len(set(used.tolist())) == (samples or len(LABELS))
    assert 0 <= used.min() <= used.max() < len(LABELS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("train_share", "validation_share"), [(6 / 7, 0.1), (0.5, 0.0), (0.8, 0.25)])
def test_the_shares_of_a_client_are_those_stated(kind: Kind, train_share: float, validation_share: float) -> None:
    part = draw(kind=kind, train_share=train_share, validation_share=validation_share)
    for client, pool in enumerate(pools(part)):
        training = int(len(pool) * train_share)
        held_out = int(training * validation_share)
        assert len(part.validation[client]) == held_out
        assert len(part.train[client]) == training - held_out
        assert len(part.test[client]) == len(pool) - training > 0


def test_the_splits_of_a_client_are_drawn_and_not_cut_in_the_order_of_classes() -> None:
    part = draw(kind=pat(0.5))
    for client in range(10):
        assert len(set(LABELS[part.test[client]].tolist())) >= 3
        assert len(set(LABELS[part.validation[client]].tolist())) >= 3


def test_the_samples_in_use_are_drawn_from_the_whole_data_set() -> None:
    used = np.concatenate(pools(draw(samples=200)))
    assert used.max() > 600  # training and test samples
    counts = np.bincount(LABELS[used], minlength=10)
    assert counts.min() >= 8
    assert counts.max() <= 35
    assert set(used.tolist()) == set(np.concatenate(pools(draw(samples=200))).tolist())
    assert set(used.tolist()) != set(np.concatenate(pools(draw(samples=200, seed=1))).tolist())


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_draws_the_same_partition_again_and_another_seed_another(kind: Kind) -> None:
    assert equal(draw(kind=kind, seed=3), draw(kind=kind, seed=3))
    one, other = draw(kind=kind, seed=3), draw(kind=kind, seed=4)
    for client in range(10):
        assert set(one.test[client].tolist()) != set(other.test[client].tolist())


def test_the_attacked_clients_are_drawn_or_those_listed() -> None:
    for number in (1, 3, 9):
        clients = draw(attacked=number).attacked.tolist()
        assert clients == sorted(set(clients))
        assert len(clients) == number
    assert {draw(seed=seed).attacked[0] for seed in range(60)} == set(range(10))
    assert draw(seed=1, attacked=(7, 2)).attacked.tolist() == [2, 7]


def save(part: Partition, path: Path) -> Path:
    np.savez(path, allow_pickle=False, **part.arrays())
    return path


@pytest.mark.parametrize("backdoor", [BACKDOOR, None])
@pytest.mark.parametrize("kind", KINDS)
def test_a_partition_is_loaded_as_it_was_saved(tmp_path: Path, kind: Kind, backdoor: patch.Params | None) -> None:
    part = draw(kind=kind, backdoor=backdoor, validation_share=0.0, attacked=2)
    loaded = load(save(part, tmp_path / "partition.npz"))
    for split in SPLITS:
        for one, other in zip(getattr(loaded, split), getattr(part, split), strict=True):
            assert one.dtype == np.int64
            np.testing.assert_array_equal(one, other)
    assert equal(loaded, part)
    assert loaded.attack.keys() == part.attack.keys()
    assert all(loaded.attack[name].dtype == value.dtype for name, value in part.attack.items())
    assert bool(loaded.attack) == bool(len(loaded.attacked)) == bool(len(loaded.backdoored)) == (backdoor is not None)


def test_the_same_draw_is_saved_to_the_same_bytes(tmp_path: Path) -> None:
    one, again = save(draw(seed=2), tmp_path / "a.npz"), save(draw(seed=2), tmp_path / "b.npz")
    other = save(draw(seed=3), tmp_path / "c.npz")
    assert one.read_bytes() == again.read_bytes() != other.read_bytes()


def test_too_few_samples_are_refused() -> None:
    labels = np.zeros(40, np.int64)
    unequal = [np.arange(30), np.arange(30, 40)]  # 24 and 8 training samples

    def drawn(share: float, train: float = 0.8, samples: int | None = None) -> partition.Partition:
        return partition.draw(labels, 0, samples, lambda labels, random: unequal, train, share, 1, None)

    assert [len(rows) for rows in drawn(0.125).validation] == [3, 1]
    assert [len(rows) for rows in drawn(0.0).validation] == [0, 0]
    told = r"^client 1 gets no validation sample: 0\.1 of its 8 training samples is less than one; use fewer"
    with pytest.raises(UserError, match=told):
        drawn(0.1)
    with pytest.raises(UserError, match="client 0 gets 30 training and 0 test samples of 30; both must be at least 1"):
        drawn(0.0, train=1.0)
    with pytest.raises(UserError, match="samples: must be at most 40, the size of the data set, got 41"):
        drawn(0.1, samples=41)
