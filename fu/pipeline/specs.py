"""From settings to specs: the values that each stage reads. No job imports this."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fu.pipeline.settings.records import Method, Phase, Plugin, Settings
from fu.pipeline.stages import evaluate, partition, recover, train, unlearn
from fu.pipeline.stages.common import Local
from fu.plugins import Choice


@dataclass(frozen=True)
class Trial:
    """One method (None: the original training) at one point of its grid in one scenario, settings validated.

    `unlearned`: the trial that makes its unlearned model, which several trials may share. `values`: the settings that
    the grid sets.
    """

    settings: Settings
    method: Method | None = None
    unlearned: str = ""
    values: Mapping[str, float | int | str] = field(default_factory=dict)

    @property
    def recovers(self) -> bool:
        """Whether post-training follows: rounds are left after unlearning."""
        return self.method is not None and self.settings.total_rounds > self.settings.unlearning.rounds


def of_partition(trial: Trial, seed: int) -> partition.Spec:
    """Return the spec of a partition."""
    data = trial.settings.data
    wanted = data.forget.clients
    return partition.Spec(
        dataset=data.dataset,
        seed=seed,
        samples=data.samples,
        clients=data.clients,
        partition=_choice(data.partition),
        train_share=data.train_share,
        validation_share=data.validation_share,
        forget=wanted if isinstance(wanted, int) else tuple(wanted),
        attack=_choice(data.attack) if data.attack else None,
    )


def of_training(trial: Trial, seed: int) -> train.Spec:
    """Return the spec of the original training."""
    phase = trial.settings.training
    return train.Spec(
        **_shared(trial, seed),  # type: ignore[arg-type]
        local=_local(phase),
        rounds=phase.rounds,
        evaluate_every=phase.evaluate_every,
        training=_choice(phase.method),
        history=tuple(phase.history),
    )


def of_unlearning(trial: Trial, seed: int) -> unlearn.Spec:
    """Return the spec of a method's unlearning."""
    phase, method = trial.settings.unlearning, trial.method
    assert method is not None
    return unlearn.Spec(
        **_shared(trial, seed),  # type: ignore[arg-type]
        local=_local(phase),
        rounds=phase.rounds,
        evaluate_every=phase.evaluate_every,
        method=Choice(name=str(method.plugin), params=method.params),
        watch="conflicts" if phase.conflicts else None,
        traced=tuple(trial.settings.traced),
    )


def of_recovery(trial: Trial, seed: int) -> recover.Spec:
    """Return the spec of post-training, which does not name the method that unlearned."""
    phase, before = trial.settings.recovery, trial.settings.unlearning
    exception = (before.rounds, before.lr) if phase.first_round_keeps_rate else None
    return recover.Spec(
        **_shared(trial, seed),  # type: ignore[arg-type]
        local=_local(phase).model_copy(update={"exception": exception}),
        rounds=trial.settings.total_rounds - before.rounds,
        evaluate_every=phase.evaluate_every,
        projection=_choice(phase.projection) if phase.projection else None,
        client_weights=phase.client_weights,
        first_round=before.rounds,
        traced=tuple(trial.settings.traced),
    )


def of_evaluation(trial: Trial, seed: int, roles: tuple[str, ...], evaluation: str) -> evaluate.Spec:
    """Return the spec of an evaluation."""
    evaluators = tuple(trial.settings.evaluations[evaluation])
    return evaluate.Spec(**_shared(trial, seed), roles=roles, evaluators=evaluators)  # type: ignore[arg-type]


def _shared(trial: Trial, seed: int) -> dict[str, object]:
    data = trial.settings.data
    return {
        "dataset": data.dataset,
        "attack": data.attack.name if data.attack else None,
        "model": _choice(trial.settings.model),
        "seed": seed,
    }


def _choice(plugin: Plugin) -> Choice:
    return Choice(name=plugin.name, params=plugin.params)


def _local(phase: Phase) -> Local:
    return Local(lr=phase.lr, lr_decay=phase.lr_decay, batch_size=phase.batch_size, local_epochs=phase.local_epochs)
