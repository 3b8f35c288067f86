"""The sampling history of FATS is exact, by enumeration, and what would break that is found out; numbers by hand."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from fu.federation.sampling import History, Named, Piece, Restart, Shape, begin
from fu.seeds import derive_integer
from tests.federation.enumeration import Law, Outcome, System, distance, drawn, gathered, law, rounds_of

A, B, C, D = SYSTEMS = (
    System(2, 2, 1, 1, 1, 1),
    System(2, 3, 2, 1, 2, 1),
    System(2, 3, 1, 2, 2, 1),
    System(3, 2, 2, 2, 1, 1),
)
Request = dict[str, Any]


def client(one: int, **about: Any) -> Request:
    return {"clients": [one], **about}


def sample(*several: tuple[int, int], **about: Any) -> Request:
    """Return a request for samples, each (client, its sample)."""
    return {"samples": {one: [row for who, row in several if who == one] for one, _ in several}, **about}


@cache
def without(system: System, clients: tuple[int, ...] = (), samples: tuple[int, ...] = ()) -> Law:
    """Return the law of training without the targets."""
    return law(system.trained(clients, samples))


def unlearned(system: System, *requests: Request) -> Law:
    """Return the law of the history after requests in a row."""

    def make(random: Named) -> History:
        history = system.trained()(random)
        for request in requests:
            history = history.without(**request)
        return history

    return law(make)


def gone(*requests: Request) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the clients and the samples that requests name."""
    clients = tuple(one for request in requests for one in request.get("clients", ()))
    rows = tuple(row for request in requests for found in request.get("samples", {}).values() for row in found)
    return clients, rows


