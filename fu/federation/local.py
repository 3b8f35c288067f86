"""Local training, the primitive of federated learning, and its cost."""

import copy
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields

import psutil
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from fu.data.clients import ClientData, batch_of
from fu.errors import UserError, nearest
from fu.federation.flat import Layout
from fu.federation.losses import Objective, cross_entropy, resolve
from fu.federation.network import Hook, Network, descent
from fu.federation.sgd import AT_ONCE, TOGETHER
from fu.federation.sgd import LocalTraining as LocalTraining
from fu.seeds import derive_integer

FLOAT_BYTES = 4
PROBED = 8  # random inputs, on which two passes of a model in training mode are compared
WEIGHTS = ("samples", "equal")


@dataclass
class Cost:
    """What training cost so far: rounds of single clients, gradient steps, samples seen, time, bytes sent.

    `forgotten_rounds`: those of the client rounds in which a forgotten client trains. `time_steps`: the steps of the
    slowest client of each round, as clients train side by side (FATS section 6.1.3). `replayed`: time steps that only
    rebuild a model that was there before; they are in none of the other counts. `stored`: bytes of the histories or
    kept models that are read.
    """

    client_rounds: int = 0
    forgotten_rounds: int = 0
    steps: int = 0
    samples: int = 0
    time_steps: int = 0
    replayed: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    stored: int = 0

    def add(self, **amounts: int) -> None:
        """Count amounts by name."""
        for name, amount in amounts.items():
            setattr(self, name, getattr(self, name) + amount)

    def record(self) -> dict[str, int]:
        """Return the counts by name."""
        return asdict(self)

    def restore(self, record: Mapping[str, int]) -> None:
        """Set the counts to what they were."""
        vars(self).update(record)


@dataclass(frozen=True)
class Updates:
    """What m clients return: `delta` [m, d] = theta_i - theta, their sample counts and mean training losses [m]."""

    delta: Tensor
    sizes: Tensor
    losses: Tensor

    @classmethod
    def joined(cls, parts: Sequence["Updates"]) -> "Updates":
        """Concatenate the updates of several groups of clients."""
        return cls(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(cls)))


Projection = Callable[[Tensor], None]
Relabel = Callable[[Tensor, Tensor], Tensor]
Rows = Callable[[int, int], Tensor]


def generator(*parts: int | str) -> torch.Generator:
    """Return a CPU generator seeded by name."""
    return torch.Generator().manual_seed(derive_integer(*parts))


