"""What the plan believes of a file, when it reads it again, and which files a job is handed in which role."""

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fu.contents import checksum
from fu.pipeline.plan import pending
from fu.pipeline.plan.pending import FOLLOWS, Pending, Reason, Seen, _differences
from fu.pipeline.plan.plan import Job, Plan
from fu.pipeline.provenance import certificate
from fu.pipeline.provenance.certificate import Certificate
from tests.pipeline.plans import made


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model, and a memory of its own."""
    monkeypatch.setattr(pending, "SEEN", tmp_path / "cache/seen.json")
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"as it was made")
    return path


def certified(path: Path, seal: str = "a seal") -> Certificate:
    """The certificate of a file as it is."""
    return Certificate("k", "train", {}, "c", {}, {}, {path.name: (path.stat().st_size, checksum(path))}, seal)


def rewritten(path: Path, content: bytes) -> None:
    """Write other contents under the same times."""
    about = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that the plan has hashed."""
    names: list[str] = []

    def counted(path: Path) -> str:
        names.append(path.name)
        return checksum(path)

    monkeypatch.setattr(pending, "checksum", counted)
    return names


def test_a_file_is_read_where_it_does_not_look_as_before_or_all_are(model: Path, read: list[str]) -> None:
    made, expected = certified(model), checksum(model)
    rewritten(model, b"as it was MADE")
    seen = Seen()
    assert seen.content(str(model), made) == checksum(model) != expected  # at first sight, whatever is certified
    rewritten(model, b"as it was made")
    seen.remember()
    seen = Seen()
    for thorough, times in ((False, 2), (False, 2), (True, 3)):
        assert seen.content(str(model), made, thorough) == expected
        assert len(read) == times
    model.unlink()
    assert seen.content(str(model), made) is None


@pytest.mark.parametrize(
    ("order", "damaged", "reads"),
    [
        (["model", "trace", "certificate"], "", []),
        (["model", "certificate", "trace"], "", ["original.csv"]),
        (["model", "trace", "certificate"], "as it was MADE", ["original.safetensors"]),
        (["model", "trace", "certificate"], "longer", ["original.safetensors"]),
    ],
    ids=["as made", "touched since", "damaged since", "of another size"],
)
def test_what_a_job_has_just_made_is_not_read_unless_it_was_touched_after_its_certificate(
    order: list[str], damaged: str, reads: list[str], tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "SEEN", tmp_path / "cache/seen.json")
    names = {"model": "original.safetensors", "trace": "original.csv", "certificate": "original.made.json"}
    files = {one: tmp_path / name for one, name in names.items()}
    files["model"].write_text("as it was made")
    files["trace"].write_text("its trace")
    outputs = {files[one].name: (files[one].stat().st_size, checksum(files[one])) for one in ("model", "trace")}
    made = Certificate("k", "train", {}, "c", {}, {}, outputs, "a seal")
    for one in order:
        time.sleep(0.02)  # more than a tick of the file system's clock
        files[one].touch()
    if damaged:
        time.sleep(0.02)
        rewritten(files["model"], damaged.encode())
    seen = Seen()
    seen.made(str(files["certificate"]), made)
    seen.remember()
    again = Seen()
    assert {one: again.content(str(files[one]), made) for one in ("model", "trace")} == {
        one: checksum(files[one]) for one in ("model", "trace")
    }
    assert read == reads


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({"local": {"lr": 0.1, "rounds": 2}}, {"local": {"lr": 0.2, "rounds": 2}}, ["local.lr: 0.1 -> 0.2"]),
        ({"a": 1, "b": "x"}, {"a": 1, "c": None}, ["b: removed", "c: new"]),
        ({"a": [{"name": "x", "v": 1}, {"name": "y"}]}, {"a": [{"name": "x", "v": 2}, {"name": "y"}]},
            ["a.x.v: 1 -> 2"]),
        ({"a": [{"name": "x"}, {"name": "y"}]}, {"a": [{"name": "y"}, {"name": "x"}]}, ["a: another order"]),
        ({"a": [{"name": "x"}]}, {"a": [{"name": "x"}, {"name": "z", "v": {"w": 1}}]}, ["a.z: new"]),
        ({"a": [{"v": 1}, {"v": 2}]}, {"a": [{"v": 1}, {"v": 3}]}, ["a.2.v: 2 -> 3"]),
        ({"attack": None}, {"attack": {"name": "patch"}}, ['attack: null -> {"name": "patch"}']),
        ({"a": "x" * 90}, {"a": 1}, ["a: changed"]),
    ],
)  # fmt: skip
def test_differences_are_told_by_their_place(old: object, new: object, told: list[str]) -> None:
    assert list(map(str, _differences(old, new))) == told


