"""A bundle holds what is needed to check and cite artefacts that are as they were made, and repeats to the byte."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
import yaml

from fu.errors import UserError
from fu.pipeline import certificate
from fu.pipeline.bundle import write
from fu.pipeline.digest import ROOT as REPOSITORY
from fu.pipeline.page import write as page
from fu.pipeline.paths import ARTEFACT
from fu.pipeline.plan import Plan
from tests.pipeline.bundle.zips import bundle, contents
from tests.pipeline.page.folder import EVALUATION, ROOT, certify, copied

BEHIND = ("ours.evaluation", "original.trained")
CERTIFICATES = [Path(EVALUATION).with_name(f"{name}.made.json") for name in BEHIND]
OLD = "toy_numbers: out of date with the current settings, code or data; `make why` lists what changed."


def metadata(path: Path) -> dict[str, dict[str, Any]]:
    """Return the entities in a bundle's metadata by their names."""
    return {entity["@id"]: entity for entity in json.loads(contents(path)["ro-crate-metadata.json"])["@graph"]}


def test_a_bundle_holds_artefacts_certificates_settings_versions_and_how_to_cite(made: Path) -> None:
    found = contents(made)
    own = {f"{ROOT}/artefacts/toy/numbers.{suffix}" for suffix in (*ARTEFACT, "made.json")}
    project = {"config.yaml", "Snakefile", "envs/lock.txt", "LICENSE", "CITATION.cff", "ro-crate-metadata.json"}
    papers = {"workflow/papers/toy.yaml", "workflow/presets/smoke.yaml"}
    assert {*found} == own | {*map(str, CERTIFICATES)} | {f"{ROOT}/index.html"} | project | papers
    assert all(found[name] == Path(name).read_bytes() for name in own | {*map(str, CERTIFICATES)})
    assert found["envs/lock.txt"] == (REPOSITORY / "envs/lock.txt").read_bytes()
    assert yaml.safe_load(found["config.yaml"]) == {"preset": "smoke", "papers": ["toy"]}
    assert b'<article id="toy/numbers"' in found[f"{ROOT}/index.html"]
    assert made.parent == ROOT
    assert made.name.startswith("smoke-unknown-")  # where there is no git


def test_its_metadata_names_every_file_the_papers_the_licence_and_the_command(made: Path) -> None:
    entities, found = metadata(made), contents(made)
    root = entities["./"]
    assert root["name"] == "1 artefact of toy, regenerated at preset smoke"
    assert root["license"] == {"@id": "https://spdx.org/licenses/MIT"}
    assert entities["#toy"]["creditText"] == yaml.safe_load(found["workflow/papers/toy.yaml"])["citation"]
    files = {name: entity for name, entity in entities.items() if "File" in entity["@type"]}
    assert {*files} == {*found} - {"ro-crate-metadata.json", *map(str, CERTIFICATES)}
    for name, entity in files.items():
        assert entity["sha256"] == hashlib.sha256(found[name]).hexdigest()
        assert entity["contentSize"] == str(len(found[name]))
    assert files[f"{ROOT}/artefacts/toy/numbers.rows.csv"]["name"] == "A thing: numbers seed by seed"
    action = entities["#toy_numbers"]
    assert action["name"] == "make reproduce PRESET=smoke TARGETS=toy_numbers"
    assert {one["@id"] for one in action["result"]} == {f"{ROOT}/artefacts/toy/numbers.{end}" for end in ARTEFACT}


