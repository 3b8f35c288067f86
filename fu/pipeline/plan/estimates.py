"""Rough estimates of what a job needs: seconds, memory, disk. For people and schedulers, never part of a result.

Where such a job has run before, its measured time counts. Else seconds are those of one core of a server CPU: a job
takes `JOB_S` and reads its data set; a training step takes `OPERATION_MS` for each operation of a forward pass
(counted, unless the model's file knows better: a fused kernel is one) and `PARAMETERS_MS` for a million parameters;
the rest of the time that the file states for a step on 200 samples (`ESTIMATE`; without it, `FLOPS`) is due to the
samples; a forward pass takes a third of that. Clients train as often per round as the method's file states, else once.
"""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fu.audits.models import smallest_p
from fu.data.dataset import about
from fu.errors import UserError
from fu.federation.sgd import AT_ONCE, TOGETHER
from fu.pipeline.plan.specs import Trial
from fu.pipeline.provenance import cached, catalogue, certificate
from fu.pipeline.provenance.paths import certificate_of
from fu.pipeline.settings.records import Settings

JOB_S = 0.25
LOAD_S = 4.0  # for a gigabyte of pixels
DRAWING_S = 1.2
DAY_S = 86_400.0
RELABELLED_S = 1.5e-5  # per model and relabelling: the measured mean over the five audits with a p-value
ATTACKS_S = 1.5  # to train the models of a hundred attacks on 2,000 samples
OPERATION_MS = 0.08
PARAMETERS_MS = 2.0  # for a million, which the optimiser reads and writes
FLOPS = 60e9  # per second, for models without a measured step time
UNKNOWN = cached.Size(1_000_000, 20_000_000, operations=20, outputs=1_000_000, largest=100_000)  # not measurable
ALL_CLIENTS = {"forgotten": 1.0, "retained": 1.0}  # how often they train in a round
BASE_MB = 500
GPU_MB = 600  # CUDA's context and libraries
SHOWN = 1000  # samples that a model is shown at a time (`Network.logits`)
SMALL_MB = 1500  # memory for a data set, a partition, a figure
SMALL_FILES_MB = 0.02  # on disk: certificate, log, numbers
DRAWN_MB = 0.4
PROBED = 2000  # samples for which an evaluation stores predictions: forgotten and test samples, a thousand each
AUDITED = 11_000  # samples for which audits need predictions: a thousand of each probe, four thousand for fresh heads


def size(settings: Settings) -> cached.Size:
    """Return the size of the model in these settings."""
    facts, model = about(settings.data.dataset), settings.model
    return cached.size(model.name, model.params, facts.shape, facts.classes) or UNKNOWN


def speed(settings: Settings) -> tuple[float, float]:
    """Return the milliseconds of a training step, and of each sample in it."""
    facts, name, here = about(settings.data.dataset), settings.model.name, size(settings)
    declared = catalogue.declared("models", name).get("ESTIMATE", {})
    usual = cached.size(name, {}, facts.shape, facts.classes)
    optimiser = PARAMETERS_MS * here.parameters / 1e6
    if "step_ms" not in declared or usual is None:
        return OPERATION_MS * here.operations + optimiser, 3000 * here.flops / FLOPS
    whole, each = declared["step_ms"], OPERATION_MS * declared.get("operations", usual.operations)
    samples = max(whole - each - PARAMETERS_MS * usual.parameters / 1e6, 0.1 * whole)
    return each * here.operations / usual.operations + optimiser, samples / 200 * here.flops / usual.flops


def measured(cost: Path, spec: Mapping[str, Any]) -> float | None:
    """Return the seconds that a job of this spec has taken, with this or another seed; None where none has run.

    `cost`: the file in which such a job notes what it took, in the folder of a seed.
    """
    for path in [cost, *sorted(cost.parent.parent.glob(f"seed*/{cost.name}"))]:
        with suppress(OSError, ValueError, LookupError, TypeError, UserError):
            made = certificate.read(certificate_of(path))
            if made and {**made.spec, "seed": 0} == {**spec, "seed": 0}:
                return JOB_S + float(json.loads(path.read_text())["seconds"])
    return None


