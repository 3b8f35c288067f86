"""What artefacts cost, counted by hand on the toy paper with a time for every stage."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fu.errors import UserError
from fu.pipeline.cli import costs
from fu.pipeline.cli.costs import Source
from fu.pipeline.plan import estimates
from fu.pipeline.plan.plan import Job, Plan
from tests.mistakes import has
from tests.pipeline.configs import helped, toy
from tests.pipeline.plans import made

pytestmark = pytest.mark.usefixtures("with_toy")
TWO = ["toy_bars", "toy_times"]


@pytest.fixture(autouse=True)
def _by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No results; a model takes an hour to train, half an hour to evaluate, a gigabyte."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(estimates, "training_seconds", lambda *_, **__: 3600.0)
    monkeypatch.setattr(estimates, "evaluation_seconds", lambda settings, models: 1800.0 * models)
    monkeypatch.setattr(estimates, "mem_mb", lambda *_: 2600)
    monkeypatch.setattr(estimates, "gpu_mem_mb", lambda *_: 1900)
    monkeypatch.setattr(estimates, "models_mb", lambda settings, models=1: 1000.0 * models)


def rows(text: str) -> dict[str, list[str]]:
    """Return the lines of the table without their first cell, by that."""
    lines = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines()]
    return {line[0]: line[1:] for line in lines if len(line) in (5, 6) and line[0].strip("-")}


# Behind the bars: data, partition, a training, an unlearning, a post-training, an evaluation of one model and one of
# two, the figure. Behind the times: all of this but the evaluations and the figure, another unlearning, another figure.
# The training also keeps a history of five models.
@pytest.mark.parametrize(
    ("config", "hours"),
    [
        ({}, ["4.5", "4.0", "5.5"]),
        ({"threads": 2}, ["9.0", "8.0", "11.0"]),
        ({"threads": 2, "device": "cuda"}, ["4.5", "4.0", "5.5"]),
    ],
)
def test_each_line_has_all_jobs_behind_it_and_shared_ones_count_once(config: dict[str, Any], hours: list[str]) -> None:
    text = costs.table(Plan({**toy(), **config}), TWO)
    memory = ["2.6 GB", "1.9 GB"] if "device" in config else ["2.6 GB"]
    first, second, every = hours
    assert rows(text)["toy_bars"] == ["8", first, *memory, "8.0 GB"]
    assert rows(text)["toy_times"] == ["7", second, *memory, "9.0 GB"]
    assert rows(text)["all of toy"] == ["10", every, *memory, "9.0 GB"]
    assert ("GPU hours" in text, "core hours" in text) == ((True, False) if "device" in config else (False, True))
    assert "all" not in rows(text)


def test_jobs_that_two_papers_need_count_once_in_the_last_line() -> None:
    both = Plan({**toy(), "papers": ["toy", "helped"]})
    lines = rows(costs.table(both, []))
    jobs = list(both.jobs())
    assert lines["all"][0] == str(len(jobs))
    shared = sum(job.paper == "" for job in jobs)
    assert shared == 1  # digits
    assert int(lines["all of toy"][0]) + int(lines["all of helped"][0]) == len(jobs) + shared


class SomeToMake:
    """Only evaluations and artefacts are still to be made."""

    stages: tuple[str, ...] = ("evaluate", "publish")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def to_make(self, wanted: Iterable[Job]) -> Iterator[tuple[Job, None]]:
        yield from ((job, None) for job in self.plan.behind(wanted) if job.stage in self.stages)

    def remember(self) -> None: ...


def test_what_is_made_is_told_and_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "Pending", SomeToMake)
    text = costs.table(Plan(toy()), TWO)
    assert rows(text)["toy_bars"][:2] == ["3", "1.5"]
    assert rows(text)["toy_times"][:2] == ["1", "0.0"]
    assert rows(text)["all of toy"][:2] == ["4", "1.5"]
    assert "\nAlready done: 6 jobs, 4.0 core hours.\nTimes are measured" in text
    monkeypatch.setattr(SomeToMake, "stages", ())
    text = costs.table(Plan(toy()), TWO)
    assert text.startswith("Nothing to do at preset 'paper'.\nAlready done: 10 jobs, 5.5 core hours.\n")


def test_a_target_may_be_a_file_and_an_unknown_one_gets_the_nearest_name() -> None:
    plan = Plan(toy())
    partition = "results/paper/toy/iid/seed0/partition.npz"
    assert rows(costs.table(plan, [partition, "toy_losses"])) == {
        "toy/iid/seed0/partition": ["2", "0.0", "1.5 GB", "1 MB"],
        "toy_losses": ["1", "0.0", "1.5 GB", "1 MB"],
        "all of toy": ["3", "0.0", "1.5 GB", "1 MB"],
    }
    with pytest.raises(UserError, match="did you mean 'toy_bars'"):
        costs.table(plan, ["toy_bar"])


# ---- input files -----------------------------------------------------------------------------------------------------

MNIST = 70_000 * (28 * 28 + 1) / 1e6


def test_what_must_be_put_in_place_is_counted_and_listed() -> None:
    plan = Plan(helped(settings={"data": {"dataset": "mnist"}}))
    text = costs.table(plan, [])
    has(text, "Input files (at most):\ndata/mnist.npz  55 MB  torchvision's MNIST, downloaded if there is a network")


def source(dataset: str) -> Source:
    """Return where a data set comes from, in the folder `data`."""
    job: Any = SimpleNamespace(stage="data", names={"dataset": dataset}, specs=[None])
    plan: Any = SimpleNamespace(config=SimpleNamespace(data_dir="data"))
    (found,) = costs.sources(plan, [job])
    return found


def test_an_archive_has_labels_and_owners_and_may_be_there() -> None:
    assert source("mnist") == Source("data/mnist.npz", MNIST, "torchvision's MNIST, downloaded if there is a network")
    assert source("cifar100").mb == pytest.approx(60_000 * (32 * 32 * 3 + 1) / 1e6)
    assert source("shakespeare").mb == pytest.approx(3_678_451 * (80 + 1 + 4) / 1e6)
    assert source("shakespeare").origin == "provide it (docs/data.md)"
    Path("data").mkdir()
    Path("data/mnist.npz").write_bytes(b"0" * 2_000_000)
    assert source("mnist") == Source("data/mnist.npz", 2.0, "present")


def test_pretrained_weights_come_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    plan = made("paper", "fats")
    trainings = [job for job in plan.jobs(("fats", "fig5")) if job.stage == "train"]
    (found,) = costs.sources(plan, trainings)
    path = tmp_path / "torch/hub/checkpoints/vgg16-397923af.pth"
    assert found == Source(str(path), 553.4, "torchvision's weights, downloaded if there is a network")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"0" * 3_000_000)
    assert costs.sources(plan, trainings) == [Source(str(path), 3.0, "present")]
    random = Plan(toy(settings={"model": {"name": "vgg16", "params": {"weights": "random"}}}))
    assert costs.sources(random, [random.job("train", {"run": "toy/iid/seed0", "trial": "original"})]) == []
