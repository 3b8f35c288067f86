"""A job of the chosen point of a grid: which spec it runs, when it copies, and when it computes."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from fu.contents import checksum
from fu.pipeline.provenance import certificate
from fu.pipeline.provenance.certificate import Certificate
from fu.pipeline.stages import common
from fu.pipeline.stages.common import Options, atomic_outputs

SUFFIXES = {"model": "safetensors", "cost": "cost.json", "history": "history.safetensors"}
POINTS = {"m+lr0.2": 0.2, "m+lr0.1": 0.1}  # not in the order of their names


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
        for role, suffix in SUFFIXES.items():
            words += [f"--{role}", f"{self.trial}.trained.{suffix}"]
        with inside(self.folder):
            common.run(Spec, Files, self.train, [*words, *more])
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


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


class Grid(Checkout):
    """A folder with the jobs of two points and of the chosen one."""

    def own(self, point: str) -> None:
        """Run a point's own job."""
        self.trial = point
        assert self.run("--unless-made", lr=POINTS[point])

    def select(self, point: str, text: str | None = None) -> None:
        """Leave a selection as its job does."""
        path = self.folder / "m.selected.json"
        path.write_text(json.dumps({"selected": point}) if text is None else text)
        outputs = {path.name: (path.stat().st_size, checksum(path))}
        made = Certificate("k", "select", {}, "c", {}, {}, outputs)
        certificate.write(self.folder / "m.selected.made.json", made)

    def chosen(self, points: dict[str, float] = POINTS, flag: str = "--unless-made", copies: bool = False) -> bool:
        """Run the job of the chosen point, and return whether anything was computed; `copies`: all points are there."""
        before, self.trial = self.calls, "m+chosen"
        spec = {"points": {name: {"lr": lr} for name, lr in points.items()}}
        words = ["--spec", json.dumps(spec), "--certificate", f"{self.trial}.trained.made.json"]
        for role, names in self.inputs.items():
            words += [f"--{role}", *names]
        for role, suffix in SUFFIXES.items():
            words += [f"--{role}", f"{self.trial}.trained.{suffix}"]
        words += ["--chosen", "m.selected.json", "--points"]
        words += [f"{name}.trained.{suffix}" for name in sorted(points) for suffix in SUFFIXES.values() if copies]
        with inside(self.folder):
            common.run(Spec, Files, self.train, [*words, *([flag] if flag else [])])
        return self.calls > before

    def made(self) -> str:
        """Return the model of the chosen point, whose certificate holds."""
        found = certificate.read(self["made.json"])
        assert found is not None
        path = self.folder / "m.selected.json"
        assert found.inputs["chosen"] == [[path.name, checksum(path)]]
        assert set(found.outputs) == {f"{self.trial}.trained.{suffix}" for suffix in SUFFIXES.values()}
        with inside(self.folder):
            assert certificate.still_made(Path(self["made.json"].name), found.key, found.inputs)
        assert f"model of {found.spec['lr']}" == self["safetensors"].read_text()
        return self["safetensors"].read_text()


@pytest.fixture
def grid(tmp_path: Path) -> Grid:
    found = Grid(tmp_path / "grid")
    found.select("m+lr0.1")
    return found


