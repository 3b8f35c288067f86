"""From settings to specs: the values that each stage reads. No job imports this."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from fu.artefacts.entry import ORIGINAL
from fu.federation.sgd import LocalSGD, LocalTraining
from fu.pipeline.provenance import catalogue
from fu.pipeline.settings.records import Method, Phase, Settings
from fu.pipeline.stages import evaluate, partition, recover, relearn, request, shadow, train, unlearn
from fu.pipeline.stages.common import Points, Spec, TrainingSpec
from fu.plugins import Choice

RELEARNED = ("backdoor", "clients", "forget_set")  # evaluators that say what comes back in relearning


@dataclass(frozen=True)
class Trial:
    """One training (`method` is None) or method at one point of its grid in one scenario, settings validated.

    `values`: the settings that the grid sets. Several trials may share models: `trained` is the one in whose name the
    trained model is made, `unlearned` the one of the unlearned model, which is `fedosd+lr0.1` for
    `fedosd+lr0.1-recovery-lr0.2`. `ends_unlearned`: no post-training follows, whatever rounds are left, as it is only
    compared with others. The chosen one of several is a trial, too: `selection` names the training or method whose
    choice it follows (paper/scenario, name), and `points` says which trial it then is, by the selected one.
    """

    settings: Settings
    method: Method | None = None
    values: Mapping[str, float | int | str] = field(default_factory=dict)
    trained: str = ORIGINAL
    unlearned: str = ""
    ends_unlearned: bool = False
    points: Mapping[str, str] = field(default_factory=dict)
    selection: tuple[str, str] = ("", "")

    @property
    def leaves_rounds(self) -> bool:
        """Whether rounds are left after unlearning, so that its model, if it is chosen, is post-trained."""
        after, total = self.settings.unlearning, self.settings.total_rounds
        return self.method is not None and after is not None and total is not None and total > after.rounds

    @property
    def recovers(self) -> bool:
        """Whether post-training follows."""
        return self.leaves_rounds and not self.ends_unlearned

    @property
    def training(self) -> str:
        """The name of the training that it starts from, without a grid point."""
        return self.trained.partition("+")[0]

    @property
    def params(self) -> Mapping[str, Any]:
        """The hyper-parameters of its method; empty for a training."""
        return self.method.params if self.method else {}

    @property
    def declared(self) -> Mapping[str, Any]:
        """The constants that its method's file declares; empty for a training."""
        return catalogue.declared("methods", str(self.method.plugin)) if self.method else {}

    @property
    def retrains(self) -> bool:
        """Whether it retrains from scratch without any data of the forgotten clients."""
        return bool(self.declared.get("RETRAINS")) and not {"LEFT", "CONTROL"} & self.declared.keys()


class Trials:
    """The trials of all papers, by paper/scenario and name."""

    def __init__(self, where: Mapping[str, str]) -> None:
        """`where`: paper -> the file to name in errors."""
        self.where = where
        self.trials: dict[tuple[str, str], Trial] = {}
        self.names: dict[tuple[str, str], list[str]] = {}  # (paper/scenario, training or method) -> names of its trials
        self.at: dict[str, Mapping[str, float | int | str]] = {}  # paper/scenario -> its coordinates
        self.chosen: dict[tuple[str, str], str] = {}  # (paper/scenario, training or method) -> its chosen trial

    def of(self, scenario: str, shown: str) -> list[Trial]:
        """Return the trials of a training or a method in a paper/scenario."""
        return [self.trials[scenario, name] for name in self.names[scenario, shown]]

    def reference(self, scenario: str, shown: str, against: Sequence[str]) -> str | None:
        """Return the retraining in `against` with which audits compare a method: its own, or that of its training."""
        trial = self.of(scenario, shown)[0]
        if trial.method and trial.method.reference:
            return trial.method.reference if trial.method.reference in against else None
        return next((one for one in against if self.of(scenario, one)[0].training == trial.training), None)


def of_partition(trial: Trial, seed: int) -> partition.Spec:
    """Return the spec of a partition."""
    data = trial.settings.data
    attacked = data.forget.clients or () if data.forget and data.attack else ()
    return partition.Spec(
        **_same(partition.Spec, data)
        | {"seed": seed, "attacked": attacked if isinstance(attacked, int) else tuple(attacked)}
    )


def of_request(trial: Trial, seed: int) -> request.Spec:
    """Return the spec of a request."""
    forget = trial.settings.data.forget
    assert forget is not None
    return request.Spec(seed=seed, **forget.model_dump())


def of_training(trial: Trial, seed: int) -> train.Spec:
    """Return the spec of a training."""
    phase, data = trial.settings.training, trial.settings.data
    helps = catalogue.declared("training", phase.method.name).get("SERVER", False)
    return train.Spec(
        **network(trial),
        seed=seed,
        **_phase(phase),
        rounds=phase.rounds,
        training=phase.method,
        history=tuple(phase.history),
        server=(data.server_used or data.server) if helps else None,
    )


