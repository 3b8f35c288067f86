"""Contents decide: lost records, wrong clocks, damaged files and failing jobs lose nothing and hide nothing."""

import json
import os
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.mistakes import contents
from tests.workflow.project import Project
from tests.workflow.test_edits import STEP, Matches, follows, of_plugin, of_stages

RESULTS = "results/toy"
RUN = f"{RESULTS}/toy/iid/seed0"
# One file of every kind that a job reads.
READ = [
    f"{RESULTS}/data/digits.npz", f"{RUN}/partition.npz", f"{RUN}/original.trained.safetensors",
    f"{RUN}/original.trained.history.safetensors", f"{RUN}/original.evaluation.csv",
    f"{RUN}/fupga+lr0.02.recovered.csv",
    f"{RESULTS}/toy/pat/fedosd.selected.json",
]  # fmt: skip


def after_an_edit(project: Project) -> set[str]:
    """Edit a method, assert that what this concerns is due, and return it."""
    project.edit("fu/methods/fupga.py", STEP, f"{STEP} * 0.5")
    return follows(project, of_plugin("fupga"))


def flip(path: Path) -> None:
    """Flip a byte of a file, and leave its size and time as they are."""
    about, content = path.stat(), path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def unnoticed(project: Project, name: str) -> None:
    """Have the plan know a file as it looks now, as where a disk fails and nothing tells."""
    seen, about = project.root / "results/.cache/seen.json", (project.root / name).stat()
    known = json.loads(seen.read_text())
    known[name][:4] = [about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino]
    seen.write_text(json.dumps(known))


def makes(name: str) -> Matches:
    """Match the job that makes a file."""
    return lambda job: name in job.outputs


# ---- records -------------------------------------------------------------------------------------------------------


def test_an_edit_is_seen_without_what_others_remember(project: Project) -> None:
    for lost in (".snakemake", "results/.cache"):
        shutil.rmtree(project.root / lost)
    project.expect([])
    project.expect_run(after_an_edit(project))


