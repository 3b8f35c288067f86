"""A job of the chosen point of a grid: which spec it runs, whose outputs it takes over, and when it computes."""

import json
from pathlib import Path

import pytest

from fu.contents import checksum
from fu.pipeline import certificate
from fu.pipeline.certificate import Certificate
from fu.pipeline.stages import common
from tests.pipeline.test_store import Checkout, Files, Spec, inside

POINTS = {"m+lr0.2": 0.2, "m+lr0.1": 0.1}  # not in the order of their names


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

    def chosen(self, points: dict[str, float] = POINTS, flag: str = "--unless-made") -> bool:
        """Run the job of the chosen point, and return whether anything was computed."""
        before, self.trial = self.calls, "m+chosen"
        spec = {"points": {name: {"lr": lr} for name, lr in points.items()}}
        words = ["--spec", json.dumps(spec), "--certificate", f"{self.trial}.trained.made.json"]
        for role, names in self.inputs.items():
            words += [f"--{role}", *names]
        for role, suffix in {"model": "safetensors", "cost": "cost.json", "history": "history.safetensors"}.items():
            words += [f"--{role}", f"{self.trial}.trained.{suffix}"]
        words += ["--chosen", "m.selected.json", "--candidates"]
        words += [f"{name}.trained.made.json" for name in sorted(points)]
        with inside(self.folder):
            common.run(Spec, Files, self.train, [*words, *([flag] if flag else [])])
        return self.calls > before

    def made(self) -> tuple[str, str]:
        """Return the model of the chosen point, and whose it is."""
        found = certificate.read(self["made.json"])
        assert found is not None
        with inside(self.folder):
            assert certificate.holds(Path(self["made.json"].name), found.key, found.inputs)
        return self["safetensors"].read_text(), found.taken


@pytest.fixture
def grid(tmp_path: Path) -> Grid:
    found = Grid(tmp_path / "grid")
    found.select("m+lr0.1")
    return found


@pytest.mark.parametrize("chosen", POINTS)
def test_the_outputs_of_the_point_s_own_job_are_taken_over(
    grid: Grid, chosen: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for point in POINTS:
        grid.own(point)
    grid.select(chosen)
    assert not grid.chosen()
    assert grid.made() == (f"model of {POINTS[chosen]}", f"/{chosen}.trained.made.json")
    assert f"train: taken over from {chosen}.trained.made.json; nothing is computed." in capsys.readouterr().err
    assert not grid.chosen()
    assert "already made" in capsys.readouterr().err


@pytest.mark.parametrize("point", POINTS)
def test_without_it_the_chosen_point_is_computed(grid: Grid, point: str) -> None:
    grid.select(point)
    assert grid.chosen()
    assert grid.made() == (f"model of {POINTS[point]}", "")


def test_another_choice_is_another_model(grid: Grid) -> None:
    assert grid.chosen()
    grid.select("m+lr0.2")
    assert grid.chosen()
    assert grid.made() == ("model of 0.2", "")


def test_one_more_point_computes_nothing_where_the_choice_stays(grid: Grid) -> None:
    assert grid.chosen()
    more = {**POINTS, "m+lr0.05": 0.05}
    assert not grid.chosen(more)
    assert grid.made() == ("model of 0.1", "")
    grid.select("m+lr0.05")
    assert grid.chosen(more)
    assert grid.made() == ("model of 0.05", "")


@pytest.mark.parametrize("what", ["input", "output"])
def test_a_point_made_of_other_contents_or_damaged_since_is_not_taken(
    grid: Grid, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    grid.own("m+lr0.1")
    if what == "input":
        grid.write("digits.npz", "other data")
    else:
        grid["safetensors"].write_text("damaged")
    assert grid.chosen()
    assert grid.made() == ("model of 0.1", "")
    assert ("m+lr0.1.trained.safetensors is not as it was made" in capsys.readouterr().err) == (what == "output")


def test_who_forces_a_job_has_it_computed(grid: Grid) -> None:
    grid.own("m+lr0.1")
    assert grid.chosen(flag="")
    assert grid.made() == ("model of 0.1", "")


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
    said = "error: m.selected.json: names none of m+lr0.2, m+lr0.1; delete the file and run snakemake again."
    assert str(caught.value) == said
