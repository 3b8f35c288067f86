"""A split of one's own: which file holds one, and what of it is wrong."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fu.contents import checksum
from fu.errors import UserError
from fu.partitions import given

LABELS = np.zeros(7, np.int64)
SPLIT = {"0": [4, 0], "1": [6, 2, 1], "2": [3, 5]}


def write(path: Path, lists: dict[str, Any]) -> given.Params:
    np.savez(path, **{name: np.asarray(rows) for name, rows in lists.items()})  # type: ignore[arg-type]
    return given.Params(file=str(path))


def test_every_client_gets_its_list(tmp_path: Path) -> None:
    p = write(tmp_path / "split.npz", SPLIT)
    given.check(3, 10, p)
    given.check_samples(7, 3, p)
    dealt = given.deal(LABELS, 10, 3, p, np.random.default_rng(0))
    assert [rows.tolist() for rows in dealt] == [*SPLIT.values()]
    assert all(rows.dtype == np.int64 for rows in dealt)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"1": [6, 2, 0]}, "sample 0 is listed twice"),
        ({"1": [6, 2, -1]}, "client 1: -1 is no index"),
        ({"1": np.array([6, 2, 2**64 - 1], np.uint64)}, "client 1: 18446744073709551615 is no index"),
        ({"1": [6.0, 2.0, 1.0]}, r"client 1: must be a list of indices, got float64 \[3\]"),
        ({"1": []}, r"client 1: must be a list of indices, got float64 \[0\]"),
        ({"3": [1]}, "must have one array for each of 3 clients, named 0 to 2; it has 0, 1, 2, 3"),
    ],
)
def test_lists_that_are_no_split_are_refused(tmp_path: Path, changed: dict[str, Any], sentence: str) -> None:
    p = write(tmp_path / "split.npz", {**SPLIT, **changed})
    with pytest.raises(ValueError, match=f"split.npz: {sentence}"):
        given.check(3, 10, p)


@pytest.mark.parametrize(
    ("samples", "sentence"),
    [(6, "there is no sample 6; there are 0 to 5"), (8, "1 of 8 samples are in no list, the first is 7")],
)
def test_lists_of_other_samples_are_refused(tmp_path: Path, samples: int, sentence: str) -> None:
    p = write(tmp_path / "split.npz", SPLIT)
    with pytest.raises(ValueError, match=f"split.npz: {sentence}"):
        given.check_samples(samples, 3, p)
    with pytest.raises(UserError, match=f"partition: .*split.npz: {sentence}."):
        given.deal(np.zeros(samples, np.int64), 10, 3, p, np.random.default_rng(0))


def test_a_file_that_changed_since_the_plan_is_refused(tmp_path: Path) -> None:
    p = write(tmp_path / "split.npz", SPLIT)
    p = given.Params(file=p.file, sha256=checksum(Path(p.file)))
    given.check(3, 10, p)
    write(tmp_path / "split.npz", {**SPLIT, "0": [0, 4]})
    with pytest.raises(ValueError, match=r"split\.npz: the file has changed since the plan was made"):
        given.check(3, 10, p)
