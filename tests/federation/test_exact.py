"""Means in closed form, against all outcomes of tiny systems, the paper's settings and limits by hand."""

from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import pytest

from fu.federation import request_times as drawing
from fu.federation.exact import Requests
from fu.federation.request_times import request_times, standard_error
from fu.federation.sampling import History, Named, Shape, begin
from tests.federation.enumeration import System, mean

MNIST = Shape(clients_per_round=5, rounds=30, steps=10, batch_size=10)
CLIENT, SAMPLE = Requests(MNIST, 300), Requests(MNIST, 300, (200,) * 300)
TINY = [System(2, 3, 2, 1, 2, 1), System(3, 2, 2, 2, 1, 1), System(2, 3, 1, 2, 2, 2), System(3, 3, 1, 2, 2, 1)]
UNEQUAL = (1, 2, 3)
SHAPES = [Shape(1, 1, 1, 2), Shape(2, 1, 2, 2), Shape(1, 2, 2, 1), Shape(1, 2, 2, 2), Shape(2, 2, 1, 2)]
SKEWED = tuple(np.random.default_rng(5).lognormal(4, 1.5, 40).astype(int) + 1)  # from 5 to 1,500 or so


def of_level(system: System, level: str, targets: int = 1) -> Requests:
    sizes = (system.samples,) * system.clients if level == "sample" else None
    return Requests(system.shape, system.clients, sizes, targets)


@pytest.mark.parametrize(("level", "targets"), [("client", 1), ("client", 2), ("sample", 1)])
@pytest.mark.parametrize("system", TINY)
def test_probability_and_mean_time_are_those_of_all_outcomes(system: System, level: str, targets: int) -> None:
    if level == "client" and targets == system.clients:
        return
    asked = of_level(system, level, targets)

    def steps(random: Named) -> int:
        history = system.trained()(random)
        samples = {0: [0]} if asked.sizes else {}
        restart = history.without(() if samples else range(targets), samples).restart
        return restart.steps if restart else 0

    assert asked.mean_time == pytest.approx(float(mean(steps)), abs=1e-12)
    assert asked.probability == pytest.approx(float(mean(lambda random: steps(random) > 0)), abs=1e-12)


def over_samples(shape: Shape, drawn: list[list[tuple[int, int]]]) -> tuple[Fraction, Fraction]:
    """Return mean time and probability over requests as likely as each other, of samples (client, which) of UNEQUAL."""
    population = {client: np.arange(size) for client, size in enumerate(UNEQUAL)}

    def steps(random: Named, targets: list[tuple[int, int]]) -> int:
        history = begin(population, shape, random)
        met = [history.first_step(client, sample) for client, sample in targets]
        return shape.time - min((time for time in met if time is not None), default=shape.time)

    times = [mean(lambda random, t=targets: steps(random, t)) for targets in drawn]  # type: ignore[misc]
    again = [mean(lambda random, t=targets: steps(random, t) > 0) for targets in drawn]  # type: ignore[misc]
    return sum(times, Fraction(0)) / len(drawn), sum(again, Fraction(0)) / len(drawn)


SAMPLES = [(client, sample) for client, size in enumerate(UNEQUAL) for sample in range(size)]


