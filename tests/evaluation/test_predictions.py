"""The probes of a run, and what a model says on them, written and read."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from fu.audits.models import ALTERED, AUGMENTED, HELD_OUT, TEST, TRAIN, TRIGGERED
from fu.audits.models import FORGOTTEN as FORGOTTEN_PROBE
from fu.data.clients import ClientData
from fu.data.request import Request
from fu.errors import UserError
from fu.evaluation import predictions
from fu.seeds import derive_integer
from tests.evaluation.scene import CLASSES, FORGOTTEN, SHIFT, make_scene, swap_rows
from tests.factories import SIZES, make_data, make_partition


def same(probe: tuple[Tensor, Tensor], data: ClientData, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> bool:
    return all(torch.equal(*pair) for pair in zip(probe, data.clean(rows), strict=True))


def test_probes_are_the_forgotten_clients_training_samples_and_the_retained_clients_test_samples() -> None:
    data = make_scene().data
    found = predictions.probes(data)
    gone = np.concatenate([data.partition.train[client] for client in FORGOTTEN])
    kept = np.concatenate([data.partition.test[client] for client in (0, 2, 4)])
    assert (len(gone), len(kept)) == (4 + 8, 4 + 2 + 8)
    assert list(found) == ["forgotten", "triggered", "retained"]
    assert same(found["forgotten"], data, gone)
    assert same(found["retained"], data, kept)
    x, y = found["triggered"]
    assert torch.equal(x, swap_rows(data.x[gone], y)[0].permute(0, 3, 1, 2))
    assert torch.equal(y, (data.y[gone] + SHIFT) % CLASSES)


def test_probes_of_forgotten_samples_are_these_whoever_holds_them() -> None:
    part = make_partition(trigger=False)
    asked = np.sort(np.array([part.train[0][2], part.train[2][5]]))
    data = replace_request(make_data(part), Request(np.array([1]), asked))
    found = predictions.probes(data)
    assert list(found) == ["forgotten", "retained"]
    assert same(found["forgotten"], data, np.concatenate([part.train[1], asked]))
    assert same(found["retained"], data, np.concatenate([part.test[0], part.test[2]]))


def test_an_audit_knows_which_samples_the_forgotten_are_and_sees_them_as_they_were_trained_on() -> None:
    part = make_partition()
    data = make_data(part, poison="share", asked=[1])
    rows = predictions.audited_rows(data)
    assert rows.tolist() == part.train[1].tolist()
    x, y = predictions.audited(data)["forgotten"]
    marked = torch.from_numpy(np.isin(rows, part.backdoored))
    clean, triggered = data.clean(rows), data.triggered(rows)
    assert 0 < marked.sum() < len(rows)
    assert torch.equal(y, torch.where(marked, triggered[1], clean[1]))
    assert torch.equal(x[marked], triggered[0][marked])
    assert torch.equal(x[~marked], clean[0][~marked])


def test_an_audits_forgotten_samples_are_those_of_forgotten_clients_then_those_asked_for_at_equal_distances(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    part = make_partition(trigger=False)
    asked = np.sort(np.array([part.train[0][2], part.train[1][0], part.train[2][5]]))
    data = replace_request(make_data(part), Request(np.array([1]), asked))
    gone = [*part.train[1][~np.isin(part.train[1], asked)], *asked]
    assert predictions.audited_rows(data).tolist() == gone
    assert same(predictions.audited(data)["forgotten"], data, np.array(gone))
    monkeypatch.setattr(predictions, "MOST", 7)
    assert predictions.audited_rows(data).tolist() == [gone[len(gone) * k // 7] for k in range(7)]


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
    assert {*found} == {FORGOTTEN_PROBE, AUGMENTED, HELD_OUT, TRAIN, TEST, TRIGGERED, ALTERED}
    x, y = found[FORGOTTEN_PROBE]
    moved, labels = found[AUGMENTED]
    assert torch.equal(moved, predictions.altered(x, derive_integer(AUGMENTED)))
    assert torch.equal(labels, y)
    text = ClientData(torch.zeros(len(data.y), 9).byte(), data.y, make_partition(trigger=False), 10, "share")
    of_text = predictions.audited(replace_request(text, Request(np.array([1]))))
    assert {*of_text} == {FORGOTTEN_PROBE, HELD_OUT, TRAIN, TEST}


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


def replace_request(data: ClientData, request: Request) -> ClientData:
    return ClientData(data.x, data.y, data.partition, data.classes, "all", data.mark, request)


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


def test_what_is_written_is_read_by_role(tmp_path: Path) -> None:
    path, context = tmp_path / "x.predictions.safetensors", make_scene()
    probes = predictions.probes(context.data)
    logits = {name: context.network.logits(context.theta, x) for name, (x, _) in probes.items()}
    labels = {name: y for name, (_, y) in probes.items()}
    predictions.save(path, labels, {"unlearned": logits, "recovered": {name: -says for name, says in logits.items()}})
    for role, sign in (("unlearned", 1), ("recovered", -1)):
        found = predictions.load(path, role)
        assert found.keys() == probes.keys()
        assert all(
            torch.equal(found[name], sign * context.network.logits(context.theta, probes[name][0])) for name in found
        )
        assert {says.dtype for says in found.values()} == {torch.float32}
    assert all(torch.equal(y, labels[name]) for name, y in predictions.load(path, predictions.LABELS).items())
    assert predictions.load(path, "original") == {}


def test_a_file_that_is_truncated_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "x.predictions.safetensors"
    predictions.save(path, {}, {"original": {"retained": torch.zeros(5, 2)}})
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(UserError, match=r"x\.predictions\.safetensors: .* truncated or damaged; delete it and run"):
        predictions.load(path, "original")
