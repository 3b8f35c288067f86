"""The model of cost, on numbers worked out by hand."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fu.pipeline.plan import estimates
from fu.pipeline.plan.plan import Job, Plan
from fu.pipeline.provenance import cached, catalogue, certificate
from fu.pipeline.provenance.cached import Size
from fu.pipeline.provenance.certificate import Certificate
from fu.pipeline.settings.records import Settings
from fu.plugins import Choice
from tests.pipeline.configs import toy
from tests.pipeline.plans import RUN, made, plan, trials

# 2 (784 400 + 400 400 + 400 10) FLOPs; a sample of 784 numbers, two layers of 400 before and after ReLU, 10 outputs
MLP = Size(478_410, 955_200, 10, 784 + 4 * 400 + 10, 784)
TOLD: dict[str, Any] = {"mlp": {"ESTIMATE": {"step_ms": 10.0}}, "own": {}, "fedavg": {}}
TOLD["fused"] = {"ESTIMATE": {"step_ms": 10.0, "operations": 30}}
TOLD["halves"] = {"ESTIMATE": {"share": 0.5}}
TOLD["asked"] = {"ESTIMATE": {"share": "q"}}


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of 100 operations, 10 of them on floating-point numbers; twice as much of these where it is wide."""
    made()  # before nothing is as it was

    def size(name: str, params: Any, shape: Any, classes: int) -> Size | None:
        return None if params.get("unknown") else Size(1000, 20 if params.get("wide") else 10, 100, 30, 20)

    monkeypatch.setattr(cached, "size", size)
    monkeypatch.setattr(catalogue, "declared", lambda kind, name: TOLD[name])
    monkeypatch.setattr(estimates, "OPERATION_MS", 0.02)
    monkeypatch.setattr(estimates, "PARAMETERS_MS", 0.0)
    monkeypatch.setattr(estimates, "JOB_S", 0.5)
    monkeypatch.setattr(estimates, "LOAD_S", 0.0)


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
    ("model", "params", "step", "sample"),
    [
        ("mlp", {}, 2.0, 0.04),  # 10 ms for 200 samples, of which 100 operations take 2
        ("mlp", {"wide": True}, 2.0, 0.08),
        ("fused", {}, 0.6, 0.047),
        ("own", {}, 2.0, 1000 * 3 * 10 / 60e9),  # backwards it is twice as much as forwards
        ("own", {"unknown": True}, 0.4, 1000 * 3 * 20_000_000 / 60e9),  # 20 operations
    ],
    ids=["declared", "scaled", "operations declared", "not declared", "of no known size"],
)
@pytest.mark.usefixtures("sizes")
def test_the_milliseconds_of_a_step_that_nobody_measured(model: str, params: Any, step: float, sample: float) -> None:
    assert estimates.speed(settings(model, params)) == pytest.approx((step, sample))


@pytest.mark.usefixtures("sizes")
def test_the_parameters_cost_time_once_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 10 ms for 200 samples 2 are for 100 operations and 4 for 1,000 parameters."""
    monkeypatch.setattr(estimates, "PARAMETERS_MS", 4000.0)
    assert estimates.speed(settings()) == pytest.approx((6.0, 0.02))


BOTH = {"forgotten": 1, "retained": 1}


def test_a_history_may_make_clients_train_again() -> None:
    none, heads = ("update_norms",), ("auxiliary_heads", "update_norms")
    known: dict[str, Any] = {"data__attack": made().trials["fedosd/mnist-pat50", "original"].settings.data.attack}
    assert estimates.recording(settings(training__history=none, **known)) == {"forgotten": 1, "retained": 1}
    assert estimates.recording(settings(training__history=heads, **known)) == {"forgotten": 2, "retained": 1}
    assert estimates.recording(settings(training__history=heads, data__attack=None)) == {"forgotten": 2, "retained": 2}


@pytest.mark.parametrize(
    ("phase", "trained", "changes", "client_rounds", "measured"),
    [
        ("training", BOTH, {}, 100, 3),
        ("training", BOTH, {"training__local_epochs": 3}, 300, 3),
        ("training", BOTH, {"training__local_steps": 7}, 700, 3),
        ("training", BOTH, {"training__clients_per_round": 3}, 30, 3),
        ("training", BOTH, {"data__absent": 4}, 60, 3),
        ("training", BOTH, {"training__method": Choice(name="halves")}, 55, 3),
        ("training", BOTH, {"training__method": Choice(name="asked", params={"q": 0.1})}, 19, 3),
        ("unlearning", {"forgotten": 1, "retained": 0}, {}, 4, 1),
        ("unlearning", {"forgotten": 0, "retained": 0.5}, {}, 18, 1),
        ("unlearning", {"forgotten": 1, "retained": 0}, {"unlearning__conflicts": True}, 40, 1),
        ("recovery", BOTH, {"unlearning__conflicts": True}, 60, 2),
    ],
)
@pytest.mark.usefixtures("sizes")
def test_the_seconds_of_a_phase(
    phase: str, trained: dict[str, float], changes: dict[str, Any], client_rounds: float, measured: int
) -> None:
    """A step on 50 samples takes 2 + 8 / 4 = 4 ms, and a client's 48 samples are one; 200 test samples take 8 / 3."""
    expected = 0.5 + client_rounds * 0.004 + measured * 0.008 / 3
    assert estimates.training_seconds(settings(**changes), phase, trained) == pytest.approx(expected)


