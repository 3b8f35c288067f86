"""A federation of one's own model and data: `Federation.from_datasets`, and the models that it trains."""

import copy
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from pydantic import ValidationError
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter
from tqdm import tqdm

from fu import plugins
from fu.api import data
from fu.api.audits import assessed, plugin
from fu.audits.models import Models, finite
from fu.data.clients import ClientData, batch_of
from fu.data.request import Request
from fu.errors import UserError, first_problem
from fu.evaluation import fresh_heads, predictions
from fu.evaluation.context import Context
from fu.evaluation.values import values_of
from fu.federation import local, plugged, recovery
from fu.federation.checkpoint import Checkpoint
from fu.federation.driver import Outcome, drive
from fu.federation.flat import tensors_of
from fu.federation.kept import KeptModels
from fu.federation.network import check_model
from fu.federation.progress import hidden
from fu.federation.sgd import LocalTraining
from fu.federation.task import Record, State, Task, Training
from fu.plugins import Choice

if TYPE_CHECKING:
    from pandas import DataFrame

EVALUATORS = ("accuracy", "utility", "clients", "forgotten", "forget_set", "distance")  # what applies of these
LEAST = 8  # models of each kind, with which audits can decide once their p-values are corrected (our choice)
PARTS = 10  # unlearning takes a tenth of the rounds of training, where nothing else is said (our choice)
Build = Callable[[], nn.Module]
Role = Literal["original", "unlearned", "recovered"]


@dataclass(frozen=True)
class Run:
    """How a model was trained: what methods need of it."""

    rounds: int
    training: Training
    name: str
    seed: int
    participation: dict[str, Any]
    histories: dict[str, Record] = field(default_factory=dict)
    kept: KeptModels | None = None
    folder: Any = None  # of the kept models, which lasts as long as this


