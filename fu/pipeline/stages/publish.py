"""Make one table or figure: csv, md, html, tex, the pictures of a figure, rows by seed, provenance as json."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from fu.artefacts.entry import Entry
from fu.contents import checksum
from fu.errors import UserError
from fu.pipeline.provenance.paths import PICTURES
from fu.pipeline.stages import frames
from fu.pipeline.stages.common import Options, atomic_outputs, run
from fu.pipeline.stages.common import Spec as Base


class Spec(Entry, Base):
    """The entry of the artefact, and the files behind it."""

    stage: ClassVar[str] = "publish"
    sources: tuple[frames.Source, ...] = ()


@dataclass(frozen=True)
class Files:
    """`root`: the folder of the preset, with the sources; `published`: the paper's own numbers.

    `pdf`, `svg`, `png`: one file each for a figure, none for a table.
    """

    root: Path
    published: list[Path]
    csv: Path
    rows: Path
    md: Path
    html: Path
    tex: Path
    pdf: list[Path]
    svg: list[Path]
    png: list[Path]
    json: Path


def reads(spec: Spec, files: Files) -> dict[str, list[Path]]:
    """Return the results that the entry shows, and the costs of their models."""
    return frames.behind(spec.sources, spec.seeds, files.root)


def main(spec: Spec, files: Files, options: Options) -> None:
    """Read the files into a frame, make the artefact from it, and write it."""
    from fu import plugins
    from fu.artefacts import drawing, provenance, result, rows

    if files.published and checksum(files.published[0]) != spec.published:
        raise UserError(f"{files.published[0]}: the file was edited after this job was planned; start the run again.")
    entry = frames.with_choice(spec, spec.sources, files.root)
    frame = frames.read(entry, spec.sources, files.root, files.published[0] if files.published else None)
    behind = reads(spec, files)
    inputs = dict(zip(map(str, behind["results"]), options.contents(behind["results"]), strict=True))
    pictures = [*files.pdf, *files.svg, *files.png]
    written = (files.csv, files.md, files.html, files.tex, *pictures, files.rows, files.json)
    kind = plugins.load("artefacts", spec.kind)
    with drawing.styled(entry.figures), atomic_outputs(options, *written) as outputs:
        *parts, seeds, about = outputs
        made = kind.make(frame, entry)
        if bool(made.figure) is not bool(pictures):
            why = "a figure, which TABLE excludes" if made.figure else "no figure; add TABLE = True"
            raise UserError(f"{spec.kind}.py (artefacts): `make` returns {why} (docs/adding-a-figure.md).")
        result.write(made, entry, *parts)
        rows.write(rows.rows(frame, entry, getattr(kind, "by_seed", None)), seeds)
        about.write_text(json.dumps(provenance.describe(spec, options.code, inputs, behind["costs"]), indent=2) + "\n")
    for left in [] if pictures else PICTURES:  # by a version of fu that also drew tables
        files.csv.with_suffix(f".{left}").unlink(missing_ok=True)


if __name__ == "__main__":
    run(Spec, Files, main, reads=reads)