@pytest.mark.parametrize("shape", SHAPES)
def test_where_clients_differ_in_size_each_sample_is_as_likely_as_any_other(
    shape: Shape, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, (time, again) = Requests(shape, 3, UNEQUAL), over_samples(shape, [[sample] for sample in SAMPLES])
    assert (asked.mean_time, asked.probability) == pytest.approx((float(time), float(again)), abs=1e-12)
    assert again <= asked.rho  # Theorem 1, in the mean
    monkeypatch.setattr(drawing, "LOOKED_UP", 1)
    assert mean(lambda random: int(request_times(asked, 1, random)[0, 0])) == time  # type: ignore[arg-type]


def test_one_step_by_hand() -> None:
    """A third takes part, of its 1, 2, 3 samples 1, 2, 2 are used: (1 + 2 + 2) / 6 / 3. Of mean size 2: 1 / 3."""
    shape = Shape(1, 1, 1, 2)
    assert Requests(shape, 3, UNEQUAL).mean_time == pytest.approx(5 / 18)
    assert Requests(shape, 3, (2, 2, 2)).mean_time == pytest.approx(1 / 3)
    assert Requests(shape, 3, UNEQUAL).rho == pytest.approx(1 / 3)


@pytest.mark.parametrize("sizes", [None, UNEQUAL], ids=["clients", "samples"])
def test_two_at_once_are_drawn_out_of_all_and_differ(
    sizes: tuple[int, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = Shape(1, 2, 1, 2)
    asked = Requests(shape, 3, sizes, 2)
    monkeypatch.setattr(drawing, "LOOKED_UP", 1)
    found = mean(lambda random: int(request_times(asked, 1, random)[0, 0]))  # type: ignore[arg-type]
    if sizes is None:
        assert asked.mean_time == pytest.approx(float(found))
        return
    pairs = [[one, other] for k, one in enumerate(SAMPLES) for other in SAMPLES[:k]]
    assert found == over_samples(shape, pairs)[0]
    assert np.isnan([asked.mean_time, asked.probability]).all()  # two may share a client: no closed form


def test_ten_requests_are_looked_up_in_one_history(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def counted(*about: Any) -> History:
        begun.append(about)
        return begin(*about)

    monkeypatch.setattr(drawing, "begin", counted)
    assert request_times(CLIENT, 21, np.random.default_rng(0)).shape == (3, 10)
    assert len(begun) == 3


def test_one_client_and_one_sample_of_the_paper_s_mnist() -> None:
    """The issue's formulas, written out."""
    c = 1 - (1 - 1 / 300) ** 5
    assert 1 - CLIENT.probability == pytest.approx((1 - 1 / 300) ** 150)
    assert 1 - SAMPLE.probability == pytest.approx((1 - c * (1 - 0.95**10)) ** 30)
    shares = [round(1 - asked.probability, 3) for asked in (CLIENT, SAMPLE)]
    assert shares == [0.606, 0.819]
    assert round(CLIENT.mean_time / MNIST.time, 3) == 0.220
    assert CLIENT.mean_time == pytest.approx(10 * sum(1 - (1 - 1 / 300) ** (5 * r) for r in range(1, 31)))


def test_ten_at_once_take_most_of_the_training() -> None:
    ten = Requests(MNIST, 300, None, 10)
    assert round(ten.probability, 3) == 0.994
    assert round(ten.mean_time / MNIST.time, 2) == 0.82


def test_the_bounds_are_those_of_lemma_1_theorem_1_and_section_5_3() -> None:
    assert (CLIENT.rho, SAMPLE.rho) == (0.5, 0.25)
    three, ten = Requests(MNIST, 300, (200,) * 300, 3), Requests(MNIST, 300, None, 10)
    assert (three.probability_bound, three.number_bound) == (0.75, 3)
    assert (ten.probability_bound, ten.number_bound) == (1, 20)
    assert Requests(MNIST, 100).number_bound == 4
    for asked in (CLIENT, SAMPLE, ten):
        assert asked.probability < asked.probability_bound


@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_the_mean_time_of_a_client_s_request_tends_to_a_function_of_rho(rho: float) -> None:
    many = Requests(Shape(clients_per_round=5, rounds=100_000, steps=1, batch_size=1), round(500_000 / rho))
    limit = (exp(-rho) - 1 + rho) / rho
    assert many.mean_time / many.shape.time == pytest.approx(limit, abs=1e-5)
    assert round(limit, 2) == {0.5: 0.21, 1.0: 0.37}[rho]


def test_a_batch_of_all_samples_makes_a_sample_a_client() -> None:
    for size in (10, 4):
        all_used = Requests(MNIST, 300, (size,) * 300)
        assert all_used.mean_time == pytest.approx(CLIENT.mean_time)
        assert all_used.probability == pytest.approx(CLIENT.probability)


ASKED = {"client": CLIENT, "sample": SAMPLE, "skewed": Requests(Shape(5, 10, 10, 10), 40, SKEWED)}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_drawn_requests_agree_within_three_standard_errors(asked: Requests) -> None:
    """5,000 requests at the paper's MNIST setting; those of one history are correlated, hence errors over histories."""
    times = request_times(asked, 5000, np.random.default_rng(1))
    assert times.shape == (500, 10)
    for values, expected in ((times > 0, asked.probability), (times, asked.mean_time)):
        assert abs(values.mean() - expected) < 3 * standard_error(values)
    assert times.max() <= asked.shape.time
    assert np.mean(times > 0) < asked.rho - 0.05  # 1 - rho is only a bound


def test_the_standard_error_is_that_of_means_of_histories() -> None:
    assert standard_error(np.array([[0, 2], [3, 5], [7, 7]])) == pytest.approx(np.std([1, 4, 7], ddof=1) / 3**0.5)
    assert np.isnan(standard_error(np.array([[1, 2]])))


def test_times_are_those_of_whole_rounds_for_clients_and_of_steps_for_samples() -> None:
    random = np.random.default_rng(3)
    assert not (request_times(CLIENT, 300, random) % 10).any()
    assert (request_times(SAMPLE, 300, random) % 10).any()