# ---- the inputs of a job ---------------------------------------------------------------------------------------------

RUN = "fedosd/mnist-pat50/seed0"
FEDERASER = {"run": RUN, "trial": "federaser"}
CHOSEN = {"run": RUN, "trial": "fedosd+chosen"}
HERE = f"results/smoke/{RUN}"


def wanted(plan: Plan) -> list[Job]:
    """Return the evaluations."""
    return [plan.job("evaluate", {**names, "evaluation": "evaluation"}) for names in (FEDERASER, CHOSEN)]


@pytest.fixture
def finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """The plan of some evaluations all of whose jobs have run: each of their files holds its own name."""
    monkeypatch.chdir(tmp_path)
    plan = made("smoke")
    monkeypatch.setattr(plan, "job", plan.job, raising=False)
    for job in plan.behind(wanted(plan)):
        outputs = {}
        for path in (Path(path) for path in job.outputs.values() if path != job.certificate):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(path))
            outputs[path.name] = (path.stat().st_size, checksum(path))
        read = {role: [[path, checksum(Path(path))] for path in files] for role, files in job.listed.items() if files}
        (*_, spec), (*_, key) = job.specs, job.keys  # the last of the points
        certified = Certificate(key, job.stage, spec.model_dump(mode="json"), job.code, job.parts, read, outputs)
        certificate.write(Path(job.certificate), certified)
    return plan


def handed(plan: Plan, job: Job, **inputs: Any) -> Reason | None:
    """Return why a job has to run that is planned with other inputs."""
    edited = replace(job, inputs={role: files for role, files in (job.inputs | inputs).items() if files is not None})
    known = plan.job
    changed = {job.certificate: edited}
    setattr(plan, "job", lambda stage, names: changed.get((found := known(stage, names)).certificate, found))  # noqa: B010
    return Pending(plan).reason(edited)


def test_a_job_that_is_handed_what_it_has_read_is_current(finished: Plan) -> None:
    found = {job.certificate: handed(finished, job) for job in finished.behind(wanted(finished))}
    assert {Path(path).name for path in found} >= {"fedosd+chosen.recovered.made.json", "fedosd.selected.made.json"}
    assert set(found.values()) == {None}


@pytest.mark.parametrize(
    ("stage", "names", "inputs", "text"),
    [
        ("recover", CHOSEN, {"unlearned": f"{HERE}/original.trained.safetensors"},
         f"unlearned: {HERE}/original.trained.safetensors is new"),
        ("unlearn", FEDERASER, {"history": []},
         f"history: {HERE}/original.trained.history.safetensors is no longer read"),
        ("unlearn", FEDERASER, {"history": None},
         f"history: {HERE}/original.trained.history.safetensors is no longer read"),
        ("evaluate", {**CHOSEN, "evaluation": "evaluation"},
         {"models": [f"{HERE}/fedosd+chosen.{role}.safetensors" for role in ("recovered", "unlearned")]},
         "models: the order of the files has changed"),
        ("train", {"run": RUN, "trial": "original"}, {"request": [f"{HERE}/partition.npz"]},
         f"request: {HERE}/partition.npz is new"),
    ],
    ids=["another role", "an empty role", "no such role", "another order", "a new role"],
)  # fmt: skip
def test_a_job_that_is_handed_other_files_runs(
    finished: Plan, stage: str, names: dict[str, str], inputs: dict[str, Any], text: str
) -> None:
    assert handed(finished, finished.job(stage, names), **inputs) == Reason("input", text)


