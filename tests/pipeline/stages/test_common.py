"""What all stages share: a command line read into types, outputs written whole or not at all."""

import errno
import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

from fu import gpus
from fu.contents import checksum
from fu.pipeline.provenance import certificate, digest
from fu.pipeline.provenance.certificate import Certificate
from fu.pipeline.stages import common
from fu.pipeline.stages.common import Options, atomic_outputs
from tests.mistakes import contents, has

COMPLETE = "; `make show CELL=...` prints a complete command."


class Spec(common.Spec):
    """What a stage of the tests reads."""

    stage = "data"
    lr: float
    rounds: int = 3


@dataclass(frozen=True)
class Files:
    """One file, and several."""

    made_of: list[Path]
    output: Path


def run(*argv: str) -> list[tuple[Spec, Files, Options]]:
    """Return what the main was given, once for each time it was called."""
    given: list[tuple[Spec, Files, Options]] = []
    common.run(Spec, Files, lambda *found: given.append(found), list(argv))
    return given


def refused(*argv: str) -> str:
    """Return the one sentence that the stage ends with."""
    with pytest.raises(SystemExit) as caught:
        run(*argv)
    text = str(caught.value.code)
    assert text.startswith("error: ")
    assert "\n" not in text
    return text.removeprefix("error: ")


def test_a_stage_is_given_what_its_command_line_says() -> None:
    how = ("--threads", "2", "--device", "cpu", "--checkpoint-seconds", "0.5")
    ((spec, files, options),) = run("--spec", '{"lr": 0.1}', "--made-of", "a", "b", "--output", "c/d", *how)
    assert spec == Spec(lr=0.1, rounds=3)
    assert files == Files([Path("a"), Path("b")], Path("c/d"))
    assert options == Options(digest.digest("fu.pipeline.stages.data"), 2, "cpu", 0.5)
    ((_, files, options),) = run("--spec", '{"lr": 0.1}', "--output", "c")
    assert files == Files([], Path("c"))
    assert (options.threads, options.device, options.checkpoint_seconds) == (1, "auto", 30.0)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("{", "--spec: Invalid JSON: EOF while parsing an object at line 1 column 1, got '{'"),
        ("[1]", "--spec: Input should be an object, got [1]"),
        ("{}", "--spec: lr: is missing"),
        ('{"lr": 1, "rouns": 2}', "--spec: rouns: unknown key; did you mean 'rounds'? allowed: lr, rounds"),
    ],
)
def test_a_malformed_spec_is_told_in_one_sentence(spec: str, words: str) -> None:
    assert refused("--spec", spec, "--output", "x") == words + COMPLETE


def test_a_sentence_names_the_command_of_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # without a Makefile
    assert refused("--spec", "{}", "--output", "x").endswith(
        "; `python -m fu show CELL=...` prints a complete command."
    )


def test_code_that_was_edited_after_planning_does_not_run() -> None:
    words = ("--spec", '{"lr": 1}', "--output", "x", "--code")
    assert len(run(*words, digest.digest("fu.pipeline.stages.data"))) == 1
    assert refused(*words, "0" * 16) == "data: the code was edited after this job was planned; start the run again."


