"""A bundle that is not what was written is refused, or what is wrong in it is named, and nothing leaves its folder."""

import hashlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from fu.errors import UserError
from fu.pipeline import certificate, show
from fu.pipeline.bundle.check import METADATA, check
from fu.pipeline.certificate import SEAL, Certificate
from tests.pipeline.bundle.zips import changed, contents
from tests.pipeline.page.folder import ROOT

Found = dict[str, bytes]
Changes = dict[str, bytes | None]
CSV, MADE = f"{ROOT}/artefacts/toy/numbers.csv", f"{ROOT}/artefacts/toy/numbers.made.json"
EVALUATED = f"{ROOT}/toy/small/seed0/ours.evaluation.made.json"
TRAINED = f"{ROOT}/toy/small/seed0/original.trained.made.json"
STEM = "toy/small/seed0"


def described(found: Found, **contents: bytes | None) -> Changes:
    """Return changes of files, and the metadata that says so."""
    changes = {
        name: contents[key]
        for key, name in (("csv", CSV), ("made", MADE), ("page", f"{ROOT}/index.html"))
        if key in contents
    }
    crate = json.loads(found[METADATA])
    for entity in [*crate["@graph"]]:
        content = changes.get(entity["@id"], b"")
        if content is None:
            crate["@graph"].remove(entity)
        elif content:
            entity |= {"sha256": hashlib.sha256(content).hexdigest(), "contentSize": str(len(content))}
    return {**changes, METADATA: json.dumps(crate).encode()}


def sealed(content: bytes, old: str, new: str) -> bytes:
    """Return a certificate with another text in it, and a seal that fits."""
    head = content.rpartition(SEAL)[0].decode()
    assert old in head
    head = head.replace(old, new)
    return head.encode() + SEAL + hashlib.sha256(head.encode()).hexdigest().encode() + b'"\n}\n'


def test_what_was_written_is_right(made: Path) -> None:
    problems, summary = check(made)
    assert problems == []
    assert summary == (
        f"{made}: 1 table or figure at preset 'smoke'; no file was changed, and all inputs of the 3 jobs match the "
        "outputs of other jobs. Not included, only their digests: 1 of train, 1 of evaluate."
    )


