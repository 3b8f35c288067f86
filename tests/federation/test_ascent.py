"""Clipping of the gradient in ascent, alone and in every method that ascends."""

from types import ModuleType
from typing import Any

import pytest
import torch

from fu.federation.ascent import clipped
from fu.federation.local import Federation
from fu.methods import ewcsga, fedosd, fupga, sfu
from tests.factories import make_federation, make_histories, make_task, params_of


@pytest.mark.parametrize(
    ("gradient", "norm", "expected"),
    [([3.0, 4.0], 2.5, [1.5, 2.0]), ([3.0, 4.0], 5.0, [3.0, 4.0]), ([0.3, 0.4], 1.0, [0.3, 0.4]), ([0.0], 1.0, [0.0])],
)
def test_a_gradient_is_shortened_to_the_norm_and_never_lengthened(
    gradient: list[float], norm: float, expected: list[float]
) -> None:
    clip, found = clipped(norm), torch.tensor(gradient)
    assert clip is not None
    clip(torch.zeros(0), found)
    torch.testing.assert_close(found, torch.tensor(expected))


def test_a_clip_of_zero_is_none() -> None:
    assert clipped(0) is None


@pytest.mark.parametrize(
    ("method", "params"),
    [
        (ewcsga, {"lambda": 0.0}),
        (fupga, {"radius_share": 100}),
        (sfu, {}),
        (fedosd, {"loss": "ascent", "direction": "target"}),
    ],
)
def test_every_ascent_method_clips_the_gradient_of_each_step(
    method: ModuleType, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths: list[tuple[float, float]] = []
    whole = Federation.local_updates

    def watched(self: Federation, *arguments: Any, regularise: Any = None, **given: Any) -> Any:
        def look(weights: torch.Tensor, gradient: torch.Tensor) -> None:
            before = gradient.norm().item()
            regularise(weights, gradient)
            lengths.append((before, gradient.norm().item()))

        return whole(self, *arguments, regularise=look if regularise else None, **given)

    monkeypatch.setattr(Federation, "local_updates", watched)
    task = make_task(make_federation())
    task.histories.update(make_histories(task))
    p = params_of(method, clip=0.5, **params)
    state = method.step(task, p, method.start(task, p), 0)
    assert torch.isfinite(state.theta).all()
    assert len(lengths) == 6
    assert all(after == pytest.approx(min(before, 0.5), rel=1e-5) for before, after in lengths)
    assert max(before for before, _ in lengths) > 0.5
