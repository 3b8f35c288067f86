"""Bring one data set into the archive format, from an archive, a verified download or a package."""

import json

import numpy as np

from fu.data import archives, sources
from fu.data.dataset import about
from fu.errors import UserError
from fu.stages.common import arguments, run, whole


def main(argv: list[str] | None = None) -> None:
    """Spec: dataset, archive (the SHA-256 of the file in data_dir, or null); it is noted in OUTPUT.source.json."""
    args = arguments(__doc__, ["data-dir"], ["output"], argv, compute=False)
    dataset = args.spec["dataset"]
    if about(dataset).torchvision is None:
        arrays = sources.embedded(dataset)
    elif args.spec["archive"]:
        path = args.data_dir / f"{dataset}.npz"
        arrays = archives.read(path, dataset)
        if archives.checksum(path) != args.spec["archive"]:
            raise UserError(f"{path}: the archive was changed since the run was planned; run snakemake again.")
    else:
        arrays = sources.download(dataset, args.data_dir)
    with whole(args.output, args.output.with_suffix(".source.json")) as (part, source):
        np.savez(part, allow_pickle=False, **arrays)
        source.write_text(json.dumps({"archive": args.spec["archive"]}) + "\n")


if __name__ == "__main__":
    run(main)