@pytest.mark.parametrize("chosen", POINTS)
def test_where_the_points_were_computed_the_selected_one_s_outputs_are_copied(
    grid: Grid, chosen: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for point in POINTS:
        grid.own(point)
    grid.select(chosen)
    assert not grid.chosen(copies=True)
    assert grid.made() == f"model of {POINTS[chosen]}"
    assert grid["cost.json"].read_bytes() == (grid.folder / f"{chosen}.trained.cost.json").read_bytes()
    assert f"train: copied from {chosen}.trained.safetensors; nothing is computed." in capsys.readouterr().err
    assert not grid.chosen(copies=True)
    assert "already made" in capsys.readouterr().err
    grid["safetensors"].write_text("damaged")
    assert not grid.chosen(copies=True, flag="")
    assert grid.made() == f"model of {POINTS[chosen]}"


@pytest.mark.parametrize("point", POINTS)
def test_elsewhere_the_selected_point_is_computed(grid: Grid, point: str) -> None:
    grid.select(point)
    assert grid.chosen()
    assert grid.made() == f"model of {POINTS[point]}"


@pytest.mark.parametrize("copies", [False, True])
def test_another_choice_is_another_model(grid: Grid, copies: bool) -> None:
    for point in POINTS:
        grid.own(point)
    assert grid.chosen(copies=copies) == (not copies)
    grid.select("m+lr0.2")
    assert grid.chosen(copies=copies) == (not copies)
    assert grid.made() == "model of 0.2"


def test_one_more_point_computes_nothing_where_the_choice_stays(grid: Grid) -> None:
    assert grid.chosen()
    grid.select("m+lr0.1", '{"selected": "m+lr0.1", "scores": "of three"}')
    more = {**POINTS, "m+lr0.05": 0.05}
    assert not grid.chosen(more)
    assert grid.made() == "model of 0.1"
    grid.select("m+lr0.05")
    assert grid.chosen(more)
    assert grid.made() == "model of 0.05"


def test_another_point_that_is_made_again_leaves_the_copies(grid: Grid, capsys: pytest.CaptureFixture[str]) -> None:
    for point in POINTS:
        grid.own(point)
    assert not grid.chosen(copies=True)
    grid.trial = "m+lr0.2"
    assert grid.run(lr=0.2)  # which takes another time
    capsys.readouterr()
    assert not grid.chosen(copies=True)
    assert "already made" in capsys.readouterr().err
    assert grid.made() == "model of 0.1"


def test_other_inputs_are_computed_with(grid: Grid) -> None:
    assert grid.chosen()
    grid.write("digits.npz", "other data")
    assert grid.chosen()
    assert grid.made() == "model of 0.1"


def test_a_point_that_was_damaged_is_not_copied(grid: Grid) -> None:
    for point in POINTS:
        grid.own(point)
    (grid.folder / "m+lr0.1.trained.history.safetensors").write_text("damaged")
    with pytest.raises(SystemExit) as caught:
        grid.chosen(copies=True)
    found = "m+lr0.1.trained.history.safetensors: the content does not match m+lr0.1.trained.made.json"
    assert found in str(caught.value)
    assert not grid["safetensors"].exists()


def test_by_hand_without_a_certificate_the_chosen_point_is_computed_too(grid: Grid) -> None:
    spec = {"points": {name: {"lr": lr} for name, lr in POINTS.items()}}
    words = ["--spec", json.dumps(spec), "--chosen", "m.selected.json"]
    for role, names in grid.inputs.items():
        words += [f"--{role}", *names]
    words += ["--model", "a.safetensors", "--cost", "a.cost.json", "--history", "a.history.safetensors"]
    with inside(grid.folder):
        common.run(Spec, Files, grid.train, words)
    assert (grid.folder / "a.safetensors").read_text() == "model of 0.1"


@pytest.mark.parametrize("text", ["{", "{}", '{"selected": "m+lr0.4"}', "[]"])
def test_a_selection_of_no_point_is_one_sentence(grid: Grid, text: str) -> None:
    grid.select("", text)
    with pytest.raises(SystemExit) as caught:
        grid.chosen()
    said = "error: m.selected.json: selects none of m+lr0.2, m+lr0.1; delete it and run snakemake again."
    assert str(caught.value) == said


@pytest.mark.parametrize("selected", ["m+a-lr0.1", "m+b-lr0.1"])
def test_of_points_with_equal_specs_the_outputs_of_the_selected_one_are_copied(tmp_path: Path, selected: str) -> None:
    """They differ in what was made before: models post-trained alike after unlearning at different rates."""
    points = {"m+a-lr0.1": 0.1, "m+a-lr0.2": 0.2, "m+b-lr0.1": 0.1, "m+b-lr0.2": 0.2}
    grid = Grid(tmp_path / "grid")
    for name, lr in points.items():
        grid.trial = name
        assert grid.run("--unless-made", lr=lr)
        grid["cost.json"].write_text(name)
        made = certificate.read(grid["made.json"])
        assert made is not None
        outputs = {**made.outputs, grid["cost.json"].name: (len(name), checksum(grid["cost.json"]))}
        certificate.write(grid["made.json"], replace(made, outputs=outputs))
    grid.select(selected)
    assert not grid.chosen(points, copies=True)
    assert grid["cost.json"].read_text() == selected