def training_seconds(
    settings: Settings, phase: str, trained: Mapping[str, float] = ALL_CLIENTS, rounds: int | None = None
) -> float:
    """Return the seconds of one phase; `trained`: how often forgotten and retained clients train in a round."""
    data, local, rounds = settings.data, getattr(settings, phase), rounds or _rounds(settings, phase)
    present = local.clients_per_round or data.clients - data.absent
    gone = 0 if local.clients_per_round else min(data.forget.gone if data.forget else 0, present - 1)
    conflicts = phase == "unlearning" and bool(settings.unlearning and settings.unlearning.conflicts)
    clients = trained["forgotten"] * gone + (trained["retained"] + conflicts) * (present - gone)
    of_client = _kept(settings) * (1 - data.validation_share) / data.clients
    each = local.local_steps or (local.local_epochs or 1) * math.ceil(of_client / local.batch_size)
    share = _share(settings)
    steps = rounds * (share * clients * each + (1 - share))
    forward = (rounds // local.evaluate_every + local.evaluate_last) * _tested(settings)
    return _seconds(settings, forward, steps, local.batch_size)


def shadows_seconds(settings: Settings) -> float:
    """Return the seconds of the shadow models, each of which trains on half of the retained clients' data."""
    return settings.shadows.number * training_seconds(settings, "training", {"forgotten": 0.0, "retained": 0.5})


def relearning_seconds(settings: Settings, models: int) -> float:
    """Return the seconds of training so many models on: once by retained clients, once by forgotten ones."""
    phase = "recovery" if settings.recovery else "unlearning"
    return models * training_seconds(settings, phase, rounds=settings.relearning.rounds)


def evaluation_seconds(settings: Settings, models: int) -> float:
    """Return the seconds that evaluating models takes: on all that nobody trains on, on the forgotten clients', and on
    the probes of their predictions; tests count twice where they are given a trigger, too.
    """
    held_out, times = _kept(settings) * settings.data.validation_share, 2 if settings.data.attack else 1
    return _seconds(settings, models * (times * _tested(settings) + held_out + _forgotten(settings) + PROBED))


def prediction_seconds(settings: Settings, models: int) -> float:
    """Return the seconds that predictions on an audit's probes take."""
    return _seconds(settings, models * AUDITED)


def assessment_seconds(firsts: Sequence[int]) -> float:
    """Return the seconds that an audit takes which relabels the models: that of so many first repeats, one by one."""
    return JOB_S + sum(RELABELLED_S * number / smallest_p(number) for number in firsts)


def _seconds(settings: Settings, forward: float, steps: float = 0, batch_size: int = 0) -> float:
    """Return the seconds of a job that takes so many training steps and passes so many samples forward."""
    step, sample = speed(settings)
    start = JOB_S + LOAD_S * archive_mb(settings.data.dataset) / 1000
    return start + (steps * (step + sample * batch_size) + forward * sample / 3) / 1000


def _rounds(settings: Settings, phase: str) -> int:
    after = settings.unlearning.rounds if settings.unlearning else 0
    rounds: int = getattr(settings, phase).rounds if phase != "recovery" else (settings.total_rounds or 0) - after
    return rounds


def _share(settings: Settings) -> float:
    """Return the share of rounds in which clients train, as the training's file says."""
    method = settings.training.method
    share = catalogue.declared("training", method.name).get("ESTIMATE", {}).get("share", 1.0)
    return float(method.params.get(share, 0.5)) if isinstance(share, str) else float(share)


def trained(trial: Trial) -> dict[str, float]:
    """Return how often forgotten and retained clients train in a round of unlearning."""
    return ALL_CLIENTS | trial.declared.get("ESTIMATE", {})


def recording(settings: Settings) -> dict[str, float]:
    """Return how often clients train in a round of training: once, and for each history that says so (`TRAINS`).

    Without an attack nobody knows who will be forgotten, and all clients do.
    """
    more = sum(bool(catalogue.declared("histories", kind).get("TRAINS")) for kind in settings.training.history)
    return {"forgotten": 1 + more, "retained": 1 + more * (settings.data.attack is None)}


def models_kept(settings: Settings) -> int:
    """Return how many models a training keeps at the start of its rounds, as its file says."""
    method, rounds = settings.training.method, settings.training.rounds
    name = catalogue.declared("training", method.name).get("KEEPS")
    if name is None:
        return 0
    every = method.params.get(name, 1)
    return math.ceil(rounds / every) if every else 1


def minutes(seconds: float) -> int:
    """Return a run-time limit: four times the estimate (twice for its error, twice for a slower machine), of a long job
    a day more, as a job that is cut off goes on where it was; and 20 min.
    """
    return 20 + math.ceil(min(4 * seconds, seconds + DAY_S) / 60)


def mem_mb(settings: Settings, method: str | None = None) -> int:
    """Return the memory of one job in MB: the libraries, the data set as bytes (twice, as two arrays become one) and
    (not text) as float32, an epoch of one client, of streamed images only the bytes and what models are tested on, and
    of every client whose update is held one in float32 with copies in float64 (FedOSD's direction) or its recorded sum.
    """
    facts, clients = about(settings.data.dataset), settings.data.clients
    pixels = math.prod(facts.shape) * facts.samples
    epoch = 1 + 8 if facts.text else 0 if facts.streamed else 2 * 4  # bytes
    updates = _held(settings, method) * size(settings).parameters * (4 + 3 * 8)
    in_bytes = pixels * (1 if facts.streamed else 2)
    return BASE_MB + round((in_bytes + _on_device(settings) + pixels * epoch / clients + updates) / 1e6)


def _held(settings: Settings, method: str | None) -> int:
    """Return of how many clients a job holds updates at once: of all in a round, or of few where their mean is enough.

    Whether it is, the files of the training and the method say (`ESTIMATE`); histories and conflicts need all. Without
    a method, of the training alone.
    """
    first, unlearning, recovery = settings.training, settings.unlearning, settings.recovery
    mean = catalogue.declared("training", first.method.name).get("ESTIMATE", {}).get("mean") and not first.history
    held = [_drawn(settings, first, mean)]
    if method and unlearning:
        mean = catalogue.declared("methods", method).get("ESTIMATE", {}).get("mean") and not unlearning.conflicts
        held.append(_drawn(settings, unlearning, mean))
    if method and recovery:
        held.append(_drawn(settings, recovery, recovery.projection is None))
    return max(held)


def _drawn(settings: Settings, phase: Any, mean: Any) -> int:
    """Return how many clients train in a round; of those of whom the mean is enough, how many at a time."""
    drawn: int = phase.clients_per_round or settings.data.clients - settings.data.absent
    return min(drawn, TOGETHER) if mean else drawn


def gpu_mem_mb(settings: Settings, method: str | None = None) -> int:
    """Return the memory of a GPU that one job takes, in MB: CUDA itself, the data set, updates as in `mem_mb`, and the
    larger of what a training step keeps (with its gradient, of all clients that take part where they train at once) and
    of three of a model's largest layers on the samples that it is shown at a time.
    """
    facts, here = about(settings.data.dataset), size(settings)
    phases = [one for one in (settings.training, settings.unlearning, settings.recovery) if one]
    held = _held(settings, method)
    pixels = math.prod(facts.shape) * facts.samples if facts.text else _on_device(settings)
    updates = held * here.parameters * (4 + 3 * 8)
    at_once = held if here.parameters < AT_ONCE else 1
    step = at_once * (2 * here.parameters + 2 * here.outputs * max(phase.batch_size or 0 for phase in phases)) * 4
    return GPU_MB + round((pixels + updates + max(step, 3 * here.largest * SHOWN * 4)) / 1e6)


def _on_device(settings: Settings) -> float:
    """Return the bytes of images that a job holds as float32: all, of streamed ones those for testing, of text none."""
    facts = about(settings.data.dataset)
    samples = 0 if facts.text else _tested(settings) if facts.streamed else facts.samples
    return 4 * math.prod(facts.shape) * samples


def models_mb(settings: Settings, models: int = 1) -> float:
    """Return the MB that a job's models take on disk."""
    return SMALL_FILES_MB + models * size(settings).parameters * 4 / 1e6


def shadows_mb(settings: Settings) -> float:
    """Return the MB that the outputs of the shadow models take on disk: on a pool, on members and on non-members."""
    return _outputs_mb(settings, settings.shadows.number * 3 * (settings.shadows.most or _samples(settings)))


def predictions_mb(settings: Settings, models: int, samples: int = PROBED) -> float:
    """Return the MB that an evaluation takes on disk, with the predictions of its models on so many samples."""
    return _outputs_mb(settings, models * samples)


def _outputs_mb(settings: Settings, samples: int) -> float:
    return SMALL_FILES_MB + samples * about(settings.data.dataset).classes * 4 / 1e6


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


def working(seconds: float) -> str:
    """Return what cores compute in words: "12 core minutes", "3.2 core hours"."""
    return (
        f"{seconds / 3600:.1f} core hours" if seconds >= 3600 else counted(max(1, round(seconds / 60)), "core minute")
    )


def counted(number: int, what: str, several: str = "") -> str:
    """Return "1 job", "2 jobs"; `several`: the plural where it is not `what` with an s."""
    return f"{number} {what if number == 1 else several or f'{what}s'}"


def _samples(settings: Settings) -> int:
    return settings.data.samples or settings.data.pool


def _kept(settings: Settings) -> float:
    """Return how many samples clients have to train and to validate."""
    data = settings.data
    return _samples(settings) * (data.train_share or 1) - data.server - data.held_out


def _tested(settings: Settings) -> float:
    """Return on how many samples a model is measured after a round."""
    data, facts = settings.data, about(settings.data.dataset)
    if data.train_share is not None:
        return _samples(settings) * (1 - data.train_share)
    return data.held_out + (facts.samples - data.pool) * _samples(settings) / data.pool


def _forgotten(settings: Settings) -> float:
    """Return how many training samples the forgotten clients have."""
    data = settings.data
    return (data.forget.gone if data.forget else 0) / data.clients * _kept(settings) * (1 - data.validation_share)
