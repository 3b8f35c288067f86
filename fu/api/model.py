"""The models of a federation: trained, unlearned, recovered; each can be evaluated and taken further."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from fu import plugins
from fu.api import checks
from fu.api.given import choice, count, plugin, several
from fu.errors import UserError
from fu.evaluation.context import Context
from fu.evaluation.values import values_of
from fu.federation import plugged, recovery, unlearning
from fu.federation.checkpoint import Checkpoint
from fu.federation.driver import Outcome, drive
from fu.federation.flat import tensors_of
from fu.federation.kept import KeptModels
from fu.federation.task import Record, State, Training

if TYPE_CHECKING:
    from pandas import DataFrame

    from fu.api.federation import Federation

EVALUATORS = ("accuracy", "utility", "clients", "forgotten", "forget_set", "distance")  # of these, those that apply
PARTS = 10  # unlearning takes a tenth of the rounds of training, where nothing else is said (our choice)
NO_CHECKPOINT = Checkpoint(Path("no checkpoint of fu.api"), {}, math.inf)
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
        built, named = self.federation.build(), self.federation.layout.named(self.theta)
        with torch.no_grad():
            for name, tensor in tensors_of(built).items():
                tensor.copy_(named[name])
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
        if self.role != "original":
            raise UserError(f"model: this one is {self.role}; start from the original, and name all clients at once.")
        asked, module = fed.present(clients), plugin("methods", method)
        chosen = plugins.params("methods", choice(method, params), method)
        checks.statistics("methods", method, fed.layout)
        needs = checks.histories(method)
        if lacking := sorted(needs - self.run.histories.keys()):
            raise UserError(
                f"{method}: the training has not recorded {lacking[0]!r}; train here with record_for=[{method!r}]."
            )
        continues = getattr(module, "CONTINUES", None)
        if continues and continues != self.run.name:
            raise UserError(f"{method}: continues the training {continues!r}; train with training={continues!r}.")
        whole = hasattr(module, "RETRAINS") or continues
        usual = self.run.rounds if whole else max(1, self.run.rounds // PARTS)
        number = usual if rounds is None else count(rounds, "rounds")
        held = fed.data(asked)
        task = fed.task(
            held if plugged.reads_tests(module, chosen) else held.without_tests(),
            "unlearning",
            self.run.seed,
            number,
            training,
            **self.run.participation,
        )
        checks.request(method, module, task, fed.training, self.run.rounds)
        if hasattr(module, "check"):
            module.check(task.federation.model, chosen)
        task = replace(
            task,
            original=self.theta,
            histories={kind: self.run.histories[kind] for kind in needs},
            training=self.run.training if hasattr(module, "RETRAINS") else None,
            kept=self.run.kept if continues else None,
        )
        outcome = unlearning.unlearn(task, module, chosen, nothing, NO_CHECKPOINT, method)
        return self._next(outcome, "unlearned", number, clients=asked, method=method, original=self.theta)

    def recover(self, rounds: int, **training: Any) -> "Model":
        """Let the retained clients continue training (post-training), and return the recovered model."""
        self._require_finite()
        fed, number = self.federation, count(rounds, "rounds")
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
            nothing,
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
        rows = []
        for name in several(evaluators or EVALUATORS, "evaluators"):
            measured = [*values_of(plugin("evaluation", name), context)]
            if evaluators and not measured:
                raise UserError(f"{name}: has nothing to measure here; docs/plugins/evaluation.md says what it needs.")
            rows += measured
        frame = pd.DataFrame(rows, columns=["metric", "client", "value"])
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


def nothing(theta: Tensor) -> dict[str, float]:
    """Measure nothing between rounds."""
    return {}
