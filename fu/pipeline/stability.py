"""What FATS needs of the plan: K and b from rho_C and rho_S, and which methods a request can be put to."""

from collections.abc import Mapping
from typing import Any

from fu.data.dataset import about
from fu.errors import UserError
from fu.pipeline import catalogue
from fu.pipeline.settings.records import INHERITED, Method, Settings

MEASURED = ("evaluate_every", "evaluate_last", "traced")  # of what a phase inherits, what does not change its draws


def given(values: dict[str, Any], where: str) -> dict[str, Any]:
    """Return settings in which K and b stand where rho_C = K R / M and rho_S = b K T / (M N) were given.

    M clients have N training samples each, T = R E (Tao et al. 2024, section 4.1). `UserError` where a result is not
    whole, or both are given.
    """
    training, data = values.get("training"), values.get("data")
    if not isinstance(training, dict) or not isinstance(data, dict):
        return values  # validation reports it
    number = {
        key: training[key] for key in ("rho_c", "rho_s") if isinstance(training.get(key), int | float) and training[key]
    }
    if not number:
        return values
    clients, rounds, steps = data.get("clients"), training.get("rounds"), training.get("local_steps")
    if (
        not (isinstance(clients, int) and isinstance(rounds, int) and isinstance(steps, int))
        or not clients * rounds * steps
    ):
        raise UserError(f"{where}: training.rho_c, rho_s: need data.clients, training.rounds and training.local_steps.")
    new = {**training, "rho_c": None, "rho_s": None}
    if "rho_c" in number:
        new["clients_per_round"] = _whole(number["rho_c"], clients / rounds, training, "clients_per_round", where)
    if "rho_s" in number:
        drawn = new.get("clients_per_round")
        if not isinstance(drawn, int):
            raise UserError(f"{where}: training.rho_s: needs training.clients_per_round or rho_c.")
        samples = _samples(data)
        new["batch_size"] = _whole(number["rho_s"], samples / (drawn * rounds * steps), training, "batch_size", where)
    return {**values, "training": new}


def _whole(rho: float, factor: float, training: Mapping[str, Any], key: str, where: str) -> int:
    """Return rho times a factor, which must be a whole number."""
    what = {"clients_per_round": "rho_c", "batch_size": "rho_s"}[key]
    if training.get(key) is not None:
        raise UserError(f"{where}: training.{what}: {key} follows from it, but is {training[key]}; set one to null.")
    found = rho * factor
    if round(found) < 1 or abs(found - round(found)) > 1e-6 * found:
        near = max(1, round(found))
        raise UserError(
            f"{where}: training.{what}: {rho:g} means {key} = {found:g}, which must be a whole number; "
            f"{near} is {near / factor:g}."
        )
    return round(found)


def _samples(data: Mapping[str, Any]) -> int:
    """Return how many training samples all clients have together."""
    facts = about(str(data.get("dataset")))
    pool = facts.training if data.get("split") == "official" else facts.samples
    used = [data.get(name) or 0 for name in ("server", "held_out")]
    return int((data.get("samples") or pool or 0) - sum(used))


def check_request(settings: Settings, entry: Method, where: str) -> None:
    """Raise `UserError` where a method cannot meet the request, or goes on with a training that has other settings."""
    asked, phase, training = settings.data.forget, settings.unlearning, settings.training
    if entry.plugin is None or asked is None or phase is None:
        return
    about = catalogue.declared("methods", entry.plugin)
    if asked.samples and not about.get("SAMPLES"):
        able = [name for name in catalogue.available("methods") if catalogue.declared("methods", name).get("SAMPLES")]
        raise UserError(
            f"{where}: data.forget.samples: {entry.plugin} forgets whole clients alone; allowed: {', '.join(able)}."
        )
    if not about.get("CONTINUES"):
        return
    if "KEEPS" not in catalogue.declared("training", training.method.name):
        raise UserError(f"{where}: {entry.plugin} goes on with a training that keeps models; set trained_by: fats.")
    other = [key for key in INHERITED if key not in MEASURED and getattr(phase, key) != getattr(training, key)]
    if other:
        raise UserError(
            f"{where}: unlearning.{other[0]}: {entry.plugin} goes on with its training; "
            f"allowed: {getattr(training, other[0])}, as in training."
        )
    if phase.rounds != training.rounds * asked.requests:
        raise UserError(
            f"{where}: unlearning.rounds: {entry.plugin} goes on with its training; "
            f"allowed: {training.rounds * asked.requests}, the rounds of training for every request."
        )
