"""Audits from an archive of oracles: one sentence for each mistake in it or in predictions, and for audits left out."""

import errno
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from fu import plugins
from fu.audits.models import FORGOTTEN, HELD_OUT, Models
from fu.errors import UserError
from fu.pipeline.cli import audit, show
from fu.pipeline.oracles import archive as archives
from fu.pipeline.oracles.archive import DIGEST
from fu.pipeline.provenance import catalogue
from tests.audits.synthetic import PROBES, World
from tests.mistakes import has, sentence

NUMBER, SAMPLES = 6, 30
SETTINGS = {"training": {"lr": 0.1}}
Arrays = dict[str, NDArray[Any]]


class Files:
    """An archive of made-up models, and predictions from which nothing was unlearned."""

    def __init__(self, folder: Path, number: int = NUMBER, scale: float = 1.0) -> None:
        models = World(0, SAMPLES).models(number, share=1.0)
        probes: Arrays = {f"y.{probe}": labels for probe, labels in models.labels.items()}
        probes |= {f"x.{probe}": np.zeros((SAMPLES, 1, 2, 2), np.float32) for probe in PROBES}
        self.folder, self.digest = folder, archives.digest_of(SETTINGS, probes)
        self.models, self.path = models, folder / "toy.zip"
        logits = {f"{kind}.{probe}": of for kind in archives.KINDS for probe, of in getattr(models, kind).items()}
        logits["retrained.forgotten"][0] *= np.float32(scale)
        with archives.folder_of(self.path) as files:
            np.savez(files / "probes.npz", digest=self.digest, **probes)  # type: ignore[arg-type]
            np.savez(files / "logits.npz", **logits)  # type: ignore[arg-type]
            (files / "card.json").write_text(json.dumps({"format": 1, "settings": SETTINGS}))
            archives.write(self.path, files)

    def predict(self, *left_out: str, **changes: Any) -> Path:
        """Write predictions, some of their arrays changed or left out."""
        arrays = {DIGEST: np.array(self.digest), **self.models.unlearned, **changes}
        np.savez(self.folder / "mine.npz", **{name: of for name, of in arrays.items() if name not in left_out})
        return self.folder / "mine.npz"

    def change(self, edit: Callable[[dict[str, bytes]], Any], **how: Any) -> None:
        """Write the archive anew with other files; its sums stay what they are, unless they are changed, too."""
        with ZipFile(self.path) as file:
            contents = {name: file.read(name) for name in file.namelist()}
        edit(contents)
        with ZipFile(self.path, "w", **how) as file:
            for name, content in contents.items():
                file.writestr(name, content)


UNREAD = "weights: skipped, as the archive has none of its probes."  # what fresh heads say is nobody's own answer


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def audited(files: Files, predictions: Path | None = None, csv: Path | None = None) -> list[str]:
    return [*audit.audit(files.path, predictions or files.predict(), csv)]


def diverged(files: Files, *numbers: int) -> Path:
    """Write predictions in which these models have one logit that float32 cannot hold."""
    arrays = {probe: of.astype(np.float64) for probe, of in files.models.unlearned.items()}
    arrays[HELD_OUT][[*numbers], 0, 0] = 1e300
    return files.predict(**arrays)


def test_every_audit_with_enough_models_is_in_the_table(files: Files) -> None:
    table, skipped, last = audited(files, csv=files.folder / "mine.csv")
    assert skipped == UNREAD
    frame = pd.read_csv(files.folder / "mine.csv")
    assert [*frame] == ["audit", "metric", "value", "found"]
    chances: dict[str, float] = {}
    for name in catalogue.available("audits"):
        plugin, own = plugins.load("audits", name), frame[frame["audit"] == name].set_index("metric")
        values = plugin.audit(files.models)
        assert own["value"].to_dict() == values
        chances |= {name: values[plugin.P]} if getattr(plugin, "P", "") in values else {}
    found = frame[frame["found"].notna()].groupby("audit")["found"].first().to_dict()
    levels = dict(zip(sorted(chances, key=chances.__getitem__), (0.05 / k for k in (4, 3, 2, 1)), strict=True))
    assert found == {
        name: all(chances[one] < levels[one] for one in levels if chances[one] <= chances[name]) for name in chances
    }
    assert table.splitlines()[0].split() == ["audit", "metric", "value", "found"]
    assert len(table.splitlines()) == 2 + len(frame)
    assert "nan" not in table
    has(last, "6 unlearned, 6 retrained, 6 original models.", "no control was judged")


