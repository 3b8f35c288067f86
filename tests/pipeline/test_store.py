"""The store: a key over all that decides bytes, entries whole or not at all, damage that is named and made again."""

import errno
import json
import multiprocessing
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from fu.contents import checksum
from fu.pipeline import certificate, digest, store
from fu.pipeline.certificate import Certificate
from fu.pipeline.stages import common
from fu.pipeline.stages.common import Options, Signature, atomic_outputs, take
from tests.mistakes import contents, has, sentence

CACHE = "--cache", "../cache"


class Spec(common.Spec):
    """What the training of these tests reads."""

    stage = "train"
    lr: float = 0.1


@dataclass(frozen=True)
class Files:
    """What it reads, one file or several for a role, and what it writes."""

    data: Path
    partition: Path
    request: list[Path]
    history: Path
    model: Path
    cost: Path
    others: list[Path] = field(default_factory=list)


class Checkout:
    """A folder in which the training runs."""

    def __init__(self, folder: Path, trial: str = "original") -> None:
        self.folder, self.trial, self.calls = folder, trial, 0
        folder.mkdir(parents=True)
        self.inputs = {"data": ["digits.npz"], "partition": ["partition.npz"], "request": ["request.npz"]}
        for name in ("digits.npz", "partition.npz", "request.npz", "late.npz"):
            self.write(name, f"content of {name}")

    def write(self, name: str, text: str) -> None:
        """Write an input with the certificate of the job that made it."""
        (self.folder / name).write_text(text)
        outputs = {name: (len(text), checksum(self.folder / name))}
        made = Certificate("k", "data", {}, "c", {}, {}, outputs)
        certificate.write(self.folder / name.replace(".npz", ".made.json"), made)

    def run(self, *more: str, lr: float = 0.1) -> bool:
        """Train here as a rule would, and return whether anything was computed."""
        before, words = (
            self.calls,
            ["--spec", json.dumps({"lr": lr}), "--certificate", f"{self.trial}.trained.made.json"],
        )
        for role, names in self.inputs.items():
            words += [f"--{role}", *names]
        for role, suffix in {"model": "safetensors", "cost": "cost.json", "history": "history.safetensors"}.items():
            words += [f"--{role}", f"{self.trial}.trained.{suffix}"]
        with inside(self.folder):
            common.run(Spec, Files, self.train, [*words, *(more or ("--unless-made", *CACHE))])
        return self.calls > before

    def train(self, spec: Spec, files: Files, options: Options) -> None:
        """Make outputs, of which one tells how often this was called."""
        self.calls += 1
        with atomic_outputs(options, files.model, files.cost, files.history) as (model, cost, history):
            model.write_text(f"model of {spec.lr}")
            cost.write_text(f"{self.folder.name} {self.calls}")
            history.write_text("history")

    def __getitem__(self, suffix: str) -> Path:
        return self.folder / f"{self.trial}.trained.{suffix}"

    @property
    def entries(self) -> list[Path]:
        """What lies in the store."""
        folder = self.folder.parent / "cache"
        return sorted(folder.iterdir()) if folder.exists() else []


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@pytest.fixture
def first(tmp_path: Path) -> Checkout:
    """A checkout in which the training has run."""
    checkout = Checkout(tmp_path / "first")
    assert checkout.run()
    return checkout


# ---- found again ---------------------------------------------------------------------------------------------------


