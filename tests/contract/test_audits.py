"""An audit: it finds what was left, and nothing where nothing was, on models that are made up."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from fu import plugins
from fu.audits.models import FRESH, WEIGHTS, Models
from fu.pipeline.provenance.catalogue import declared
from tests.audits.synthetic import PROBES, World, models_of
from tests.contract.names import plugins_of

EVERY_PROBE = (*PROBES, *FRESH, WEIGHTS)


def world_of(seed: int, **given: float) -> World:
    return World(seed, probes=EVERY_PROBE, **given)  # type: ignore[arg-type]


def decides(name: str) -> bool:
    return "P" in declared("audits", name)


def found(name: str, values: Mapping[str, float]) -> bool:
    return values[plugins.load("audits", name).P] < 0.05


CLEAR = 9.0  # standard deviations from retrained to original models, as in a scenario with a backdoor
EVERY = pytest.mark.parametrize("name", plugins_of("audits"))
DECIDES = pytest.mark.parametrize("name", plugins_of("audits", decides))


@EVERY
def test_all_metrics_are_returned_and_finite(name: str) -> None:
    """`audit` returns finite floats under the names in `METRICS`, `SCORE` among them."""
    module = plugins.load("audits", name)
    values = module.audit(world_of(0, samples=200).models(8, 0.5))
    assert set(values) == set(module.METRICS) >= {module.SCORE}
    assert all(type(value) is float and np.isfinite(value) for value in values.values())


@EVERY
def test_models_that_are_all_alike_give_finite_numbers(name: str) -> None:
    """Models with identical predictions give finite numbers."""
    module = plugins.load("audits", name)
    values = module.audit(models_of(*[np.ones((8, 3))] * 3, probes=EVERY_PROBE))
    assert set(values) <= set(module.METRICS)
    assert all(np.isfinite(value) for value in values.values())


@EVERY
def test_it_is_the_same_every_time_and_changes_nothing(name: str) -> None:
    """`audit` is deterministic and does not modify its arguments."""
    module = plugins.load("audits", name)
    models = world_of(1).models(8, 0.5)
    before = [
        logits.copy() for kind in (models.unlearned, models.retrained, models.original) for logits in kind.values()
    ]
    assert module.audit(models) == module.audit(models)
    after = [logits for kind in (models.unlearned, models.retrained, models.original) for logits in kind.values()]
    assert all(np.array_equal(*pair) for pair in zip(before, after, strict=True))


@EVERY
@pytest.mark.parametrize("kind", ["unlearned", "retrained", "original"])
def test_too_few_repeats_are_refused(name: str, kind: str) -> None:
    """`audit` raises `ValueError` if there are fewer than `LEAST` models of a kind."""
    module = plugins.load("audits", name)
    models = world_of(2).models(module.LEAST, 0.5)
    module.audit(models)
    fewer = {probe: logits[1:] for probe, logits in getattr(models, kind).items()}
    with pytest.raises(ValueError, match=f"^needs at least {module.LEAST} {kind} models, got {module.LEAST - 1}$"):
        module.audit(replace(models, **{kind: fewer}))


@EVERY
def test_kinds_may_have_different_numbers_of_models(name: str) -> None:
    """The numbers of models may differ between kinds, as some models diverge."""
    module = plugins.load("audits", name)
    whole = world_of(3).models(9, 1.0)
    values = module.audit(
        Models(
            whole.labels,
            {probe: logits[:7] for probe, logits in whole.unlearned.items()},
            {probe: logits[:8] for probe, logits in whole.retrained.items()},
            whole.original,
        )
    )
    assert all(np.isfinite(value) for value in values.values())
    assert not decides(name) or found(name, values)


@DECIDES
@pytest.mark.parametrize("number", [8, 32])
def test_doing_nothing_is_found_and_retraining_is_not(name: str, number: int) -> None:
    """The p-value in `P` is below .05 for models that forgot nothing, and rarely for independent retrainings."""
    module = plugins.load("audits", name)
    world = world_of(number, shift=CLEAR)
    assert all(found(name, module.audit(world.models(number, 1.0))) for _ in range(10))
    passed = [not found(name, module.audit(world.models(number, 0.0))) for _ in range(40)]
    assert sum(passed) >= 35  # of 40 at a level of 5%, 2 fail on average, and more than 5 in 1.4% of all tests


@DECIDES
@pytest.mark.parametrize("number", [8, 32])
def test_the_score_grows_with_what_is_left(name: str, number: int) -> None:
    """`SCORE` increases with the share of the client that remains."""
    module = plugins.load("audits", name)
    scores = []
    for share in (0.0, 0.1, 0.5, 1.0):
        world = world_of(number)  # the same draws for all shares
        scores.append(np.mean([module.audit(world.models(number, share))[module.SCORE] for _ in range(8)]))
    assert np.diff(scores).min() > 0.005


@DECIDES
@pytest.mark.parametrize("noise", [0.3, 3.0])
def test_a_step_of_noise_is_no_forgetting(name: str, noise: float) -> None:
    """The p-value in `P` is below .05 for models that forgot nothing and have noise added, too."""
    module = plugins.load("audits", name)
    world = world_of(4, shift=CLEAR)
    for _ in range(10):
        original = {probe: world.margins(16, probe, 1.0) for probe in EVERY_PROBE}
        retrained = {probe: world.margins(16, probe, 0.0) for probe in EVERY_PROBE}
        unlearned = {
            probe: world.margins(16, probe, 1.0) + noise * world.random.normal(size=values.shape)
            for probe, values in original.items()
        }
        assert found(name, module.audit(models_of(unlearned, retrained, original, probes=EVERY_PROBE)))
