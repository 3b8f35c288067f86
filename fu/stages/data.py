"""Bring one data set into the archive format, from an archive, a verified download or a package."""

import argparse
from pathlib import Path

import numpy as np

from fu.data import archives, sources
from fu.data.datasets import DATASETS
from fu.stages.common import arguments, run, whole


def main(argv: list[str] | None = None) -> None:
    """Spec: dataset, archive (the SHA-256 of the file in data_dir, or null)."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--data-dir", type=Path, required=True)
    own, rest = parser.parse_known_args(argv)
    args = arguments(__doc__, [], ["output"], rest, compute=False)
    dataset = args.spec["dataset"]
    if DATASETS[dataset].torchvision is None:
        arrays = sources.embedded(dataset)
    elif args.spec["archive"]:
        arrays = archives.read(own.data_dir / f"{dataset}.npz", dataset)
    else:
        arrays = sources.download(dataset, own.data_dir)
    with whole(args.output) as (part,):
        np.savez(part, allow_pickle=False, **arrays)


if __name__ == "__main__":
    run(main)
