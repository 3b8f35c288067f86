"""The model of cost, on numbers worked out by hand."""

from typing import Any

import pytest

from fu.pipeline import catalogue, estimates
from fu.pipeline.catalogue import Size
from fu.pipeline.plan import Job
from fu.pipeline.settings.records import Plugin, Settings
from tests.pipeline.plans import RUN, made, plan

MLP = Size(478_410, 955_200, 10)  # 2 (784 400 + 400 400 + 400 10) operations
TOLD: dict[str, Any] = {"mlp": {"ESTIMATE": {"step_ms": 10.0}}, "own": {}, "fedavg": {}}
TOLD["halves"] = {"ESTIMATE": {"share": 0.5}}
TOLD["asked"] = {"ESTIMATE": {"share": "q"}}


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of 100 operations, 10 of them on floating-point numbers; twice as much of these where it is wide."""
    made()  # before nothing is as it was

    def size(name: str, params: Any, shape: Any, classes: int) -> Size | None:
        return None if params.get("unknown") else Size(1000, 20 if params.get("wide") else 10, 100)

    monkeypatch.setattr(catalogue, "size", size)
    monkeypatch.setattr(catalogue, "declared", lambda kind, name: TOLD[name])
    monkeypatch.setattr(estimates, "OPERATION_MS", 0.02)
    monkeypatch.setattr(estimates, "JOB_S", 0.5)


def settings(model: str = "mlp", params: Any = None, **changes: Any) -> Settings:
    """10 clients with 100 of 1,000 samples each: 80 to train, of these 32 held out, and 20 to test."""
    given = made().trials["fedosd/mnist-pat50", "original"].settings
    data = given.data.model_copy(update={"samples": 1000, "clients": 10, "train_share": 0.8, "validation_share": 0.4})
    phases = {
        phase: getattr(given, phase).model_copy(
            update={"rounds": rounds, "batch_size": 50, "local_epochs": 1, "evaluate_every": 5, "conflicts": False}
        )
        for phase, rounds in (("training", 10), ("unlearning", 4), ("recovery", 0))
    }
    chosen = given.model.model_copy(update={"name": model, "params": params or {}})
    whole = given.model_copy(update={"data": data, "model": chosen, "total_rounds": 10, **phases})
    for path, value in changes.items():
        section, _, key = path.partition("__")
        whole = whole.model_copy(update={section: getattr(whole, section).model_copy(update={key: value})})
    return whole


@pytest.mark.parametrize(
    ("model", "params", "expected"),
    [
        ("mlp", {}, 8.0),  # 10 ms, of which 100 operations take 2
        ("mlp", {"wide": True}, 16.0),
        ("own", {}, 1000 * 3 * 200 * 10 / 60e9),  # backwards it is twice as much as forwards
        ("own", {"unknown": True}, 1000 * 3 * 200 * 20_000_000 / 60e9),
    ],
    ids=["measured", "scaled", "not measured", "of no known size"],
)
@pytest.mark.usefixtures("sizes")
def test_the_arithmetic_of_a_step(model: str, params: Any, expected: float) -> None:
    assert estimates.arithmetic_ms(settings(model, params)) == pytest.approx(expected)


# A step on 50 samples takes 2 + 8 / 4 = 4 ms, and a client's 48 samples are one step; 200 test samples take 8 / 3 ms.
@pytest.mark.parametrize(
    ("phase", "trained", "changes", "client_rounds", "measured"),
    [
        ("training", {"forgotten": 1, "retained": 1}, {}, 100, 3),
        ("training", {"forgotten": 1, "retained": 1}, {"training__local_epochs": 3}, 300, 3),
        ("training", {"forgotten": 1, "retained": 1}, {"training__evaluate_every": 1}, 100, 11),
        ("training", {"forgotten": 1, "retained": 1}, {"training__evaluate_last": 4}, 100, 6),
        ("training", {"forgotten": 1, "retained": 1}, {"training__local_steps": 7}, 700, 3),
        ("training", {"forgotten": 1, "retained": 1}, {"training__clients_per_round": 3}, 30, 3),
        ("training", {"forgotten": 1, "retained": 1}, {"data__absent": 4}, 60, 3),
        ("training", {"forgotten": 1, "retained": 1}, {"training__method": Plugin(name="halves")}, 55, 3),
        (
            "training",
            {"forgotten": 1, "retained": 1},
            {"training__method": Plugin(name="asked", params={"q": 0.1})},
            19,
            3,
        ),
        ("unlearning", {"forgotten": 1, "retained": 1}, {}, 40, 1),
        ("unlearning", {"forgotten": 1, "retained": 0}, {}, 4, 1),
        ("unlearning", {"forgotten": 0, "retained": 0.5}, {}, 18, 1),
        ("unlearning", {"forgotten": 1, "retained": 0}, {"unlearning__conflicts": True}, 40, 1),
        ("recovery", {"forgotten": 1, "retained": 1}, {"unlearning__conflicts": True}, 60, 2),
    ],
    ids=[
        "training",
        "epochs",
        "measurements",
        "the last",
        "steps",
        "drawn",
        "absent",
        "half",
        "asked",
        "unlearning",
        "ascent",
        "half the steps",
        "conflicts",
        "recovery",
    ],
)
@pytest.mark.usefixtures("sizes")
def test_the_seconds_of_a_phase(
    phase: str, trained: dict[str, float], changes: dict[str, Any], client_rounds: float, measured: int
) -> None:
    expected = 0.5 + client_rounds * 0.004 + measured * 0.008 / 3
    assert estimates.training_seconds(settings(**changes), phase, trained) == pytest.approx(expected)


@pytest.mark.usefixtures("sizes")
def test_the_seconds_of_an_evaluation() -> None:
    assert estimates.evaluation_seconds(settings(), models=2) == pytest.approx(0.5 + 2 * 5 * 0.008 / 3)


@pytest.mark.usefixtures("sizes")
def test_the_disk_of_models() -> None:
    assert estimates.models_mb(settings(), 3) == pytest.approx(0.02 + 3 * 0.004)
    assert estimates.archive_mb("digits") == pytest.approx(28 * 28 * 1797 / 1e6)


def test_a_limit_is_four_times_the_estimate_and_twenty_minutes() -> None:
    assert [estimates.minutes(seconds) for seconds in (0, 15, 16, 3600)] == [20, 21, 22, 260]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "0 s"),
        (99, "99 s"),
        (100, "2 min"),
        (5940, "99 min"),
        (6000, "1 h 40 min"),
        (172_740, "47 h 59 min"),
        (187_200, "2 d 4 h"),
    ],
)
def test_a_time_in_words(seconds: float, words: str) -> None:
    assert estimates.lasting(seconds) == words


def test_a_model_is_measured_without_its_memory() -> None:
    shape = (28, 28, 1)
    assert catalogue.size("mlp", {}, shape, 10) == MLP
    wide = catalogue.size("mlp", {"hidden": 10_000_000}, shape, 10)
    assert wide is not None
    assert wide.parameters == 785 * 10**7 + (10**7 + 1) * 10**7 + (10**7 + 1) * 10
    assert catalogue.size("mlp", {"hidden": 0}, shape, 10) is None


def test_who_trains_is_what_the_method_s_file_says() -> None:
    planned = made()
    scenario = RUN.rpartition("/")[0]

    def seconds(method: str) -> float:
        return planned.job("unlearn", {"run": RUN, "trial": planned.names[scenario, method][0]}).seconds

    assert seconds("fedosd") == seconds("mode") > 5 * seconds("fupga")


# ---- what is to be made ----------------------------------------------------------------------------------------------


def test_the_overview_counts_the_given_jobs_alone() -> None:
    planned = plan("smoke")
    jobs = list(planned.jobs(("fedosd", "table8")))
    text = planned.overview(jobs, cores=2)
    disk, seconds = sum(job.disk_mb for job in jobs), sum(job.seconds for job in jobs)
    assert text == (
        f"To be made at preset 'smoke': 1 artefact in {len(jobs)} jobs, about {seconds / 2:.0f} s on 2 cores "
        f"({seconds / 3600:.1f} core hours) and {disk:.0f} MB of disk."
    )
    (last,) = [job for job in jobs if job.stage == "publish"]
    assert "1 artefact in 1 job, about 1 s on 1 core (0.0 core hours)" in planned.overview([last], cores=1)


def test_more_cores_than_jobs_do_not_shorten_what_waits_for_what() -> None:
    planned = plan("smoke")

    def chain(job: Job) -> float:
        behind = [planned.job(*planned.producers[path]) for path in job.files if path in planned.producers]
        return job.seconds + max(map(chain, behind), default=0.0)

    (last,) = [job for job in planned.jobs(("fedosd", "table8")) if job.stage == "publish"]
    text = planned.overview(planned.jobs(("fedosd", "table8")), cores=10_000)
    assert f"about {chain(last):.0f} s on 10000 cores" in text


# CPU seconds of jobs of Table 8 on real MNIST, Pat-50, preset `reduced` with 12, 3 and 3 rounds, less 1.9 s for
# importing torch; 2 virtual cores of an x86-64 server CPU, torch 2.13.0+cpu.
@pytest.mark.parametrize(
    ("stage", "trial", "measured"),
    [
        ("train", "original", 11.3),
        ("unlearn", "retraining", 5.5),
        ("unlearn", "mode+lr0.1", 5.6),
        ("unlearn", "fedosd+lr0.025", 3.3),
        ("recover", "fedosd+lr0.025", 2.7),
    ],
)
def test_a_job_is_estimated_within_a_factor_of_two(stage: str, trial: str, measured: float) -> None:
    common = {"training": {"rounds": 12, "evaluate_every": 4}, "unlearning": {"rounds": 3}, "total_rounds": 6}
    methods = {
        name: {"settings": {"grid": {"unlearning.lr": [lr]}}, "params": params}
        for name, lr, params in (("mode", 0.1, {"schedule": "both"}), ("fedosd", 0.025, {}))
    }
    planned = plan("reduced", settings=common, methods=methods)
    names = {"run": "fedosd/mnist-pat50/seed0", "trial": trial}
    job = planned.job(stage, names)
    assert measured / 2 < job.seconds < measured * 2
