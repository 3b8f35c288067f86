"""What a method is given: models drawn by name, and who is who."""

from dataclasses import replace

import torch

from fu.federation.flat import Layout
from fu.federation.task import initial_parameters
from tests.factories import GREY, builder, make_data, make_federation, make_partition, make_task


def test_a_fresh_model_is_drawn_by_name_and_leaves_the_global_generator_alone() -> None:
    build = builder("lenet5", GREY)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    drawn = [initial_parameters(build, *name) for name in [(3, "a"), (3, "b"), (4, "a")]]
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    assert torch.equal(initial_parameters(build, 3, "a"), drawn[0])
    assert len(torch.unique(torch.stack(drawn), dim=0)) == 3
    assert drawn[0].shape == (Layout(build()).size,)
    task, other = (make_task(make_federation(seed=seed)) for seed in (3, 4))
    assert torch.equal(task.new_model("a"), initial_parameters(builder(), 3, "model", "a"))
    assert not torch.equal(task.new_model("a"), other.new_model("a"))


def test_the_population_is_everybody_while_training_and_the_retained_clients_after_the_request() -> None:
    data = make_data(make_partition((7, 12, 9, 8, 6), trigger=False, absent=(2,)), asked=(1,))
    before, after = (make_task(make_federation(data), trained=trained) for trained in (False, True))
    assert (before.clients, before.population) == ([0, 1, 3, 4], [0, 1, 3, 4])
    assert (after.clients, after.population) == ([0, 1, 3, 4], [0, 3, 4])
    assert (after.forgotten, after.retained) == ([1], [0, 3, 4])
    assert before.participants(0) == before.population
    assert after.participants(0) == after.population
    assert after.places([4, 0, 3]) == [3, 0, 2]


def test_the_clients_of_a_round_are_drawn_from_the_population_by_seed_stream_and_round() -> None:
    def rounds(trained: bool = False, seed: int = 3, stream: str = "training", again: bool = False) -> list[list[int]]:
        data = make_data(make_partition((7, 12, 9, 8, 6)))
        task = make_task(make_federation(data, seed=seed, stream=stream), trained=trained)
        task = replace(task, clients_per_round=3, with_replacement=again)
        return [task.participants(round) for round in range(20)]

    plain = rounds()
    assert plain == rounds() == [sorted(set(clients)) for clients in plain]
    assert {client for clients in plain for client in clients} == {0, 1, 2, 3, 4}
    assert {client for clients in rounds(trained=True) for client in clients} == {0, 2, 3, 4}
    assert plain != rounds(seed=4)
    assert plain != rounds(stream="unlearning")
    assert any(len(set(clients)) < 3 for clients in rounds(again=True))
    assert len({tuple(clients) for clients in plain}) > 5
