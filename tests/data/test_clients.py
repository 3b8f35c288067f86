"""What clients hold: who sees the trigger on what, and how images are normalised."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fu.attacks import patch
from fu.data import clients, dataset
from fu.data.archives import Arrays
from fu.data.clients import ClientData, Poison
from fu.data.dataset import about
from fu.data.partition import POOLS, SPLITS, Partition
from fu.data.request import Request
from fu.errors import UserError
from tests.data.draws import LABELS, client_data, draw, draw_official
from tests.data.files import arrays_of
from tests.factories import CLASSES, make_data, make_partition


def part_of(forgotten: list[int], share: float = 0.8) -> Partition:
    return draw(attacked=tuple(forgotten), backdoor=patch.Params(share=share), seed=1)


def is_marked(data: ClientData, client: int) -> list[bool]:
    """Return, for each training sample, whether it carries trigger and shifted label (else it must be untouched)."""
    part, mark = data.partition, partial(patch.mark, data.partition.attack, classes=CLASSES)
    x, y = data.train(client)
    assert x.shape == (len(part.train[client]), 1, 28, 28)
    found = []
    for image, label, sample in zip(x, y, part.train[client].tolist(), strict=True):
        clean = torch.equal(image[0], data.x[sample, ..., 0]) and int(label) == LABELS[sample]
        poisoned_x, poisoned_y = mark(data.x[sample : sample + 1], data.y[sample : sample + 1])
        poisoned = torch.equal(image[0], poisoned_x[0, ..., 0]) and int(label) == int(poisoned_y[0])
        assert clean != poisoned
        found.append(poisoned)
    return found


@pytest.mark.parametrize(("poison", "share"), [("share", 0.0), ("share", 0.3), ("share", 0.8), ("all", 0.8)])
def test_training_sees_the_trigger_on_exactly_the_backdoored_samples_and_unlearning_on_all_of_the_forgotten(
    poison: Poison, share: float
) -> None:
    part = part_of([2, 5], share)
    data = client_data(part, poison)
    for client, rows in enumerate(part.train):
        marked = np.isin(rows, part.backdoored) if poison == "share" else np.full(len(rows), client in (2, 5))
        assert is_marked(data, client) == marked.tolist()
        assert client not in (2, 5) or marked.sum() == round((share if poison == "share" else 1) * len(rows))
        x, y = data.held_out(client, "test")  # never with a trigger
        assert torch.equal(x, data.x[part.test[client]].permute(0, 3, 1, 2))
        assert y.tolist() == LABELS[part.test[client]].tolist()
        assert data.held_out(client, "validation")[1].tolist() == LABELS[part.validation[client]].tolist()


def test_chosen_rows_of_a_client_come_in_the_order_asked_for() -> None:
    data = client_data(part_of([2]), "share")
    for client in (2, 3):
        x, y = data.train(client)
        rows = torch.tensor([5, 0, 3])
        chosen_x, chosen_y = data.train(client, rows)
        assert torch.equal(chosen_x, x[rows])
        assert torch.equal(chosen_y, y[rows])


@pytest.mark.parametrize("poison", ["share", "all"])
def test_samples_of_any_clients_come_as_these_train_on_them_in_the_order_asked_for(poison: Poison) -> None:
    part = part_of([0, 2], 0.5)
    data = make_data(part, poison=poison)
    rows = np.concatenate([part.train[client][::-1] for client in (2, 1, 0)])
    x, y = data.trained_on(rows)
    own = [tuple(held.flip(0) for held in data.train(client)) for client in (2, 1, 0)]
    assert torch.equal(x, torch.cat([images for images, _ in own]))
    assert torch.equal(y, torch.cat([labels for _, labels in own]))
    assert not torch.equal(y, data.y[torch.from_numpy(rows)])
    assert torch.equal(data.x[torch.from_numpy(rows)], make_data(part).x[torch.from_numpy(rows)])  # a copy was marked


def test_the_backdoored_view_of_a_forgotten_client_holds_all_its_training_samples() -> None:
    part = part_of([2], share=0.3)
    data = client_data(part, "share")
    x, y = data.backdoored(2)
    expected_x, expected_y = patch.mark(part.attack, data.x[part.train[2]], data.y[part.train[2]], CLASSES)
    assert len(y) == len(part.train[2]) == data.size(2)
    assert torch.equal(x, expected_x.permute(0, 3, 1, 2))
    assert torch.equal(y, expected_y)


def test_without_a_backdoor_a_forgotten_client_sees_clean_data() -> None:
    part = draw(backdoor=None)
    data = client_data(part, "all", request=Request(np.array([2])))
    assert (data.forgotten, data.retained) == ([2], [0, 1, 3, 4, 5, 6, 7, 8, 9])
    x, y = data.train(2)
    assert torch.equal(x, data.x[part.train[2]].permute(0, 3, 1, 2))
    assert y.tolist() == LABELS[part.train[2]].tolist()


def one_client(samples: int) -> Partition:
    """Return a partition of so many samples, half of them to train, all of one client."""
    rows = np.random.default_rng(0).permutation(samples)
    empty = np.empty(0, np.int64)
    return Partition([rows[: samples // 2]], [empty], [rows[samples // 2 :]])


def written(folder: Path, dataset: str) -> tuple[Arrays, Callable[[], ClientData]]:
    """Write a small archive and its partition; return its arrays, and what loads them."""
    archive, part, arrays = folder / f"{dataset}.npz", folder / "partition.npz", arrays_of(dataset)
    np.savez(archive, allow_pickle=False, **arrays)
    samples = len(arrays["y_train"]) + len(arrays["y_test"])
    np.savez(part, allow_pickle=False, **one_client(samples).arrays())
    return arrays, partial(clients.load, archive, part, dataset, None, torch.device("cpu"), "share")


@pytest.mark.parametrize(
    ("dataset", "mean", "std"),
    [
        ("mnist", [0.0], [1.0]),
        ("digits", [0.195], [0.334]),
        ("cifar10", [0.4914, 0.4822, 0.4465], [0.2023, 0.1994, 0.2010]),
        ("digits_rgb", [0.195] * 3, [0.334] * 3),
    ],
)
def test_every_data_set_is_normalised_with_its_statistics(
    tmp_path: Path, dataset: str, mean: list[float], std: list[float]
) -> None:
    arrays, load = written(tmp_path, dataset)
    loaded = load()
    pixels = np.concatenate([arrays["x_train"], arrays["x_test"]])
    expected = (pixels.astype(np.float64) / 255 - mean) / std
    assert (loaded.x.dtype, loaded.y.dtype) == (torch.float32, torch.int64)
    np.testing.assert_allclose(loaded.x.numpy(), expected, rtol=0, atol=2e-6)
    np.testing.assert_array_equal(loaded.y.numpy(), np.concatenate([arrays["y_train"], arrays["y_test"]]))
    assert (loaded.classes, loaded.shape) == (about(dataset).classes, about(dataset).shape)


def test_a_data_set_that_was_kept_is_not_read_again_until_its_file_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "KEPT", {})
    monkeypatch.setattr(clients, "READ", [])
    archive = tmp_path / "digits.npz"
    arrays, load = written(tmp_path, "digits")
    first = load()
    assert [(str(archive), "digits")] == clients.READ
    assert load().x.data_ptr() != first.x.data_ptr()  # who reads keeps nothing
    clients.keep(archive, "digits")
    assert clients.READ == []
    kept = load()
    assert load().x.data_ptr() == kept.x.data_ptr() != first.x.data_ptr()
    assert torch.equal(kept.x, first.x)
    assert torch.equal(kept.y, first.y)
    assert clients.READ == []
    with archive.open("r+b") as file:  # as long as before
        np.savez(file, allow_pickle=False, **{**arrays, "x_train": 255 - arrays["x_train"]})
    assert not torch.equal(load().x, first.x)
    assert len(clients.READ) == 1
    clients.keep(archive, "digits")
    assert len(clients.KEPT) == 1  # not what its file held before
    assert not torch.equal(load().x, first.x)
    monkeypatch.setattr(clients, "KEPT_BYTES", 2 * first.x.nbytes)
    for kept_now in (["digits", "other"], ["other", "third"]):
        np.savez(tmp_path / f"{kept_now[-1]}.npz", allow_pickle=False, **arrays)
        clients.keep(tmp_path / f"{kept_now[-1]}.npz", "digits")
        assert [key[0].stem for key in clients.KEPT] == kept_now
    monkeypatch.setattr(clients, "KEPT_BYTES", 0)
    clients.keep(archive, "digits")
    assert [key[0].stem for key in clients.KEPT] == ["digits"]  # however large
    monkeypatch.setattr(dataset, "RESIDENT_BYTES", 0)
    clients.KEPT.clear()
    clients.keep(archive, "digits")  # its images are mapped
    assert not clients.KEPT


def test_a_loaded_attack_marks_what_the_partition_says(tmp_path: Path) -> None:
    archive, file = tmp_path / "digits.npz", tmp_path / "partition.npz"
    np.savez(archive, allow_pickle=False, **arrays_of("digits", len(LABELS) - 100, 100))  # type: ignore[arg-type]
    part = draw(attacked=(2,))
    np.savez(file, allow_pickle=False, **part.arrays())  # type: ignore[arg-type]
    for attack in ("patch", None):
        data = clients.load(archive, file, "digits", attack, torch.device("cpu"), "share")
        x, y = data.x[part.train[2]], data.y[part.train[2]]
        marked = np.isin(part.train[2], part.backdoored) & (attack is not None)
        marked_x, marked_y = patch.mark(part.attack, x, y, CLASSES)
        rows = torch.from_numpy(marked)
        expected = torch.where(rows[:, None, None, None], marked_x, x).permute(0, 3, 1, 2)
        assert torch.equal(data.train(2)[0], expected)
        assert torch.equal(data.train(2)[1], torch.where(rows, marked_y, y))


def test_the_forgotten_are_those_of_the_request_or_those_attacked_and_the_retained_all_others_who_take_part() -> None:
    part = draw_official(attacked=(2, 5), absent=3, backdoor=patch.Params())
    absent = set(part.absent.tolist())
    present = [client for client in range(10) if client not in absent]
    assert (len(absent), part.present) == (3, present)
    attacked = client_data(part, "share")
    assert (attacked.forgotten, attacked.retained) == ([2, 5], [k for k in present if k not in (2, 5)])
    one = present[-1]
    asked = client_data(part, "share", request=Request(np.array([one])))
    assert (asked.forgotten, asked.retained) == ([one], present[:-1])
    nobody = client_data(draw_official(absent=3), "share")
    assert (nobody.forgotten, nobody.retained) == ([], nobody.partition.present)


def test_a_pool_holds_its_samples_in_their_order_and_the_first_of_them() -> None:
    part = draw_official(server=40, held_out=30)
    data = client_data(part, "share")
    for name, first in (("server", None), ("server", 15), ("held_out", None), ("global_test", None)):
        rows = getattr(part, name)[:first]
        x, y = data.pool(name, first)  # type: ignore[arg-type]
        assert torch.equal(x, data.x[rows].permute(0, 3, 1, 2))
        assert y.tolist() == LABELS[rows].tolist()
    assert torch.equal(data.global_test[1], data.pool("global_test")[1])
    own = client_data(draw(), "share")
    assert own.global_test[1].tolist() == LABELS[np.concatenate(own.partition.test)].tolist()


@pytest.mark.parametrize("own", [True, False])
def test_what_methods_get_names_no_test_sample_and_trains_as_before(own: bool) -> None:
    part = draw(attacked=(2,)) if own else draw_official(server=40, held_out=30, attacked=(2,), backdoor=patch.Params())
    data = client_data(part, "share")
    tests = np.concatenate([*part.test, part.held_out, part.global_test])
    assert len(data.global_test[1]) > 0  # which is kept from here on
    without = data.without_tests()
    arrays = without.partition.arrays()
    assert not np.isin(tests, np.concatenate([arrays[name] for name in (*SPLITS, *POOLS)])).any()
    for name in ("train", "validation", "server", "attacked", "backdoored", "absent"):
        assert np.array_equal(arrays[name], part.arrays()[name]), name
    assert without.x.data_ptr() == data.x.data_ptr()
    for client in part.present:
        pairs = zip(without.train(client), data.train(client), strict=True)
        assert all(torch.equal(one, other) for one, other in pairs)
    asks: list[Callable[[ClientData], Any]] = [
        lambda data: data.held_out(0, "test"),
        lambda data: data.pool("held_out"),
        lambda data: data.pool("global_test"),
        lambda data: data.global_test,
        lambda data: data.retained_test,
    ]
    for found in (without, without.dealt(part.train)):
        for ask in asks:
            with pytest.raises(UserError, match=r"^ClientData: methods and trainings get no test or held-out samples"):
                ask(found)
        assert len(found.held_out(0, "validation")[1]) == len(part.validation[0])
        assert len(found.pool("server")[1]) == len(part.server)
    assert len(data.retained_test) > 0  # the data themselves still name them


def test_the_retained_clients_tests_are_theirs_or_those_of_nobody() -> None:
    own, nobodys = draw(attacked=(2,)), draw_official(attacked=(2,), backdoor=patch.Params())
    rows = [rows for client, rows in enumerate(own.test) if client != 2]
    assert client_data(own, "share").retained_test.tolist() == np.concatenate(rows).tolist()
    assert client_data(nobodys, "share").retained_test.tolist() == nobodys.global_test.tolist()


def test_samples_that_are_asked_for_are_no_longer_their_owners() -> None:
    part = make_partition((7, 12, 9), trigger=False)
    gone = np.sort(np.concatenate([part.train[0][[4, 1]], part.train[2][:1]]))
    whole = make_data(part)
    data = ClientData(whole.x, whole.y, part, CLASSES, "all", None, Request(gone[:0], gone))
    assert [data.size(client) for client in range(3)] == [5, 12, 8]
    for client in range(3):
        left = [row for row in part.train[client] if row not in gone]
        assert data.rows[client].tolist() == left
        assert torch.equal(data.train(client)[1], whole.y[torch.tensor(left)])
        assert data.places(client, np.array(left)[[2, 0]]).tolist() == [2, 0]
