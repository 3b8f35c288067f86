"""What a method is given: models drawn by name, and who is who."""

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


def test_a_tasks_new_models_differ_by_name_and_seed() -> None:
    tasks = [make_task(make_federation(seed=seed)) for seed in (3, 3, 4)]
    one, again, other = (task.new_model("original") for task in tasks)
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert not torch.equal(one, tasks[0].new_model("retrained"))


def test_the_clients_of_a_task_are_the_forgotten_and_the_retained_in_order() -> None:
    task = make_task(make_federation(make_data(make_partition((7, 12, 9, 8), (1, 3)))))
    assert (task.clients, task.forgotten, task.retained) == ([0, 1, 2, 3], [1, 3], [0, 2])