def test_a_table_that_cannot_be_written_whole_leaves_the_old_one(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    place = files.folder / "mine.csv"
    os.mkfifo(files.folder / "pipe")
    has(sentence(lambda: audited(files, csv=files.folder / "pipe")), "pipe: a folder, pipe or device is in the place")
    place.write_text("old")
    held = {path.name for path in files.folder.iterdir()} | {"mine.npz"}

    def full(frame: pd.DataFrame, path: Path, **how: object) -> None:
        path.write_text("hal")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    assert (
        sentence(lambda: audited(files, csv=place)) == f"{place}: No space left on device; the table was not written."
    )
    assert place.read_text() == "old"
    assert {path.name for path in files.folder.iterdir()} == held


def test_audits_without_enough_models_are_named(files: Files) -> None:
    table, *skipped, last = audited(files, diverged(files, 3, 4, 5))
    assert "line: skipped, as it needs 4 models of each kind, and there are 3 unlearned, 3 original." in skipped
    assert "\nline" not in table
    assert "\nharm " in table
    assert last.startswith("3 unlearned, 6 retrained, 3 original models.")
    table, *skipped, _ = audited(files, diverged(files, 4, 5))
    assert skipped == [UNREAD]
    assert "\nline" in table
    for lost in (range(1, 6), range(6)):
        table, *several, last = audited(files, diverged(files, *lost))
        assert [line.partition(":")[0] for line in several] == catalogue.available("audits")
        assert table.splitlines()[2:] == [f"diverged  diverged_runs        {len(lost)}  True"]


def test_a_model_that_diverged_is_found_and_leaves_with_its_original_one(files: Files) -> None:
    audited(files, diverged(files, 1), files.folder / "mine.csv")
    frame = pd.read_csv(files.folder / "mine.csv")
    assert [*frame.iloc[-1]] == ["diverged", "diverged_runs", 1, True]
    models, rest = files.models, [0, 2, 3, 4, 5]
    own, before = ({probe: of[rest] for probe, of in kind.items()} for kind in (models.unlearned, models.original))
    without = Models(models.labels, own, models.retrained, before)
    for name in ("line", "runs"):  # which compare a model with its own original one
        values = frame[frame["audit"] == name].set_index("metric")["value"].to_dict()
        assert values == plugins.load("audits", name).audit(without)


def test_an_audit_whose_probe_an_older_archive_lacks_is_named(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    klom = plugins.load("audits", "klom")
    monkeypatch.setattr(klom, "audit", lambda models: {"klom_forgotten": models.labels["augmented"]})
    _, *skipped, _ = audited(files)
    assert skipped == ["klom: skipped, as the archive lacks the probe 'augmented'.", UNREAD]
    monkeypatch.setattr(klom, "audit", lambda models: dict[str, float]()[FORGOTTEN])  # a mistake in an audit stays one
    with pytest.raises(KeyError):
        audited(files)


CHANGES: list[tuple[str, Callable[[NDArray[Any]], Any], str]] = [  # of the logits on a probe
    (FORGOTTEN, lambda of: of[:, :-1], "'forgotten' must be logits, floats [N, 30, 3], but is float32 [6, 29, 3]"),
    (FORGOTTEN, lambda of: of[..., :2], "floats [N, 30, 3], but is float32 [6, 30, 2]"),
    (HELD_OUT, lambda of: of.argmax(-1), "'held_out' must be logits, floats [N, 30, 3], but is int64 [6, 30]"),
    (HELD_OUT, lambda of: of[:5], "'held_out' has 5 models, but "),
    (FORGOTTEN, lambda of: np.concatenate([of, of]), "toy.zip has 6 original ones; each needs a model"),
    (HELD_OUT, lambda of: np.array([None]), "'held_out' holds Python objects"),
]


@pytest.mark.parametrize(("probe", "change", "words"), CHANGES)
def test_predictions_that_are_no_logits_on_these_probes(
    files: Files, probe: str, change: Callable[[NDArray[Any]], Any], words: str
) -> None:
    mine = files.predict(**{probe: change(files.models.unlearned[probe])})
    has(sentence(lambda: audited(files, mine)), "mine.npz", words)


@pytest.mark.parametrize(
    ("left_out", "more", "words"),
    [
        ((), {"held_in": np.zeros(1)}, "has no probe 'held_in'; did you mean 'held_out'?"),
        ((), {DIGEST: np.array("0" * 64)}, "its logits are on the probes of other settings than those of "),
        ((DIGEST,), {}, "lacks 'digest', "),
        ((HELD_OUT, "retained_test"), {}, "lacks the logits on held_out, retained_test;"),
    ],
)
def test_predictions_of_other_probes(files: Files, left_out: tuple[str, ...], more: Arrays, words: str) -> None:
    has(sentence(lambda: audited(files, files.predict(*left_out, **more))), "mine.npz", words)


def test_compressed_predictions_are_told_to_be_stored(files: Files) -> None:
    constant = {probe: np.zeros((6, 30, 3), np.float32) for probe in PROBES}
    np.savez_compressed(files.folder / "mine.npz", digest=files.digest, **constant)  # type: ignore[arg-type]
    has(sentence(lambda: audited(files, files.folder / "mine.npz")), "numpy.savez", "compressed")


Edit = Callable[[dict[str, bytes]], Any]


def replaced(name: str, content: bytes) -> Edit:
    return lambda contents: contents.update({name: content})


def carded(card: Any) -> Edit:
    """Return an edit that replaces the card and its checksum."""
    content = json.dumps(card).encode()

    def edit(contents: dict[str, bytes]) -> None:
        old, new = (hashlib.sha256(one).hexdigest().encode() for one in (contents["card.json"], content))
        contents |= {"card.json": content, "SHA256SUMS": contents["SHA256SUMS"].replace(old, new)}

    return edit


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (replaced("logits.npz", b"other"), "'logits.npz' does not match SHA256SUMS: the archive is damaged"),
        (replaced("extra.txt", b""), "'extra.txt' is missing, or not listed in SHA256SUMS"),
        (lambda contents: contents.pop("logits.npz"), "'logits.npz' is missing, or not listed in SHA256SUMS"),
        (lambda contents: contents.pop("SHA256SUMS"), "not an archive of oracles, or a damaged one (KeyError"),
        (replaced("SHA256SUMS", b"\xff"), "not an archive of oracles, or a damaged one"),
        (carded({"format": 2, "settings": SETTINGS}), "has format 2, but this version of fu reads format 1"),
        (carded({"format": 1, "settings": {}}), "its probes and settings are not those of its digest"),
        (carded([]), "not an archive of oracles, or a damaged one (TypeError"),
    ],
)
def test_an_archive_that_is_damaged_or_another(files: Files, edit: Edit, words: str) -> None:
    files.change(edit)
    has(sentence(lambda: audited(files)), "toy.zip", words)