def test_equal_results_give_equal_bytes_wherever_they_lie(
    plan: Plan, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = made.read_bytes()
    shutil.copytree(tmp_path / "results", tmp_path / "other/results", ignore=lambda *_: [made.name])
    monkeypatch.chdir(tmp_path / "other")
    for file in ROOT.rglob("*.*"):
        if not file.name.endswith(".made.json"):  # of which the newest dates a bundle without git
            os.utime(file, (1, 1))
    assert bundle(plan).name == made.name
    assert made.read_bytes() == before
    with ZipFile(made) as bundled:
        assert {info.date_time for info in bundled.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert bundled.namelist() == sorted(bundled.namelist())


def test_the_commit_names_and_dates_it(plan: Plan, stem: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q"], check=True)
    date = {**os.environ, "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z"}
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], env=date, check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    path = bundle(plan)
    assert path.name.startswith(f"smoke-{commit[:12]}-")
    assert metadata(path)["./"]["datePublished"].startswith("2026-01-02T03:04:05")
    assert metadata(path)["Snakefile"]["version"].endswith(f", commit {commit}")


def test_edited_code_is_not_under_its_commits_name_alone(plan: Plan, stem: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    Path("code.py").write_text("1\n")
    for words in (["init", "-q"], ["add", "code.py"], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *words], check=True)
    Path("new.py").write_text("untracked\n")
    clean = bundle(plan)
    assert not metadata(clean)["Snakefile"]["version"].endswith(", edited")
    clean.unlink()
    Path("code.py").write_text("2\n")
    path = bundle(plan)
    assert re.search(r", commit [0-9a-f]{40}, edited$", metadata(path)["Snakefile"]["version"])
    assert ", edited. Preset smoke: " in metadata(path)["./"]["description"]


def test_its_files_are_compressed_of_one_time_and_readable_by_all(made: Path) -> None:
    with ZipFile(made) as file:
        found = {(one.compress_type, one.external_attr >> 16, one.date_time) for one in file.infolist()}
    assert found == {(ZIP_DEFLATED, 0o100644, (1980, 1, 1, 0, 0, 0))}


def test_targets_say_which_artefacts_and_the_page_shows_no_others(plan: Plan, stem: Path) -> None:
    copied(stem, "bars")
    both, one = bundle(plan), bundle(plan, "toy_bars")
    assert both.is_file()  # it was not overwritten
    assert f"{ROOT}/artefacts/toy/numbers.csv" in contents(both)
    assert not [name for name in contents(one) if "numbers" in name]
    assert not [name for name in ("toy/numbers", "toy_numbers") if name.encode() in contents(one)[f"{ROOT}/index.html"]]
    with pytest.raises(UserError, match=r"there is no target 'toy_bras'; did you mean 'toy_bars'\?"):
        bundle(plan, "toy_bras")


def test_a_paper_of_ones_own_is_in_its_folder(stem: Path, with_toy: Path, mine: Path) -> None:
    text = (with_toy / "papers/toy.yaml").read_text().replace("    published: true\n", "")
    (mine / "papers").mkdir()
    (mine / "papers/own.yaml").write_text(text)
    copied(stem, "numbers", "own")
    plan = Plan({"preset": "smoke", "papers": ["own"], "plugins": str(mine)})
    assert contents(bundle(plan))["mine/papers/own.yaml"] == text.encode()


def test_what_is_damaged_is_left_out_and_named_and_so_is_what_is_not_made(plan: Plan, stem: Path) -> None:
    copied(stem, "bars")
    stem.with_name("numbers.csv").write_text("x")
    said = [*write.write(plan, ["toy_numbers", "toy_bars", "toy_rates"])]
    assert said[:2] == [
        "toy_numbers: numbers.csv is not as its job wrote it.",
        "Not made yet, so left out: toy_rates.",
    ]
    path = Path(said[-1].partition(": ")[0])
    assert {Path(name).name.partition(".")[0] for name in contents(path) if "artefacts" in name} == {"bars"}
    stem.with_name("bars.made.json").unlink()
    with pytest.raises(UserError, match=r"^results/smoke/artefacts: there is no whole table or figure to bundle; run "):
        [*write.write(plan, [])]


def test_an_artefact_whose_chain_has_a_gap_is_left_out(plan: Plan, stem: Path) -> None:
    copied(stem, "bars")
    evaluation = Path(EVALUATION)
    evaluation.write_text("another")
    certify(evaluation.with_suffix(""), "evaluate")
    certify(stem.with_name("bars"), "publish", {"results": [EVALUATION]})
    first, *_ = write.write(plan, ["toy_numbers", "toy_bars"])
    assert first == (
        "toy_numbers: toy/small/seed0/ours.evaluation.csv is not the file that artefacts/toy/numbers was made from."
    )
    CERTIFICATES[0].write_text("{}")
    generator = write.write(plan, ["toy_bars"])
    assert next(generator) == "toy_bars: toy/small/seed0/ours.evaluation.made.json is missing or damaged."


def test_seconds_that_were_measured_again_make_no_gap(plan: Plan, stem: Path) -> None:
    path = stem.with_name("numbers.made.json")
    before = certificate.read(path)
    assert before
    certificate.write(path, replace(before, inputs={**before.inputs, "costs": [[EVALUATION, "of another run"]]}))
    assert bundle(plan).is_file()


def test_what_today_would_be_made_otherwise_is_said(plan: Plan, made: Path) -> None:
    first, _ = write.write(plan, ["toy_numbers"])
    assert first == OLD
    assert metadata(made)["./"]["description"].endswith(
        "Not what these settings and this code would make: toy_numbers."
    )


def full(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


def test_it_is_written_whole_or_not_at_all(plan: Plan, stem: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name in ((ZipFile, "writestr"), (Path, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, full)
            with pytest.raises(UserError, match=r"^results/smoke: No space left on device; no bundle was written\.$"):
                bundle(plan)
        assert not [*ROOT.glob("*.zip"), *ROOT.glob(".*.zip")]


def test_what_changes_while_it_is_written_is_noticed(plan: Plan, stem: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    render = page.render

    def meanwhile(*words: Any) -> str:
        Path(EVALUATION).write_text("another")
        certify(Path(EVALUATION).with_suffix(""), "evaluate")
        return render(*words)

    monkeypatch.setattr(page, "render", meanwhile)
    with pytest.raises(UserError, match=r"was made from\. Files changed during bundling; run `make bundle` again\.$"):
        bundle(plan)
    assert not [*ROOT.glob("*.zip"), *ROOT.glob(".*.zip")]


def test_a_validator_finds_that_it_is_a_crate(made: Path, tmp_path: Path) -> None:
    program = shutil.which("rocrate-validator")
    if program is None:
        pytest.skip("there is no rocrate-validator (pip install roc-validator elsewhere), so no bundle is validated")
    script = [Path(program).resolve().with_name("python"), Path(__file__).with_name("validate.py")]
    done = subprocess.run([*script, made, tmp_path / "cache"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
    entity = {"@id": "./", "@type": "Dataset", "hasPart": []}
    broken = made.with_name("broken.zip")
    with ZipFile(broken, "w") as file:
        graph = [entity, metadata(made)["ro-crate-metadata.json"]]
        text = json.dumps({"@context": "https://w3id.org/ro/crate/1.3/context", "@graph": graph})
        file.writestr("ro-crate-metadata.json", text)
    done = subprocess.run([*script, broken, tmp_path / "cache"], capture_output=True, text=True, check=False)
    assert "license" in done.stdout
    assert done.returncode == 1
