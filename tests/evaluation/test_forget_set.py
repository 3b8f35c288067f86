"""Accuracy on the forgotten clients' training samples: of all together, without the trigger."""

import torch

from fu.evaluation import forget_set
from fu.evaluation.context import Context
from fu.federation.network import Network
from tests.pipeline.stages.scene import BUILD, LABELS, NORMALISED, make_data, model


def test_it_is_of_training_samples_as_they_are_without_the_trigger() -> None:
    """Client 1 is forgotten; ten of its twelve training samples have the trigger and flipped labels."""
    data, network, theta = make_data("share"), Network(BUILD(), torch.device("cpu")), model(0)
    rows = data.partition.train[1]
    x, y = NORMALISED[rows].permute(0, 3, 1, 2), torch.from_numpy(LABELS).long()[rows]
    expected = (network.logits(theta, x).argmax(1) == y).double().mean().item()
    assert forget_set.evaluate(Context(network, data, theta)) == {"forget_set_accuracy": expected}
    data.forgotten = [0, 1]  # of different size: a mean over samples, not over clients
    many = torch.cat([torch.from_numpy(data.partition.train[client]) for client in (0, 1)])
    right = network.logits(theta, NORMALISED[many].permute(0, 3, 1, 2)).argmax(1) == torch.from_numpy(LABELS)[many]
    assert forget_set.trace(Context(network, data, theta))["forget_set_accuracy"] == int(right.sum()) / 19
    data.forgotten = []
    assert forget_set.trace(Context(network, data, theta)) == {}
