"""The partition: who holds what, who is forgotten, what carries the trigger."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from fu.data import partition
from fu.data.assignment import pathological
from fu.data.clients import ClientData, Poison
from fu.data.partition import Partition
from fu.errors import UserError
from fu.stages import partition as stage

SIZES = (70, 63, 81, 77, 64, 90, 72, 68, 75, 71)  # samples per class
BACKDOOR = {"share": 0.8, "size": 3, "margin": 1, "value": 0.8333, "label_shift": 0.5}


def labels_of(sizes: tuple[int, ...] = SIZES, seed: int = 5) -> NDArray[np.int64]:
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))


LABELS = labels_of()


def spec(**changes: Any) -> dict[str, Any]:
    return {
        "seed": 0,
        "clients": 10,
        "partition": {"kind": "iid", "classes_per_client": None},
        "train_share": 6 / 7,
        "validation_share": 0.1,
        "forget": {"clients": 1},
        "backdoor": BACKDOOR,
        **changes,
    }


def pat(classes_per_client: int) -> dict[str, Any]:
    return {"kind": "pat", "classes_per_client": classes_per_client}


def draw(**changes: Any) -> Partition:
    return partition.draw(LABELS, 10, spec(**changes))


def pools(part: Partition) -> list[NDArray[np.int64]]:
    return [np.concatenate(splits) for splits in zip(part.train, part.validation, part.test, strict=True)]


KINDS = [
    pytest.param(kind, id=name)
    for name, kind in {
        "iid": {"kind": "iid", "classes_per_client": None},
        "pat-10": pat(1),
        "pat-20": pat(2),
        "pat-50": pat(5),
        "pat-100": pat(10),
    }.items()
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_sample_lies_in_exactly_one_split_of_one_client(kind: dict[str, Any]) -> None:
    part = draw(partition=kind)
    assert len(part.train) == len(part.validation) == len(part.test) == part.clients == 10
    everything = np.concatenate(pools(part))
    assert len(everything) == sum(SIZES)
    assert sorted(everything.tolist()) == list(range(sum(SIZES)))


@pytest.mark.parametrize(
    ("classes_per_client", "held"),
    [
        (1, [{client} for client in range(10)]),
        (2, [{0, 1}, {0, 1}, {2, 3}, {2, 3}, {4, 5}, {4, 5}, {6, 7}, {6, 7}, {8, 9}, {8, 9}]),
        (5, [{0, 1, 2, 3, 4}] * 5 + [{5, 6, 7, 8, 9}] * 5),
        (10, [set(range(10))] * 10),
    ],
)
def test_a_pathological_client_holds_its_classes_and_no_other(classes_per_client: int, held: list[set[int]]) -> None:
    part = draw(partition=pat(classes_per_client))
    assert [set(LABELS[pool].tolist()) for pool in pools(part)] == held


def test_clients_of_one_class_share_it_equally() -> None:
    for pool, (a, b) in zip(
        pools(draw(partition=pat(2))), [(c // 2 * 2, c // 2 * 2 + 1) for c in range(10)], strict=True
    ):
        counts = np.bincount(LABELS[pool], minlength=10)
        assert abs(counts[a] - SIZES[a] / 2) <= 0.5
        assert abs(counts[b] - SIZES[b] / 2) <= 0.5


def test_an_iid_client_holds_an_equal_share_of_every_class() -> None:
    counts = np.stack([np.bincount(LABELS[pool], minlength=10) for pool in pools(draw())])
    assert counts.shape == (10, 10)
    np.testing.assert_array_equal(counts.sum(0), SIZES)
    for label, size in enumerate(SIZES):
        assert set(counts[:, label].tolist()) <= {size // 10, -(-size // 10)}


def test_an_iid_draw_mixes_the_order_of_the_data_set() -> None:
    first, second = pools(draw(seed=0))[0], pools(draw(seed=1))[0]
    assert set(first.tolist()) != set(second.tolist())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("train_share", "validation_share"), [(6 / 7, 0.1), (0.5, 0.0), (0.8, 0.25)])
def test_the_shares_of_a_client_are_those_stated(
    kind: dict[str, Any], train_share: float, validation_share: float
) -> None:
    part = draw(partition=kind, train_share=train_share, validation_share=validation_share)
    for client, pool in enumerate(pools(part)):
        training = int(len(pool) * train_share)
        held_out = int(training * validation_share)
        assert len(part.validation[client]) == held_out
        assert len(part.train[client]) == training - held_out
        assert len(part.test[client]) == len(pool) - training > 0


def test_the_test_samples_of_a_client_are_neither_trained_nor_validated_on_by_anybody() -> None:
    part = draw(partition=pat(2))
    used = set(np.concatenate([*part.train, *part.validation]).tolist())
    for test in part.test:
        assert used.isdisjoint(test.tolist())


def test_the_splits_of_a_client_are_drawn_and_not_cut_in_the_order_of_classes() -> None:
    part = draw(partition=pat(5))
    for client in range(10):
        assert len(set(LABELS[part.test[client]].tolist())) >= 3
        assert len(set(LABELS[part.validation[client]].tolist())) >= 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("samples", [200, sum(SIZES) - 1])
def test_as_many_samples_as_stated_are_dealt_out_and_each_once(kind: dict[str, Any], samples: int) -> None:
    part = draw(partition=kind, samples=samples)
    used = np.concatenate(pools(part))
    assert len(used) == len(set(used.tolist())) == samples
    assert 0 <= used.min() <= used.max() < sum(SIZES)
    assert set(part.backdoored.tolist()) <= set(part.train[part.forgotten[0]].tolist())


@pytest.mark.parametrize(
    ("classes_per_client", "held"), [(1, [{client} for client in range(10)]), (5, [set(range(5))] * 5)]
)
def test_a_client_of_fewer_samples_holds_its_classes_and_no_other(
    classes_per_client: int, held: list[set[int]]
) -> None:
    part = draw(partition=pat(classes_per_client), samples=300)
    assert [set(LABELS[pool].tolist()) for pool in pools(part)][: len(held)] == held


def test_the_samples_in_use_are_drawn_from_the_whole_data_set() -> None:
    used = np.concatenate(pools(draw(samples=200)))
    assert used.max() > 600  # training and test samples
    counts = np.bincount(LABELS[used], minlength=10)
    assert counts.min() >= 8
    assert counts.max() <= 35
    assert set(used.tolist()) == set(np.concatenate(pools(draw(samples=200))).tolist())
    assert set(used.tolist()) != set(np.concatenate(pools(draw(samples=200, seed=1))).tolist())


@pytest.mark.parametrize("kind", KINDS)
def test_to_name_no_number_of_samples_is_to_use_all(kind: dict[str, Any]) -> None:
    assert equal(draw(partition=kind, samples=None), draw(partition=kind))
    everything = draw(partition=kind, samples=sum(SIZES))
    assert sorted(np.concatenate(pools(everything)).tolist()) == list(range(sum(SIZES)))


def equal(one: Partition, other: Partition) -> bool:
    first, second = one.arrays(), other.arrays()
    return set(first) == set(second) and all(np.array_equal(first[key], second[key]) for key in first)


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_draws_the_same_partition_again_and_another_seed_another(kind: dict[str, Any]) -> None:
    assert equal(draw(partition=kind, seed=3), draw(partition=kind, seed=3))
    one, other = draw(partition=kind, seed=3), draw(partition=kind, seed=4)
    for client in range(10):
        assert set(one.test[client].tolist()) != set(other.test[client].tolist())


def test_the_forgotten_client_varies_with_the_seed() -> None:
    drawn = [draw(seed=seed).forgotten for seed in range(30)]
    assert drawn == [draw(seed=seed).forgotten for seed in range(30)]
    assert {len(clients) for clients in drawn} == {1}
    assert len({clients[0] for clients in drawn}) >= 7
    assert all(0 <= clients[0] < 10 for clients in drawn)


@pytest.mark.parametrize("number", [1, 3, 9])
def test_as_many_clients_are_forgotten_as_stated(number: int) -> None:
    part = draw(forget={"clients": number})
    assert len(set(part.forgotten)) == number
    assert part.forgotten == sorted(part.forgotten)
    assert set(part.retained) == set(range(10)) - set(part.forgotten)
    assert part.forget_round.tolist() == [-1] * number


def test_the_forgotten_clients_follow_a_given_list_whatever_the_seed() -> None:
    for seed in range(5):
        assert draw(seed=seed, forget={"clients": [7, 2]}).forgotten == [2, 7]


@pytest.mark.parametrize("share", [0.0, 0.25, 0.8, 1.0])
def test_the_backdoored_samples_are_the_stated_share_of_the_forgotten_training_data(share: float) -> None:
    part = draw(forget={"clients": [1, 6]}, backdoor={**BACKDOOR, "share": share})
    for client in (1, 6):
        marked = set(part.backdoored.tolist()) & set(part.train[client].tolist())
        assert len(marked) == round(share * len(part.train[client]))
    assert len(part.backdoored) == sum(round(share * len(part.train[client])) for client in (1, 6))
    assert part.backdoored.tolist() == sorted(set(part.backdoored.tolist()))


def test_a_scenario_without_backdoor_marks_nothing() -> None:
    part = draw(backdoor=None)
    assert (part.backdoored.size, part.trigger.size, part.label_shift) == (0, 0, 0)


def test_the_trigger_is_a_drawn_pattern_with_at_least_one_pixel() -> None:
    patterns = [draw(seed=seed).trigger for seed in range(20)]
    assert {pattern.shape for pattern in patterns} == {(3, 3)}
    assert all(pattern.dtype == bool and pattern.any() for pattern in patterns)
    assert len({pattern.tobytes() for pattern in patterns}) >= 15
    single = [draw(seed=seed, backdoor={**BACKDOOR, "size": 1}).trigger.tolist() for seed in range(8)]
    assert single == [[[True]]] * 8


@pytest.mark.parametrize(("classes", "shift"), [(10, 5), (100, 50), (5, 2)])
def test_labels_shift_by_half_the_classes(classes: int, shift: int) -> None:
    labels = np.arange(classes).repeat(20)
    assert partition.draw(labels, classes, spec(clients=4)).label_shift == shift


def save(part: Partition, path: Path) -> Path:
    np.savez(path, allow_pickle=False, **part.arrays())
    return path


@pytest.mark.parametrize("backdoor", [BACKDOOR, None])
@pytest.mark.parametrize("kind", KINDS)
def test_a_partition_is_loaded_as_it_was_saved(
    tmp_path: Path, kind: dict[str, Any], backdoor: dict[str, Any] | None
) -> None:
    part = draw(partition=kind, backdoor=backdoor, validation_share=0.0, forget={"clients": 2})
    loaded = partition.load(save(part, tmp_path / "partition.npz"))
    for split in partition.SPLITS:
        for one, other in zip(getattr(loaded, split), getattr(part, split), strict=True):
            assert one.dtype == np.int64
            np.testing.assert_array_equal(one, other)
    assert equal(loaded, part)
    assert (loaded.trigger_margin, loaded.trigger_value, loaded.label_shift) == (
        (1, 0.8333, 5) if backdoor else (0, 0.0, 0)
    )


def test_the_same_draw_is_saved_to_the_same_bytes(tmp_path: Path) -> None:
    one, again = save(draw(seed=2), tmp_path / "a.npz"), save(draw(seed=2), tmp_path / "b.npz")
    other = save(draw(seed=3), tmp_path / "c.npz")
    assert one.read_bytes() == again.read_bytes() != other.read_bytes()


def test_the_stage_saves_what_is_drawn_from_train_and_test_samples_merged(tmp_path: Path) -> None:
    labels = LABELS.astype(np.uint8)
    x = np.zeros((len(labels), 28, 28), np.uint8)
    np.savez(tmp_path / "digits.npz", x_train=x[:500], y_train=labels[:500], x_test=x[500:], y_test=labels[500:])
    values = {**spec(partition=pat(2)), "dataset": "digits"}
    output = tmp_path / "made" / "partition.npz"
    stage.main(["--spec", json.dumps(values), "--data", str(tmp_path / "digits.npz"), "--output", str(output)])
    assert equal(partition.load(output), draw(partition=pat(2)))
    assert output.read_bytes() == save(draw(partition=pat(2)), tmp_path / "again.npz").read_bytes()
    assert [path.name for path in output.parent.iterdir()] == ["partition.npz"]


@pytest.mark.parametrize("clients", [10, 20, 100])
@pytest.mark.parametrize("classes_per_client", range(1, 11))
def test_clients_in_tens_are_all_served_and_hold_no_more_classes_than_stated(
    clients: int, classes_per_client: int
) -> None:
    sharing = clients * classes_per_client // 10
    holders = pathological(clients, 10, classes_per_client)
    held = [sum(client in chosen for chosen in holders) for client in range(clients)]
    assert len(holders) == 10
    assert {len(chosen) == len(set(chosen)) for chosen in holders} == {True}
    assert 1 <= min(map(len, holders)) <= max(map(len, holders)) == sharing
    assert 1 <= min(held) <= max(held) == classes_per_client
    if 10 % classes_per_client == 0:
        assert [len(chosen) for chosen in holders] == [sharing] * 10
        assert held == [classes_per_client] * clients


@pytest.mark.parametrize(
    ("clients", "classes_per_client", "words"),
    [
        (3, 2, "3 clients with 2 of 10 classes each leave client 0 without data"),
        (3, 5, "3 clients with 5 of 10 classes each leave client 2 without data"),
        (12, 1, "12 clients with 1 of 10 classes each leave client 10 without data"),
        (10, 0, "a client cannot hold 0 classes of 10"),
        (10, 11, "a client cannot hold 11 classes of 10"),
    ],
)
def test_an_assignment_that_leaves_a_client_empty_is_refused(clients: int, classes_per_client: int, words: str) -> None:
    with pytest.raises(UserError, match=words):
        pathological(clients, 10, classes_per_client)


def part_of(forgotten: list[int], share: float = 0.8) -> Partition:
    return draw(forget={"clients": forgotten}, backdoor={**BACKDOOR, "share": share}, seed=1)


def client_data(part: Partition, poison: Poison, side: int = 28, channels: int = 1) -> ClientData:
    x = torch.randn(len(LABELS), side, side, channels, generator=torch.Generator().manual_seed(0))
    return ClientData(x, torch.from_numpy(LABELS.copy()), part, 10, poison)


@pytest.mark.parametrize(("side", "channels"), [(28, 1), (32, 3)])
def test_the_trigger_sets_its_ones_and_leaves_every_other_pixel(side: int, channels: int) -> None:
    part = part_of([4])
    data = client_data(part, "all", side, channels)
    before, labels = data.x[:50].clone(), data.y[:50].clone()
    x, y = data.trigger(data.x[:50], data.y[:50])
    expected = before.clone()
    for row in range(3):
        for column in range(3):
            if part.trigger[row, column]:
                expected[:, row - 4, column - 4] = 0.8333
    assert torch.equal(x, expected)
    assert torch.equal(y, (labels + 5) % 10)
    assert torch.equal(data.x[:50], before)
    assert torch.equal(data.y[:50], labels)
    changed = {tuple(place) for place in (x != before).any(0).any(-1).nonzero().tolist()}
    assert changed == {(side - 4 + row, side - 4 + column) for row, column in np.argwhere(part.trigger).tolist()}


def test_label_1_becomes_6_and_label_7_becomes_2() -> None:
    data = client_data(part_of([4]), "all")
    assert data.trigger(data.x[:2], torch.tensor([1, 7]))[1].tolist() == [6, 2]


def is_marked(data: ClientData, client: int) -> list[bool]:
    """Return, for each training sample, whether it carries trigger and shifted label (else it must be untouched)."""
    part = data.partition
    x, y = data.train(client)
    assert x.shape == (len(part.train[client]), 1, 28, 28)
    found = []
    for image, label, sample in zip(x, y, part.train[client].tolist(), strict=True):
        clean = torch.equal(image[0], data.x[sample, ..., 0]) and int(label) == LABELS[sample]
        poisoned_x, poisoned_y = data.trigger(data.x[sample : sample + 1], data.y[sample : sample + 1])
        poisoned = torch.equal(image[0], poisoned_x[0, ..., 0]) and int(label) == int(poisoned_y[0])
        assert clean != poisoned
        found.append(poisoned)
    return found


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
def test_the_original_training_sees_the_trigger_on_exactly_the_backdoored_samples(share: float) -> None:
    part = part_of([2, 5], share)
    data = client_data(part, "share")
    for client in (2, 5):
        marked = is_marked(data, client)
        assert marked == np.isin(part.train[client], part.backdoored).tolist()
        assert sum(marked) == round(share * len(part.train[client]))


def test_unlearning_sees_the_trigger_on_all_samples_of_the_forgotten_clients() -> None:
    data = client_data(part_of([2, 5]), "all")
    for client in (2, 5):
        assert all(is_marked(data, client))


@pytest.mark.parametrize("poison", ["share", "all"])
def test_retained_clients_never_see_the_trigger(poison: Poison) -> None:
    data = client_data(part_of([2, 5]), poison)
    for client in (0, 1, 3, 4, 6, 7, 8, 9):
        assert not any(is_marked(data, client))


@pytest.mark.parametrize("poison", ["share", "all"])
def test_held_out_data_never_carry_the_trigger(poison: Poison) -> None:
    part = part_of([2, 5])
    data = client_data(part, poison)
    for client in range(10):
        for name, rows in (("validation", part.validation[client]), ("test", part.test[client])):
            x, y = data.held_out(client, "validation" if name == "validation" else "test")
            assert torch.equal(x, data.x[rows].permute(0, 3, 1, 2))
            assert y.tolist() == LABELS[rows].tolist()


def test_chosen_rows_of_a_client_come_in_the_order_asked_for() -> None:
    data = client_data(part_of([2]), "share")
    for client in (2, 3):
        x, y = data.train(client)
        rows = torch.tensor([5, 0, 3])
        chosen_x, chosen_y = data.train(client, rows)
        assert torch.equal(chosen_x, x[rows])
        assert torch.equal(chosen_y, y[rows])


def test_the_backdoored_view_of_a_forgotten_client_holds_all_its_training_samples() -> None:
    part = part_of([2], share=0.3)
    data = client_data(part, "share")
    x, y = data.backdoored(2)
    expected_x, expected_y = data.trigger(data.x[part.train[2]], data.y[part.train[2]])
    assert len(y) == len(part.train[2]) == data.size(2)
    assert torch.equal(x, expected_x.permute(0, 3, 1, 2))
    assert torch.equal(y, expected_y)


def test_without_a_backdoor_a_forgotten_client_sees_clean_data() -> None:
    part = draw(forget={"clients": [2]}, backdoor=None)
    data = client_data(part, "all")
    x, y = data.train(2)
    assert torch.equal(x, data.x[part.train[2]].permute(0, 3, 1, 2))
    assert y.tolist() == LABELS[part.train[2]].tolist()
