"""Rough needs of a job, for a scheduler: never part of a result."""

import math

from fu.data.dataset import about
from fu.pipeline import catalogue
from fu.pipeline.settings.records import Settings

# Where a model's file has no ESTIMATE: milliseconds of a gradient step on 200 samples, number of parameters.
DEFAULT = {"step_ms": 1000.0, "parameters": 1_000_000}
BASE_MB = 500
SMALL_MB = 1500  # a data set, a partition, a picture


def of_model(name: str) -> dict[str, float]:
    """Return what a model's file says of itself."""
    return {**DEFAULT, **catalogue.declared("models", name).get("ESTIMATE", {})}


def mem_mb(settings: Settings) -> int:
    """Memory of one job in MB: the libraries, the data set as bytes and as float32, an epoch of one client, and of
    every client an update in float32 with copies in float64 (FedOSD's direction) or its recorded sum.
    """
    facts, clients = about(settings.data.dataset), settings.data.clients
    pixels = math.prod(facts.shape) * facts.samples
    updates = clients * of_model(settings.model.name)["parameters"] * (4 + 3 * 8)
    return BASE_MB + round((pixels * (2 + 4 + 2 * 4 / clients) + updates) / 1e6)


def hours(settings: Settings, phase: str) -> float:
    """Hours of one phase on one core, all clients taking part."""
    rounds = {
        "training": settings.training.rounds,
        "unlearning": settings.unlearning.rounds,
        "recovery": settings.total_rounds - settings.unlearning.rounds,
    }[phase]
    local = getattr(settings, phase)
    samples = (settings.data.samples or about(settings.data.dataset).samples) * settings.data.train_share
    steps = max(settings.data.clients, samples / local.batch_size)
    step_ms = of_model(settings.model.name)["step_ms"] * max(0.1, local.batch_size / 200)
    return rounds * local.local_epochs * steps * step_ms / 3.6e6


def minutes(settings: Settings, phase: str) -> int:
    """A run-time limit in minutes: three times the estimate (MoDe trains two models, counted conflicts cost a third
    round), and twenty more.
    """
    return 20 + math.ceil(180 * hours(settings, phase))
