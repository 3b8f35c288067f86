"""A job of the chosen point of a grid: which spec it runs, when it copies, and when it computes."""

import json
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


class Grid:
    """A folder with the jobs of points and of the chosen one."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.trial, self.calls = folder, "", 0
        for name in ("digits.npz", "partition.npz", "request.npz"):
            self.write(name, f"content of {name}")
        self.select("m+lr0.1")

    def write(self, name: str, text: str) -> None:
        """Write an input with the certificate of the job that made it."""
        (self.folder / name).write_text(text)
        outputs = {name: (len(text), checksum(self.folder / name))}
        made = Certificate("k", "select", {}, "c", {}, {}, outputs)
        certificate.write(self.folder / f"{name.rpartition('.')[0]}.made.json", made)

    def select(self, point: str) -> None:
        """Write a selection as its job does."""
        self.write("m.selected.json", json.dumps({"selected": point}))

    def run(self, spec: Any, *more: str) -> bool:
        """Run the job of a trial as a rule would, and return whether anything was computed."""
        before, words = self.calls, ["--spec", json.dumps(spec)]
        for role in ("data", "partition", "request"):
            words += [f"--{role}", "digits.npz" if role == "data" else f"{role}.npz"]
        for role, suffix in SUFFIXES.items():
            words += [f"--{role}", f"{self.trial}.trained.{suffix}"]
        with chdir(self.folder):
            common.run(Spec, Files, self.train, [*words, *more])
        return self.calls > before

    def train(self, spec: Spec, files: Files, options: Options) -> None:
        """Make outputs, of which one tells how often this was called."""
        self.calls += 1
        with atomic_outputs(options, files.model, files.cost, files.history) as (model, cost, history):
            model.write_text(f"model of {spec.lr}")
            cost.write_text(f"{self.folder.name} {self.calls}")
            history.write_text("history")

    def own(self, points: dict[str, float] = POINTS) -> None:
        """Run the points' own jobs."""
        for self.trial, lr in points.items():
            assert self.run({"lr": lr}, "--certificate", f"{self.trial}.trained.made.json")

    def chosen(self, points: dict[str, float] = POINTS, *flags: str, copies: bool = False) -> bool:
        """Run the job of the chosen point, and return whether anything was computed; `copies`: all points are there."""
        self.trial = "m+chosen"
        spec = {"points": {name: {"lr": lr} for name, lr in points.items()}}
        there = [f"{name}.trained.{suffix}" for name in sorted(points) for suffix in SUFFIXES.values() if copies]
        words = ["--certificate", f"{self.trial}.trained.made.json", "--chosen", "m.selected.json", "--points", *there]
        return self.run(spec, *words, *(flags or ("--unless-made",)))

    def __getitem__(self, suffix: str) -> Path:
        return self.folder / f"{self.trial}.trained.{suffix}"

    def made(self) -> str:
        """Return the model of the chosen point, whose certificate holds."""
        found = certificate.read(self["made.json"])
        assert found is not None
        path = self.folder / "m.selected.json"
        assert found.inputs["chosen"] == [[path.name, checksum(path)]]
        assert set(found.outputs) == {f"{self.trial}.trained.{suffix}" for suffix in SUFFIXES.values()}
        with chdir(self.folder):
            assert certificate.still_made(Path(self["made.json"].name), found.key, found.inputs)
        assert f"model of {found.spec['lr']}" == self["safetensors"].read_text()
        return self["safetensors"].read_text()


@pytest.fixture
def grid(tmp_path: Path) -> Grid:
    return Grid(tmp_path)


@pytest.mark.parametrize("chosen", POINTS)
def test_where_the_points_were_computed_the_selected_one_s_outputs_are_copied(
    grid: Grid, chosen: str, capsys: pytest.CaptureFixture[str]
) -> None:
    grid.own()
    grid.select(chosen)
    assert not grid.chosen(copies=True)
    assert grid.made() == f"model of {POINTS[chosen]}"
    assert grid["cost.json"].read_bytes() == (grid.folder / f"{chosen}.trained.cost.json").read_bytes()
    assert f"train: copied from {chosen}.trained.safetensors; nothing is computed." in capsys.readouterr().err
    assert not grid.chosen(copies=True)
    assert "already made" in capsys.readouterr().err
    grid["safetensors"].write_text("damaged")
    assert not grid.chosen(POINTS, "--threads=1", copies=True)
    assert grid.made() == f"model of {POINTS[chosen]}"


@pytest.mark.parametrize("copies", [False, True])
def test_another_choice_is_another_model(grid: Grid, copies: bool) -> None:
    grid.own()
    assert grid.chosen(copies=copies) == (not copies)
    assert grid.made() == "model of 0.1"
    grid.select("m+lr0.2")
    assert grid.chosen(copies=copies) == (not copies)
    assert grid.made() == "model of 0.2"


def test_one_more_point_computes_nothing_where_the_choice_stays(grid: Grid) -> None:
    assert grid.chosen()
    grid.write("m.selected.json", '{"selected": "m+lr0.1", "scores": "of three"}')
    more = {**POINTS, "m+lr0.05": 0.05}
    assert not grid.chosen(more)
    assert grid.made() == "model of 0.1"
    grid.select("m+lr0.05")
    assert grid.chosen(more)
    assert grid.made() == "model of 0.05"


def test_another_point_that_is_made_again_leaves_the_copies(grid: Grid, capsys: pytest.CaptureFixture[str]) -> None:
    grid.own()
    assert not grid.chosen(copies=True)
    grid.own({"m+lr0.2": 0.2})  # whose cost is another one now
    assert not grid.chosen(copies=True)
    assert "already made" in capsys.readouterr().err
    assert grid.made() == "model of 0.1"


def test_a_point_that_was_damaged_is_not_copied(grid: Grid) -> None:
    grid.own()
    (grid.folder / "m+lr0.1.trained.history.safetensors").write_text("damaged")
    with pytest.raises(SystemExit) as caught:
        grid.chosen(copies=True)
    found = "m+lr0.1.trained.history.safetensors: the content does not match m+lr0.1.trained.made.json"
    assert found in str(caught.value)
    assert not grid["safetensors"].exists()


def test_by_hand_without_a_certificate_the_chosen_point_is_computed_too(grid: Grid) -> None:
    grid.trial = "a"
    spec = {"points": {name: {"lr": lr} for name, lr in POINTS.items()}}
    assert grid.run(spec, "--chosen", "m.selected.json")
    assert grid["safetensors"].read_text() == "model of 0.1"


@pytest.mark.parametrize("text", ["{", "{}", '{"selected": "m+lr0.4"}', "[]"])
def test_a_selection_of_no_point_is_one_sentence(grid: Grid, text: str) -> None:
    grid.write("m.selected.json", text)
    with pytest.raises(SystemExit) as caught:
        grid.chosen()
    said = "error: m.selected.json: selects none of m+lr0.2, m+lr0.1; delete it and start the run again."
    assert str(caught.value) == said


@pytest.mark.parametrize("selected", ["m+a-lr0.1", "m+b-lr0.1"])
def test_of_points_with_equal_specs_the_outputs_of_the_selected_one_are_copied(grid: Grid, selected: str) -> None:
    """They differ in what was made before: models post-trained alike after unlearning at different rates."""
    points = {"m+a-lr0.1": 0.1, "m+a-lr0.2": 0.2, "m+b-lr0.1": 0.1, "m+b-lr0.2": 0.2}
    grid.own(points)
    grid.select(selected)
    assert not grid.chosen(points, copies=True)
    assert grid["cost.json"].read_bytes() == (grid.folder / f"{selected}.trained.cost.json").read_bytes()