NO_ATTACK = {"data__attack": None}
EVALUATED = 10 * 20 + 10 * 32 + 48 + 2000  # to test, to validate, of the one forgotten client, and probes


@pytest.mark.parametrize(
    ("estimate", "changes", "given", "expected"),
    [
        (estimates.evaluation_seconds, NO_ATTACK, 2, 0.5 + 2 * EVALUATED * 0.00004 / 3),
        (estimates.evaluation_seconds, {}, 2, 0.5 + 2 * (EVALUATED + 10 * 20) * 0.00004 / 3),  # tests with the trigger
        (estimates.prediction_seconds, {}, 3, 0.5 + 3 * 11_000 * 0.00004 / 3),
        (estimates.relearning_seconds, {"relearning__rounds": 7}, 3, 3 * (0.5 + 7 * 10 * 0.004 + 2 * 0.008 / 3)),
        (estimates.models_mb, {}, 3, 0.02 + 3 * 0.004),
        (estimates.predictions_mb, {}, 3, 0.02 + 3 * 2000 * 10 * 4 / 1e6),
    ],
)
@pytest.mark.usefixtures("sizes")
def test_what_evaluating_and_keeping_models_takes(
    estimate: Callable[[Settings, int], float], changes: dict[str, Any], given: int, expected: float
) -> None:
    assert estimate(settings(**changes), given) == pytest.approx(expected)


@pytest.mark.usefixtures("sizes")
def test_shadows_train_on_halves_without_the_forgotten_client() -> None:
    each = 0.5 + 10 * 9 / 2 * 0.004 + 3 * 0.008 / 3
    assert estimates.shadows_seconds(settings()) == pytest.approx(8 * each)


@pytest.mark.usefixtures("sizes")
def test_a_job_reads_its_data_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "LOAD_S", 10.0)
    mnist = 28 * 28 * 70_000 / 1e9  # gigabytes
    assert estimates.evaluation_seconds(settings(), models=0) == pytest.approx(0.5 + 10 * mnist)


def test_a_limit_is_four_times_the_estimate_but_at_most_a_day_more_and_twenty_minutes() -> None:
    assert [estimates.minutes(seconds) for seconds in (0, 15, 16, 3600)] == [20, 21, 22, 260]
    assert estimates.minutes(1000 * 3600.0) == 20 + (1000 + 24) * 60


# ---- measured --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("with_toy")
def test_what_such_a_job_took_with_this_or_another_seed_is_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    planned = Plan({**toy(), "seeds": [1]})

    def ran(seed: int, seconds: float, **spec: Any) -> None:
        """Write a job's certificate with its cost."""
        job = planned.job("train", {"run": f"toy/iid/seed{seed}", "trial": "original"})
        Path(job.outputs["cost"]).parent.mkdir(parents=True)
        Path(job.outputs["cost"]).write_text(json.dumps({"seconds": seconds}))
        made = Certificate("k", "train", {**json.loads(job.json), **spec}, "c", {}, {})
        certificate.write(Path(job.certificate), made)

    def job() -> Job:
        return replace(planned.job("train", {"run": "toy/iid/seed1", "trial": "original"}))

    ran(0, 100.0, rounds=20)
    assert job().seconds == job().estimate
    ran(3, 60.0)
    assert job().seconds == 60.0 + estimates.JOB_S
    ran(1, 70.0)
    assert job().seconds == 70.0 + estimates.JOB_S
    Path(job().outputs["cost"]).write_text("{")
    assert job().seconds == 60.0 + estimates.JOB_S