def test_results_that_are_copied_into_another_folder_are_those_of_that_folder(project: Project, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(project.root, other, ignore=shutil.ignore_patterns("results", ".snakemake"))
    shutil.copytree(project.root / "results", other / "results", copy_function=shutil.copyfile)  # with new times
    copied = Project(other)
    copied.expect([])
    after_an_edit(copied)


def test_what_has_no_certificate_is_made_again(project: Project) -> None:
    path = project.root / RUN / "fupga+lr0.02.unlearned.made.json"
    whole = path.read_bytes()
    for damage in (None, b"", b"{}", b"[1]", whole[: len(whole) // 2], "flipped"):
        path.write_bytes(whole)
        if damage is None:
            path.unlink()
        elif isinstance(damage, bytes):
            path.write_bytes(damage)
        else:
            flip(path)
        follows(project, makes(str(path.relative_to(project.root))))


@pytest.mark.whole
def test_what_is_made_again_with_equal_contents_makes_nothing_else(project: Project) -> None:
    before = contents(project.root / RESULTS / "toy")
    (project.root / RUN / "fupga+lr0.02.unlearned.made.json").unlink()
    project.snakemake()
    after = contents(project.root / RESULTS / "toy")
    assert {name for name in after if after[name] != before.get(name)} <= {
        "iid/seed0/fupga+lr0.02.unlearned.cost.json", "iid/seed0/fupga+lr0.02.unlearned.made.json",
    }  # fmt: skip
    log = project.root / RESULTS / "logs/toy/iid/seed0/fupga+lr0.02.recovered.log"
    told = "recover: already made from the same inputs; nothing to do.\n"
    assert log.read_text().endswith(told)
    project.snakemake("-f", f"{RUN}/fupga+lr0.02.recovered.safetensors")  # a person wants it computed
    assert told not in log.read_text()
    assert (
        contents(project.root / RESULTS / "toy/iid")["seed0/fupga+lr0.02.recovered.safetensors"]
        == (before["iid/seed0/fupga+lr0.02.recovered.safetensors"])
    )


# ---- clocks --------------------------------------------------------------------------------------------------------


def everything(project: Project) -> list[Path]:
    return [path for path in (project.root / "results").rglob("*") if path.is_file()]


@pytest.mark.whole
def test_times_hide_nothing(project: Project) -> None:
    affected = after_an_edit(project)
    unlearned = [f"toy/{scenario}/seed0/fupga+lr0.02.unlearned" for scenario in ("iid", "pat")]
    project.snakemake(*(f"{RESULTS}/{name}.safetensors" for name in unlearned))
    left = {key for key in affected if not key.startswith("unlearn ")}
    project.expect(left)
    for seconds in (1_700_000_000, 4_000_000_000):  # another clock's future is no error
        for path in everything(project):
            os.utime(path, (seconds, seconds))
        project.expect(left)
    project.expect_run(left)
    project.snakemake()
    project.expect([])


def test_what_a_person_forces_runs_besides_what_is_due(project: Project) -> None:
    graph = project.graph()
    forced = graph.where(lambda job: job.stage == "train")
    bars = graph.where(lambda job: job.has(artefact="bars"))
    assert len(bars) == 1
    project.expect_run(bars, "--force", f"{RESULTS}/artefacts/toy/bars.csv")
    project.expect_run(forced | after_an_edit(project), "--forcerun", "train")


# ---- contents ------------------------------------------------------------------------------------------------------


@pytest.mark.whole
def test_a_flipped_byte_is_found_by_the_plan(project: Project) -> None:
    for name in READ:
        before = (project.root / name).read_bytes()
        flip(project.root / name)
        follows(project, makes(name))
        (project.root / name).write_bytes(before)
    project.expect([])
    flip(project.root / name)
    project.snakemake(name)
    assert (project.root / name).read_bytes() == before
    project.expect([])


@pytest.mark.whole
def test_whoever_reads_a_flipped_byte_names_the_file(project: Project) -> None:
    name = f"{RESULTS}/toy/pat/fedosd.selected.json"
    flip(project.root / name)
    unnoticed(project, name)
    before = contents(project.root / RESULTS / "artefacts")
    done = project.snakemake("--force", f"{RESULTS}/artefacts/toy/numbers.md", check=False)
    assert done.returncode != 0
    told = f"error: {name}: the content does not match fedosd.selected.made.json; delete the file and start the run"
    assert told in done.stdout + done.stderr
    assert contents(project.root / RESULTS / "artefacts") == before


def test_verify_reads_everything(project: Project) -> None:
    assert project.show("verify").startswith("43 of 43 jobs done; no file was")
    shutil.rmtree(project.root / "results/.cache")
    flip(project.root / RUN / "original.trained.history.safetensors")
    status, first, *rest = project.show("verify").splitlines()
    assert status == "status 1"
    damage = f"{RUN}/original.trained.history.safetensors was changed after it was made"
    assert first == f"{damage}."
    behind = follows(project, makes(f"{RUN}/original.trained.history.safetensors"))  # what was found is known
    shown = [key.split()[1].partition("=")[2] for key in behind if key.startswith("publish ")]
    assert sorted(rest) == sorted(f"toy_{name} is out of date (damaged: {damage})." for name in shown)


# ---- reasons -------------------------------------------------------------------------------------------------------


def why(project: Project, *targets: str) -> list[str]:
    """Return what `make why` says."""
    return project.show("why", TARGETS=" ".join(targets)).splitlines()


def test_what_would_be_made_is_told_with_its_reason(project: Project) -> None:
    nothing = "Nothing to do at preset 'toy'{}: everything is up to date with the current settings, code and data."
    assert why(project) == [nothing.format("")]
    after_an_edit(project)
    project.edit("workflow/papers/toy.yaml", "[0.001, 0.02], source: ", "[0.001, 0.03], source: ")
    pinned(project, "scikit-learn")
    flip(project.root / RUN / "fupga+lr0.02.recovered.safetensors")
    (project.root / RUN / "retraining.evaluation.made.json").unlink()
    (project.root / RESULTS / "artefacts/toy/triggers.png").unlink()
    head, *lines = why(project)
    assert head == f"{len(project.graph().due)} jobs to run at preset 'toy':"
    unlearned = "2 unlearn (toy/iid/seed0/fupga+lr0.02.unlearned, toy/pat/seed0/fupga+lr0.02.unlearned)"
    rate = "fedosd.rates+lr0.02-recovery-lr0.03"
    for line in [
        f"  code        fu.methods.fupga: {unlearned}",
        f"  new         never run: 1 recover, 1 evaluate (toy/iid/seed0/{rate}.recovered, "
        f"toy/iid/seed0/{rate}.evaluation)",
        f"  library     scikit-learn: {version('scikit-learn')} -> 0.0.1: 1 data (data/digits)",
        f"  damaged     {RUN}/fupga+lr0.02.recovered.safetensors was changed after it was made: 1 recover "
        "(toy/iid/seed0/fupga+lr0.02.recovered)",
        f"  certificate {RUN}/retraining.evaluation.made.json is missing or damaged: 1 evaluate "
        "(toy/iid/seed0/retraining.evaluation)",
        f"  missing     {RESULTS}/artefacts/toy/triggers.png is missing: 1 publish (artefacts/toy/triggers)",
        f"  setting     methods.fedosd.rates.trials.iid.{rate}: new: 1 publish (artefacts/toy/rates)",
    ]:
        assert line in lines
    assert lines[-1].startswith("  follows     because an upstream job runs: ")
    assert why(project, "toy_losses") == [nothing.format(" for toy_losses")]


def test_what_is_absent_and_needed_again_is_told(project: Project) -> None:
    (project.root / RUN / "original.trained.safetensors").unlink()
    (project.root / RUN / "retraining.unlearned.made.json").unlink()
    assert "  absent      needed again: 1 train (toy/iid/seed0/original.trained)" in why(project)


# ---- libraries -----------------------------------------------------------------------------------------------------


def pinned(project: Project, library: str) -> str:
    """Pin another version of a library, and return the line."""
    lock = project.root / "envs/lock.txt"
    (line,) = [line for line in lock.read_text().splitlines() if line.startswith(f"{library}==")]
    lock.write_text(lock.read_text().replace(f"{line}\n", f"{library}==0.0.1\n"))
    return line


LIBRARIES: dict[str, tuple[str, ...]] = {
    "matplotlib": ("publish",),
    "scikit-learn": ("data",),
    "pandas": ("publish",),
    "numpy": ("data", "partition", "train", "unlearn", "recover", "evaluate", "publish"),
    "pydantic": (),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_another_version_of_a_library_makes_what_uses_it(project: Project, library: str) -> None:
    pinned(project, library)
    if LIBRARIES[library]:
        follows(project, of_stages(*LIBRARIES[library]))
    else:
        project.expect([])


def test_a_library_of_another_version_than_the_lock_s_is_refused_before_the_first_job(project: Project) -> None:
    line = pinned(project, "matplotlib")
    before = contents(project.root / RESULTS)
    done = project.snakemake(check=False)
    assert done.returncode != 0
    assert (
        f"matplotlib {line.partition('==')[2]} is installed, but envs/lock.txt pins 0.0.1" in done.stdout + done.stderr
    )
    assert contents(project.root / RESULTS) == before


def test_a_certificate_says_what_a_file_was_made_from(toy: Project) -> None:
    found = json.loads((toy.root / RUN / "fupga+lr0.02.unlearned.made.json").read_text())
    assert found["stage"] == "unlearn"
    assert found["spec"]["method"]["name"] == "fupga"
    assert {"fu.methods.fupga", "torch"} <= set(found["parts"])
    assert {role: [path for path, _ in files] for role, files in found["inputs"].items()} == {
        "data": [f"{RESULTS}/data/digits.npz"],
        "partition": [f"{RUN}/partition.npz"],
        "original": [f"{RUN}/original.trained.safetensors"],
        "history": [f"{RUN}/original.trained.history.safetensors"],
    }
    assert set(found["outputs"]) == {
        f"fupga+lr0.02.unlearned.{suffix}" for suffix in ("safetensors", "csv", "cost.json")
    }