def test_an_archive_with_models_that_diverged_is_refused(tmp_path: Path) -> None:
    archive = Files(tmp_path, scale=np.nan).path
    has(
        sentence(lambda: archives.read(archive)),
        "toy.zip: retrained models have logits on 'forgotten' that are not finite",
    )


def test_no_bomb_is_unpacked_and_no_other_file_is_taken_for_an_archive(files: Files) -> None:
    files.change(replaced("bomb", bytes(10_000_000)), compression=ZIP_DEFLATED)
    has(sentence(lambda: audited(files)), "toy.zip: its files are longer than the archive")
    files.path.write_bytes(files.path.read_bytes()[:1000])
    has(sentence(lambda: audited(files)), "not an archive of oracles, or a damaged one (BadZipFile")
    files.path.unlink()
    has(sentence(lambda: audited(files)), "toy.zip: there is no such file")


def test_the_command_takes_two_files_and_a_third_to_write(
    files: Files, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files.folder)
    files.predict()
    given = {"ORACLES": "toy.zip", "PREDICTIONS": "mine.npz"}
    assert show.run("audit", {**given, "CSV": "mine.csv"}) == 0
    assert (files.folder / "mine.csv").is_file()
    assert "ulira_auc" in capsys.readouterr().out
    has(
        sentence(lambda: [*show.lines_of("audit", {**given, "CSV": "no/folder.csv"})[0]]),
        "no/folder.csv: ",
        "the table was not written.",
    )
    for some in ({}, {"ORACLES": "toy.zip"}, {"PREDICTIONS": "mine.npz", "CSV": "mine.csv"}):
        with pytest.raises(UserError, match="needs an archive and predictions"):
            show.lines_of("audit", some)
