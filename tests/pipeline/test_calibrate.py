"""What `make calibrate` measures and keeps; never how long it takes."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from fu.errors import UserError
from fu.pipeline import calibrate, estimates, fork_server
from fu.pipeline.calibrate import Work
from fu.pipeline.estimates import Calibration
from fu.pipeline.plan import Plan
from tests.mistakes import sentence
from tests.pipeline.configs import toy

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of its own, next to no repeats."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(estimates, "_used", [])
    monkeypatch.setattr(calibrate, "WHILE_S", 0.001)
    monkeypatch.setattr(calibrate, "READ", ("mnist", 100))


def work(**settings: Any) -> Work:
    """Return the model of the small paper, with a batch of 2 and one of 6 and four clients."""
    trial = Plan(toy(settings=settings)).trials["toy/iid", "original"]
    return Work(trial.settings, {2, 6}, {4})


@pytest.mark.parametrize(
    ("first", "second", "step", "sample"),
    [
        ((20, 3.0), (200, 12.0), 2.0, 0.05),  # 180 samples more take 9 more
        ((1, 0.2), (10, 2.0), 0.0, 0.2),
        ((1, 0.1), (10, 2.0), 0.0, 0.2),  # more than proportional: never less than nothing
        ((1, 3.0), (10, 3.0), 2.997, 0.0003),  # nothing for a sample would not do for 1,000
        ((1, 4.0), (10, 3.0), 2.997, 0.0003),
    ],
)
def test_a_step_s_own_time_and_that_of_a_sample_follow_from_two_batches(
    first: tuple[int, float], second: tuple[int, float], step: float, sample: float
) -> None:
    assert calibrate.line(first, second) == pytest.approx((step, sample))


def test_every_size_of_a_model_is_measured_once_with_what_all_presets_ask_for(with_toy: Path) -> None:
    smaller = {"settings": {"training": {"batch_size": 5}}}
    wider = {"settings": {"model": {"params": {"hidden": 32}}, "data": {"clients": 6}}}
    (with_toy / "presets" / "paper.yaml").write_text("description: as it is.\npapers: {}\n")
    for preset, parts in (("smoke", smaller), ("reduced", wider)):
        (with_toy / "presets" / f"{preset}.yaml").write_text(
            json.dumps({"description": "smaller.", "papers": {"toy": parts}})
        )
    found = {one.settings.model.params["hidden"]: one for one in calibrate.used(toy())}
    assert found.keys() == {16, 32}
    assert (found[16].batches, found[16].clients) == ({5, 20}, {4})
    assert (found[32].batches, found[32].clients) == ({20}, {6})


@pytest.mark.usefixtures("with_toy")
def test_a_preset_that_the_overrides_do_not_fit_is_left_out() -> None:
    assert len(calibrate.used(toy(scenarios={"iid": {"label": "IID"}}))) == 1
    with pytest.raises(UserError):
        Plan({**toy(), "preset": "smoke", "overrides": {"toy": {"nonsense": 1}}})
    assert calibrate.used(toy(nonsense=1)) == []


@pytest.mark.usefixtures("with_toy")
@pytest.mark.parametrize(
    ("batches", "times", "measured"),
    [
        ({20, 200}, {20: 0.01, 200: 0.02}, [20, 200]),
        ({200}, {20: 0.01, 200: 0.02}, [20, 200]),  # a tenth
        ({4}, {1: 0.01, 4: 0.02}, [1, 4]),
        ({1}, {1: 0.01, 2: 0.02}, [1, 2]),
        ({20, 200}, {20: 1.0, 30: 1.5}, [20, 30]),  # 30 samples take a second and a half
        ({20, 200}, {20: 10.0, 21: 10.1}, [20, 21]),
    ],
)
def test_the_smallest_and_the_largest_batch_are_measured_unless_that_takes_long(
    batches: set[int], times: dict[int, float], measured: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def step(work: Work, batch: int, device: torch.device, threads: int) -> float:
        asked.append(batch)
        return times[batch]

    monkeypatch.setattr(calibrate, "_step_s", step)
    found = calibrate.speed(work()._replace(batches=batches), CPU, 1)
    assert asked == measured
    (low, short), (high, long) = ((batch, times[batch]) for batch in measured)
    assert found.sample == pytest.approx(1000 * (long - short) / (high - low))
    assert found.step == pytest.approx(1000 * short - low * found.sample)


@pytest.mark.usefixtures("with_toy")
def test_a_step_is_one_of_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, int, int]] = []

    def fastest(call: Any, device: torch.device, threads: int) -> float:
        call()
        return 1.0

    monkeypatch.setattr(calibrate, "_fastest", fastest)
    local_updates = calibrate._federation(work(), 2, 1, CPU)[0].__class__.local_updates

    def recorded(self: Any, theta: Any, clients: Any, round: int, **how: Any) -> Any:
        calls.append((len(clients), round, how["steps"]))
        return local_updates(self, theta, clients, round, **how)

    monkeypatch.setattr("fu.federation.local.Federation.local_updates", recorded)
    monkeypatch.setattr(calibrate, "WHILE_S", 0.0)
    assert calibrate._step_s(work(), 2, CPU, 1) == pytest.approx(1 / 1)
    assert calls == [(1, 0, 1), (1, 1, 1), (1, 2, 1)]  # a round of its own each, so that none is remembered
    monkeypatch.setattr(calibrate, "WHILE_S", 60.0)
    assert calibrate._step_s(work(), 2, CPU, 1) == pytest.approx(1 / 10)
    federation, theta = calibrate._federation(work(), 2, 4, CPU)
    assert theta.norm() > 0
    assert len(federation.data.partition.train) == 4

    def vectorised(*given: Any) -> Any:
        found = federation.__class__.__new__(federation.__class__)
        found.__dict__.update(calibrate_federation(*given)[0].__dict__, strategy="vectorised")
        return found, theta

    calibrate_federation = calibrate._federation
    monkeypatch.setattr(calibrate, "_federation", vectorised)
    assert calibrate._step_s(work(), 2, CPU, 1) == pytest.approx(1 / 10 / 4)
    assert calls[-1][0] == 4


@pytest.mark.usefixtures("with_toy")
@pytest.mark.parametrize(
    ("model", "params", "dataset"),
    [
        ("mlp", {"hidden": 4}, "digits"),
        ("cnn", {"channels": 2, "dropout": [0.1, 0.1]}, "digits_rgb"),
        ("lstm", {"hidden": 4}, "letters"),
    ],
)
def test_every_kind_of_model_can_be_measured(
    model: str, params: dict[str, Any], dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrate, "LONGEST_S", 0.02)
    found = calibrate.speed(of_model(model, params, dataset), CPU, 1)
    assert found.model == model
    assert found.sample > 0
    assert found.forward > 0
    assert found.flops > 1000


def of_model(name: str, params: dict[str, Any], dataset: str) -> Work:
    """Return another model on other data."""
    given = work()
    model = given.settings.model.model_copy(update={"name": name, "params": params})
    data = given.settings.data.model_copy(update={"dataset": dataset})
    return given._replace(settings=given.settings.model_copy(update={"model": model, "data": data}))


@pytest.mark.usefixtures("with_toy")
def test_a_model_is_measured_without_weights_from_elsewhere() -> None:
    federation, _ = calibrate._federation(of_model("vgg16", {"weights": "imagenet"}, "digits_rgb"), 1, 1, CPU)
    assert federation.layout.size == 14_719_818


def test_a_gigabyte_is_more_than_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def fastest(call: Any, device: torch.device, threads: int) -> float:
        seen.append(call().x.shape)
        return 0.5

    monkeypatch.setattr(calibrate, "_fastest", fastest)
    assert calibrate.load_seconds(CPU, 1) == pytest.approx(0.5 * 1e9 / (100 * 28 * 28))
    assert seen == [(101, 28, 28, 1)]


# ---- a job -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("with_toy")
def test_a_job_is_the_smallest_training_after_what_it_needs_less_its_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    stages: list[str] = []
    clock = iter([0.0, 9.0, 10.0, 19.0, 20.0, 23.0, 30.0, 32.0, 40.0, 41.5, 50.0, 52.5])

    def run(words: list[str], cwd: str, **_: Any) -> "subprocess.CompletedProcess[str]":
        assert words[1:3] == ["-m", "fu.pipeline.fork_server"]
        assert Path(cwd) != Path.cwd()
        stages.append(words[3].rpartition(".")[2])
        if "--cost" in words:
            path = Path(cwd, words[words.index("--cost") + 1])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text('{"seconds": 1.25}')
        return subprocess.CompletedProcess(words, 0)

    monkeypatch.setattr(fork_server, "start", lambda: None)
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    assert calibrate.job_seconds(toy(), "cpu") == pytest.approx(0.25)  # of 3, 2, 1.5 and 2.5 seconds
    assert stages == ["data", "partition", "train", "train", "train", "train"]


@pytest.mark.usefixtures("with_toy")
def test_where_smoke_does_not_fit_a_job_takes_what_is_declared() -> None:
    assert calibrate.job_seconds(toy(nonsense=1), "cpu") == estimates.JOB_S


@pytest.mark.usefixtures("with_toy")
def test_a_job_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 1, "", "a warning\nerror: the disk is full.\n")
    monkeypatch.setattr(fork_server, "start", lambda: None)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    assert sentence(lambda: calibrate.job_seconds(toy(), "cpu")) == "data: the disk is full."


# ---- what is kept ----------------------------------------------------------------------------------------------------


@pytest.fixture
def without_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a quarter of a second as the time of a job."""
    monkeypatch.setattr(calibrate, "job_seconds", lambda values, kind: 0.25)


