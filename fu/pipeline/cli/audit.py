"""Audit somebody's models from an archive of oracles: read their logits, and run every audit that has enough models.

Nothing is trained, and neither a plan nor results are needed. docs/oracles.md says how to make the two files.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tabulate import tabulate  # type: ignore[import-untyped]

from fu.audits.models import Logits, Models
from fu.contents import require_place
from fu.data.archives import load_arrays
from fu.errors import UserError, nearest
from fu.pipeline.oracles.archive import DIGEST, Oracles, read


def audit(oracles: Path, predictions: Path, csv: Path | None = None) -> Iterator[str]:
    """Yield a table of every audit's results for somebody's models, and a sentence on each audit that cannot be run.

    `predictions`: an npz file of the models' logits [N, n, C] by probe, the k-th model started from the k-th original
    one, and the archive's `digest`. A model with logits that are not finite has diverged: it counts as found,
    and is left out together with its original one. `csv`: where to write the table with all digits. `UserError` where
    a file is not what it must be.
    """
    from fu.api.audits import COLUMNS, LEVEL, assessed  # with torch

    known = read(oracles)
    given, original = predicted(predictions, known, oracles), known.logits["original"]
    whole = np.logical_and.reduce([np.isfinite(of).all((1, 2)) for of in given.values()])
    own, before = ({probe: of[whole] for probe, of in kind.items()} for kind in (given, original))
    models = Models(known.labels, own, known.logits["retrained"], before)
    frame, skipped = assessed(models)
    if lost := int((~whole).sum()):
        frame.loc[len(frame)] = "diverged", "diverged_runs", lost, True
    if csv:
        place = csv.resolve()
        require_place(place)
        try:
            with TemporaryDirectory(prefix=".part-", dir=place.parent) as folder:
                part = Path(folder, place.name)
                frame.to_csv(part, index=False)
                part.replace(place)
        except OSError as error:
            raise UserError(f"{csv}: {error.strerror or error}; the table was not written.") from None
    if len(frame):
        cells = frame.astype(object).where(frame.notna(), "").values.tolist()
        yield tabulate(cells, COLUMNS, floatfmt=".4g")
    yield from skipped
    number = ", ".join(f"{number} {kind}" for kind, number in models.repeats.items())
    yield (
        f"{number} models. All audits together keep a level of {LEVEL:.0%}, and no control was judged: "
        "docs/threat-model.md says what a result shows."
    )


def predicted(path: Path, oracles: Oracles, archive: Path) -> Logits:
    """Return somebody's logits [N, n, C] by probe; `UserError` where these are not logits on the archive's probes."""
    arrays = load_arrays(path)
    stated = arrays.pop(DIGEST, None)
    if stated is None:
        raise UserError(
            f"{path}: lacks {DIGEST!r}, which says whose probes these are; copy it from the archive's probes.npz."
        )
    if str(stated) != oracles.digest:
        raise UserError(
            f"{path}: its logits are on the probes of other settings than those of {archive}; predict them anew."
        )
    if missing := [probe for probe in oracles.labels if probe not in arrays]:
        raise UserError(
            f"{path}: lacks the logits on {', '.join(missing)}; it must hold those on every probe of the archive."
        )
    if unknown := next((probe for probe in arrays if probe not in oracles.labels), None):
        raise UserError(f"{path}: the archive has no probe {unknown!r}{nearest(unknown, oracles.labels)}.")
    classes = oracles.logits["original"][next(iter(oracles.labels))].shape[-1]
    number = len(oracles.logits["original"][next(iter(oracles.labels))])
    for probe, labels in oracles.labels.items():
        given, wanted = arrays[probe], (len(labels), classes)
        if given.dtype.kind != "f" or given.ndim != 3 or given.shape[1:] != wanted:
            raise UserError(
                f"{path}: {probe!r} must be logits, floats [N, {wanted[0]}, {wanted[1]}], but is {given.dtype} "
                f"{[*given.shape]}."
            )
        if len(given) != number:
            raise UserError(
                f"{path}: {probe!r} has {len(given)} models, but {archive} has {number} original ones; each needs a "
                "model that started from it, in this order, with NaN for one that diverged."
            )
        with np.errstate(over="ignore"):
            arrays[probe] = given.astype(np.float32)
    return arrays  # type: ignore[return-value]