def of_unlearning(trial: Trial, seed: int) -> unlearn.Spec:
    """Return the spec of a method's unlearning."""
    phase, method = trial.settings.unlearning, trial.method
    assert method is not None
    assert phase is not None
    again = of_training(trial, seed) if trial.declared.get("RETRAINS") else None
    return unlearn.Spec(
        **network(trial),
        seed=seed,
        **_phase(phase),
        rounds=phase.rounds,
        method=Choice(name=str(method.plugin), params=method.params),
        training=again.training if again else None,
        server=again.server if again else None,
        watch="conflicts" if phase.conflicts else None,
    )


def of_recovery(trial: Trial, seed: int) -> recover.Spec:
    """Return the spec of post-training, which does not name the method that unlearned."""
    phase, before, total = trial.settings.recovery, trial.settings.unlearning, trial.settings.total_rounds
    assert phase is not None
    assert before is not None
    assert total is not None
    given = _phase(phase)
    if phase.first_round_keeps_rate:
        given["local"] = given["local"].model_copy(update={"exception": (before.rounds, before.lr)})
    return recover.Spec(
        **network(trial),
        seed=seed,
        **given,
        rounds=total - before.rounds,
        projection=phase.projection,
        client_weights=phase.client_weights,
        first_round=before.rounds,
    )


def of_shadows(trial: Trial, seed: int) -> shadow.Spec:
    """Return the spec of the shadow models of a training, which train as it does, on data that no attack marks.

    They keep no models for requests. Where the training reads a model from a file, they are trained by FedAvg.
    """
    like = of_training(trial, seed)
    declared = catalogue.declared("training", like.training.name)
    params = {name: value for name, value in like.training.params.items() if name != declared.get("KEEPS")}
    chosen = Choice(name="fedavg") if declared.get("FILE") else Choice(name=like.training.name, params=params)
    return shadow.Spec(
        **_same(shadow.Spec, like) | trial.settings.shadows.model_dump() | {"training": chosen, "attack": None}
    )


def of_evaluation(trial: Trial, seed: int, roles: tuple[str, ...], evaluation: str) -> evaluate.Spec:
    """Return the spec of an evaluation."""
    evaluators = tuple(trial.settings.evaluations[evaluation])
    return evaluate.Spec(**network(trial), seed=seed, roles=roles, evaluators=evaluators)


def of_relearning(original: Trial, seeds: Sequence[int]) -> relearn.Spec:
    """Return the spec of training on models of these seeds.

    It is the same for all trials of a scenario: that of its original model says how clients train on, as after
    unlearning, whatever the methods have for settings of their own.
    """
    settings = original.settings
    phase = settings.recovery or settings.unlearning
    assert phase is not None
    about = _phase(phase)
    return relearn.Spec(
        **network(original),
        **{name: about[name] for name in ("local", "clients_per_round", "with_replacement")},
        rounds=settings.relearning.rounds,
        samples=settings.relearning.samples,
        seeds=tuple(seeds),
        traced=tuple(one for one in RELEARNED if settings.data.attack or one != "backdoor"),
    )


MAKES = {"train": of_training, "shadow": of_shadows, "unlearn": of_unlearning, "recover": of_recovery}


def with_seed(spec: Spec, seed: int) -> Spec:
    """Return the same spec for another seed."""
    if isinstance(spec, Points):
        return Points(points={name: with_seed(one, seed) for name, one in spec.points.items()})
    return spec.model_copy(update={"seed": seed}) if "seed" in type(spec).model_fields else spec


def network(trial: Trial, *names: str) -> dict[str, Any]:
    """Return dataset, attack and model, which all stages that compute with models read, or only the named ones."""
    data = trial.settings.data
    attack = data.attack.name if data.attack else None
    given = {"dataset": data.dataset, "attack": attack, "model": trial.settings.model}
    return {name: given[name] for name in names or given}


def _same(spec: type[Spec], record: BaseModel) -> dict[str, Any]:
    """Return the values of those fields of a spec that a record has, too."""
    return {name: getattr(record, name) for name in spec.model_fields if name in type(record).model_fields}


def _phase(phase: Phase) -> dict[str, Any]:
    return {
        **{name: getattr(phase, name) for name in TrainingSpec.model_fields if name in Phase.model_fields},
        "local": LocalTraining(**phase.model_dump(include=set(LocalSGD.model_fields))),
        "traced": tuple(one for one in phase.traced if catalogue.defines("evaluation", one, "trace")),
        "counted": tuple(
            catalogue.traced([one for one in phase.traced if catalogue.defines("evaluation", one, "count")])
        ),
    }