def test_another_checkout_computes_nothing_and_says_so(
    first: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Checkout(tmp_path / "other", trial="original+lr0.1")
    capsys.readouterr()
    assert not other.run()
    (entry,) = first.entries
    told = f"train: taken over from ../cache/{entry.name}/train.made.json; nothing is computed.\n"
    assert capsys.readouterr().err == told
    assert other["safetensors"].read_text() == "model of 0.1"
    assert other["history.safetensors"].read_text() == "history"
    assert other["cost.json"].read_text() == "first 1"  # times are those of the run that computed
    made, known = certificate.read(other["made.json"]), certificate.read(first["made.json"])
    assert made is not None
    assert known is not None
    assert made.taken == f"{entry.name}/train.made.json"
    assert certificate.taken(other["cost.json"]) == made.taken
    assert (known.taken, certificate.taken(first["cost.json"])) == ("", "")
    renamed = {f"original+lr0.1{name.removeprefix('original')}": about for name, about in known.outputs.items()}
    assert replace(made, taken="", seal="") == replace(known, outputs=renamed, seal="")
    with inside(other.folder):
        assert certificate.holds(Path("original+lr0.1.trained.made.json"), made.key, made.inputs)


def test_a_setting_that_is_switched_back_and_forth_computes_nothing_again(first: Checkout) -> None:
    assert first.run(lr=0.2)
    assert [first.run(lr=lr) for lr in (0.1, 0.2, 0.1, 0.1)] == [False] * 4
    assert first["safetensors"].read_text() == "model of 0.1"
    assert (first.calls, len(first.entries)) == (2, 2)


def test_nothing_is_kept_and_nothing_is_taken_without_a_cache(first: Checkout, tmp_path: Path) -> None:
    other = Checkout(tmp_path / "other")
    assert other.run("--unless-made")
    assert other.run("--unless-made", "--cache", "", lr=0.2)
    assert len(other.entries) == 1


def test_who_forces_a_job_has_it_computed_and_the_entry_stays(first: Checkout, tmp_path: Path) -> None:
    (entry,) = first.entries
    before = contents(entry)
    other = Checkout(tmp_path / "other")
    assert other.run(*CACHE)
    assert other["cost.json"].read_text() == "other 1"
    assert (first.entries, contents(entry)) == ([entry], before)


def test_the_time_of_an_entry_is_that_of_its_last_use(first: Checkout, tmp_path: Path) -> None:
    (entry,) = first.entries
    os.utime(entry, (1, 1))
    assert not Checkout(tmp_path / "other").run()
    assert entry.stat().st_mtime > 1


# ---- the key -------------------------------------------------------------------------------------------------------


def swap(checkout: Checkout) -> None:
    """Have two roles with each other's contents."""
    checkout.write("digits.npz", "content of partition.npz")
    checkout.write("partition.npz", "content of digits.npz")


def moved(checkout: Checkout) -> None:
    """Hand the same file over in another role."""
    checkout.inputs |= {"request": [], "others": ["request.npz"]}


CHANGES: dict[str, Callable[[Checkout, pytest.MonkeyPatch], Any]] = {
    "code": lambda _, patch: edited(patch),
    "content": lambda checkout, _: checkout.write("digits.npz", "another"),
    "content of a list": lambda checkout, _: checkout.write("request.npz", "another"),
    "another file": lambda checkout, _: checkout.inputs.update(request=["request.npz", "late.npz"]),
    "roles": lambda checkout, _: swap(checkout),
    "role": lambda checkout, _: moved(checkout),
    "processor": lambda _, patch: patch.setattr(torch.cpu, "get_capabilities", lambda: {"l2_cache_size": 1}),
    "switch": lambda _, patch: patch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2"),
    "switch of a GPU": lambda _, patch: patch.setenv("NVIDIA_TF32_OVERRIDE", "1"),
    "Python": lambda _, patch: patch.setattr("platform.python_version", lambda: "3.99"),
    "torch": lambda _, patch: patch.setattr(torch, "__version__", f"{torch.__version__}+other"),
    "GPU": lambda _, patch: with_gpu(patch, "A"),
}  # fmt: skip


def edited(patch: pytest.MonkeyPatch) -> None:
    """Run other code."""
    patch.setattr(digest, "digest", lambda *_: "f" * 16)
    patch.setattr(digest, "reread", lambda *_: "f" * 16)


def with_gpu(patch: pytest.MonkeyPatch, name: str) -> None:
    """Have a GPU with this name."""
    patch.setattr(torch.cuda, "is_available", lambda: True)
    patch.setattr(torch.cuda, "get_device_name", lambda: name)


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_bytes_is_part_of_the_key(
    first: Checkout, tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Checkout(tmp_path / "other")
    with monkeypatch.context() as patch:
        CHANGES[change](other, patch)
        assert other.run()
    assert len(other.entries) == 2
    assert not Checkout(tmp_path / "third").run()


def test_spec_stage_and_threads_are_part_of_the_key(first: Checkout, tmp_path: Path) -> None:
    other = Checkout(tmp_path / "other")
    assert other.run(lr=0.3)
    assert other.run("--unless-made", *CACHE, "--threads", "2", lr=0.1)
    keys = {store.Entry(tmp_path, (stage, stage), {}, {}).key for stage in ("train", "unlearn")}
    assert (len(other.entries), len(keys)) == (3, 2)


def test_a_gpu_counts_by_its_name_and_only_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    without = store.machine("cpu", 1)
    assert without == store.machine("auto", 1)
    assert store.machine("cuda", 1) != without  # the job will say that there is none
    with_gpu(monkeypatch, "A")
    assert store.machine("cpu", 1) == without
    assert store.machine("cuda", 1) == store.machine("auto", 1)
    assert store.machine("cuda", 1)["gpu"] == "A"
    with_gpu(monkeypatch, "B")
    assert store.machine("auto", 1)["gpu"] == "B"


def test_how_many_cores_are_there_and_who_asks_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = store.machine("cpu", 1)
    found = torch.cpu.get_capabilities()
    assert before["processor"]["l2_cache_size"] == found["l2_cache_size"]
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {**found, "num_logical_cores": 999})
    monkeypatch.setenv("USER", "somebody")
    assert store.machine("cpu", 1) == before


# ---- damage --------------------------------------------------------------------------------------------------------


def replaced_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


HARMS: dict[str, Callable[[Path], Any]] = {
    "flipped": lambda path: path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:]),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "missing": lambda path: path.unlink(),
    "a folder": replaced_by_a_folder,
}


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize(
    "name", ["train.safetensors", "train.cost.json", "train.history.safetensors", "train.made.json"]
)
def test_a_damaged_entry_is_named_thrown_away_and_computed_again(
    first: Checkout, tmp_path: Path, name: str, harm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (entry,) = first.entries
    whole = contents(entry)
    (entry / name).chmod(0o644)
    HARMS[harm](entry / name)
    capsys.readouterr()
    other = Checkout(tmp_path / "other")
    assert other.run()
    has(capsys.readouterr().err, f"train: ../cache/{entry.name} is damaged: it is thrown away and computed again.\n")
    assert other["safetensors"].read_text() == "model of 0.1"
    assert other.entries == [entry]
    assert {name for name, text in contents(entry).items() if text != whole[name]} <= {
        "train.cost.json",
        "train.made.json",
    }
    assert not Checkout(tmp_path / "third").run()


def test_an_entry_that_cannot_be_thrown_away_fails_no_job(
    first: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (entry,) = first.entries
    (entry / "train.cost.json").unlink()

    def refused(path: Path, target: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "rename", refused)
    other = Checkout(tmp_path / "other")
    assert other.run()
    assert other["safetensors"].read_text() == "model of 0.1"
    has(capsys.readouterr().err, "is damaged: it cannot be removed (Permission denied) and is computed again.\n")


def test_an_edit_of_a_result_does_not_reach_the_entry(first: Checkout, tmp_path: Path) -> None:
    other = Checkout(tmp_path / "other")
    other.run()
    for path in (first["safetensors"], other["safetensors"]):
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask()  # Snakemake replaces nothing that is read-only
        path.write_text("edited in place")
    assert not Checkout(tmp_path / "third").run()


def test_outputs_that_changed_before_they_were_kept_are_not_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout = Checkout(tmp_path / "first")
    train = checkout.train

    def hasty(spec: Spec, files: Files, options: Options) -> None:
        train(spec, files, options)
        files.history.write_text("edited")

    checkout.train = hasty  # type: ignore[method-assign]
    assert checkout.run()
    has(
        capsys.readouterr().err, "not kept in the cache ../cache: original.trained.history.safetensors is not as it was"
    )
    assert checkout.entries == []


# ---- permissions, full disks, two at once --------------------------------------------------------------------------


def mask() -> int:
    found = os.umask(0)
    os.umask(found)
    return found


@pytest.mark.parametrize(
    ("umask", "folder", "file"),
    [(0, 0o775, 0o444), (0o002, 0o775, 0o444), (0o022, 0o755, 0o444), (0o077, 0o700, 0o400)],
)
def test_nobody_can_write_a_kept_file_and_not_everybody_into_the_folders(
    tmp_path: Path, umask: int, folder: int, file: int
) -> None:
    before = os.umask(umask)
    try:
        checkout = Checkout(tmp_path / "first")
        assert checkout.run("--unless-made", "--cache", "../a/b/cache")
        assert mask() == umask
    finally:
        os.umask(before)
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a", *(tmp_path / "a").rglob("*"))}
    assert {mode for path, mode in found.items() if path.is_dir()} == {folder}
    assert {mode for path, mode in found.items() if path.is_file()} == {file}
    assert len(found) == 8


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_disk_that_is_full_while_storing_fails_no_job(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout = Checkout(tmp_path / "first")
    with monkeypatch.context() as patch:
        fill(patch, number)
        assert checkout.run()
    told = f"train: made, but not kept in the cache ../cache: {os.strerror(number)}.\n"
    assert capsys.readouterr().err == told
    assert checkout["safetensors"].read_text() == "model of 0.1"
    assert checkout.entries == []
    assert not checkout.run("--unless-made")


def fill(patch: pytest.MonkeyPatch, number: int = errno.ENOSPC) -> None:
    """Have every copy end in the middle with an error of the system."""

    def full(read: Any, write: Any, *_: object) -> None:
        write.write(b"half")
        raise OSError(number, os.strerror(number))

    patch.delattr(os, "copy_file_range", raising=False)
    patch.setattr(shutil, "copyfileobj", full)


def test_a_disk_that_is_full_while_taking_fails_the_job_as_ever_and_damages_nothing(
    first: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (entry,) = first.entries
    other = Checkout(tmp_path / "other")
    before = contents(other.folder)
    with monkeypatch.context() as patch:
        fill(patch)
        with pytest.raises(SystemExit, match="error: train: No space left on device; existing outputs are kept"):
            other.run()
    assert contents(other.folder) == before
    assert other.entries == [entry]
    assert not other.run()


def test_a_store_that_cannot_be_written_fails_no_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkout = Checkout(tmp_path / "first")
    (tmp_path / "cache").write_text("a file")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere/at/all")
    assert checkout.run()
    assert checkout.run("--unless-made", "--cache", "../link", lr=0.2)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "train: made, but not kept in the cache ../cache: Not a directory.",
        "train: made, but not kept in the cache ../link: File exists.",
    ]


def test_a_copy_that_the_system_ends_half_way_is_finished_and_one_that_it_cannot_make_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, copies = tmp_path / "source", 0
    source.write_bytes(os.urandom(300_000))

    def half(read: int, write: int, count: int) -> int:
        nonlocal copies
        copies += 1
        if copies > 1:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return os.write(write, os.read(read, 100_000))

    monkeypatch.setattr(os, "copy_file_range", half, raising=False)
    store.copy(source, tmp_path / "first", checksum(source))
    monkeypatch.delattr(os, "copy_file_range")
    store.copy(source, tmp_path / "second", checksum(source))
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes() == source.read_bytes()
    assert copies == 2


def race(folder: Path, name: str, start: Any) -> None:
    """Train at five rates, at the same time as others."""
    checkout = Checkout(folder / name)
    for k in range(5):
        start.wait()
        checkout.run(lr=k)
        assert checkout["safetensors"].read_text() == f"model of {float(k)}"


def test_processes_that_make_the_same_at_once_make_one_whole_entry(tmp_path: Path) -> None:
    forked = multiprocessing.get_context("fork")
    start = forked.Barrier(6)
    racers = [forked.Process(target=race, args=(tmp_path, f"checkout{k}", start)) for k in range(6)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(60)
    assert [racer.exitcode for racer in racers] == [0] * 6
    last = Checkout(tmp_path / "last")
    assert len(last.entries) == 5
    assert [last.run(lr=k) for k in range(5)] == [False] * 5


def test_who_comes_second_leaves_the_entry_of_the_first(
    first: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (entry,) = first.entries
    kept = entry.rename(tmp_path / "kept")
    copy = store.copy

    def late(*given: Any) -> None:
        copy(*given)
        if not entry.exists():
            shutil.copytree(kept, entry)

    monkeypatch.setattr(store, "copy", late)
    assert Checkout(tmp_path / "other").run()
    assert first.entries == [entry]
    assert contents(entry) == contents(kept)
    assert capsys.readouterr().err == ""


def stuck(folder: Path, said: Any) -> None:
    """Train, and never come to the second file of the entry."""
    copy, files = store.copy, list[Path]()

    def once(source: Path, target: Path, content: str) -> None:
        files.append(target)
        if len(files) > 1:
            said.set()
            time.sleep(60)
        copy(source, target, content)

    store.copy = once
    Checkout(folder / "killed").run()


def test_a_process_that_is_killed_while_it_stores_leaves_no_entry(tmp_path: Path) -> None:
    forked = multiprocessing.get_context("fork")
    said = forked.Event()
    process = forked.Process(target=stuck, args=(tmp_path, said))
    process.start()
    assert said.wait(60)
    process.kill()
    process.join()
    other = Checkout(tmp_path / "other")
    (left,) = other.entries
    assert contents(left) == {"train.safetensors": b"model of 0.1"}
    assert other.run()
    assert not Checkout(tmp_path / "third").run()
    assert len(other.entries) == 2


# ---- a folder that cannot be a store -------------------------------------------------------------------------------


def test_a_store_into_which_everybody_can_write_or_that_is_a_file_is_refused(tmp_path: Path) -> None:
    store.check(tmp_path / "absent")
    store.check(tmp_path)
    (tmp_path / "file").touch()
    has(sentence(lambda: store.check(tmp_path / "file")), "config: cache: must be a folder, got '", "file'.")
    tmp_path.chmod(0o777)
    has(sentence(lambda: store.check(tmp_path)), "config: cache: everybody can write into '", "`chmod o-w` it, or name")
    tmp_path.chmod(0o775)
    store.check(tmp_path)


# ---- what another job beside this one has made ---------------------------------------------------------------------


def candidate(first: Checkout, **changes: Any) -> tuple[bool, Options]:
    """Take over from the first job, as one that has the same inputs; return whether that was possible."""
    made = certificate.read(first["made.json"])
    assert made is not None
    read = {**made.inputs, "chosen": [["selected.json", "s"]]}
    draft = Certificate("own key", "train", {"chosen": 1}, made.code, {}, {**read, **changes.pop("inputs", {})})
    modules = ("fu.pipeline.stages.train",)
    draft = replace(draft, code=digest.digest(*modules))
    options = Options(signature=Signature(first.folder / "chosen.trained.made.json", draft, modules))
    return take(**{"source": first["made.json"], "key": made.key, **changes}, options=options), options


def test_a_candidate_beside_a_job_is_taken_over(first: Checkout, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert candidate(first)[0]
    has(capsys.readouterr().err, "train: taken over from ", "first/original.trained.made.json; nothing is computed.\n")
    own = certificate.read(first.folder / "chosen.trained.made.json")
    assert own is not None
    assert (own.key, own.spec, own.inputs["chosen"]) == ("own key", {"chosen": 1}, [["selected.json", "s"]])
    assert own.taken == "first/original.trained.made.json"
    assert list(own.outputs) == [
        f"chosen.trained.{suffix}" for suffix in ("safetensors", "cost.json", "history.safetensors")
    ]
    assert certificate.holds(first.folder / "chosen.trained.made.json", "own key", own.inputs)
    assert (first.folder / "chosen.trained.cost.json").read_text() == "first 1"


@pytest.mark.parametrize(
    "changes",
    [
        {"key": "another"},
        {"source": Path("absent.made.json")},
        {"inputs": {"data": []}},
        {"inputs": {"data": [["digits.npz", "another"]]}},
        {"inputs": {"history": [["history.npz", "h"]]}},
    ],
)
def test_a_candidate_of_another_spec_or_from_other_inputs_is_not_taken_over(
    first: Checkout, changes: dict[str, Any]
) -> None:
    before = contents(first.folder)
    assert not candidate(first, **changes)[0]
    assert contents(first.folder) == before


def test_a_candidate_that_changed_since_it_was_made_is_not_taken_over_and_is_named(
    first: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    first["history.safetensors"].write_text("edited")
    before = contents(first.folder)
    assert not candidate(first)[0]
    has(
        capsys.readouterr().err,
        "original.trained.history.safetensors is not as it was made, so nothing is taken over.\n",
    )
    assert contents(first.folder) == before
