"""Rough needs of a job, for a scheduler: never part of a result."""

import math

from fu.plan.config import Settings
from fu.plan.datasets import DATASETS

# Milliseconds of one gradient step on 200 samples, measured on one core of a server CPU (docs/measurements.md).
STEP_MS = {"lenet5": 14.0, "mlp": 4.0, "cnn": 170.0, "nfresnet18": 9000.0}
DEFAULT_STEP_MS = 1000.0
PARAMETERS = {"lenet5": 61_706, "mlp": 478_410, "cnn": 797_962, "nfresnet18": 11_215_332}
DEFAULT_PARAMETERS = 1_000_000
BASE_MB = 500


def mem_mb(dataset: str, clients: int, model: str) -> int:
    """Memory of one job in MB: the libraries, the data set as bytes and as float32, an epoch of one client, and of
    every client an update in float32 with copies in float64 (FedOSD's direction) or its recorded sum.
    """
    about = DATASETS[dataset]
    pixels = math.prod(about.shape) * about.samples
    updates = clients * PARAMETERS.get(model, DEFAULT_PARAMETERS) * (4 + 3 * 8)
    return BASE_MB + round((pixels * (2 + 4 + 2 * 4 / clients) + updates) / 1e6)


def hours(settings: Settings, phase: str) -> float:
    """Hours of one phase on one core, all clients taking part."""
    rounds = {
        "training": settings.training.rounds,
        "unlearning": settings.unlearning.rounds,
        "recovery": settings.total_rounds - settings.unlearning.rounds,
    }[phase]
    local = getattr(settings, phase)
    samples = (settings.data.samples or DATASETS[settings.data.dataset].samples) * settings.data.train_share
    steps = max(settings.data.clients, samples / local.batch_size)
    step_ms = STEP_MS.get(settings.model.name, DEFAULT_STEP_MS) * max(0.1, local.batch_size / 200)
    return rounds * local.local_epochs * steps * step_ms / 3.6e6


def minutes(settings: Settings, phase: str) -> int:
    """A run-time limit in minutes: three times the estimate (MoDe trains two models, counted conflicts cost a third
    round), and twenty more.
    """
    return 20 + math.ceil(180 * hours(settings, phase))