@pytest.mark.usefixtures("with_toy", "without_a_job")
def test_the_machine_is_kept_with_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    calibrate.calibrate({**toy(), "device": "cpu"})
    kept = Calibration.model_validate_json(estimates.CALIBRATION.read_bytes())
    (device,) = kept.devices
    assert (device.kind, device.threads, device.job_s) == ("cpu", 1, 0.25)
    assert device.name == calibrate.processor()
    assert kept.libraries.keys() == {"torch", "numpy"}
    assert kept.libraries["torch"] == torch.__version__.partition("+")[0]
    assert [speed.model for speed in device.speeds] == ["mlp"]
    assert capsys.readouterr().out.startswith("1 model measured in ")
    assert estimates.use_calibration("cpu", 1).startswith(f"Times were measured on {kept.date} on {device.name} (cpu")
    assert estimates.use_calibration("cpu", 2).startswith("Times are those declared")


@pytest.mark.usefixtures("with_toy", "without_a_job")
def test_it_is_kept_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    estimates.CALIBRATION.parent.mkdir(parents=True)
    estimates.CALIBRATION.write_text("what was there")

    def interrupted(*_: Any) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(calibrate, "load_seconds", interrupted)
    with pytest.raises(KeyboardInterrupt):
        calibrate.calibrate(toy())
    assert [path.name for path in estimates.CALIBRATION.parent.iterdir() if "calib" in path.name] == [
        "calibration.json"
    ]
    assert estimates.CALIBRATION.read_text() == "what was there"


@pytest.mark.usefixtures("with_toy")
def test_a_gpu_that_is_asked_for_must_be_there() -> None:
    if not torch.cuda.is_available():
        assert "torch finds no GPU" in sentence(lambda: calibrate.calibrate({**toy(), "device": "cuda"}))
