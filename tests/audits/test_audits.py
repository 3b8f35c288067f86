"""What every audit promises: it declares its metrics, finds what was left, and nothing where nothing was."""

import importlib
import pkgutil
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from fu import audits
from fu.audits.models import Models
from fu.pipeline.catalogue import Declared
from tests.audits.synthetic import PROBES, World, models_of

MODULES = [importlib.import_module(f"fu.audits.{found.name}") for found in pkgutil.iter_modules(audits.__path__)]
AUDITS = [module for module in MODULES if hasattr(module, "METRICS")]
DECIDING = [module for module in AUDITS if hasattr(module, "found")]
NAMES = [module.__name__.rpartition(".")[2] for module in AUDITS]
DECIDING_NAMES = [module.__name__.rpartition(".")[2] for module in DECIDING]
every = pytest.mark.parametrize("module", AUDITS, ids=NAMES)
deciding = pytest.mark.parametrize("module", DECIDING, ids=DECIDING_NAMES)


def test_the_audits_are_there() -> None:
    assert set(NAMES) >= {"ulira", "klom", "nearest", "exposed", "neighbours", "members"}
    assert set(DECIDING_NAMES) >= {"ulira", "klom", "nearest", "exposed"}


@every
def test_metrics_are_declared_as_those_of_evaluators(module: ModuleType) -> None:
    for name, about in module.METRICS.items():
        assert name.startswith(module.__name__.rpartition(".")[2])
        Declared(**about, name=name)
    assert hasattr(module, "SCORE") == hasattr(module, "found")
    assert getattr(module, "SCORE", "") in ("", *module.METRICS)


@every
def test_all_metrics_are_returned_and_finite(module: ModuleType) -> None:
    values = module.audit(World(0, samples=200).models(8, 0.5))
    assert set(values) == set(module.METRICS)
    assert all(type(value) is float and np.isfinite(value) for value in values.values())


@every
def test_models_that_are_all_alike_give_finite_numbers(module: ModuleType) -> None:
    values = module.audit(models_of(unlearned=np.ones((8, 3)), retrained=np.ones((8, 3)), original=np.ones((8, 3))))
    assert set(values) <= set(module.METRICS)
    assert all(np.isfinite(value) for value in values.values())
    if module in DECIDING:
        assert module.found(values) is (module.SCORE == "nearest_position")  # which asks for a proof


@every
def test_it_is_the_same_every_time_and_changes_nothing(module: ModuleType) -> None:
    models = World(1).models(8, 0.5)
    before = [
        logits.copy() for kind in (models.unlearned, models.retrained, models.original) for logits in kind.values()
    ]
    assert module.audit(models) == module.audit(models)
    after = [logits for kind in (models.unlearned, models.retrained, models.original) for logits in kind.values()]
    assert all(np.array_equal(*pair) for pair in zip(before, after, strict=True))


@every
@pytest.mark.parametrize("kind", ["unlearned", "retrained", "original"])
def test_too_few_repeats_are_refused(module: ModuleType, kind: str) -> None:
    models = World(2).models(module.LEAST, 0.5)
    module.audit(models)
    fewer = {probe: logits[1:] for probe, logits in getattr(models, kind).items()}
    with pytest.raises(ValueError, match=f"^needs at least {module.LEAST} {kind} models, got {module.LEAST - 1}$"):
        module.audit(replace(models, **{kind: fewer}))


@every
def test_kinds_may_have_different_numbers_of_models(module: ModuleType) -> None:
    whole = World(3).models(9, 1.0)
    values = module.audit(
        Models(
            whole.labels,
            {probe: logits[:7] for probe, logits in whole.unlearned.items()},
            {probe: logits[:8] for probe, logits in whole.retrained.items()},
            whole.original,
        )
    )
    assert all(np.isfinite(value) for value in values.values())
    assert module not in DECIDING or module.found(values)


@deciding
@pytest.mark.parametrize("number", [8, 16, 32])
def test_doing_nothing_is_found_and_retraining_is_not(module: ModuleType, number: int) -> None:
    world = World(number)
    assert all(module.found(module.audit(world.models(number, 1.0))) for _ in range(10))
    passed = [not module.found(module.audit(world.models(number, 0.0))) for _ in range(60)]
    assert sum(passed) >= 54  # of 60 at a level of 5%, 3 fail on average, and more than 6 in 3% of all tests


@deciding
@pytest.mark.parametrize("number", [8, 16, 32])
def test_the_score_grows_with_what_is_left(module: ModuleType, number: int) -> None:
    scores = []
    for share in (0.0, 0.1, 0.5, 1.0):
        world = World(number)  # the same draws for all shares
        scores.append(np.mean([module.audit(world.models(number, share))[module.SCORE] for _ in range(20)]))
    assert np.diff(scores).min() > 0.005


@deciding
@pytest.mark.parametrize("noise", [0.3, 3.0])
def test_a_step_of_noise_is_no_forgetting(module: ModuleType, noise: float) -> None:
    world = World(4)
    for _ in range(10):
        original = {probe: world.margins(16, probe, 1.0) for probe in PROBES}
        retrained = {probe: world.margins(16, probe, 0.0) for probe in PROBES}
        unlearned = {
            probe: world.margins(16, probe, 1.0) + noise * world.random.normal(size=values.shape)
            for probe, values in original.items()
        }
        assert module.found(module.audit(models_of(unlearned, retrained, original)))
