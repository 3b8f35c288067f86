"""FedAvg by pfl-research (Granqvist et al. 2024), with its PyTorch model and its simulated backend."""

from itertools import count
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from torch import Tensor, nn

from benchmarks.peers.common import BATCH, CLIENTS, RATE, Clients, Report, build


class Net(nn.Module):
    """A model with the two functions that pfl asks for."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.net = build(name)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the loss of a batch."""
        return F.cross_entropy(self.net(x), y)

    def metrics(self, x: Tensor, y: Tensor) -> dict[str, Weighted]:
        """Return what is measured in the first round, which is not timed: pfl cannot do without."""
        return {"loss": Weighted(0.0, len(y))}


class Watch(TrainingProcessCallback):  # type: ignore[misc]
    """What reports every round."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: PyTorchModel, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        """Report a round and go on."""
        self.report.round_ends(dict(model.pytorch_model.named_parameters()))
        return False, Metrics()


def train(name: str, file: Path, rounds: int, threads: int, report: Report) -> None:
    clients, net = Clients(file), Net(name)
    turns = count()  # pfl asks for one client after the other

    def dataset(client: int) -> PyTorchTensorDataset:
        return PyTorchTensorDataset(clients.shuffled(client, next(turns) // CLIENTS))

    def everybody() -> Any:
        return FederatedDataset(dataset, (number % CLIENTS for number in count()).__next__)

    model = PyTorchModel(net, torch.optim.SGD, torch.optim.SGD(net.parameters(), lr=1.0))
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=rounds, evaluation_frequency=rounds, train_cohort_size=CLIENTS, val_cohort_size=None
        ),
        SimulatedBackend(everybody(), everybody(), postprocessors=[WeightByDatapoints()]),
        model,
        NNTrainHyperParams(local_num_epochs=1, local_learning_rate=RATE, local_batch_size=BATCH),
        NNEvalHyperParams(local_batch_size=None),
        [Watch(report)],
        send_metrics_to_platform=False,
    )
