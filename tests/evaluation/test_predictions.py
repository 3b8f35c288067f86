"""The probes of a run, and what a model says on them, written and read."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from fu.data.clients import ClientData
from fu.data.request import Request
from fu.errors import UserError
from fu.evaluation import predictions
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
