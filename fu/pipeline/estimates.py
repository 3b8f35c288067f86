"""Rough estimates of what a job needs: seconds, memory, disk. For people and schedulers, never part of a result.

The cost model, for one core. A job takes `JOB_S` to start, load its data and write its outputs. A training step on b
samples takes `OPERATION_MS` per operation of a forward pass, whatever b is (most of the time of a small model), plus
arithmetic proportional to b and to the FLOPs: as measured at 200 samples with default hyper-parameters (`ESTIMATE` in
the model's file), else at `FLOPS`. Clients train as often per round as the method's file says (`ESTIMATE`), else once;
counting conflicts trains the retained clients once more. A measurement is forward passes only, a third of a step's
arithmetic.
"""

import math
from collections.abc import Mapping

from fu.data.dataset import about
from fu.pipeline import catalogue
from fu.pipeline.settings.records import Settings
from fu.pipeline.specs import Trial

JOB_S = 0.25
DRAWING_S = 1.2
ATTACKS_S = 1.5  # to train the models of a hundred attacks on 2,000 samples
OPERATION_MS = 0.08
FLOPS = 60e9  # per second, for models without a measured step time
UNKNOWN = catalogue.Size(parameters=1_000_000, flops=20_000_000, operations=20)  # of a model that cannot be measured
ALL_CLIENTS = {"forgotten": 1.0, "retained": 1.0}  # how often they train in a round
BASE_MB = 500
SMALL_MB = 1500  # memory for a data set, a partition, a figure
SMALL_FILES_MB = 0.02  # on disk: certificate, log, numbers
DRAWN_MB = 0.4


def size(settings: Settings) -> catalogue.Size:
    """Return the size of the model in these settings."""
    facts, model = about(settings.data.dataset), settings.model
    return catalogue.size(model.name, model.params, facts.shape, facts.classes) or UNKNOWN


def arithmetic_ms(settings: Settings) -> float:
    """Return the milliseconds of arithmetic in a training step on 200 samples."""
    facts, here = about(settings.data.dataset), size(settings)
    measured = catalogue.declared("models", settings.model.name).get("ESTIMATE", {}).get("step_ms")
    usual = catalogue.size(settings.model.name, {}, facts.shape, facts.classes)
    if measured is None or usual is None:
        return 1000 * 3 * 200 * here.flops / FLOPS
    return max(measured - OPERATION_MS * usual.operations, 0.1 * measured) * here.flops / usual.flops


def training_seconds(settings: Settings, phase: str, trained: Mapping[str, float] = ALL_CLIENTS) -> float:
    """Return the seconds of one phase; `trained`: how often forgotten and retained clients train in a round."""
    data, local = settings.data, getattr(settings, phase)
    after = settings.unlearning.rounds if settings.unlearning else 0
    rounds = local.rounds if phase != "recovery" else (settings.total_rounds or 0) - after
    there = local.clients_per_round or data.clients - data.absent
    gone = 0 if local.clients_per_round else min(data.forget.gone if data.forget else 0, there - 1)
    conflicts = phase == "unlearning" and bool(settings.unlearning and settings.unlearning.conflicts)
    clients = trained["forgotten"] * gone + (trained["retained"] + conflicts) * (there - gone)
    kept = _samples(settings) * (data.train_share or 1) - data.server - data.held_out
    of_client = kept * (1 - data.validation_share) / data.clients
    step_ms = OPERATION_MS * size(settings).operations + arithmetic_ms(settings) * local.batch_size / 200
    each = local.local_steps or (local.local_epochs or 1) * math.ceil(of_client / local.batch_size)
    share = _share(settings)
    steps = rounds * (share * clients * each + (1 - share))
    measured = rounds // local.evaluate_every + local.evaluate_last
    return JOB_S + steps * step_ms / 1000 + _forward_seconds(settings, measured * _tested(settings))


def _share(settings: Settings) -> float:
    """Return the share of rounds in which clients train, as the training's file says."""
    method = settings.training.method
    share = catalogue.declared("training", method.name).get("ESTIMATE", {}).get("share", 1.0)
    return float(method.params.get(share, 0.5)) if isinstance(share, str) else float(share)


def trained(trial: Trial) -> dict[str, float]:
    """Return how often forgotten and retained clients train in a round of unlearning."""
    assert trial.method is not None
    return ALL_CLIENTS | catalogue.declared("methods", str(trial.method.plugin)).get("ESTIMATE", {})


def models_kept(settings: Settings) -> int:
    """Return how many models a training keeps at the start of its rounds, as its file says."""
    method, rounds = settings.training.method, settings.training.rounds
    name = catalogue.declared("training", method.name).get("KEEPS")
    if name is None:
        return 0
    every = method.params.get(name, 1)
    return math.ceil(rounds / every) if every else 1


def evaluation_seconds(settings: Settings, models: int) -> float:
    """Return the seconds that evaluating models on all samples takes."""
    return JOB_S + _forward_seconds(settings, models * _samples(settings))


def minutes(seconds: float) -> int:
    """Return a run-time limit: four times the estimate (twice for its error, twice for a slower machine) + 20 min."""
    return 20 + math.ceil(4 * seconds / 60)


def mem_mb(settings: Settings) -> int:
    """Return the memory of one job in MB: the libraries, the data set as bytes and (not text) as float32, an epoch
    of one client, and of every client that takes part an update in float32 with copies in float64 (FedOSD's direction)
    or its recorded sum.
    """
    facts, clients = about(settings.data.dataset), settings.data.clients
    phases = [getattr(settings, name) for name in ("training", "unlearning", "recovery")]
    drawn = max(phase.clients_per_round or clients - settings.data.absent for phase in phases if phase)
    pixels = math.prod(facts.shape) * facts.samples
    held, epoch = (0, 1 + 8) if facts.text else (4, 2 * 4)  # bytes
    updates = drawn * size(settings).parameters * (4 + 3 * 8)
    return BASE_MB + round((pixels * (2 + held + epoch / clients) + updates) / 1e6)


def models_mb(settings: Settings, models: int = 1) -> float:
    """Return the MB that a job's models take on disk."""
    return SMALL_FILES_MB + models * size(settings).parameters * 4 / 1e6


def shadows_mb(settings: Settings) -> float:
    """Return the MB that the outputs of the shadow models take on disk: on a pool, on members and on non-members."""
    rows = settings.shadows.most or _samples(settings)
    return SMALL_FILES_MB + settings.shadows.number * 3 * rows * about(settings.data.dataset).classes * 4 / 1e6


def archive_mb(dataset: str) -> float:
    """Return the MB that a data set takes on disk."""
    return math.prod(about(dataset).shape) * about(dataset).samples / 1e6


def lasting(seconds: float) -> str:
    """Return a duration in words: "40 s", "12 min", "3 h 20 min", "2 d 4 h"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def counted(number: int, what: str) -> str:
    """Return "1 job", "2 jobs"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _samples(settings: Settings) -> int:
    return settings.data.samples or settings.data.pool


def _tested(settings: Settings) -> float:
    """Return on how many samples a model is measured after a round."""
    data, facts = settings.data, about(settings.data.dataset)
    if data.train_share is not None:
        return _samples(settings) * (1 - data.train_share)
    return data.held_out + (facts.samples - data.pool) * _samples(settings) / data.pool


def _forward_seconds(settings: Settings, samples: float) -> float:
    return samples / 200 * arithmetic_ms(settings) / 3 / 1000
