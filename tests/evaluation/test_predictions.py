"""The probes of a run, and what a model says on them, written and read."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from fu.audits.models import ALTERED, AUGMENTED, FORGOTTEN, HELD_OUT, TEST, TRAIN, TRIGGERED
from fu.data.clients import ClientData
from fu.data.partition import Indices
from fu.data.request import Request
from fu.errors import UserError
from fu.evaluation import predictions
from fu.seeds import derive_integer
from tests.factories import SIZES, make_data, make_partition


def same(probe: tuple[Tensor, Tensor], data: ClientData, rows: Indices) -> bool:
    return all(torch.equal(*pair) for pair in zip(probe, data.clean(rows), strict=True))


def test_probes_are_the_forgotten_clients_training_samples_and_the_retained_clients_test_samples() -> None:
    part = make_partition((7, 12, 9, 8), (1, 3))
    data, gone = make_data(part), np.concatenate([part.train[1], part.train[3]])
    found = predictions.probes(data)
    assert list(found) == ["forgotten", "triggered", "retained"]
    assert same(found["forgotten"], data, gone)
    assert same(found["retained"], data, np.concatenate([part.test[0], part.test[2]]))
    assert all(torch.equal(*pair) for pair in zip(found["triggered"], data.triggered(gone), strict=True))


def test_forgotten_samples_are_probed_whoever_holds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    part = make_partition(trigger=False)
    plain, others = make_data(part), [part.train[0][2], part.train[2][5]]

    def asking(samples: list[int]) -> ClientData:
        request = Request(np.array([1]), np.sort(samples))
        return ClientData(plain.inputs, plain.y, part, plain.classes, "all", None, request)

    data = asking(others)
    found = predictions.probes(data)
    assert list(found) == ["forgotten", "retained"]
    assert same(found["forgotten"], data, np.concatenate([part.train[1], np.sort(others)]))
    data = asking([part.train[1][0], *others])  # an audit has those of client 1 once
    gone = np.concatenate([part.train[1][1:], data.forgotten_samples])
    assert predictions.audited_rows(data).tolist() == gone.tolist()
    assert same(predictions.audited(data)["forgotten"], data, gone)
    monkeypatch.setattr(predictions, "MOST", 7)
    assert predictions.audited_rows(data).tolist() == [gone[len(gone) * k // 7] for k in range(7)]


def test_an_audit_sees_the_forgotten_samples_as_they_were_trained_on() -> None:
    data = make_data(make_partition(), poison="share", asked=[1])
    x, y = predictions.audited(data)["forgotten"]
    assert torch.equal(x, data.train(1)[0])
    assert torch.equal(y, data.train(1)[1])
    assert 0 < int((y != data.clean(predictions.audited_rows(data))[1]).sum()) < len(y)


def test_held_out_are_the_forgotten_clients_own_test_samples_or_else_those_of_the_same_classes() -> None:
    part, asked = make_partition(trigger=False, held_out=6), Request(np.array([1]))
    data, none = make_data(part, asked=[1]), part.train[1][:0]
    assert same(predictions.audited(data)["held_out"], data, part.test[1])
    data.y[:] = torch.arange(len(data.y)) % 2
    data.y[part.train[1]] = 1
    for tests in ({"test": [part.test[0], none, part.test[2]]}, {"test": [none] * 3, "global_test": part.held_out}):
        other = replace(part, held_out=none, **tests)  # type: ignore[arg-type]
        held = ClientData(data.x, data.y, other, data.classes, "all", None, asked)
        rows = np.concatenate([*other.test, other.global_test])
        assert 0 < data.y[rows].sum() < len(rows)
        assert same(predictions.audited(held)["held_out"], data, rows[data.y[rows].numpy() == 1])


def test_a_backdoor_adds_triggered_test_samples_of_the_retained_clients_or_of_nobody() -> None:
    part = make_partition(held_out=6)
    data, none = make_data(part), part.held_out[:0]
    nobodys = replace(part, test=[none] * 3, held_out=none, global_test=part.held_out)
    for other, rows in ((part, np.concatenate([part.test[0], part.test[2]])), (nobodys, part.held_out)):
        found = predictions.audited(ClientData(data.x, data.y, other, data.classes, "share", data.mark))
        x, y = found[TRIGGERED]
        assert torch.equal(x, data.triggered(rows)[0])
        assert torch.equal(y, (data.y[rows] + 5) % 10)
        moved, labels = found[ALTERED]
        assert torch.equal(moved, predictions.altered(x, derive_integer(ALTERED)))
        assert torch.equal(labels, y)


def test_augmented_are_the_forgotten_samples_altered_and_there_are_none_of_text() -> None:
    data = make_data(make_partition(), poison="share")
    found = predictions.audited(data)
    assert {*found} == {FORGOTTEN, AUGMENTED, HELD_OUT, TRAIN, TEST, TRIGGERED, ALTERED}
    x, y = found[FORGOTTEN]
    moved, labels = found[AUGMENTED]
    assert not torch.equal(moved, predictions.altered(x, derive_integer(AUGMENTED)))  # which any method could draw
    hidden = int(np.concatenate([data.partition.test[client] for client in data.forgotten]).sum())
    assert torch.equal(moved, predictions.altered(x, derive_integer(AUGMENTED, hidden)))
    assert torch.equal(labels, y)
    part, windows = make_partition(trigger=False), torch.zeros(len(data.y), 9).byte()
    text = ClientData(windows, data.y, part, 10, "share", request=Request(np.array([1])))
    assert {*predictions.audited(text)} == {FORGOTTEN, HELD_OUT, TRAIN, TEST}


def test_images_are_shifted_by_one_or_two_pixels_in_all_directions_and_edges_are_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(predictions, "NOISE", 0.0)
    image = torch.arange(60.0).view(2, 5, 6)
    moved = predictions.altered(image.expand(400, 2, 5, 6), 7)
    assert (moved.shape, moved.dtype) == ((400, 2, 5, 6), torch.float32)
    seen = set()
    for one in moved:
        down, right = (int(step) for step in divmod(float(image[0, 2, 2] - one[0, 2, 2]) + 2 * 6 + 2, 6))
        down, right = down - 2, right - 2
        seen.add((down, right))
        for channel, row, column in np.ndindex(2, 5, 6):
            source = image[channel, min(max(row - down, 0), 4), min(max(column - right, 0), 5)]
            assert one[channel, row, column] == source
    assert seen == {(k * y, k * x) for k in (1, 2) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)}


def test_noise_is_added_from_the_seed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.rand(50, 1, 9, 9)
    one, again, other = (predictions.altered(x, seed) for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    monkeypatch.setattr(predictions, "NOISE", 0.0)
    noise = one - predictions.altered(x, 1)
    assert noise.mean().abs() < 0.005
    assert noise.std() == pytest.approx(0.1, rel=0.05)


def test_where_nothing_is_forgotten_there_are_test_samples_alone_of_nobody_if_there_are_such() -> None:
    part = make_partition(trigger=False, absent=[2], held_out=6)
    data = make_data(part)
    assert list(predictions.probes(data)) == ["retained"]
    assert same(predictions.probes(data)["retained"], data, np.concatenate(part.test[:2]))
    apart = replace(part, held_out=part.held_out[:2], global_test=part.held_out[2:])
    assert same(predictions.probes(make_data(apart))["retained"], data, part.held_out[2:])


def test_a_probe_has_at_most_so_many_samples_at_equal_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictions, "MOST", 4)
    part = make_partition()
    data = make_data(part)
    found = predictions.probes(data)
    assert SIZES[1] == 12
    assert same(found["forgotten"], data, part.train[1][[0, 3, 6, 9]])
    assert torch.equal(found["triggered"][0], data.backdoored(1)[0][[0, 3, 6, 9]])
    assert same(found["retained"], data, np.concatenate([part.test[0], part.test[2]])[[0, 1, 3, 4]])


def test_sketches_are_as_far_apart_as_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    theta, other = torch.randn(2, 60_000, dtype=torch.double)
    one, two = predictions.sketch(theta), predictions.sketch(other)
    assert one.shape == (predictions.BUCKETS, 1)
    assert float((one - two).norm()) == pytest.approx(float((theta - other).norm()), rel=0.06)  # five deviations
    torch.testing.assert_close(one - two, predictions.sketch(theta - other))
    monkeypatch.setattr(predictions, "BUCKETS", 1)
    signs = torch.stack([predictions.sketch(row) for row in torch.eye(100)]).flatten()
    assert set(signs.tolist()) == {-1.0, 1.0}
    assert predictions.sketch(torch.arange(100.0)) == signs @ torch.arange(100.0)


def test_what_is_written_is_read_by_role(tmp_path: Path) -> None:
    path, y = tmp_path / "x.predictions.safetensors", torch.tensor([2, 0])
    labels = {"forgotten": y, "retained": y}  # of one memory
    logits = {name: torch.randn(3, 2).T for name in labels}  # not contiguous
    roles = {"unlearned": logits, "recovered": {name: -says for name, says in logits.items()}}
    predictions.save(path, labels, roles)
    for role, expected in {predictions.LABELS: labels, **roles, "original": {}}.items():
        found = predictions.load(path, role)
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], expected[name]) for name in found)


def test_a_file_that_is_truncated_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "x.predictions.safetensors"
    predictions.save(path, {}, {"original": {"retained": torch.zeros(5, 2)}})
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(UserError, match=r"x\.predictions\.safetensors: .* truncated or damaged; delete it and start"):
        predictions.load(path, "original")
