"""Retraining: from a model of its own, without any data of a forgotten client."""

import torch

from fu.data.clients import ClientData
from fu.federation.task import initial_parameters, theta_of
from fu.methods import retrain
from fu.training import fedavg
from tests.factories import CLASSES, builder, make_data, make_federation, make_partition, make_task, params_of


def test_retraining_never_touches_the_data_of_a_forgotten_client() -> None:
    part = make_partition()
    clean = make_data(part)
    poisoned_x = clean.x.clone()
    poisoned_x[part.train[1]] = torch.nan
    results = []
    for x in (clean.x, poisoned_x):
        data = ClientData(x, clean.y, part, CLASSES, "all", clean.mark)
        task = make_task(make_federation(data))
        state = retrain.start(task, params_of(retrain))
        for round in range(3):
            state = retrain.step(task, params_of(retrain), state, round)
        results.append(theta_of(state))
        assert data.train(1)[0].isnan().any() == x.isnan().any()
    assert torch.isfinite(results[0]).all()
    assert torch.equal(results[0], results[1])


def test_retraining_starts_from_another_model_than_the_training() -> None:
    task = make_task(make_federation(seed=3))
    again = theta_of(retrain.start(task, params_of(retrain)))
    assert torch.equal(again, initial_parameters(builder(), 3, "model", "retrained"))
    assert not torch.equal(again, theta_of(fedavg.start(task, params_of(fedavg))))
    other_seed = make_task(make_federation(seed=4))
    assert not torch.equal(again, theta_of(retrain.start(other_seed, params_of(retrain))))
