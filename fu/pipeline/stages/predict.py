"""Store the predictions of a trial's models, one per seed, on fixed probes; audits compare them without training."""

from dataclasses import dataclass
from pathlib import Path

from fu.pipeline.stages.common import ModelFiles, NetworkSpec, Options, atomic_outputs, run


class Spec(NetworkSpec):
    """The data and the architecture."""

    stage = "predict"


@dataclass(frozen=True)
class Files(ModelFiles):
    """`models`: the last ones of the trial, one of each seed."""

    models: list[Path]
    predictions: Path


def main(spec: Spec, files: Files, options: Options) -> None:
    """Write the probes' labels [n], the forgotten one's rows [n] in the data set, and all logits [N, n, C].

    Also the outputs of fresh heads on the hidden layer, and a sketch of the weights. All are NaN of a model that has
    diverged.
    """
    import torch

    from fu.evaluation import fresh_heads, predictions
    from fu.federation import model_files
    from fu.federation.network import Network
    from fu.pipeline.stages.compute import builder_of, data_of

    data = data_of(spec, files, options, "share")
    network = Network(builder_of(spec, data)(), data.device)
    probes = predictions.audited(data)
    loaded = (model_files.load(path, network.layout)[0] for path in files.models)

    def answer(theta: torch.Tensor) -> dict[str, torch.Tensor]:
        said = {name: network.logits(theta, x) for name, (x, _) in probes.items()}
        return (
            said | fresh_heads.logits(network, theta, data, probes) | {predictions.WEIGHTS: predictions.sketch(theta)}
        )

    answers = [None if theta is None else answer(theta.to(data.device)) for theta in loaded]
    like = next(filter(None, answers), {})
    lost = {name: torch.full_like(logits, torch.nan) for name, logits in like.items()}
    logits = {name: torch.stack([(one or lost)[name] for one in answers]) for name in like}
    rows = torch.from_numpy(predictions.audited_rows(data))
    labels = {name: y for name, (_, y) in probes.items()} | fresh_heads.labels(network, probes)
    with atomic_outputs(options, files.predictions) as (part,):
        predictions.save(part, labels, {predictions.ROWS: {"forgotten": rows}, predictions.REPEATS: logits})


if __name__ == "__main__":
    run(Spec, Files, main)