@pytest.mark.parametrize(
    ("parameters", "outputs", "largest", "drawn", "expected"),
    [
        # Ten clients at once: updates of 28 bytes a parameter, 28 MB; of each, a step's 2 x 100,000 + 2 x 30,000 x 50
        # numbers in float32, 128 MB.
        (100_000, 30_000, 20, None, 28 + 128),
        # Client after client, 4 of 10: updates 112 MB; a step of 2,000,000 + 3,000,000 numbers, 20 MB.
        (1_000_000, 30_000, 20, 4, 112 + 20),
        # Three times 20,000 numbers of 1,000 samples that are shown at a time: 240 MB.
        (1_000_000, 30_000, 20_000, 4, 112 + 240),
    ],
)
def test_the_memory_of_a_gpu(
    parameters: int, outputs: int, largest: int, drawn: int | None, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = settings()
    monkeypatch.setattr(estimates, "size", lambda _: Size(parameters, 10, 100, outputs, largest))
    phases = {name: {"clients_per_round": drawn} for name in ("training", "unlearning", "recovery")}
    planned = planned.model_copy(
        update={name: getattr(planned, name).model_copy(update=update) for name, update in phases.items()}
    )
    assert estimates.gpu_mem_mb(planned) == 600 + round(219.52 + expected)  # 28 x 28 x 70,000 pixels in float32


def test_streamed_images_take_their_bytes_and_what_is_tested_in_float32(sizes: None) -> None:
    planned = settings(data__dataset="femnist")  # 784 x 811,586 pixels: 636.28 MB; 200 samples to test: .63 MB
    # Updates of ten clients, 1,000 parameters of 28 bytes: .28 MB; a step on a GPU: .24 MB.
    assert estimates.mem_mb(planned) == 500 + round(636.28 + 0.63 + 0.28)
    assert estimates.gpu_mem_mb(planned) == 600 + round(0.63 + 0.28 + 0.24)


@pytest.mark.parametrize(
    ("seconds", "words"), [(99, "99 s"), (5940, "99 min"), (6000, "1 h 40 min"), (187_200, "2 d 4 h")]
)
def test_a_time_in_words(seconds: float, words: str) -> None:
    assert estimates.lasting(seconds) == words


def test_a_model_is_measured_without_its_memory() -> None:
    shape = (28, 28, 1)
    assert cached.size("mlp", {}, shape, 10) == MLP
    wide = cached.size("mlp", {"hidden": 10_000_000}, shape, 10)
    assert wide is not None
    assert wide.parameters == 785 * 10**7 + (10**7 + 1) * 10**7 + (10**7 + 1) * 10
    assert cached.size("mlp", {"hidden": 0}, shape, 10) is None


def test_who_trains_is_what_the_method_s_file_says() -> None:
    first = [trials(made(), RUN, method)[0] for method in ("fedosd", "mode", "fupga")]
    fedosd, mode, fupga = (made().job("unlearn", {"run": RUN, "trial": trial}).estimate for trial in first)
    assert fedosd == mode > 5 * fupga


# ---- what is to be made ----------------------------------------------------------------------------------------------


def test_the_overview_counts_the_given_jobs_alone_and_no_core_shortens_what_waits_for_what() -> None:
    planned = made("smoke")

    def chain(job: Job) -> float:
        behind = [planned.job(*planned.producers[path]) for path in job.files if path in planned.producers]
        return job.seconds + max(map(chain, behind), default=0.0)

    jobs = list(planned.jobs(("fedosd", "table8")))
    (last,) = [job for job in jobs if job.stage == "publish"]
    disk, seconds = sum(job.disk_mb for job in jobs), sum(job.seconds for job in jobs)
    for cores, lasting in ((2, estimates.lasting(seconds / 2)), (10_000, f"{chain(last):.0f} s")):
        assert planned.overview(jobs, cores) == (
            f"To make at preset 'smoke': 1 table or figure in {len(jobs)} jobs, about {lasting} on {cores} cores "
            f"({estimates.working(seconds)}) and {disk:.0f} MB of disk."
        )


@cache
def few_rounds() -> Plan:
    common = {"training": {"rounds": 12, "evaluate_every": 4}, "unlearning": {"rounds": 3}, "total_rounds": 6}
    methods = {
        name: {"settings": {"grid": {"unlearning.lr": [lr]}}, "params": params}
        for name, lr, params in (("mode", 0.1, {"schedule": "both"}), ("fedosd", 0.025, {}))
    }
    return plan("reduced", settings=common, methods=methods)


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
    job = few_rounds().job(stage, {"run": "fedosd/mnist-pat50/seed0", "trial": trial})
    assert measured / 2 < job.seconds < measured * 2
