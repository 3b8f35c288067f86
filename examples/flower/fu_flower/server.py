"""The server: fu's training, methods and post-training, for which Flower's nodes compute what clients compute.

It holds no sample: clients say how many they have, and train and evaluate themselves.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from logging import ERROR
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.common.logger import log
from flwr.serverapp import Grid, ServerApp
from torch import Tensor

from fu import api
from fu.data.clients import ClientData
from fu.data.partition import Partition
from fu.errors import UserError
from fu.federation import local
from fu.federation.losses import Objective
from fu.federation.sgd import LocalTraining
from fu.federation.task import Task
from fu_flower import data

app = ServerApp()


def answers(grid: Grid, nodes: Sequence[int], kind: str, content: Mapping[str, Any]) -> list[Any]:
    """Return what nodes answer, in their order; `kind`: "query", "train" or "evaluate".

    `UserError` where one could not answer.
    """
    replies = [*grid.send_and_receive([Message(RecordDict({**content}), node, kind) for node in nodes])]
    if failed := [reply for reply in replies if reply.has_error()]:
        raise UserError(f"a client could not answer ({kind}): {failed[0].error.reason}")
    found = {reply.metadata.src_node_id: reply.content for reply in replies}
    return [found[node] for node in nodes]


def clients_of(grid: Grid) -> tuple[list[int], list[Mapping[str, Any]]]:
    """Return each client's node and description, once all are connected."""
    while True:
        nodes = [*grid.get_node_ids()]
        described = [answer["config"] for answer in answers(grid, nodes, "query", {})]
        if described and len(described) == described[0]["clients"]:
            order = np.argsort([one["client"] for one in described])
            return [nodes[k] for k in order], [described[k] for k in order]
        time.sleep(0.1)


class RemoteFederation(local.Federation):
    """fu's federation, whose clients train on nodes; `nodes`: that of each client."""

    def __init__(self, grid: Grid, nodes: list[int], *args: Any) -> None:
        """Take what fu's takes, after the nodes."""
        super().__init__(*args)
        self.grid, self.nodes = grid, nodes

    def _train_each(  # type: ignore[override]
        self,
        theta: Tensor,
        clients: list[int],
        round: int,
        objective: str | Objective,
        steps: int | None,
        *samples_and_hooks: Any,
    ) -> tuple[Tensor, Tensor]:
        if any(samples_and_hooks) or not isinstance(objective, str):
            raise UserError("this method hands clients functions or samples of its own, which cannot be sent to nodes.")
        names = {"stream": self.stream, "seed": self.seed, "round": round}
        asked: dict[str, Any] = {"training": self.training.model_dump_json(), "objective": objective, **names}
        config = ConfigRecord(asked if steps is None else {**asked, "steps": steps})
        content = {"arrays": ArrayRecord([theta.numpy()]), "config": config}
        found = answers(self.grid, [self.nodes[client] for client in clients], "train", content)
        delta, losses = zip(*(answer["arrays"].to_numpy_ndarrays() for answer in found), strict=True)
        return torch.from_numpy(np.stack(delta)), torch.from_numpy(np.stack(losses))


class Federation(api.Federation):
    """fu's `train`, `unlearn` and `recover`, over Flower's messages."""

    def __init__(self, grid: Grid, settings: data.Settings) -> None:
        """Ask the nodes which clients they are; one sample that is not a number stands in for all of theirs."""
        self.grid = grid
        self.nodes, described = clients_of(grid)
        shape, none = described[0]["shape"], [np.empty(0, np.int64)] * len(described)
        part = Partition([np.zeros(one["samples"], np.int64) for one in described], none, none)
        sgd = LocalTraining(lr=settings.lr, lr_decay=1, batch_size=settings.batch_size, local_epochs=1)
        x, y = torch.full((1, *shape), torch.nan), torch.zeros(1, dtype=torch.int64)
        super().__init__(partial(data.build, shape), x, y, part, sgd, settings.seed, "cpu")

    def task(self, held: ClientData, stream: str, seed: int, *args: Any, **participation: Any) -> Task:
        """Return a task whose clients train on the nodes."""
        task = super().task(held, stream, seed, *args, **participation)
        given = self.build(), held, task.federation.training, stream, seed
        return replace(task, federation=RemoteFederation(self.grid, self.nodes, *given))

    def accuracies(self, model: api.Model, forgotten: int) -> tuple[float, float]:
        """Return the mean over retained clients of the accuracy on their own test samples, and the forgotten one's."""
        arrays = {"arrays": ArrayRecord([model.theta.numpy()])}
        found = [answer["config"]["accuracy"] for answer in answers(self.grid, self.nodes, "evaluate", arrays)]
        return fmean(found[:forgotten] + found[forgotten + 1 :]), found[forgotten]


def run(grid: Grid, settings: data.Settings) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Train, unlearn by each method and recover; return the table and all models [d] by name."""
    torch.set_num_threads(1)
    federation, found, models = Federation(grid, settings), [], {}
    [forgotten] = asked = federation.present([settings.forget])
    began = time.perf_counter()

    def add(method: str, model: api.Model) -> api.Model:
        nonlocal began
        seconds = time.perf_counter() - began
        found.append((method, model.role, *federation.accuracies(model, forgotten), seconds))
        models[f"{method}.{model.role}"] = model.theta.numpy()
        began = time.perf_counter()
        return model

    original = add("fedavg", federation.train(settings.rounds))
    for method in data.METHODS if settings.method == "all" else [settings.method]:
        rounds = settings.rounds if method == "retrain" else settings.unlearning_rounds
        add(method, add(method, original.unlearn(method, asked, rounds)).recover(settings.recovery_rounds))
    return pd.DataFrame(found, columns=["method", "model", "retained", "forgotten", "seconds"]), models


@app.main()  # type: ignore[untyped-decorator]
def main(grid: Grid, context: Context) -> None:
    """Run the app and print the table; write it and the models where `out` says so."""
    try:
        settings = data.settings(context.run_config)
        table, models = run(grid, settings)
        print(table.to_string(index=False, float_format="%.3f"))
        if settings.out:
            folder = Path(settings.out)
            folder.mkdir(parents=True, exist_ok=True)
            np.savez(folder / "models.npz", **models)
            table.to_csv(folder / "table.csv", index=False)
    except (UserError, OSError) as error:
        log(ERROR, "%s", error)