# ---- exact -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("full", [False, True], ids=["from there", "full re-run"])
@pytest.mark.parametrize("request_", [client(0), sample((0, 0))], ids=["client", "sample"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_history_has_the_law_of_one_without_the_target(system: System, request_: Request, full: bool) -> None:
    assert distance(unlearned(system, {**request_, "full": full}), without(system, *gone(request_))) == 0


IN_A_ROW: dict[str, tuple[Any, ...]] = {
    "two clients": (D, client(0), client(1)),
    "two samples of two clients": (C, sample((0, 0)), sample((1, 3))),
    "two samples of a client": (B, sample((0, 0)), sample((0, 1))),
    "a sample, then another client": (C, sample((0, 0)), client(1)),
    "a sample, then its client": (C, sample((0, 0)), client(0)),
    "a client, then a sample": (D, client(1), sample((0, 0))),
    "both by full re-runs": (C, sample((0, 0), full=True), client(1, full=True)),
    "one by a full re-run": (B, sample((0, 0), full=True), sample((1, 3))),
    "one after the first round": (C, sample((0, 0), until=2), client(1)),
    "both in training": (D, client(0, until=1), sample((1, 2), until=2)),
}
AT_ONCE: dict[str, tuple[Any, ...]] = {
    "two samples of a client": (C, sample((0, 0), (0, 1))),
    "two samples of two clients": (C, sample((0, 0), (1, 3))),
    "two samples of two of three clients": (D, sample((0, 0), (1, 2))),
    "two clients": (D, {"clients": [0, 1]}),
    "a client and a sample": (D, {"clients": [0], "samples": {1: [2]}}),
    "a client and a sample of its own": (C, {"clients": [0], "samples": {0: [0]}}),
}
IN_TRAINING: dict[str, tuple[Any, ...]] = {
    "a client after a round": (C, client(0, until=2)),
    "a client after a round of two clients": (D, client(0, until=1)),
    "a client in mid-round": (C, client(0, until=1)),
    "a sample after a round": (C, sample((0, 0), until=2)),
    "a sample in mid-round": (C, sample((0, 0), until=3)),
    "a sample by a full re-run": (C, sample((0, 0), until=3, full=True)),
}


CASES = {
    f"{when}: {what}": (case[0], case[1:])
    for when, cases in (("in a row", IN_A_ROW), ("at once", AT_ONCE), ("in training", IN_TRAINING))
    for what, case in cases.items()
}


@pytest.mark.parametrize(("system", "requests"), CASES.values(), ids=CASES)
def test_requests_leave_the_law_without_all_of_their_targets(system: System, requests: Sequence[Request]) -> None:
    assert distance(unlearned(system, *requests), without(system, *gone(*requests))) == 0


def test_what_is_asked_for_in_a_row_or_at_once_has_one_law() -> None:
    assert unlearned(B, sample((0, 0)), sample((1, 3))) == unlearned(B, sample((0, 0), (1, 3)))


# ---- not exact ---------------------------------------------------------------------------------------------------


class ClientsAgain(History):
    """Algorithm 1, lines 7 and 8: a step that opens a round draws its clients, also when a sample re-runs it."""

    def _points(self, *targets: Any) -> list[tuple[int, int]]:
        return [(-(-time // self.shape.steps), time) for _, time in super()._points(*targets)]


class Struck(History):
    """The target client is left out of the rounds that drew it."""

    def clients(self, round: int) -> list[int]:
        return [one for one in super().clients(round) if one != 0]


def of(kind: type[History], system: System, random: Named) -> History:
    return kind(system.shape, random, (Piece(system.population()),))


@pytest.mark.parametrize(
    ("system", "apart"), [*zip(SYSTEMS, map(Fraction, ("1/8", "1/16", "1/12", "10/81")), strict=True)]
)
def test_clients_that_are_drawn_again_at_a_round_s_start_are_not_exact(system: System, apart: Fraction) -> None:
    made = law(lambda random: of(ClientsAgain, system, random).without(**sample((0, 0))))
    assert distance(made, without(system, samples=(0,))) == apart


def test_the_coupling_of_claim_2_is_not_exact() -> None:
    """Each round that holds the target is drawn anew, clients and batches; the others stay."""
    system = System(2, 2, 1, 2, 1, 1)

    def coupled(random: Named) -> Outcome:
        first, anew = system.trained()(random), system.trained(samples=[0])(random)
        rounds = range(system.rounds)
        held = [0 in first.clients(r) and any(0 in batch for batch in first.batches(r, 0)) for r in rounds]
        return tuple(drawn(anew if again else first, r) for r, again in zip(rounds, held, strict=True))

    assert distance(gathered(coupled), without(system, samples=(0,))) == Fraction(9, 64)


@pytest.mark.parametrize(
    ("system", "apart"), [*zip(SYSTEMS, map(Fraction, ("1/8", "5/48", "155/1296", "620/6561")), strict=True)]
)
def test_a_full_re_run_with_fresh_clients_is_not_exact_for_a_sample(system: System, apart: Fraction) -> None:
    """Section 5.3.2 as printed."""
    again: Outcome = ("again",)

    def kept(random: Named) -> Outcome:
        history = system.trained()(random)
        return again if history.first_step(0, 0) is not None else rounds_of(history)

    made, anew = gathered(kept), without(system, samples=(0,))
    chance = made.pop(again)
    mixed = {key: made.get(key, 0) + chance * anew.get(key, 0) for key in made.keys() | anew.keys()}
    assert distance(mixed, anew) == apart


def test_a_second_request_that_is_looked_up_in_the_first_history_is_not_exact() -> None:
    system = System(3, 1, 1, 2, 1, 1)

    def make(random: Named) -> History:
        first = system.trained()(random)
        second = first.without([0])
        second.first_round = first.first_round  # type: ignore[method-assign]
        return second.without([1])

    assert distance(law(make), without(system, clients=(0, 1))) == Fraction(5, 18)
    assert distance(unlearned(system, client(0), client(1)), without(system, clients=(0, 1))) == 0


def test_a_target_that_is_struck_from_the_multiset_is_not_exact() -> None:
    system = System(3, 1, 2, 1, 1, 1)
    assert distance(law(lambda random: of(Struck, system, random)), without(system, clients=(0,))) == Fraction(5, 9)


# ---- by hand -----------------------------------------------------------------------------------------------------


class Listed:
    """Gives what a test lists under a name, else the first ones; notes every name."""

    def __init__(self, **draws: dict[tuple[int, ...], list[Any]]) -> None:
        self.draws, self.asked = draws, list[tuple[Any, ...]]()

    def __call__(self, what: str, *name: int) -> Any:
        self.asked.append((what, *name))
        listed = iter(self.draws.get(what, {}).get(name, ()))

        class Source:
            def integers(self, high: int, *, size: int) -> Any:
                return np.array(next(listed, range(size)))

            def choice(self, a: int, size: int, *, replace: bool, shuffle: bool) -> Any:
                return next(listed, list(range(size)))

        return Source()


POPULATION = {k: np.arange(10 * k, 10 * k + 4) for k in range(3)}
SHAPE = Shape(clients_per_round=2, rounds=3, steps=2, batch_size=2)
CLIENTS: dict[tuple[int, ...], list[Any]] = {(0, 0): [[0, 0]], (0, 1): [[2, 1]], (0, 2): [[1, 2]]}
BATCHES: dict[tuple[int, ...], list[Any]] = {(0, 1, 1): [[0, 1], [1, 3]], (0, 2, 1): [[2, 3], [0, 2]]}


def start() -> History:
    """Return rounds 0: client 0 twice; 1: clients 1 and 2; 2: the same. Client 1 uses 12 first in round 2."""
    return begin(POPULATION, SHAPE, Listed(clients=CLIENTS, batches=BATCHES))


def batches(history: History, round: int, client: int) -> list[list[int]]:
    return [batch.tolist() for batch in history.batches(round, client)]


def test_a_client_drawn_twice_stands_there_twice_and_every_step_has_its_own_batch() -> None:
    history = start()
    assert [history.clients(round) for round in range(3)] == [[0, 0], [1, 2], [1, 2]]
    assert batches(history, 1, 1) == [[10, 11], [11, 13]]
    assert (history.rounds_of(1), history.rounds_of(0), history.shape.time) == ([1, 2], [0], 6)


def test_the_first_round_and_step_count_from_0() -> None:
    history = start()
    assert [history.first_round(one) for one in (0, 1, 2, 7)] == [0, 1, 1, None]
    assert [history.first_step(1, row) for row in (10, 11, 12, 13)] == [2, 2, 4, 3]
    assert [history.first_step(2, row) for row in (20, 23)] == [2, None]


def test_a_client_is_forgotten_from_its_first_round_on() -> None:
    history = start()
    after = history.without([1])
    assert after.restart == Restart(time=2, steps=4)
    assert after.clients(0) == [0, 0]
    assert after.clients(1) == [0, 2]  # the first two of those who are left
    assert after.population.keys() == {0, 2}
    assert ("clients", 1, 1) in after.random.asked  # type: ignore[attr-defined]


def test_a_sample_is_forgotten_from_its_first_step_on_with_the_round_s_clients() -> None:
    history = start()
    assert batches(history, 2, 2) == [[20, 21], [20, 21]]
    after = history.without(samples={1: [13]})
    assert after.restart == Restart(time=3, steps=3)
    assert after.clients(1) == [1, 2]
    assert after.clients(2) == [0, 1]
    assert batches(after, 1, 1) == [[10, 11], [10, 11]]
    assert 13 not in after.population[1]
    assert len(after.population) == 3


def test_of_several_targets_the_earliest_counts() -> None:
    assert start().without(samples={1: [12, 13]}).restart == Restart(3, 3)
    assert start().without(samples={1: [12], 2: [21]}).restart == Restart(2, 4)
    both = start().without([1], {2: [20]})  # both at time step 2: the client's request draws the round's clients anew
    assert both.restart == Restart(2, 4)
    assert both.clients(1) == [0, 2]


def test_who_was_never_used_changes_nothing_that_was_drawn() -> None:
    history = start()
    before = rounds_of(history)
    for after in (history.without(samples={2: [23]}), history.without(samples={0: [3]})):
        assert after.restart is None
        assert rounds_of(after) == before
    assert 23 not in history.without(samples={2: [23]}).population[2]


@pytest.mark.parametrize(("until", "restart"), [(2, None), (3, Restart(2, 1)), (6, Restart(2, 4))])
def test_only_what_is_done_when_a_client_s_request_comes_is_computed_again(until: int, restart: Restart | None) -> None:
    after = start().without([1], until=until)
    assert after.restart == restart
    assert [after.clients(round) for round in range(3)] == [[0, 0], [0, 2], [0, 2]]


def test_a_sample_s_request_in_mid_round_keeps_the_clients_and_the_steps_that_are_done() -> None:
    after = start().without(samples={1: [13]}, until=3)  # step 3, which would use it, is not done
    assert after.restart is None
    assert [after.clients(round) for round in range(3)] == [[0, 0], [1, 2], [0, 1]]
    assert batches(after, 1, 1) == [[10, 11], [10, 11]]
    met = start().without(samples={1: [13]}, until=4)
    assert met.restart == Restart(time=3, steps=1)


def test_a_full_re_run_keeps_the_clients_up_to_the_sample_and_counts_all_steps() -> None:
    history = start()
    after = history.without(samples={1: [13]}, full=True)
    assert after.restart == Restart(time=0, steps=6)
    assert [after.clients(round) for round in range(3)] == [[0, 0], [1, 2], [0, 1]]
    assert ("batches", 1, 1, 1) not in history.random.asked  # type: ignore[attr-defined]
    after.batches(1, 1)
    assert history.random.asked[-1] == ("batches", 1, 1, 1)  # type: ignore[attr-defined]
    assert history.without(samples={2: [23]}, full=True).restart is None


def test_a_batch_is_all_that_a_client_has_if_that_is_fewer_and_the_rounds_stay_as_large() -> None:
    after = start().without(samples={1: [11, 12, 13]})
    assert [len(batch) for batch in after.batches(1, 1)] == [1, 1]
    assert [len(batch) for batch in after.batches(1, 2)] == [2, 2]
    assert [len(after.without([2]).clients(round)) for round in range(3)] == [2, 2, 2]


@pytest.mark.parametrize(("clients", "samples"), [([0, 1, 2], {}), ([], {1: [10, 11, 12, 13]})])
def test_a_request_must_leave_a_client_and_every_client_a_sample(clients: list[int], samples: dict[int, Any]) -> None:
    with pytest.raises(
        ValueError, match="must leave at least one client, and at least one sample to every retained client"
    ):
        start().without(clients, samples)


def named(seed: int) -> Callable[..., np.random.Generator]:
    return lambda *name: np.random.default_rng(derive_integer(seed, *name))


def test_draws_of_named_generators_do_not_depend_on_what_was_asked_before() -> None:
    """A request in mid-round, then another: what is re-derived is what was drawn."""
    system = System(4, 9, 3, 4, 5, 3)
    for seed in range(40):
        histories = []
        for asks in (False, True):
            history = begin(system.population(), system.shape, named(seed))
            for request in (sample((0, 4)), sample((1, 12)), client(2)):
                if asks:
                    rounds_of(history)
                history = history.without(**request)
            histories.append(rounds_of(history))
        assert histories[0] == histories[1]


@pytest.mark.parametrize("request_", [client(0), sample((0, 0))], ids=["client", "sample"])
def test_nothing_before_the_restart_changes_and_the_target_is_in_nothing_after_it(request_: Request) -> None:
    system, met = System(4, 5, 3, 4, 3, 2), 0
    for seed in range(40):
        before = begin(system.population(), system.shape, named(seed))
        after = before.without(**request_)
        time = after.restart.time if after.restart else system.shape.time
        met += after.restart is not None
        for step in range(system.shape.time):
            round, at = divmod(step, system.steps)
            one, other = ({c: h.batches(round, c)[at].tolist() for c in h.clients(round)} for h in (before, after))
            assert one == other or step >= time
            assert all(0 not in batch for batch in other.values())
            assert "clients" not in request_ or 0 not in other
    assert met > 20
