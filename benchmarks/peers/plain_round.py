"""FedAvg as one would write it by hand: a loop over clients, another over batches, and a mean."""

from pathlib import Path

import torch
import torch.nn.functional as F

from benchmarks.peers.common import BATCH, CLIENTS, RATE, Clients, Report, build


def train(name: str, file: Path, rounds: int, threads: int, report: Report) -> None:
    clients, model = Clients(file), build(name)
    for round in range(rounds):
        start = {key: value.clone() for key, value in model.state_dict().items()}
        total = {key: torch.zeros_like(value) for key, value in start.items()}
        for client in range(CLIENTS):
            model.load_state_dict(start)
            optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
            x, y = clients.shuffled(client, round)
            for batch_x, batch_y in zip(x.split(BATCH), y.split(BATCH), strict=True):
                optimiser.zero_grad()
                F.cross_entropy(model(batch_x), batch_y).backward()
                optimiser.step()
            for key, value in model.state_dict().items():
                total[key] += value
        model.load_state_dict({key: value / CLIENTS for key, value in total.items()})
        report.round_ends(dict(model.named_parameters()))
