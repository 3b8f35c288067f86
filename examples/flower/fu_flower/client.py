"""The client: trains on its own samples as fu does, and says how many of its test samples a model gets right.

A client's number, the round, the seed and the stream name its draws, so that they are those of fu's own loop.
"""

from functools import cache
from typing import Any

import numpy as np
import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from torch import Tensor

from fu.data.clients import ClientData
from fu.data.partition import Partition
from fu.errors import UserError
from fu.federation.local import Federation
from fu.federation.network import Network
from fu.federation.sgd import LocalTraining
from fu_flower import data


def one_sentence(message: Message, context: Context, call_next: Any) -> Message:
    """Answer with the sentence of a `UserError`, where there is one."""
    try:
        return call_next(message, context)
    except UserError as error:
        return Message(Error(code=0, reason=str(error)), reply_to=message)


app = ClientApp(mods=[one_sentence])


@cache
def held(client: int, clients: int, archive: str, class_share: float) -> ClientData:
    """Return a client's samples under its number; the others hold none here."""
    torch.set_num_threads(1)
    own = data.samples(client, clients, archive, class_share)
    x, y = (torch.cat(parts) for parts in zip(own["train"], own["test"], strict=True))
    train, test = np.split(np.arange(len(y)), [len(own["train"][1])])
    none = [train[:0]] * client
    return ClientData(x, y, Partition([*none, train], [*none, train[:0]], [*none, test]), data.CLASSES, "all")


def own(context: Context) -> tuple[int, ClientData]:
    """Return the client's number and samples."""
    settings, client = data.settings(context.run_config), int(context.node_config["partition-id"])
    return client, held(client, int(context.node_config["num-partitions"]), settings.archive, settings.class_share)


def theta_of(message: Message) -> Tensor:
    """Return the model [d] that the server sends."""
    arrays: Any = message.content["arrays"]
    return torch.from_numpy(arrays.to_numpy_ndarrays()[0].copy())


@app.query()  # type: ignore[untyped-decorator]
def describe(message: Message, context: Context) -> Message:
    """Say which client this is, of how many, and how many training samples of which shape it has."""
    client, samples = own(context)
    facts = {"client": client, "clients": int(context.node_config["num-partitions"]), "samples": samples.size(client)}
    return Message(RecordDict({"config": ConfigRecord({**facts, "shape": [*samples.shape]})}), reply_to=message)


@app.train()  # type: ignore[untyped-decorator]
def train(message: Message, context: Context) -> Message:
    """Train for a round, and return what that changes [d] and the mean loss."""
    client, samples = own(context)
    asked: Any = message.content["config"]
    training = LocalTraining.model_validate_json(asked["training"])
    federation = Federation(data.build(samples.shape), samples, training, asked["stream"], asked["seed"])
    theta, round, objective, steps = theta_of(message), asked["round"], asked["objective"], asked.get("steps")
    found = federation.local_updates(theta, [client], round, objective, steps)
    arrays = ArrayRecord([found.delta[0].numpy(), found.losses[0].numpy()])
    return Message(RecordDict({"arrays": arrays}), reply_to=message)


@app.evaluate()  # type: ignore[untyped-decorator]
def evaluate(message: Message, context: Context) -> Message:
    """Return the accuracy of a model on the client's test samples."""
    client, samples = own(context)
    x, y = samples.held_out(client, "test")
    logits = Network(data.build(samples.shape), samples.device).logits(theta_of(message), x)
    accuracy = (logits.argmax(1) == y).double().mean().item()
    return Message(RecordDict({"config": ConfigRecord({"accuracy": accuracy})}), reply_to=message)
