"""The models of one kind in an archive of oracles, one of each seed: their weights, and what they answer on probes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fu.audits.models import FRESH, WEIGHTS, Floats, margins
from fu.errors import UserError
from fu.evaluation import predictions
from fu.federation import model_files

Labels = Mapping[str, NDArray[np.int64]]


class Repeats(NamedTuple):
    """Models that did not diverge.

    `weights`: [N, ...] by the name of a parameter; `logits`: [N, n, C] by probe; `left_out`: the seeds of the others.
    """

    seeds: list[int]
    left_out: list[int]
    weights: dict[str, Tensor]
    logits: dict[str, NDArray[np.float32]]

    def margins(self, labels: Labels) -> dict[str, Floats]:
        """Return the margins [N, n] by probe."""
        return {probe: margins(logits, labels[probe]) for probe, logits in self.logits.items()}

    def about(self, labels: Labels) -> dict[str, Any]:
        """Return seeds, and mean and standard deviation over the models of the accuracy on each probe."""
        shares = {probe: (logits.argmax(-1) == labels[probe]).mean(1) for probe, logits in self.logits.items()}
        spread = {probe: of.std(ddof=1) if len(of) > 1 else 0.0 for probe, of in shares.items()}
        accuracy = {probe: [float(of.mean()), float(spread[probe])] for probe, of in shares.items()}
        return {"seeds": self.seeds, "left_out": self.left_out, "accuracy": accuracy}


def load(seeds: Sequence[int], models: Sequence[Path], predicted: Path) -> Repeats:
    """Return the models of these seeds without those that diverged, or have a logit that is not finite on any probe.

    `predicted`: what they predict, in the order of their seeds. `UserError` where none is left.
    """
    found = {seed: model_files.read(path)[0] for seed, path in zip(seeds, models, strict=True)}
    answers = predictions.load(predicted, predictions.REPEATS)
    logits = {
        probe: of.numpy() for probe, of in answers.items() if probe not in (*FRESH, WEIGHTS)
    }  # which are not the model's outputs
    finite = np.logical_and.reduce([np.isfinite(of).all((1, 2)) for of in logits.values()], initial=True)
    kept = [seed for seed, whole in zip(seeds, finite, strict=True) if whole] if logits else []
    if not kept:
        raise UserError(
            f"{predicted}: all {len(seeds)} models diverged; an archive of oracles needs some that did not."
        )
    weights = {name: torch.stack([found[seed][name] for seed in kept]) for name in found[kept[0]]}
    left_out = [seed for seed in seeds if seed not in kept]
    return Repeats(kept, left_out, weights, {probe: of[finite] for probe, of in logits.items()})
