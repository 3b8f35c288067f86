"""The request: who is forgotten, drawn apart from who holds what, and its file."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fu.data import request
from fu.data.request import Request
from fu.seeds import derive_integer
from tests.data.draws import draw_official
from tests.mistakes import has, sentence

PART = draw_official(absent=3)


def test_as_many_as_stated_are_drawn_of_those_who_take_part() -> None:
    drawn = [request.draw(PART, seed, 2).clients for seed in range(40)]
    assert all(len(set(clients.tolist())) == 2 and clients.dtype == np.int64 for clients in drawn)
    assert all(clients.tolist() == sorted(clients.tolist()) for clients in drawn)
    assert {client for clients in drawn for client in clients.tolist()} == set(PART.present)
    for seed in range(40):  # by the generator called `request`, not that of the partition
        random = np.random.default_rng(derive_integer(seed, "request"))
        assert drawn[seed].tolist() == sorted(random.choice(PART.present, 2, replace=False).tolist())
    waves = [wave.clients.tolist() for wave in request.draw(PART, 1, 2, requests=3).waves]
    assert [len(wave) for wave in waves] == [2, 2, 2]
    assert len({client for wave in waves for client in wave}) == 6


def test_who_is_forgotten_hangs_on_the_seed_and_on_who_takes_part_alone() -> None:
    one, other = draw_official(absent=3, server=50), draw_official(absent=3, validation_share=0.0)
    assert request.draw(one, 5, 2).clients.tolist() == request.draw(other, 5, 2).clients.tolist()


def test_named_clients_are_forgotten_as_they_are() -> None:
    present = PART.present
    assert request.draw(PART, 0, [present[3], present[0]]).clients.tolist() == [present[0], present[3]]


def written(path: Path, **arrays: Any) -> Path:
    np.savez(path, allow_pickle=False, **arrays)
    return path


def test_samples_are_drawn_of_all_that_train_and_requests_in_a_row_share_none(tmp_path: Path) -> None:
    drawn = request.draw(PART, 1, None, 4, 3)
    loaded = request.load(written(tmp_path / "request.npz", **drawn.arrays()), PART)
    for found in (drawn, loaded):
        assert [(len(wave.clients), len(wave.samples)) for wave in found.waves] == [(0, 4)] * 3
        assert np.concatenate([wave.samples for wave in found.waves]).tolist() == drawn.samples.tolist()
    assert len(np.unique(drawn.samples)) == 12
    assert np.isin(drawn.samples, np.concatenate([PART.train[client] for client in PART.present])).all()
    assert [wave.samples.tolist() for wave in drawn.first(2).waves] == [
        wave.samples.tolist() for wave in drawn.waves[:2]
    ]
    holders = np.concatenate([np.full(len(rows), k) for k, rows in enumerate(PART.train)])
    places = [holders[np.concatenate(PART.train) == request.draw(PART, seed, None, 1).samples] for seed in range(200)]
    assert {int(place[0]) for place in places} == set(PART.present)


def test_not_everything_can_be_forgotten() -> None:
    has(sentence(lambda: request.draw(PART, 0, 1, requests=len(PART.present))), "7 of 7 clients", "some must remain")
    rows = sum(len(PART.train[client]) for client in PART.present)
    has(sentence(lambda: request.draw(PART, 0, None, rows)), f"{rows} of {rows} training samples")


LOST, REST = np.sort(PART.train[PART.absent[0]]), np.sort(PART.train[PART.present[0]])
CLIENT, NONE = np.array(PART.present[:1]), np.empty(0, np.int64)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Request(np.array([PART.present[0], PART.absent[0]])), f"client {PART.absent[0]} does not take part"),
        (Request(np.array([0, 10])), "client 10 does not take part"),
        (Request(np.array([3, 3])), "in order, each once"),
        (Request(np.array([4, 3])), "in order, each once"),
        (Request(NONE), "it must name somebody, but not all clients"),
        (Request(np.array(PART.present)), "it must name somebody, but not all clients"),
        (Request(NONE, LOST[:1]), f"no client that stays trains on sample {LOST[0]}"),
        (Request(CLIENT, REST[:1]), f"no client that stays trains on sample {REST[0]}"),
        (Request(NONE, REST), "it leaves a client without samples"),
        (Request(NONE, np.tile(REST[:1], 2), np.array([0]), np.array([1])), "two of its requests name the same"),
        (Request(NONE, REST[:2], NONE, np.array([1])), "not as many requests for clients as for samples"),
        (Request(NONE, REST[:2], np.array([0]), np.array([3])), "samples_cuts do not share the samples out"),
    ],
)
def test_a_request_that_contradicts_the_partition_is_told_in_one_sentence(
    tmp_path: Path, asked: Request, words: str
) -> None:
    path = written(tmp_path / "request.npz", **asked.arrays())
    text = sentence(lambda: request.load(path, PART))
    has(text, f"{path}: the request contradicts the partition: ", words, "delete it and start the run again")


@pytest.mark.parametrize(
    "arrays",
    [
        {**Request(np.array([1])).arrays(), "clients": np.array([1], np.int32)},
        {**Request(np.array([1])).arrays(), "clients": np.array([[1]])},
        {**Request(np.array([1])).arrays(), "waves": np.array([2])},
        {"clients": np.array([1])},
    ],
)
def test_arrays_of_another_kind_are_no_request(tmp_path: Path, arrays: dict[str, Any]) -> None:
    path = written(tmp_path / "request.npz", **arrays)
    has(sentence(lambda: request.load(path, PART)), f"{path}: not a request file; delete it and start the run")
