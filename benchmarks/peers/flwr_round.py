"""FedAvg by Flower (Beutel et al. 2020), its simulation on ray: as many actors of one thread as there are threads."""

from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.server import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from torch import nn

from benchmarks.peers.common import BATCH, CLIENTS, RATE, SAMPLES, Clients, Report, build

client_app = ClientApp()


@cache
def loaded(name: str, file: str) -> tuple[nn.Module, Clients]:
    """Return model and data, once in every actor."""
    torch.set_num_threads(1)
    return build(name), Clients(Path(file))


@client_app.train()  # type: ignore[untyped-decorator]
def train_client(message: Message, context: Context) -> Message:
    """Train one client for a round."""
    config = message.content["config"]
    model, clients = loaded(str(config["model"]), str(config["file"]))
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
    x, y = clients.shuffled(int(context.node_config["partition-id"]), int(config["server-round"]) - 1)
    for batch_x, batch_y in zip(x.split(BATCH), y.split(BATCH), strict=True):
        optimiser.zero_grad()
        F.cross_entropy(model(batch_x), batch_y).backward()
        optimiser.step()
    answer = {"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord({"num-examples": SAMPLES})}
    return Message(content=RecordDict(answer), reply_to=message)


def train(name: str, file: Path, rounds: int, threads: int, report: Report) -> None:
    server_app = ServerApp()

    def round_ends(round: int, arrays: ArrayRecord) -> None:
        if round:
            report.round_ends(arrays.to_torch_state_dict())

    @server_app.main()  # type: ignore[untyped-decorator]
    def main(grid: Grid, context: Context) -> None:
        FedAvg(fraction_evaluate=0.0, min_train_nodes=CLIENTS, min_available_nodes=CLIENTS).start(
            grid,
            ArrayRecord(build(name).state_dict()),
            num_rounds=rounds,
            train_config=ConfigRecord({"model": name, "file": str(file)}),
            evaluate_fn=round_ends,
        )

    run_simulation(
        server_app,
        client_app,
        CLIENTS,
        backend_config={
            "init_args": {"num_cpus": threads, "include_dashboard": False},
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        },
    )
