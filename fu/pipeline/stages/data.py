"""Convert one data set to the archive format, from an archive, a verified download or a package."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from fu.contents import checksum
from fu.data import archives, sources
from fu.data.dataset import about
from fu.errors import UserError
from fu.pipeline.stages.common import Options, atomic_outputs, run
from fu.pipeline.stages.common import Spec as Base
from fu.plugins import Kind


class Spec(Base):
    """The data set, and the SHA-256 of its archive in the data folder (null: no archive)."""

    stage = "data"
    dataset: Annotated[str, Kind("datasets")]
    archive: str | None


@dataclass(frozen=True)
class Files:
    """From the data folder to the archive of the results."""

    data_dir: Path
    archive: Path


def main(spec: Spec, files: Files, options: Options) -> None:
    """Read, download or make the arrays, and write them."""
    if spec.archive:
        path = files.data_dir / f"{spec.dataset}.npz"
        arrays = archives.read(path, spec.dataset)
        if checksum(path) != spec.archive:
            raise UserError(f"{path}: the archive was changed after the run was planned; start the run again.")
    else:
        arrays = sources.fetch(spec.dataset, about(spec.dataset), files.data_dir)
    with atomic_outputs(options, files.archive) as (archive,):
        np.savez(archive, allow_pickle=False, **arrays)


if __name__ == "__main__":
    run(Spec, Files, main, reads=lambda spec, files: {})