class Federation:
    """Clients, a model and a way to train: `local_updates`, or their mean, is all that a method needs of them."""

    def __init__(
        self,
        model: nn.Module,
        data: ClientData,
        training: LocalTraining,
        stream: str,
        seed: int,
        strategy: str = "auto",
    ) -> None:
        """Bind a model to the clients' data.

        `stream` names the random draws ("training", "unlearning"). `strategy` is "sequential" (client after
        client), "vectorised" (all clients at once through torch.func) or "auto": vectorised for small models on
        a GPU, sequential otherwise, and for recurrent ones, which torch.func takes one client after another.
        """
        self.data, self.training, self.seed, self.stream = data, training, seed, stream
        self.device = data.device
        self.statistics = Layout(model).size > Layout(model).parameters
        self.stochastic = any(isinstance(module, _DropoutNd) for module in model.modules()) or _draws(model, data)
        self.network = Network(model, data.device)
        self.model, self.layout, self.logits = self.network.model, self.network.layout, self.network.logits
        self.cost = Cost()
        self.recurrent = any(isinstance(module, nn.RNNBase) for module in model.modules())
        together = not any(isinstance(module, _BatchNorm | nn.RNNBase) for module in model.modules())
        together = together and all(parameter.requires_grad for parameter in model.parameters())
        small = self.layout.size < AT_ONCE
        self.at_once = small and not self.stochastic and not self.statistics and together  # on a GPU
        if strategy == "auto":
            strategy = "vectorised" if self.at_once and self.device.type == "cuda" else "sequential"
        if strategy == "vectorised" and (self.stochastic or self.statistics):
            raise ValueError(
                "dropout and running statistics differ by client; only the sequential strategy supports them"
            )
        self.strategy = strategy
        self._known: tuple[Tensor, int, dict[tuple[int, str | Objective, int | None], tuple[Tensor, Tensor]]] | None = (
            None
        )
        self.asked_again = False  # whether others ask for a round's updates once it is over
        self._slowest = 0  # steps of the slowest client so far, of those that start from the same model in a round

    def holding(self, data: ClientData) -> "Federation":
        """Return the same federation, with the same costs, whose clients hold other data."""
        found = copy.copy(self)
        found.data, found._known = data, None
        return found

    def seeded(self, seed: int) -> "Federation":
        """Return the same federation, with the same costs, whose draws have another seed."""
        found = copy.copy(self)
        found.seed, found._known = seed, None
        return found

    def rate(self, round: int) -> float:
        """The learning rate of a round."""
        return self.training.rate(round)

    def local_updates(
        self,
        theta: Tensor,
        clients: Sequence[int],
        round: int,
        objective: str | Objective = "cross_entropy",
        steps: int | None = None,
        *,
        rows: Rows | None = None,
        factors: Mapping[int, float] | None = None,
        regularise: Hook | None = None,
        project: Projection | None = None,
        relabel: Relabel | None = None,
        counted: bool = True,
    ) -> Updates:
        """Train every client from theta [d] and return what each sends back.

        `objective` is "cross_entropy", "negative_cross_entropy" (ascent), "unlearning_cross_entropy" (UCE), or a
        function of logits and labels (a method's own loss stays in the method's file).
        `steps` replaces the local epochs or steps. `rows(client, step)` names the training samples [b] of a step, which
        are else shuffled; `factors`: client -> what its loss is multiplied by, else 1. `regularise(weights, gradient)`
        adds to the flat gradient in place before a step, `project(weights)` moves the flat weights after it,
        `relabel(x, y)` returns the labels of a batch that are trained on instead; each of the three forces the
        sequential strategy. Updates that are asked for again with the same theta and round (as for conflicts and
        histories) are not computed twice; all that start there count as training side by side. `counted=False` keeps
        them out of the cost. Theta is left unchanged.
        """
        clients = list(clients)
        hooks = (regularise, project, relabel)
        hooked = any(hook is not None for hook in hooks)
        if self._known is None or self._known[0] is not theta or self._known[1] != round:
            self._known, self._slowest = (theta, round, {}), 0
        known = {} if hooked or rows or factors else self._known[2]
        missing = [client for client in dict.fromkeys(clients) if (client, objective, steps) not in known]
        if missing:
            self._require_room(len(missing))
            if self.strategy == "vectorised" and not hooked:
                from fu.federation.vectorised import train_all

                delta, losses = train_all(self, theta, missing, round, objective, steps, rows, factors)
            else:
                delta, losses = self._train_each(theta, missing, round, objective, steps, rows, factors, *hooks)
            for k, client in enumerate(missing):
                known[client, objective, steps] = delta[k], losses[k]
        found = [known[client, objective, steps] for client in clients]
        sizes = torch.tensor([self.data.size(client) for client in clients], dtype=torch.float32, device=self.device)
        if counted:
            self._count(clients, steps, rows)
        return Updates(
            torch.stack([row for row, _ in found]) if found else theta.new_zeros(0, theta.numel()),
            sizes,
            torch.stack([loss for _, loss in found]) if found else theta.new_zeros(0),
        )

    def mean_update(
        self,
        theta: Tensor,
        clients: Sequence[int],
        round: int,
        weights: str = "samples",
        *,
        rows: Rows | None = None,
        factors: Mapping[int, float] | None = None,
        counted: bool = True,
    ) -> Tensor:
        """Train every client from theta [d] and return the weighted mean of what they send back [d].

        `weights`: as in `aggregate`; one that is named k times counts k times. The rest: as in `local_updates`. What is
        held does not grow with the clients: the updates of `TOGETHER` of them are added up at a time.
        """
        clients = list(clients)
        if self.asked_again or len(clients) <= TOGETHER:
            return aggregate(
                self.local_updates(theta, clients, round, rows=rows, factors=factors, counted=counted), weights
            )
        times = Counter(clients)
        by_size = _by_size(weights)
        counts = {client: k * (self.data.size(client) if by_size else 1) for client, k in times.items()}
        mean, each, total = torch.zeros_like(theta), list(counts), sum(counts.values())
        for first in range(0, len(each), TOGETHER):
            some = each[first : first + TOGETHER]
            delta = self.local_updates(theta, some, round, rows=rows, factors=factors, counted=False).delta
            mean += torch.tensor([counts[client] / total for client in some], device=self.device) @ delta
            assert self._known is not None
            self._known[2].clear()
        if counted:
            self._count(clients, None, rows)
        return mean

    def server_update(self, theta: Tensor, round: int, rate: float, samples: int | None = None) -> Tensor:
        """Return what one SGD step on a batch of the server's data changes [d]; `samples`: only the first of them.

        The batch is drawn without replacement, as large as a client's, or all there are. There is neither momentum
        nor weight decay. Nothing is sent, and no client is counted. Theta is left unchanged.
        """
        pool = self.data.partition.server[:samples]
        order = torch.randperm(len(pool), generator=generator(self.seed, self.stream, "server", round))
        index = torch.from_numpy(pool)[order[: self.training.batch_size]].to(self.device)
        x, y = batch_of(self.data.inputs.index_select(0, index)), self.data.y.index_select(0, index)
        self.network.weights.copy_(theta)
        with self._training_mode("server", round):
            self.network.descend(cross_entropy(self.model(x), y).mean(), rate)
        self.cost.add(steps=1, samples=len(index), time_steps=1)
        return self.network.weights - theta

    def batches(
        self, client: int, round: int, steps: int | None, rows: Rows | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield a client's batches of a round: those that `rows` names, else reshuffled every epoch.

        An epoch is gathered at once, of streamed images a batch at a time.
        """
        if rows is not None:
            for step in range(self.steps_of(client, steps)):
                yield self.data.train(client, rows(client, step).to(self.device))
            return
        batch = self.training.batch_size
        for order in self.orders(client, round, steps):
            for part in order.to(self.device).split(batch if self.data.streamed else len(order)):
                x, y = self.data.train(client, part)
                yield from zip(x.split(batch), y.split(batch), strict=True)

    def orders(self, client: int, round: int, steps: int | None = None) -> Iterator[Tensor]:
        """Yield the places of a client's training samples in the order of each epoch of a round, the last cut short."""
        left, batch = self.steps_of(client, steps), self.training.batch_size
        random = generator(self.seed, self.stream, "batches", client, round)
        while left > 0:
            order = torch.randperm(self.data.size(client), generator=random)[: left * batch]
            yield order
            left -= math.ceil(len(order) / batch)

    def steps_of(self, client: int, steps: int | None) -> int:
        """The number of gradient steps that a client takes in a round."""
        given = self.training.local_steps if steps is None else steps
        if given is not None:
            return given
        assert self.training.local_epochs is not None
        return self.training.local_epochs * math.ceil(self.data.size(client) / self.training.batch_size)

    def _train_each(
        self,
        theta: Tensor,
        clients: list[int],
        round: int,
        objective: str | Objective,
        steps: int | None,
        rows: Rows | None,
        factors: Mapping[int, float] | None,
        regularise: Hook | None,
        project: Projection | None,
        relabel: Relabel | None,
    ) -> tuple[Tensor, Tensor]:
        weights, rate = self.network.weights, self.rate(round)
        loss_of = resolve(objective)
        delta = torch.empty(len(clients), self.layout.size, device=self.device)
        losses = torch.zeros(len(clients), device=self.device)
        for k, client in enumerate(clients):
            weights.copy_(theta)
            total, factor = losses[k], (factors or {}).get(client)
            hooks = [hook for hook in (regularise, descent(self.training, weights)) if hook is not None]
            with self._training_mode(client, round):
                for x, y in self.batches(client, round, steps, rows):
                    if relabel is not None:
                        y = relabel(x, y)
                    loss = loss_of(self.model(x), y).mean()
                    total += loss.detach()
                    self.network.descend(loss if factor is None else loss * factor, rate, *hooks)
                    if project is not None:
                        project(weights)
            torch.sub(weights, theta, out=delta[k])
            total /= max(1, self.steps_of(client, steps))
        return delta, losses

    def _require_room(self, clients: int) -> None:
        """Refuse to hold more updates at once than the machine's memory; those of a few clients are not asked about.

        All memory counts, not what is free: freed updates stay with the process, and round after round needs the same.
        """
        if clients <= TOGETHER:
            return
        needed = 2 * clients * self.layout.size * FLOAT_BYTES  # as they come, and as they are returned
        on_gpu = self.device.type == "cuda"
        there = torch.cuda.mem_get_info(self.device)[1] if on_gpu else psutil.virtual_memory().total
        if needed > there:
            raise UserError(
                f"The updates of {clients:,} clients, with {self.layout.size:,} parameters each, take "
                f"{needed / 1e9:.1f} GB at once, but the {'GPU' if on_gpu else 'machine'} has {there / 1e9:.1f}; use "
                "fewer clients per round (clients_per_round), a smaller model, or a method that needs only the mean "
                "of the updates."
            )

    @contextmanager
    def _training_mode(self, who: int | str, round: int) -> Iterator[None]:
        """Switch dropout and running statistics on for a round of a client or the server; dropout is seeded by name.

        Recurrent layers, too: cuDNN computes their gradients only in training mode. No global generator is changed.
        """
        if not (self.stochastic or self.statistics or self.recurrent):
            yield
            return
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            seed = derive_integer(self.seed, self.stream, "dropout", who, round)
            (torch.cuda.manual_seed if self.device.type == "cuda" else torch.default_generator.manual_seed)(seed)
            self.model.train()
            try:
                yield
            finally:
                self.model.eval()

    def _count(self, clients: list[int], steps: int | None, rows: Rows | None) -> None:
        taken = {client: self.steps_of(client, steps) for client in clients}
        samples = 0
        for client, number in taken.items():
            if rows is not None:
                samples += sum(len(rows(client, step)) for step in range(number))
                continue
            size, batch = self.data.size(client), self.training.batch_size
            epochs, rest = divmod(number, math.ceil(size / batch))
            samples += epochs * size + rest * batch
        moved, slowest = len(taken) * self.layout.size * FLOAT_BYTES, max(taken.values(), default=0)
        self.cost.add(
            client_rounds=len(taken),
            forgotten_rounds=sum(client in self.data.forgotten for client in taken),
            steps=sum(taken.values()),
            samples=samples,
            time_steps=max(slowest - self._slowest, 0),
            bytes_up=moved,
            bytes_down=moved,
        )
        self._slowest = max(slowest, self._slowest)


def aggregate(updates: Updates, weights: str) -> Tensor:
    """Return the weighted mean update [d]; `weights`: "samples" (p_i = N_i / N, FedAvg) or "equal" (1 / m).

    Raises `ValueError` for other weights.
    """
    share = updates.sizes if _by_size(weights) else torch.ones_like(updates.sizes)
    return (share / share.sum()) @ updates.delta


def _draws(model: nn.Module, data: ClientData) -> bool:
    """Return whether a model is random in training mode, as with `torch.nn.functional.dropout`.

    Two passes of random inputs are compared; no client's data are read.
    """
    text = isinstance(data.inputs, Tensor) and not data.inputs.is_floating_point()
    like = torch.zeros(PROBED, *data.shape, dtype=torch.uint8 if text else torch.float32)
    random = torch.Generator().manual_seed(0)
    x = batch_of(like if text else torch.rand(like.shape, generator=random)).to(next(model.parameters()).device)

    def outputs(seed: int) -> Tensor:
        torch.default_generator.manual_seed(seed)
        found: Tensor = model(x)
        return found

    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        model.train()
        differ = not torch.allclose(outputs(0), outputs(1), rtol=1e-3, atol=1e-6, equal_nan=True)
        model.eval()
    return differ


def _by_size(weights: str) -> bool:
    if weights not in WEIGHTS:
        raise ValueError(f"there are no weights {weights!r}{nearest(weights, WEIGHTS)}")
    return weights == "samples"