@pytest.mark.parametrize(
    ("change", "sentences"),
    [
        (lambda found: {CSV: found[CSV].replace(b"0", b"1", 1)}, [f"'{CSV}' does not match {METADATA}"]),
        (lambda found: {"LICENSE": found["LICENSE"] + b" "}, [f"'LICENSE' does not match {METADATA}"]),
        (lambda found: described(found, csv=found[CSV] + b" "), [f"'{CSV}' was changed after its job wrote it"]),
        (lambda found: described(found, page=b"<p>"), []),  # no job makes the page
        (lambda found: {CSV: None}, [f"'{CSV}' is missing"]),
        (lambda found: described(found, csv=None), [f"'{CSV}' is missing"]),
        (lambda found: {"envs/lock.txt": None}, ["'envs/lock.txt' is missing"]),
        (lambda found: {"more.txt": b""}, [f"'more.txt' is listed in no certificate and not in {METADATA}"]),
        (
            lambda found: {f"{ROOT}/toy/other/x.made.json": found[TRAINED]},
            [f"'{ROOT}/toy/other/x.made.json' is listed in no certificate and not in {METADATA}"],
        ),
        (lambda found: {EVALUATED: None}, [f"{STEM}/ours.evaluation.made.json is missing or damaged"]),
        (lambda found: {TRAINED: None}, [f"{STEM}/original.trained.made.json is missing or damaged"]),
        (
            lambda found: {EVALUATED: None, "more.txt": b""},
            [
                f"{STEM}/ours.evaluation.made.json is missing or damaged",
                f"'more.txt' is listed in no certificate and not in {METADATA}",
            ],
        ),
        (
            lambda found: {TRAINED: found[TRAINED].replace(b'"train"', b'"tarin"')},
            [f"{STEM}/original.trained.made.json is missing or damaged"],
        ),
        (
            lambda found: {TRAINED: sealed(found[TRAINED], '"original.trained.csv": [', '"another.csv": [')},
            [f"{STEM}/original.trained.made.json is missing or damaged"],
        ),
        (
            lambda found: {TRAINED: sealed(found[TRAINED], '"original.trained.csv": [', '"original.trained.npz": [')},
            [f"{STEM}/original.trained.csv is not the file that {STEM}/ours.evaluation was made from"],
        ),
        (
            lambda found: {TRAINED: sealed(found[TRAINED], '"train"', '"tarin"')},
            [],  # whoever forges a seal is not found out
        ),
        (
            lambda found: {f"{ROOT}/toy/small/seed0/ours.evaluation.csv": b"ours.evaluation\n"},
            [],  # a file that a certificate names may be there
        ),
        (
            lambda found: {f"{ROOT}/toy/small/seed0/ours.evaluation.csv": b"another"},
            [f"'{ROOT}/toy/small/seed0/ours.evaluation.csv' was changed after its job wrote it"],
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(made: Path, change: Callable[[Found], Changes], sentences: list[str]) -> None:
    path = changed(made, change(contents(made)))
    problems, _ = check(path)
    assert problems == [f"{path}: {sentence}." for sentence in sentences]


def test_a_bundle_without_artefacts_shows_nothing(made: Path) -> None:
    gone = {name: None for name in contents(made) if "/artefacts/" in name}
    problems, _ = check(changed(made, gone))
    assert problems[0].endswith("changed.zip: it contains no table or figure.")


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "a\\..\\x", "./x", "a//x", "x\x1b[2J", "results/"])
def test_a_name_that_may_leave_the_folder_is_refused(made: Path, name: str) -> None:
    path = changed(made, {name: b"x"})
    with pytest.raises(UserError) as refused:
        check(path)
    said = f"{path}: contains an invalid file name, {name!r}; nothing was unpacked."
    assert str(refused.value) == said


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_of_two_files_is_refused(made: Path) -> None:
    with ZipFile(made, "a") as file:
        file.writestr(CSV, "x")
    with pytest.raises(UserError, match=r"contains two files named '.*numbers\.csv'; nothing was unpacked\.$"):
        check(made)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def nest(path: Path) -> None:
    with ZipFile(path, "a") as file:
        file.writestr("LICENSE/x", "a folder with the name of a file")


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (Path.unlink, "there is no such file"),
        (lambda path: path.write_text("PK"), "not a zip file, or truncated or damaged (File is not a zip file)"),
        (cut, "not a zip file, or truncated or damaged ("),
        (flip, "not a zip file, or truncated or damaged ("),
        (nest, "cannot be unpacked ("),
        (lambda path: changed(path, {METADATA: None}).replace(path), "not a bundle of fu, or its ro-crate-m"),
        (lambda path: changed(path, {METADATA: b"{}"}).replace(path), "not a bundle of fu, or its ro-crate-m"),
        (lambda path: changed(path, {METADATA: b'{"@graph": [1]}'}).replace(path), "not a bundle of fu, or its "),
        (lambda path: changed(path, {"results/two/x": b""}).replace(path), "not a bundle of fu, or its ro-crate-metad"),
    ],
)  # fmt: skip
def test_what_is_no_bundle_or_only_a_part_of_one_is_one_sentence(
    made: Path, damage: Callable[[Path], Any], sentence: str
) -> None:
    damage(made)
    with pytest.raises(UserError) as refused:
        check(made)
    said = str(refused.value)
    assert said.startswith(f"{made}: {sentence}")
    assert said.endswith(".")
    assert "\n" not in said


@pytest.mark.parametrize(
    ("old", "new"),
    [('"format": 4', '"f": 4'), ('"inputs": {', '"inputs": {"a": 1,'), ('"stage": "', '"stage": 3, "x": "')],
)
def test_a_certificate_of_another_kind_is_one_sentence(made: Path, old: str, new: str) -> None:
    path = changed(made, {TRAINED: sealed(contents(made)[TRAINED], old, new)})
    with pytest.raises(UserError, match=r"changed\.zip: contains a certificate that fu did not write \(.*\)\.$"):
        check(path)


def test_certificates_are_read_in_the_bundle_alone(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpacked into `tmp_path`, three folders below it lies what a certificate in the bundle names."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    outside = tmp_path / "outside/x.made.json"
    outside.parent.mkdir()
    certificate.write(outside, Certificate("", "data", {}, "", {}, {}, {"x.csv": (1, "digest")}))
    named = '"models": [["results/smoke/../../../outside/x.csv", "digest"]]'
    path = changed(made, {TRAINED: sealed(contents(made)[TRAINED], '"models": []', named)})
    assert check(path)[0] == [f"{path}: ../../../outside/x.made.json is missing or damaged."]


def test_the_command_prints_what_is_wrong_and_fails(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path, status, said in (
        (made, 0, f"{made}: 1 table or figure at preset 'smoke'; "),
        (changed(made, {CSV: None}), 1, f"{made.with_name('changed.zip')}: '{CSV}' is missing.\n"),
    ):
        with pytest.raises(SystemExit) as ended:
            show.main(["check", str(path)])
        assert ended.value.code == status
        assert capsys.readouterr().out.startswith(said)