def test_outputs_appear_together_with_ordinary_permissions(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    first, second = tmp_path / "deep/first.csv", tmp_path / "second.csv"
    with atomic_outputs(Options(), first, second) as (a, b):
        a.touch(mode=0o600)
        b.write_text("b")
        assert not first.exists()
    assert second.read_text() == "b"
    assert stat.S_IMODE(first.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_an_error_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    old = tmp_path / "old.csv"
    old.write_text("before")
    (tmp_path / ".part-1-old.csv").write_text("left by a killed job")

    def job() -> None:
        with atomic_outputs(Options(), old, tmp_path / "new.csv") as (part, _):
            part.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        job()
    assert contents(tmp_path) == {"old.csv": b"before"}


def test_what_a_killed_job_left_is_removed_and_nothing_of_another_job_is(tmp_path: Path) -> None:
    others = [".part-7-my-fedosd.csv", ".part-x-fedosd.csv", ".part-7-fedosd.csv.gz"]
    for name in (".part-7-fedosd.csv", *others):
        (tmp_path / name).touch()
    with atomic_outputs(Options(), tmp_path / "fedosd.csv") as (part,):
        part.touch()
    assert sorted(contents(tmp_path)) == sorted([*others, "fedosd.csv"])


def test_rows_are_written_with_all_columns_and_what_a_row_lacks_stays_empty(tmp_path: Path) -> None:
    common.write_rows(tmp_path / "x.csv", [{"round": 1, "asr": 0.5}, {"round": 2}], ("round", "asr"))
    assert (tmp_path / "x.csv").read_bytes() == b"round,asr\n1,0.5\n2,\n"


# ---- certificates --------------------------------------------------------------------------------------------------


@pytest.fixture
def before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Outputs of another job."""
    monkeypatch.chdir(tmp_path)
    return lay("drawn")


def lay(text: str) -> Path:
    """Write a partition with its certificate."""
    path = Path("partition.npz")
    path.write_text(text)
    made = Certificate("k", "partition", {}, "c", {}, {}, {path.name: (len(text), checksum(path))})
    certificate.write(Path("partition.made.json"), made)
    return path


def made(main: Callable[[Spec, Files, Options], None], *more: str, lr: float = 0.1) -> None:
    """Run a stage that certifies its output."""
    words = ["--spec", json.dumps({"lr": lr}), "--made-of", "partition.npz", "--output", "model.csv"]
    words += ["--certificate", "model.made.json", *more]
    common.run(Spec, Files, main, words, reads=lambda spec, files: {"made_of": files.made_of})


def told(main: Callable[[Spec, Files, Options], None], *more: str, lr: float = 0.1) -> str:
    """Return the error of a stage that would certify its output."""
    with pytest.raises(SystemExit) as caught:
        made(main, *more, lr=lr)
    return str(caught.value).removeprefix("error: ")


def write(spec: Spec, files: Files, options: Options) -> None:
    """Make the output."""
    with atomic_outputs(options, files.output) as (part,):
        part.write_text(f"lr {spec.lr}")


def test_outputs_are_certified_with_all_that_they_were_made_from(before: Path) -> None:
    made(write)
    found = certificate.read(Path("model.made.json"))
    assert found is not None
    code = digest.digest("fu.pipeline.stages.data")
    assert (found.stage, found.spec, found.code) == ("data", {"lr": 0.1, "rounds": 3}, code)
    assert found.key == certificate.key_of("data", '{"lr":0.1,"rounds":3}', code)
    assert found.inputs == {"made_of": [["partition.npz", checksum(before)]]}
    assert found.outputs == {"model.csv": [6, checksum(Path("model.csv"))]}
    assert found.parts == digest.parts("fu.pipeline.stages.data")
    assert sorted(contents(Path())) == ["model.csv", "model.made.json", "partition.made.json", "partition.npz"]


def test_what_is_made_already_is_not_made_again_unless_something_differs(before: Path) -> None:
    calls: list[float] = []

    def main(spec: Spec, files: Files, options: Options) -> None:
        calls.append(spec.lr)
        write(spec, files, options)

    made(main, "--unless-made")
    made(main, "--unless-made")
    assert calls == [0.1]
    made(main)
    made(main, "--unless-made", lr=0.2)
    assert calls == [0.1, 0.1, 0.2]
    Path("model.csv").write_text("lr 0.3")
    made(main, "--unless-made", lr=0.2)
    assert calls == [0.1, 0.1, 0.2, 0.2]
    lay("other")
    made(main, "--unless-made", lr=0.2)
    assert calls == [0.1, 0.1, 0.2, 0.2, 0.2]


def test_a_job_that_did_not_run_what_was_planned_replaces_nothing(
    before: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(write)
    old = contents(Path())

    def main(spec: Spec, files: Files, options: Options) -> None:
        with atomic_outputs(options, files.output) as (part,):
            part.write_text("by other code")
            monkeypatch.setattr(digest, "replaced", lambda *modules: "torch")

    assert told(main) == "data: torch changed while this job ran; start the run again."
    assert contents(Path()) == old


def test_a_job_that_ends_between_its_outputs_leaves_none_with_a_certificate(
    before: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(write)

    def killed(path: Path, content: Certificate) -> None:
        assert Path("model.csv").read_text() == "lr 0.2"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(certificate, "write", killed)
    assert told(write, lr=0.2) == "data: No space left on device; existing outputs are kept."
    assert sorted(contents(Path())) == ["model.csv", "partition.made.json", "partition.npz"]


def test_a_job_for_which_the_gpu_is_too_full_runs_once_more_alone_on_it(
    before: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fits, calls = [False, True], list[bool]()

    def main(spec: Spec, files: Files, options: Options) -> None:
        calls.append(fits[len(calls)])
        if not calls[-1]:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        write(spec, files, options)

    alone = [True, False]
    monkeypatch.setattr(gpus, "alone", lambda: alone.pop(0))
    made(main)
    assert calls == [False, True]
    assert Path("model.csv").read_text() == "lr 0.1"
    assert "data: the GPU's memory is full; retrying alone on it." in capsys.readouterr().err
    fits, alone = [False, False], [True, False]
    calls.clear()
    has(told(main, lr=0.2), "data: this job does not fit into the GPU's memory; ", "jobs_per_gpu")
    assert calls == [False, False]
    assert Path("model.csv").read_text() == "lr 0.1"


def test_an_input_that_is_not_as_it_was_made_is_refused_before_the_main_begins(before: Path) -> None:
    before.write_text("Drawn")

    def main(spec: Spec, files: Files, options: Options) -> None:
        raise AssertionError

    assert told(main).startswith("partition.npz: the content does not match partition.made.json")


def test_a_job_whose_outputs_another_process_is_making_does_not_begin(
    before: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate, "PATIENCE_S", 0.1)
    with certificate.locked(Path("model.made.json")):
        has(told(write), "model.made.json: process ", " is making the same outputs; wait")
    assert not Path("model.csv").exists()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EACCES, errno.EROFS])
def test_a_folder_that_cannot_be_written_or_locked_is_told(
    before: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(file: object, how: int) -> None:
        raise OSError(number, os.strerror(number), "model.made.json")

    monkeypatch.setattr("fcntl.flock", refuse)
    assert told(write) == f"model.made.json: {os.strerror(number)}; existing outputs are kept."


@pytest.mark.parametrize("put", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
@pytest.mark.parametrize("place", ["model.csv", "model.made.json"])
def test_what_lies_in_the_place_of_a_file_is_told_before_anything_is_computed(
    before: Path, place: str, put: Callable[[Path], None]
) -> None:
    def main(spec: Spec, files: Files, options: Options) -> None:
        with atomic_outputs(options, files.output):
            raise AssertionError

    made(write)
    Path(place).unlink()
    put(Path(place))
    assert told(main, "--unless-made").startswith(f"{place}: a folder, pipe or device is in the place of")
    assert Path("model.csv" if place != "model.csv" else "model.made.json").is_file()


def test_a_full_disk_that_a_library_tells_in_an_error_of_its_own_is_told(before: Path) -> None:
    """Any other error is a bug, and keeps its traceback."""
    number = errno.ENOSPC

    def main(spec: Spec, files: Files, options: Options) -> None:
        raise SafetensorError(f'I/O error: something (os error {number}) at path "x"')

    assert told(main) == "data: No space left on device; existing outputs are kept."
    number = errno.EISDIR
    with pytest.raises(SafetensorError):
        made(main)
