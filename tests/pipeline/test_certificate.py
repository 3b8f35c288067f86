"""Certificates: sealed, compared by contents, written by one process at a time."""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from fu.contents import checksum
from fu.errors import UserError
from fu.pipeline.provenance import certificate
from fu.pipeline.provenance.certificate import Certificate
from tests.mistakes import has, sentence

INPUTS = {"data": [["data/digits.npz", "d"]]}
HOLD = "import sys, time; from pathlib import Path; from fu.pipeline.provenance.certificate import locked\n"
HOLD += "with locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """The certificate of a model and its trace, and these."""
    for name in ("original.safetensors", "original.csv", "original.cost.json"):
        (tmp_path / name).write_text(f"content of {name}")
    outputs = {path.name: (path.stat().st_size, checksum(path)) for path in sorted(tmp_path.iterdir())}
    path = tmp_path / "original.made.json"
    certificate.write(path, Certificate("k", "train", {"lr": 0.1}, "c", {"fu": "1"}, INPUTS, outputs))
    return path


def test_what_is_written_is_read_and_is_json(made: Path) -> None:
    found = certificate.read(made)
    assert found is not None
    assert (found.key, found.stage, found.spec, found.inputs) == ("k", "train", {"lr": 0.1}, INPUTS)
    assert {name: size for name, (size, _) in found.outputs.items()} == {
        "original.safetensors": 31, "original.csv": 23, "original.cost.json": 29,
    }  # fmt: skip
    plain = json.loads(made.read_text())
    assert plain["seal"] == found.seal
    assert plain["outputs"]["original.csv"][1] == checksum(made.with_name("original.csv"))
    assert [path.name for path in made.parent.iterdir() if path.name.startswith(".")] == []


def test_a_certificate_in_which_any_byte_differs_is_none(made: Path) -> None:
    whole = made.read_bytes()
    for position in range(len(whole)):
        made.write_bytes(whole[:position] + bytes([whole[position] ^ 4]) + whole[position + 1 :])
        assert certificate.read(made) is None
    for length in range(len(whole)):
        made.write_bytes(whole[:length])
        assert certificate.read(made) is None


def test_a_certificate_of_another_format_or_none_at_all_is_none(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate, "FORMAT", certificate.FORMAT + 1)
    assert certificate.read(made) is None
    assert certificate.read(made.with_name("absent")) is None
    assert certificate.read(made.parent) is None
    os.mkfifo(made.with_name("pipe.made.json"))
    assert certificate.read(made.with_name("pipe.made.json")) is None


def test_a_certificate_of_other_files_than_those_beside_it_is_none(made: Path) -> None:
    assert certificate.read(made) is not None
    assert certificate.read(made.rename(made.with_name("original+lr0.made.json"))) is None


def test_a_key_is_that_of_stage_spec_code_and_format(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [
        certificate.key_of(*about) for about in (("a", "b", "c"), ("x", "b", "c"), ("a", "x", "c"), ("a", "b", "x"))
    ]
    monkeypatch.setattr(certificate, "FORMAT", certificate.FORMAT + 1)
    assert len({*keys, certificate.key_of("a", "b", "c")}) == 5


def test_what_is_read_is_checked_against_the_certificate_of_its_job(made: Path) -> None:
    model, cost = made.with_name("original.safetensors"), made.with_name("original.cost.json")
    read = {"models": [cost, model], "request": [], "original": [model]}
    expected = {"models": [cost, model], "original": [model]}
    assert certificate.check(read) == {
        role: [[str(path), checksum(path)] for path in files] for role, files in expected.items()
    }


def test_what_is_not_as_its_job_left_it_is_told(made: Path) -> None:
    def told(*names: str) -> str:
        return sentence(lambda: certificate.check({"models": [made.with_name(name) for name in names]}))

    for name in ("original.safetensors", "original.history.safetensors"):  # of the latter the certificate says nothing
        made.with_name(name).write_text("somebody's")
        has(told("original.csv", name), f"/{name}: the content does not match original.made.json; delete the file and")
    has(told("absent.csv"), "/absent.csv: there is no such file; make it first.")
    made.unlink()
    has(told("original.csv"), "/original.csv: its certificate original.made.json is missing or damaged")


def test_a_certificate_holds_for_its_key_inputs_and_outputs_alone(made: Path) -> None:
    known = certificate.read(made)
    assert known is not None
    asked = {"request": [["request.npz", "r"]]}
    assert certificate.still_made(made, "k", INPUTS)
    assert not certificate.still_made(made, "other", INPUTS)
    assert not certificate.still_made(made.with_name("absent"), "k", INPUTS)
    for inputs in ({"data": [["data/digits.npz", "e"]]}, {"original": INPUTS["data"]}, {**INPUTS, **asked}):
        assert not certificate.still_made(made, "k", inputs)
    certificate.write(made, replace(known, inputs={**INPUTS, **asked}))
    assert not certificate.still_made(made, "k", {**INPUTS, "request": [["request.npz", "another"]]})
    certificate.write(made, known)
    trace = made.with_name("original.csv")
    for damage in (lambda: trace.write_text("Content of original.csv"), trace.unlink):
        damage()
        assert not certificate.still_made(made, "k", INPUTS)


# ---- locks ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def holder(tmp_path: Path) -> "subprocess.Popen[str]":
    """A process that is making the outputs of a certificate."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "x.made.json")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_job_on_a_cluster_waits_for_one_on_a_lost_node(
    holder: "subprocess.Popen[str]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate, "PATIENCE_S", 0.0)
    monkeypatch.setattr(certificate, "ON_CLUSTER_S", 60.0)
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    threading.Timer(0.3, holder.kill).start()
    with certificate.locked(tmp_path / "x.made.json"):
        assert holder.wait() == -signal.SIGKILL


def test_no_two_processes_make_the_same_outputs(
    holder: "subprocess.Popen[str]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate, "PATIENCE_S", 0.2)
    with certificate.locked(tmp_path / "y.made.json"):  # other outputs in the same folder
        pass
    told = rf"x\.made\.json: process {holder.pid} on \S+ is making the same outputs; wait until it ends or kill it"
    with pytest.raises(UserError, match=told), certificate.locked(tmp_path / "x.made.json"):
        raise AssertionError
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with certificate.locked(tmp_path / "x.made.json"):  # its lock file is still there
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_is_given_back_after_an_error(tmp_path: Path) -> None:
    def failing() -> None:
        with certificate.locked(tmp_path / "new/x.made.json"):
            raise ValueError("stop")

    for _ in range(2):
        with pytest.raises(ValueError, match="stop"):
            failing()
    assert list((tmp_path / "new").iterdir()) == []


def test_who_waits_gets_the_lock_of_a_removed_file_of_nobody(tmp_path: Path) -> None:
    path = tmp_path / "x.made.json"
    with certificate.locked(path):
        (tmp_path / ".x.made.json.lock").unlink()  # as the process before does at its end
        with certificate.locked(path):
            assert (tmp_path / ".x.made.json.lock").exists()