def test_a_job_whose_input_was_made_anew_with_other_contents_runs(finished: Plan) -> None:
    partition = finished.job("partition", {"run": RUN})
    file, known = Path(partition.outputs["partition"]), certificate.read(Path(partition.certificate))
    assert known is not None
    file.write_text("another")
    certificate.write(Path(partition.certificate), replace(known, outputs={file.name: (7, checksum(file))}))
    asked = Pending(finished)
    assert asked.reason(partition) is None
    assert asked.reason(finished.job("train", {"run": RUN, "trial": "original"})) == Reason(
        "input", f"{file} has changed"
    )
    assert asked.reason(finished.job("select", {"scenario": RUN.rpartition("/")[0], "method": "fedosd"})) == FOLLOWS


# ---- what the plan looks at ------------------------------------------------------------------------------------------


def test_a_run_remembers_what_it_made_and_reads_the_rest_once(
    finished: Plan, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it, one evaluation is not made, and the certificate of another is of an earlier code."""
    new, old = wanted(finished)
    kept = {one.certificate: certificate.read(Path(one.certificate)) for one in (new, old)}
    certificate.write(Path(old.certificate), replace(kept[old.certificate], key="earlier"))  # type: ignore[arg-type,type-var]
    Path(new.certificate).unlink()
    run = Pending(finished)
    assert [job.certificate for job, _ in run.to_make(wanted(finished))] == [new.certificate, old.certificate]
    before = len(read)
    certificate.write(Path(new.certificate), kept[new.certificate])  # type: ignore[arg-type]
    run.remember_made()
    assert len(read) == before  # neither what it made nor what it failed to make
    unmade, failed = old.outputs["evaluation"], certificate.read(Path(old.certificate))
    assert failed is not None
    Seen().content(unmade, failed)
    assert read[before:] == [Path(unmade).name]
    del read[before:]
    certificate.write(Path(old.certificate), kept[old.certificate])  # type: ignore[arg-type]
    assert list(Pending(finished).to_make(wanted(finished))) == []
    assert sorted(read[before:]) == sorted(Path(path).name for path in old.outputs.values() if path != old.certificate)


def test_results_that_were_copied_are_read_once_and_a_digit_that_changed_before_is_seen(
    finished: Plan, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copies keep their times and bring the cache along, as `cp -a` does."""
    first = Pending(finished)
    assert list(first.to_make(wanted(finished))) == []
    first.remember()
    job = finished.job("train", {"run": RUN, "trial": "original"})
    trace = Path(job.outputs["trace"])
    digit = trace.read_text().replace("seed0", "seed8")
    rewritten(trace, digit.encode())
    shutil.copytree("results", "clone/results")
    monkeypatch.chdir("clone")
    read.clear()
    there = Pending(finished)
    assert there.reason(job) == Reason("damaged", f"{trace} was changed after it was made")
    list(there.to_make(wanted(finished)))
    assert len(read) == len({*read}) > 10
    there.remember()
    read.clear()
    assert Pending(finished).reason(job) == Reason("damaged", f"{trace} was changed after it was made")
    assert read == []


# ---- certificates that are none --------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["fewer", "more"])
def test_a_certificate_that_does_not_name_the_planned_outputs_is_damaged(finished: Plan, change: str) -> None:
    job = finished.job("train", {"run": RUN, "trial": "original"})
    made = certificate.read(Path(job.certificate))
    assert made is not None
    outputs = {**made.outputs, "original.trained.pdf": (1, "digest")}
    if change == "fewer":
        outputs = {name: about for name, about in made.outputs.items() if not name.endswith(".csv")}
    certificate.write(Path(job.certificate), replace(made, outputs=outputs))
    told = Reason("certificate", f"{job.certificate} does not list the job's outputs")
    assert Pending(finished).reason(job) == told
    after = [reason for _, reason in Pending(finished).to_make(wanted(finished))]
    assert after[0] == told
    assert {*after[1:]} == {FOLLOWS}


def test_an_absent_output_is_missing_only_where_somebody_asked_for_it(finished: Plan) -> None:
    """Artefacts are; what is between is made again where something needs it."""
    evaluation, _ = wanted(finished)
    made = certificate.read(Path(evaluation.certificate))
    assert made is not None
    published = replace(evaluation, stage="publish")
    path = evaluation.outputs["evaluation"]
    asked = Pending(finished)
    assert asked._reason(published, replace(made, key=published.keys[-1])) is None
    Path(path).unlink()
    assert asked._reason(evaluation, made) is None
    assert asked._reason(published, replace(made, key=published.keys[-1])) == Reason("missing", f"{path} is missing")
