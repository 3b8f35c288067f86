"""A bundle holds what one needs to check and cite results, repeats to the byte, and names what is wrong with it."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import chdir
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from rocrate.rocrate import ROCrate

from fu.artefacts import provenance
from fu.pipeline.bundle import check as checks
from fu.pipeline.bundle import write
from fu.pipeline.bundle.check import METADATA, check
from fu.pipeline.page import write as page
from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance import certificate
from fu.pipeline.provenance.digest import ROOT as REPOSITORY
from tests.artefacts.factories import make_entry
from tests.mistakes import has, sentence
from tests.pipeline.page.folder import EVALUATION, ROOT, certify, copied, put, sealed

Changes = dict[str, bytes | None]
CSV, MADE = f"{ROOT}/artefacts/toy/numbers.csv", f"{ROOT}/artefacts/toy/numbers.made.json"
STEM = "toy/small/seed0"
EVALUATED, TRAINED = (f"{ROOT}/{STEM}/{name}.made.json" for name in ("ours.evaluation", "original.trained"))


@pytest.fixture(scope="module")
def plan(_with_toys: Path) -> Iterator[Plan]:
    """The plan of the toy paper; the commit is that of the folder in which a test is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provenance, "CODE", Path())
        yield Plan({"preset": "smoke", "papers": ["toy"]})


