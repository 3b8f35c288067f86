"""A model of a run as a module of torch, with its weights."""

from pathlib import Path

import torch
from torch import nn

from fu import plugins
from fu.data.dataset import about
from fu.errors import UserError
from fu.federation import model_files
from fu.federation.flat import Layout
from fu.pipeline.provenance import digest
from fu.pipeline.provenance.certificate import Certificate
from fu.plugins import Choice


def load(path: Path, made: Certificate) -> nn.Module:
    """Return the model of a file; `UserError` where it diverged or its architecture is no longer that of the job."""
    choice, facts = Choice.model_validate(made.spec["model"]), about(made.spec["dataset"])
    parts = digest.parts(f"fu.models.{choice.name}")
    edited = [name for name in parts if name.startswith("fu.models.") and parts[name] != made.parts.get(name)]
    if edited:
        raise UserError(f"{path}: {edited[0]} was edited after this model was made; start the run again.")
    params = plugins.params("models", choice, f"{path}: model")
    with torch.random.fork_rng(devices=[]):
        model: nn.Module = plugins.load("models", choice.name).build(facts.shape, facts.classes, params)
    layout = Layout(model)
    theta, diverged = model_files.load(path, layout)
    if theta is None:
        raise UserError(f"{path}: the run diverged in round {diverged}, so this model has no weights.")
    model.load_state_dict(layout.named(theta), strict=False)  # buffers that only count batches are in no file
    return model.eval()
