"""The stage that brings a data set into the archive format."""

from pathlib import Path

import numpy as np
import pytest

from fu.contents import checksum
from fu.data.archives import Arrays
from fu.errors import UserError
from fu.pipeline.stages import data as stage
from fu.pipeline.stages.common import Options
from tests.data.files import arrays_of, same


def made(dataset: str, archive: str | None, data_dir: Path, output: Path) -> Arrays:
    files = stage.Files(data_dir, output)
    stage.main(stage.Spec(dataset=dataset, archive=archive), files, Options())
    with np.load(output, allow_pickle=False) as found:
        return dict(found)


def test_an_archive_in_the_data_folder_is_taken_by_its_checksum(tmp_path: Path) -> None:
    expected, archive = arrays_of("mnist"), tmp_path / "mnist.npz"
    flat = {key: array[..., 0] if array.ndim == 4 else array for key, array in expected.items()}
    np.savez(archive, allow_pickle=False, **flat)  # type: ignore[arg-type]
    same(made("mnist", checksum(archive), tmp_path, tmp_path / "made" / "x.npz"), expected)


def test_an_archive_changed_since_the_plan_is_refused(tmp_path: Path) -> None:
    archive, output = tmp_path / "mnist.npz", tmp_path / "made.npz"
    np.savez(archive, allow_pickle=False, **arrays_of("mnist"))  # type: ignore[arg-type]
    with pytest.raises(
        UserError, match=r"mnist\.npz: the archive was changed after the run was planned; start the run"
    ):
        made("mnist", "0" * 64, tmp_path, output)
    assert not output.exists()