@pytest.fixture(scope="module")
def whole(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder with the results of `toy_numbers`, and their bundle; nobody edits them."""
    with chdir(tmp_path_factory.mktemp("bundled")):
        put(make_entry("table", artefact="numbers"))
        path = bundle(plan).absolute()
        return Path("results").absolute(), Path(shutil.move(path, path.parents[2]))


@pytest.fixture
def stem(whole: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files, without suffix, of the one artefact that is made: `toy_numbers`."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(whole[0], "results")
    return ROOT / "artefacts/toy/numbers"


@pytest.fixture
def made(whole: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The bundle, alone in a folder."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copy(whole[1], tmp_path))


def bundle(plan: Plan, *targets: str) -> Path:
    *_, summary = write.write(plan, targets)
    return Path(summary.partition(": ")[0])


def contents(path: Path) -> dict[str, bytes]:
    with ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def changed(path: Path, changes: Changes, described: bool = False) -> Path:
    """Change files of a bundle, remove those that are None, and describe them as they are."""
    files = {name: content for name, content in {**contents(path), **changes}.items() if content is not None}
    if described:
        entities = [{"@id": name, "@type": "File", "sha256": hashlib.sha256(files[name]).hexdigest(),
                     "contentSize": len(files[name])} for name in files.keys() - {METADATA}]  # fmt: skip
        files[METADATA] = json.dumps({"@graph": entities}).encode()
    with ZipFile(path, "w") as file:
        for name, content in files.items():
            file.writestr(name, content)
    return path


def test_a_bundle_is_a_crate_of_artefacts_certificates_settings_versions_and_how_to_cite(made: Path) -> None:
    files, crate = contents(made), ROCrate(made)
    project = {"config.yaml", "Snakefile", "envs/lock.txt", "LICENSE", "CITATION.cff", METADATA}
    project |= {"workflow/papers/toy.yaml", "workflow/presets/smoke.yaml", f"{ROOT}/index.html"}
    own = {f"{ROOT}/artefacts/toy/numbers.{suffix}" for suffix in ("csv", "rows.csv", "md", "html", "tex", "json")}
    assert {*files} == project | own | {MADE, EVALUATED, TRAINED}
    assert files["envs/lock.txt"] == (REPOSITORY / "envs/lock.txt").read_bytes()
    assert files["config.yaml"] == b"preset: smoke\npapers:\n- toy\n"
    assert made.name.startswith("smoke-unknown-")  # where there is no git
    for name in files.keys() - {METADATA}:
        stated = crate.get(name)["sha256"], crate.get(name)["contentSize"]
        assert stated == (hashlib.sha256(files[name]).hexdigest(), str(len(files[name])))
    root = crate.root_dataset
    assert root["license"].id == "https://spdx.org/licenses/MIT"
    assert [paper["creditText"] for paper in root["isBasedOn"]] == ["Nobody, Toy (a test)."]
    [action] = root["mentions"]
    assert action["name"] == "make reproduce PRESET=smoke TARGETS=toy_numbers"
    assert {one.id for one in action["result"]} == own
    problems, summary = check(made)
    assert problems == []
    has(summary, "1 table or figure at preset 'smoke'; ", " all inputs of the 3 jobs match ")
    assert summary.endswith(" Not included, only their digests: 1 of train, 1 of evaluate.")


def test_equal_results_give_equal_bytes_and_targets_say_which(plan: Plan, stem: Path, whole: tuple[Path, Path]) -> None:
    copied(stem, "bars")
    one, both = bundle(plan, "toy_numbers"), bundle(plan)
    assert one.name == whole[1].name
    assert one.read_bytes() == whole[1].read_bytes()
    with ZipFile(one) as file:
        about = {(info.compress_type, info.external_attr >> 16, info.date_time) for info in file.infolist()}
    assert about == {(ZIP_DEFLATED, 0o100644, (1980, 1, 1, 0, 0, 0))}
    assert b'id="toy/bars"' in contents(both)[f"{ROOT}/index.html"]
    assert b"toy_bars" not in contents(one)[f"{ROOT}/index.html"]
    assert f"{ROOT}/artefacts/toy/bars.csv" in contents(both)


def test_the_commit_names_and_dates_it_and_edited_code_is_not_under_its_name_alone(plan: Plan, stem: Path) -> None:
    Path("code.py").write_text("1\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "code.py"], ["commit", "-q", "-m", "one", "--date=2026-01-02T03:04:05Z"]):
        subprocess.run([*git, *words], check=True, env={"GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z"})
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    clean = bundle(plan)
    assert clean.name.startswith(f"smoke-{commit[:12]}-")
    assert str(ROCrate(clean).root_dataset["datePublished"]).startswith("2026-01-02T03:04:05")
    assert f", commit {commit}. Preset" in ROCrate(clean).root_dataset["description"]
    Path("code.py").write_text("2\n")
    assert f", commit {commit}, edited. Preset" in ROCrate(bundle(plan)).root_dataset["description"]


def test_what_is_damaged_incomplete_missing_or_out_of_date_is_named(plan: Plan, stem: Path) -> None:
    copied(stem, "bars")
    stem.with_name("numbers.csv").write_text("x")
    *lines, summary = write.write(plan, ["toy_numbers", "toy_bars", "toy_rates"])
    assert lines == [
        "toy_numbers: numbers.csv is not as its job wrote it.",
        "toy_rates: not made yet, so left out.",
        "toy_bars: out of date with the current settings, code or data; `make why PRESET=smoke` lists what changed.",
    ]
    path = Path(summary.partition(": ")[0])
    has(ROCrate(path).root_dataset["description"], "Not what these settings and this code would make: toy_bars.")
    assert not [name for name in contents(path) if "numbers" in name]
    before = certificate.read(stem.with_name("bars.made.json"))
    assert before
    costs = replace(before, inputs={**before.inputs, "costs": [[EVALUATION, "of another run"]]})
    certificate.write(stem.with_name("bars.made.json"), costs)
    assert bundle(plan, "toy_bars").is_file()  # seconds that were measured again make no gap
    Path(EVALUATION).write_text("another")
    certify(Path(EVALUATION).with_suffix(""), "evaluate")
    *lines, refused = [next(generator := write.write(plan, ["toy_bars"])), sentence(lambda: next(generator))]
    assert lines == [f"toy_bars: {STEM}/ours.evaluation.csv is not the file that artefacts/toy/bars was made from."]
    assert refused.startswith(
        "results/smoke/artefacts: there is no whole table or figure to bundle; run `make reproduce PRESET="
    )


def full(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_it_is_written_whole_or_not_at_all(plan: Plan, stem: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name in ((ZipFile, "writestr"), (Path, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, full)
            assert sentence(lambda: bundle(plan)) == "results/smoke: No space left on device; no bundle was written."
    render = page.render

    def meanwhile(*words: Any) -> str:
        Path(EVALUATION).write_text("another")
        certify(Path(EVALUATION).with_suffix(""), "evaluate")
        return render(*words)

    monkeypatch.setattr(page, "render", meanwhile)
    has(sentence(lambda: bundle(plan)), "was made from; files changed during bundling, run `make bundle` again.")
    assert {file.name for file in ROOT.iterdir()} == {"toy", "artefacts"}


def test_a_paper_of_ones_own_is_in_its_folder(stem: Path, with_toy: Path, mine: Path) -> None:
    text = (with_toy / "papers/toy.yaml").read_text().replace("    published: true\n", "")
    (mine / "papers").mkdir()
    (mine / "papers/own.yaml").write_text(text)
    copied(stem, "numbers", "own")
    plan = Plan({"preset": "smoke", "papers": ["own"], "plugins": str(mine)})
    assert contents(bundle(plan))["mine/papers/own.yaml"] == text.encode()


GAP = f"{STEM}/original.trained.csv is not the file that {STEM}/ours.evaluation was made from"


@pytest.mark.parametrize(
    ("change", "described", "sentences"),
    [
        (lambda files: {CSV: files[CSV] + b"x"}, False,
         ["toy_numbers: numbers.csv is not as its job wrote it", f"'{CSV}' does not match {METADATA}"]),
        (lambda files: {CSV: files[CSV] + b"x"}, True, ["toy_numbers: numbers.csv is not as its job wrote it"]),
        (lambda files: {"LICENSE": None}, False, ["'LICENSE' is missing"]),
        (lambda files: {"more": b""}, False, [f"'more' is not listed in {METADATA}"]),
        (lambda files: {EVALUATED: None}, True, [f"{STEM}/ours.evaluation.made.json is missing or damaged"]),
        (lambda files: {TRAINED: sealed(files[TRAINED], ".csv", ".npz")}, True, [GAP]),
        (lambda files: {TRAINED: sealed(files[TRAINED], '"train"', '"forged"')}, True, []),  # nothing is signed
        (lambda files: dict.fromkeys(name for name in files if "/artefacts/" in name), True,
         ["it contains no table or figure"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(
    made: Path, change: Callable[[dict[str, bytes]], Changes], described: bool, sentences: list[str]
) -> None:
    path = changed(made, change(contents(made)), described)
    assert check(path)[0] == [f"{path}: {sentence}." for sentence in sentences]


INVALID = ("/x", "../x", "a/../x", "a\\x", "a/", "a/" * 16 + "x")
MISTYPED = '"inputs": {', '"inputs": {"a": 1,'
NO_METADATA = (None, b'{"@graph": [1]}', b"[" * 100_000)


def added(path: Path, name: str) -> None:
    with ZipFile(path, "a") as file:
        file.writestr(name, "x")


def misnamed(path: Path) -> None:
    added(path, "é")
    path.write_bytes(path.read_bytes().replace("é".encode(), b"\xff\xff"))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (Path.unlink, "there is no such file"),
        (lambda path: path.write_text("PK"), "File is not a zip file"),
        (lambda path: path.write_bytes(path.read_bytes()[:-100]), "cannot be unpacked"),
        *((partial(added, name=name), "a file name is invalid or occurs twice: ") for name in (*INVALID, CSV)),
        (misnamed, "UnicodeDecodeError"),
        (partial(added, name="LICENSE/x"), "cannot be unpacked"),
        (partial(added, name="results/two/x"), "not a bundle of fu"),
        *((lambda path, text=text: changed(path, {METADATA: text}), "not a bundle of fu") for text in NO_METADATA),
        (lambda path: changed(path, {TRAINED: sealed(contents(path)[TRAINED], *MISTYPED)}, True),
         "contains a certificate that fu did not write"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_what_is_no_bundle_is_one_sentence_and_writes_nothing(
    made: Path, damage: Callable[[Path], Any], words: str, tmp_path: Path
) -> None:
    damage(made)
    has(sentence(lambda: check(made)), f"{made}: ", words)
    assert {*tmp_path.iterdir()} <= {made}


def test_sizes_are_added_up_before_anything_is_written(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "LARGEST", sum(map(len, contents(made).values())) - 1)
    monkeypatch.setattr(ZipFile, "extractall", full)
    has(sentence(lambda: check(made)), "its files would take 0 GB, more than 0 GB")


def test_certificates_are_read_in_the_bundle_alone(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpacked into `tmp_path`, three folders below it lies what a certificate in the bundle names."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    outside = tmp_path / "outside/x.made.json"
    outside.parent.mkdir()
    certificate.write(outside, certificate.Certificate("", "data", {}, "", {}, {}, {"x.csv": (1, "digest")}))
    named = '"models": [["results/smoke/../../../outside/x.csv", "digest"]]'
    changed(made, {TRAINED: sealed(contents(made)[TRAINED], '"models": []', named)}, True)
    assert check(made)[0] == [f"{made}: ../../../outside/x.made.json is missing or damaged."]
