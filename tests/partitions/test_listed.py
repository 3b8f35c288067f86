"""Listed: who holds what, by hand and as Shao et al. have it on MNIST."""

import numpy as np
import pytest

from fu.partitions import listed
from fu.partitions.listed import FIGURE_6, Params

# Samples of each class in MNIST's training and test part, and what each of the paper's clients then holds.
TRAINING = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
TEST = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
TRAIN_SIZES = [5467, 5326, 6809, 9767, 5050, 5307, 4666, 6806, 5463, 5339]
TEST_SIZES = [911, 887, 1139, 1622, 849, 884, 783, 1136, 910, 879]


def test_a_class_goes_to_its_holders_in_the_order_of_the_data_and_the_first_gets_one_more() -> None:
    labels = np.array([0, 1, 0, 1, 0, 2, 0, 0, 2])
    p = Params(classes=[[0, 1], [2, 0], [1]])
    found = listed.deal(labels, 3, 3, p, np.random.default_rng(0))
    assert [pool.tolist() for pool in found] == [[0, 2, 4, 1], [6, 7, 5, 8], [3]]


@pytest.mark.parametrize(("counts", "sizes"), [(TRAINING, TRAIN_SIZES), (TEST, TEST_SIZES)])
def test_the_paper_s_clients_hold_as_much_of_mnist_as_in_its_code(counts: list[int], sizes: list[int]) -> None:
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(10), counts))
    found = listed.deal(labels, 10, 10, Params(classes=FIGURE_6), np.random.default_rng(0))
    assert [len(pool) for pool in found] == sizes
    assert sorted(np.concatenate(found).tolist()) == list(range(len(labels)))
    for pool, held in zip(found, FIGURE_6, strict=True):
        assert {*labels[pool].tolist()} == {*held}


def test_the_share_of_the_forgotten_clients_is_the_paper_s() -> None:
    total = sum(TRAIN_SIZES)
    assert sum(TRAIN_SIZES[client] for client in (2, 3, 7)) / total == pytest.approx(0.3897, abs=5e-5)
    assert sum(TRAIN_SIZES[client] for client in (1, 9)) / total == pytest.approx(0.17775, abs=5e-6)
    of_cifar10 = np.repeat(np.arange(10), 5000)
    pools = listed.deal(of_cifar10, 10, 10, Params(classes=FIGURE_6), np.random.default_rng(0))
    assert sum(len(pools[client]) for client in (7, 8)) / 50_000 == pytest.approx(0.205, abs=5e-4)


def test_without_clients_3_4_and_8_no_model_knows_the_classes_8_and_9() -> None:
    stay = {label for client, held in enumerate(FIGURE_6) if client not in (2, 3, 7) for label in held}
    assert {*range(10)} - stay == {8, 9}
    assert sum(TEST[label] for label in stay) / sum(TEST) == 0.8017


@pytest.mark.parametrize(
    ("classes", "said"),
    [
        ([[0], [1]], "lists for 2 clients, but there are 3"),
        ([[0], [1], [3]], "client 2 holds class 3; there are 0 to 2"),
        ([[0], [1], [1]], "nobody holds class 2"),
        ([[0, 0], [1], [2]], "client 0 holds a class twice"),
    ],
)
def test_lists_that_do_not_fit_are_refused(classes: list[list[int]], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        listed.check(3, 3, Params(classes=classes))
