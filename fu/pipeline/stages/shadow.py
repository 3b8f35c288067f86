"""Train shadow models on halves of the retained clients' data, for membership inference (Shokri et al. 2017)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fu.pipeline.stages.common import ModelFiles, ModelSpec, Options, RoundsSpec, atomic_outputs, run
from fu.plugins import Choice, Kind


class Spec(ModelSpec, RoundsSpec):
    """How many shadows are trained, each as the model under attack; `most`: how many rows a set has at most.

    `server`: how many of the server's samples a training uses (None: it uses none).
    """

    stage = "shadow"
    number: int
    most: int | None
    training: Annotated[Choice, Kind("training")]
    server: int | None


@dataclass(frozen=True)
class Files(ModelFiles):
    """From data, partition and request to what the shadows say."""

    shadows: Path


def main(spec: Spec, files: Files, options: Options) -> None:
    """Train one shadow after another, and write what each says on the pool, on members and on non-members."""
    from dataclasses import replace

    import numpy as np

    from fu.data import archives, membership
    from fu.federation import plugged
    from fu.pipeline.stages import compute
    from fu.seeds import derive_integer

    data = compute.data_of(spec, files, options, "share")
    labels, asked = data.y.cpu().numpy(), (data.forgotten, data.forgotten_samples)
    owners = archives.owners(files.data, spec.dataset)
    sets = membership.draw(data.partition, labels, *asked, spec.seed, spec.most, owners)
    training = plugged.training_of(spec.training)
    attacked = compute.training_on(spec, data, data.partition, spec.seed)
    trained_on = training.trained_on(attacked) if training.trained_on else None
    inside, logits, checkpoints = [], [], []
    for number in range(spec.number):
        part = membership.half(data.partition, *asked, spec.seed, number)
        seed = derive_integer(spec.seed, "shadow", number, *data.forgotten, *data.forgotten_samples.tolist())
        task = replace(compute.training_on(spec, data, part, seed), server=spec.server)
        beside = files.shadows.with_name(f"{files.shadows.stem}{number}.npz")
        checkpoint = compute.checkpoint_of(task, spec, files, options, beside)
        checkpoints.append(checkpoint)
        label = f"{files.shadows}, shadow {number + 1} of {spec.number}"
        outcome = plugged.train(task, training, lambda theta: {}, checkpoint, label)
        if outcome.diverged is None:
            notes = {"seconds": 0.0, "done": spec.rounds, "rows": [], "cost": task.federation.cost.record()}
            checkpoint.save(outcome.state, notes)  # a resumed job trains none again
            inside.append(np.isin(sets.pool, np.concatenate(part.train)))
            theta, logits_of = outcome.state.theta, task.federation.logits
            shown = (sets.pool, sets.members, sets.non_members)
            logits.append([logits_of(theta, data.clean(rows)[0]).cpu().numpy() for rows in shown])
    with atomic_outputs(options, files.shadows) as (path,):
        drawn = sets, labels, inside, logits, data.classes, spec.seed, spec.number, trained_on
        membership.save(path, membership.shadows(*drawn))
    for checkpoint in checkpoints:
        checkpoint.clear()


if __name__ == "__main__":
    run(Spec, Files, main)
