"""Means in closed form, against all outcomes of tiny systems, the paper's settings and limits by hand."""

from math import exp

import numpy as np
import pytest

from fu.federation.exact import Requests
from fu.federation.request_times import request_times, standard_error
from fu.federation.sampling import Named, Shape
from tests.federation.enumeration import System, mean

MNIST = Shape(clients_per_round=5, rounds=30, steps=10, batch_size=10)
CLIENT, SAMPLE = Requests(MNIST, 300), Requests(MNIST, 300, 200)
TINY = [System(2, 3, 2, 1, 2, 1), System(3, 2, 2, 2, 1, 1), System(2, 3, 1, 2, 2, 2), System(3, 3, 1, 2, 2, 1)]


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("level", ["client", "sample"])
@pytest.mark.parametrize("system", TINY)
def test_probability_and_mean_time_are_those_of_all_outcomes(system: System, level: str, targets: int) -> None:
    if level == "client" and targets == system.clients:
        return
    asked = Requests(system.shape, system.clients, system.samples if level == "sample" else None, targets)

    def steps(random: Named) -> int:
        history = system.trained()(random)
        samples = {client: [client * system.samples] for client in range(targets)} if asked.samples else {}
        restart = history.without(() if samples else range(targets), samples).restart
        return restart.steps if restart else 0

    assert asked.mean_time == pytest.approx(float(mean(steps)), abs=1e-12)
    assert asked.probability == pytest.approx(float(mean(lambda random: steps(random) > 0)), abs=1e-12)


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
    ten, samples = Requests(MNIST, 300, None, 10), Requests(MNIST, 300, 200, 10)
    assert round(ten.probability, 3) == 0.994
    assert [round(asked.mean_time / MNIST.time, 2) for asked in (ten, samples)] == [0.82, 0.57]


def test_the_bounds_are_those_of_lemma_1_theorem_1_and_section_5_3() -> None:
    assert (CLIENT.rho, SAMPLE.rho) == (0.5, 0.25)
    three, ten = Requests(MNIST, 300, 200, 3), Requests(MNIST, 300, None, 10)
    assert (three.probability_bound, three.number_bound) == (0.75, 3)
    assert (ten.probability_bound, ten.number_bound) == (1, 20)
    assert Requests(MNIST, 100).number_bound == 4
    for asked in (CLIENT, SAMPLE, three, ten):
        assert asked.probability < asked.probability_bound


@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_the_mean_time_of_a_client_s_request_tends_to_a_function_of_rho(rho: float) -> None:
    many = Requests(Shape(clients_per_round=5, rounds=100_000, steps=1, batch_size=1), round(500_000 / rho))
    limit = (exp(-rho) - 1 + rho) / rho
    assert many.mean_time / many.shape.time == pytest.approx(limit, abs=1e-5)
    assert round(limit, 2) == {0.5: 0.21, 1.0: 0.37}[rho]


def test_a_batch_of_all_samples_makes_a_sample_a_client() -> None:
    assert Requests(MNIST, 300, 10, 2).mean_time == pytest.approx(Requests(MNIST, 300, None, 2).mean_time)
    assert Requests(MNIST, 300, 4).probability == pytest.approx(CLIENT.probability)


@pytest.mark.parametrize("asked", [CLIENT, SAMPLE], ids=["client", "sample"])
def test_drawn_requests_agree_within_three_standard_errors(asked: Requests) -> None:
    """5,000 requests at the paper's MNIST setting; those of one history are correlated, hence errors over histories."""
    times = request_times(asked, 5000, np.random.default_rng(1))
    assert times.shape == (500, 10)
    for values, expected in ((times > 0, asked.probability), (times, asked.mean_time)):
        assert abs(values.mean() - expected) < 3 * standard_error(values)
    assert times.max() <= MNIST.time
    assert np.mean(times > 0) < asked.rho - 0.05  # 1 - rho is only a bound


@pytest.mark.parametrize("samples", [None, 200], ids=["clients", "samples"])
def test_several_at_once_agree_within_three_standard_errors(samples: int | None) -> None:
    asked = Requests(MNIST, 300, samples, 10)
    times = request_times(asked, 2000, np.random.default_rng(2))
    for values, expected in ((times > 0, asked.probability), (times, asked.mean_time)):
        assert abs(values.mean() - expected) < 3 * standard_error(values)


def test_the_standard_error_is_that_of_means_of_histories() -> None:
    assert standard_error(np.array([[0, 2], [3, 5], [7, 7]])) == pytest.approx(np.std([1, 4, 7], ddof=1) / 3**0.5)
    assert np.isnan(standard_error(np.array([[1, 2]])))


def test_times_are_those_of_whole_rounds_for_clients_and_of_steps_for_samples() -> None:
    random = np.random.default_rng(3)
    assert not (request_times(CLIENT, 300, random) % 10).any()
    assert (request_times(SAMPLE, 300, random) % 10).any()


def test_equal_sources_draw_equal_times() -> None:
    one, other, third = (request_times(CLIENT, 50, np.random.default_rng(seed)).tolist() for seed in (0, 0, 1))
    assert one == other != third