@dataclass(frozen=True, repr=False)
class Model:
    """A model of a federation: `theta` [d], its role, and whom it has been asked to forget.

    `rows`: a record of each round, with the costs so far. `diverged`: the round in which the parameters became
    infinite, counted from 1, or None; `theta` is then the last finite one.
    """

    federation: "Federation"
    theta: Tensor
    role: Role
    run: Run
    clients: tuple[int, ...] = ()
    method: str = ""
    original: Tensor | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    rounds: int = 0  # of unlearning and post-training
    diverged: int | None = None

    def __repr__(self) -> str:
        by = f" by {self.method}, clients {', '.join(map(str, self.clients))}" if self.method else ""
        return f"<{self.role} model{by}{f', diverged in round {self.diverged}' if self.diverged else ''}>"

    def module(self) -> nn.Module:
        """Return the model with its weights: an `nn.Module` on the CPU, in evaluation mode."""
        built = self.federation.build()
        with torch.no_grad():
            named = self.federation.layout.named(self.theta)
            built.load_state_dict({**built.state_dict(), **named})
        return built.eval()

    def unlearn(
        self,
        method: str,
        clients: Sequence[int] | int,
        rounds: int | None = None,
        params: dict[str, Any] | None = None,
        **training: Any,
    ) -> "Model":
        """Forget clients with a method of `fu/methods`, and return the unlearned model.

        `rounds`: a tenth of the training's, for retraining as many. `params`: the method's hyper-parameters;
        `training`: those of local SGD that differ from the training's (lr, batch_size, ...). `UserError` where there
        is no such method or client, or the training has not recorded what the method needs.
        """
        fed = self.federation
        self._require_finite()
        if self.clients:
            raise UserError(f"clients: {self} has met a request; start from the original model, and name all clients.")
        asked, module = fed.present(clients), plugin("methods", method)
        chosen = plugins.params("methods", Choice(name=method, params=params or {}), method)
        if lacking := sorted(module.needs - self.run.histories.keys()):
            raise UserError(
                f"{method}: the training has not recorded {lacking[0]!r}; train here with record_for=[{method!r}]."
            )
        continues = getattr(module, "CONTINUES", None)
        if continues and continues != self.run.name:
            raise UserError(f"{method}: continues the training {continues!r}; train with training={continues!r}.")
        whole = hasattr(module, "RETRAINS") or continues
        usual = self.run.rounds if whole else max(1, self.run.rounds // PARTS)
        number = usual if rounds is None else _count(rounds, "rounds")
        held = fed.data(asked)
        task = fed.task(
            held if plugged.reads_tests(module, chosen) else held.without_tests(),
            "unlearning",
            self.run.seed,
            number,
            training,
            **self.run.participation,
        )
        if hasattr(module, "check"):
            module.check(task.federation.model, chosen)
        task = replace(
            task,
            original=self.theta,
            histories=self.run.histories,
            training=self.run.training if hasattr(module, "RETRAINS") else None,
            kept=self.run.kept if continues else None,
        )
        outcome = plugged.unlearn(task, module, chosen, fed.nothing, NO_CHECKPOINT, method)
        return self._next(outcome, "unlearned", number, clients=asked, method=method, original=self.theta)

    def recover(self, rounds: int, **training: Any) -> "Model":
        """Let the retained clients continue training (post-training), and return the recovered model."""
        self._require_finite()
        fed, number = self.federation, _count(rounds, "rounds")
        task = fed.task(
            fed.data(self.clients).without_tests(),
            "unlearning",
            self.run.seed,
            number,
            training,
            **self.run.participation,
        )
        task = replace(task, original=self.theta if self.original is None else self.original)
        outcome = drive(
            task,
            lambda: State(self.theta),
            lambda state, round: recovery.step(task, state, round, "samples", None),
            fed.nothing,
            NO_CHECKPOINT,
            f"{self.method or 'training'}, continued",
            first_round=self.rounds,
        )
        return self._next(outcome, "recovered", self.rounds + number)

    def evaluate(
        self, clients: Sequence[int] | int | None = None, evaluators: Sequence[str] | None = None
    ) -> "DataFrame":
        """Return metric, client (missing where a metric is not of single clients) and value.

        `clients`: who counts as forgotten (default: whom the model has been asked to forget). `evaluators`: of
        `fu/evaluation` (default: those of `EVALUATORS` that apply); `UserError` where one has nothing to measure.
        """
        import pandas as pd  # slow

        fed = self.federation
        held = fed.data(self.clients if clients is None else fed.present(clients))
        trace = [{name: str(value) for name, value in row.items()} for row in self.rows]
        context = Context(fed.network, held, self.theta, self.original, self.role, trace)
        found = []
        for name in _several(evaluators or EVALUATORS):
            rows = [*values_of(plugin("evaluation", name), context)]
            if evaluators and not rows:
                raise UserError(f"{name}: has nothing to measure here; docs/plugins/evaluation.md says what it needs.")
            found += rows
        frame = pd.DataFrame(found, columns=["metric", "client", "value"])
        return frame.assign(client=pd.to_numeric(frame["client"]).astype("Int64"))

    def _require_finite(self) -> None:
        if self.diverged:
            raise UserError(f"{self}: nothing can be trained from it; use a smaller lr.")

    def _next(self, outcome: Outcome, role: Role, rounds: int, **changes: Any) -> "Model":
        return replace(
            self,
            theta=outcome.state.theta,
            role=role,
            rounds=rounds,
            rows=outcome.rows,
            diverged=outcome.diverged,
            **changes,
        )


class Federation:
    """Clients with data sets of their own, one architecture, and local SGD."""

    def __init__(
        self, build: Build, x: Tensor, y: Tensor, part: Any, local_training: LocalTraining, seed: int, device: str
    ) -> None:
        """See `from_datasets`."""
        self.build, self.part, self.training, self.seed = build, part, local_training, seed
        self.device = _device(device)
        self.x, self.y = x.to(self.device), y.to(self.device)
        self.classes = _classes(_built(build), self.x, self.y)
        held = self.data(())
        self._local = local.Federation(build(), held, local_training, "training", seed)
        self.network, self.layout = self._local.network, self._local.layout

    @classmethod
    def from_datasets(
        cls,
        model: nn.Module | Build,
        datasets: Sequence[data.Samples],
        *,
        batch_size: int,
        lr: float,
        local_epochs: int | None = None,
        local_steps: int | None = None,
        lr_decay: float = 1.0,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        test: data.Samples | Sequence[data.Samples] | None = None,
        test_share: float = 0.2,
        seed: int = 0,
        device: str = "auto",
    ) -> "Federation":
        """Return a federation of clients, each of which holds one of the data sets.

        `model`: a class or function that builds one, or a module, whose copies are initialised anew. Its outputs are
        [n, classes]. `datasets`: items are pairs of a sample (a float tensor; text: whole numbers [length]) and a
        label from 0. All items are read once: a random augmentation is drawn once, too. `local_epochs` (default: 1) or
        `local_steps` a round. `test`: one data set for all, or one for each client; by default `test_share` of each
        client's samples, drawn. `UserError` says in one sentence what does not fit.
        """
        sgd = {"lr": lr, "lr_decay": lr_decay, "momentum": momentum, "weight_decay": weight_decay}
        epochs = 1 if local_epochs is None and local_steps is None else local_epochs
        steps = {"batch_size": batch_size, "local_epochs": epochs, "local_steps": local_steps}
        x, y, part = data.merged(datasets, test, test_share, seed)
        return cls(_builder(model), x, y, part, _local({**sgd, **steps}), seed, device)

    @property
    def clients(self) -> list[int]:
        """The numbers of all clients."""
        return self.part.present  # type: ignore[no-any-return]

    def train(
        self,
        rounds: int,
        training: str = "fedavg",
        params: dict[str, Any] | None = None,
        *,
        record_for: Sequence[str] = (),
        clients_per_round: int | None = None,
        with_replacement: bool = False,
        seed: int | None = None,
    ) -> Model:
        """Train from a fresh initialisation on all clients, and return the original model.

        `training`: of `fu/training`. `record_for`: methods whose histories are recorded while it trains.
        `clients_per_round`: how many are drawn (default: all take part). `seed`: of this run; default: the
        federation's.
        """
        seed, module = self.seed if seed is None else seed, plugin("training", training)
        choice = Choice(name=training, params=params or {})
        chosen = plugins.params("training", choice, training)
        participation = {"clients_per_round": clients_per_round, "with_replacement": with_replacement}
        given = {**self.training.model_dump(), **participation}
        if lacking := [name for name in getattr(module, "NEEDS", ()) if not given[name]]:
            where = " (of from_datasets)" if "local_steps" in lacking else ""
            raise UserError(f"{training}: needs {', '.join(lacking)}{where}.")
        if clients_per_round is not None and not 0 < clients_per_round <= len(self.clients):
            raise UserError(f"clients_per_round: must be 1 to {len(self.clients)}, got {clients_per_round}.")
        kinds = sorted({kind for method in _several(record_for) for kind in plugin("methods", method).needs})
        task = self.task(self.data(()).without_tests(), "training", seed, _count(rounds, "rounds"), {}, **participation)
        folder = kept = None
        if hasattr(module, "KEEPS"):
            every = getattr(chosen, module.KEEPS)
            folder = tempfile.TemporaryDirectory(prefix="fu-")
            numbers = range(0, rounds, every) if every else [0]
            kept = KeptModels.create(Path(folder.name, "models"), numbers, rounds, self.layout.size)
        trained, task = plugged.training_of(choice), replace(task, kept=kept)
        recorders = {kind: plugins.load("histories", kind).record for kind in kinds}
        outcome = plugged.train(task, trained, self.nothing, NO_CHECKPOINT, training, recorders=recorders)
        run = Run(rounds, trained, training, seed, participation, outcome.histories, kept, folder)
        return Model(self, outcome.state.theta, "original", run, rows=outcome.rows, diverged=outcome.diverged)

    def trained(self, model: nn.Module | Mapping[str, Tensor], rounds: int, seed: int | None = None) -> Model:
        """Return a model that was trained elsewhere (a module, or its `state_dict`) as the original one.

        `rounds`: of its training, of which unlearning takes a tenth. `UserError` where its weights are not those of
        this architecture. Give test sets of your own (`test`): those that are drawn here may have been trained on.
        """
        named = tensors_of(model) if isinstance(model, nn.Module) else model
        known = {name: tensor for name, tensor in named.items() if not name.endswith("num_batches_tracked")}
        theta = self.layout.flatten(known, "model").to(self.device)
        run = Run(
            _count(rounds, "rounds"),
            plugged.training_of(Choice(name="fedavg")),
            "fedavg",
            self.seed if seed is None else seed,
            {"clients_per_round": None, "with_replacement": False},
        )
        return Model(self, theta, "original", run)

    def audit(
        self,
        method: str,
        clients: Sequence[int] | int,
        rounds: int,
        repeats: int = 16,
        *,
        recovery_rounds: int = 0,
        unlearning_rounds: int | None = None,
        params: dict[str, Any] | None = None,
        lr: float | None = None,
        **training: Any,
    ) -> "DataFrame":
        """Return what every audit of `fu/audits` says of a method: audit, metric, value, found, control_found.

        Trains `repeats` federations for `rounds` with all clients, and as many, with other draws, without those that
        are to be forgotten; unlearns the former, and lets the latter continue training for as many rounds as unlearning
        and post-training take (a method that trains anew: as post-training alone), so that only the clients' data
        distinguish them. `found`: whether the p-value of the audit, corrected for the number of audits (Holm), is below
        .05; missing for an audit that only describes. `control_found`: the same of doing nothing, the original models:
        an audit that misses them says nothing where it finds nothing. Runs of the method that diverge are counted, and
        found. Audits that need more models or a backdoor are left out. `lr`: of unlearning and post-training;
        `training`: arguments of `train`. `UserError` for fewer than 8 repeats, which could decide nothing.
        """
        if _count(repeats, "repeats") < LEAST:
            raise UserError(f"repeats: must be {LEAST} at least, as fewer models can decide nothing, got {repeats}.")
        asked = self.present(clients)
        kinds: dict[str, list[dict[str, Any]]] = {"unlearned": [], "retrained": [], "original": []}
        module = plugin("methods", method)
        anew = hasattr(module, "RETRAINS") or hasattr(module, "CONTINUES")
        held = self.data(asked)
        probes = predictions.audited(held)
        again = {"lr": lr} if lr else {}

        def keep(kind: str, model: Model) -> None:
            if model.diverged is None:
                said = {name: self.network.logits(model.theta, x) for name, (x, _) in probes.items()}
                said |= fresh_heads.logits(self.network, model.theta, held, probes)
                kinds[kind].append({name: of.cpu().numpy() for name, of in said.items()})

        with hidden():
            for number in tqdm(range(repeats), f"audit of {method}", unit="repeat"):
                original = self.train(rounds, record_for=[method], seed=self.seed + number, **training)
                unlearned = original.unlearn(method, asked, unlearning_rounds, params, **again)
                apart = replace(original, run=replace(original.run, seed=self.seed + repeats + number))
                retrained = apart.unlearn("retrain", asked)
                further = recovery_rounds + (0 if anew else unlearned.rounds)
                keep("original", original)
                ends = unlearned.diverged or not recovery_rounds
                keep("unlearned", unlearned if ends else unlearned.recover(recovery_rounds, **again))
                keep("retrained", retrained.recover(further, **again) if further else retrained)
        labels = {name: y for name, (_, y) in probes.items()} | fresh_heads.labels(self.network, probes)
        stacked = {
            kind: finite({name: np.stack([one[name] for one in of]) for name in (of[0] if of else ())})
            for kind, of in kinds.items()
        }
        models = Models({name: y.cpu().numpy() for name, y in labels.items()}, **stacked)
        frame, control = (assessed(one)[0] for one in (models, replace(models, unlearned=models.original)))
        frame["control_found"] = (
            frame["audit"].map(control.drop_duplicates("audit").set_index("audit")["found"]).astype(object)
        )
        if lost := repeats - len(next(iter(stacked["unlearned"].values()), ())):
            frame.loc[len(frame)] = "diverged", "diverged_runs", lost, True, None
        return frame

    def data(self, clients: Sequence[int]) -> ClientData:
        """Return what the clients hold, where these are asked to be forgotten."""
        asked = Request(np.asarray(clients, np.int64)) if len(clients) else None
        return ClientData(self.x, self.y, self.part, self.classes, "all", request=asked)

    def task(
        self, held: ClientData, stream: str, seed: int, rounds: int, changes: dict[str, Any], **participation: Any
    ) -> Task:
        """Return a task on data; `changes`: of local SGD."""
        given = {**self.training.model_dump(), **dict.fromkeys(_other(changes)), **changes}
        sgd = _local(given)
        federation = local.Federation(self.build(), held, sgd, stream, seed)
        return Task(federation, self.build, held.forgotten, held.retained, rounds, seed, **participation)

    def present(self, clients: Sequence[int] | int) -> tuple[int, ...]:
        """Return clients in order; `UserError` where one does not exist, or none would be retained."""
        asked = sorted({clients} if isinstance(clients, int) else {*clients})
        if strange := [client for client in asked if client not in self.clients]:
            raise UserError(f"clients: there is no client {strange[0]!r}; allowed: 0 to {len(self.clients) - 1}.")
        if not asked:
            raise UserError("clients: name at least one.")
        if len(asked) == len(self.clients):
            raise UserError(f"clients: all {len(asked)} would be forgotten; at least one must be retained.")
        return tuple(asked)

    @staticmethod
    def nothing(theta: Tensor) -> dict[str, float]:
        """Measure nothing between rounds."""
        return {}


NO_CHECKPOINT = Checkpoint(Path("no checkpoint of fu.api"), {}, math.inf)


def _other(changes: Mapping[str, Any]) -> list[str]:
    """Return which of local epochs and steps is given up where the other is set."""
    pairs = {"local_epochs": "local_steps", "local_steps": "local_epochs"}
    return [other for name, other in pairs.items() if changes.get(name) is not None]


def _several(names: str | Sequence[str]) -> Sequence[str]:
    return [names] if isinstance(names, str) else names


def _device(name: str) -> torch.device:
    there = ["cpu", *["cuda"] * torch.cuda.is_available()]
    if name not in ("auto", *there):
        raise UserError(f"device: there is no {name!r}; allowed here: auto, {', '.join(there)}.")
    return torch.device(there[-1] if name == "auto" else name)


def _local(given: dict[str, Any]) -> LocalTraining:
    """Return the settings of local SGD; `UserError` where one is unknown or out of range."""
    try:
        return LocalTraining(**given)
    except ValidationError as error:
        raise UserError(first_problem(error, LocalTraining, "local SGD")) from None


def _count(number: int, name: str) -> int:
    if not isinstance(number, int) or number < 1:
        raise UserError(f"{name}: must be a whole number from 1, got {number!r}.")
    return number


def _builder(model: nn.Module | Build) -> Build:
    """Return a function that builds the model, freshly initialised."""
    if not callable(model):
        raise UserError(f"model: must be an nn.Module, its class or a function, got {type(model).__name__}.")
    if not isinstance(model, nn.Module):
        return model
    given: nn.Module = model
    for name, module in given.named_modules():
        if [*module.parameters(recurse=False)] and not hasattr(module, "reset_parameters"):
            raise UserError(
                f"model: {name or 'the module'} has parameters, but no reset_parameters() to initialise them; give "
                "the class, or a function that builds the model."
            )

    def build() -> nn.Module:
        built = copy.deepcopy(given)
        for module in built.modules():
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()  # type: ignore[operator]
        return built

    return build


def _built(build: Build) -> nn.Module:
    """Return a model; `UserError` where it cannot be built."""
    try:
        model = build()
    except Exception as error:  # a user's code may raise anything
        reason = " ".join(str(error).split()).rstrip(".")
        raise UserError(
            f"model: cannot be built: {type(error).__name__}: {reason}; give a function, as in lambda: Net(8)."
        ) from None
    if not isinstance(model, nn.Module):
        raise UserError(f"model: must build an nn.Module, got {type(model).__name__}.")
    if any(isinstance(parameter, UninitializedParameter) for parameter in model.parameters()):
        raise UserError("model: has lazy layers, whose shape is unknown; use layers with shapes.")
    return model


def _classes(model: nn.Module, x: Tensor, y: Tensor) -> int:
    """Return how many classes a model has; `UserError` where it does not take the samples, or has too few classes."""
    sample = batch_of(x[:1]).cpu()
    try:
        with torch.no_grad():
            outputs = model.eval()(sample)
    except Exception as error:  # a user's code may raise anything
        reason = " ".join(str(error).split())
        raise UserError(f"model: fails on a sample {[*sample.shape]}: {type(error).__name__}: {reason}") from None
    if not isinstance(outputs, Tensor) or outputs.ndim != 2 or len(outputs) != 1:
        got = f"{[*outputs.shape]}" if isinstance(outputs, Tensor) else type(outputs).__name__
        raise UserError(f"model: must return one output per class for each sample, [1, classes] here, got {got}.")
    classes = outputs.shape[1]
    if int(y.max()) >= classes:
        raise UserError(
            f"model: has {classes} outputs, for labels 0 to {classes - 1}, but there is label {int(y.max())}; number "
            "labels from 0, with an output for each."
        )
    check_model(model, sample, classes, "model()", statistics=hasattr(model, "STATISTICS"))
    return classes
