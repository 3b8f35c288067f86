"""All audits on models of three kinds, wherever these were trained, with their p-values corrected together."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from fu import plugins
from fu.api import checks
from fu.api.given import choice, count, local_sgd, names, plugin
from fu.audits.models import Models, paired
from fu.claims.correction import adjusted
from fu.errors import UserError, nearest
from fu.evaluation import fresh_heads, predictions
from fu.federation.progress import hidden, is_hidden

if TYPE_CHECKING:
    from pandas import DataFrame

    from fu.api.federation import Federation
    from fu.api.model import Model

LEVEL = 0.05  # of all audits together
LEAST = 8  # models of each kind, with which audits can decide once their p-values are corrected (our choice)
PASSED = ("training", "clients_per_round", "with_replacement")  # arguments that go to `train`
COLUMNS = ("audit", "metric", "value", "found")


def assessed(models: Models) -> "tuple[DataFrame, list[str]]":
    """Return a row for each metric of each audit, whether the audit finds anything, and a sentence on each skipped one.

    `found`: whether its p-value, corrected for the number of audits (Holm), is below .05; missing for an audit that
    only describes.
    """
    import pandas as pd  # slow

    rows: list[tuple[str, str, float]] = []
    chances: dict[str, float] = {}
    skipped: list[str] = []
    for name in names("audits"):
        audit = plugins.load("audits", name)
        few = [f"{number} {kind}" for kind, number in models.repeats.items() if number < audit.LEAST]
        if few:
            skipped.append(
                f"{name}: skipped, as it needs {audit.LEAST} models of each kind, and there are {', '.join(few)}."
            )
            continue
        try:
            values = audit.audit(models)
        except KeyError as error:
            if error.args[0] in models.labels:
                raise
            skipped.append(f"{name}: skipped, as the archive lacks the probe {error}.")
            continue
        if not values:
            skipped.append(f"{name}: skipped, as the archive has none of its probes.")
        chances |= {name: values[audit.P]} if getattr(audit, "P", None) in values else {}
        rows += [(name, metric, value) for metric, value in values.items()]
    found = {name: p < LEVEL for name, p in zip(chances, adjusted([*chances.values()]), strict=True)}
    return pd.DataFrame([(*row, found.get(row[0])) for row in rows], columns=[*COLUMNS]), skipped


def audit(
    federation: "Federation",
    method: str,
    clients: Sequence[int] | int,
    rounds: int,
    repeats: int = 16,
    *,
    recovery_rounds: int = 0,
    unlearning_rounds: int | None = None,
    params: dict[str, Any] | None = None,
    lr: float | None = None,
    **training: Any,
) -> "DataFrame":
    """Return what every audit of `fu/audits` says of a method: audit, metric, value, found, control_found.

    Trains `repeats` federations for `rounds` with all clients, and as many, with other draws, without those that
    are to be forgotten; unlearns the former, and lets the latter continue training for as many rounds, and at the
    same rates, as unlearning and post-training take (a method that trains anew: as post-training alone, after as
    many rounds of retraining; one with noise, `noise_std`: as post-training alone, after as much noise), so that only
    the clients' data distinguish them. `found`: whether the p-value of the audit, corrected for the number of audits
    (Holm), is below .05; missing for an audit that only describes. `control_found`: the same of doing nothing: the
    original models, which continue training on the retained clients as the retrained ones do; where an audit misses
    them, finding nothing means nothing. Runs of the method that diverge are counted, and found. Audits that need more
    models or a backdoor are left out. `lr`: of unlearning (where a method does not continue its own training) and of
    what follows; `training`: `training`, `clients_per_round` and `with_replacement` of `train`. `UserError` for fewer
    than 8 repeats, which could decide nothing, and for a method with its own optimiser.
    """
    if (repeats := count(repeats, "repeats")) < LEAST:
        raise UserError(f"repeats: must be {LEAST} at least, as fewer models can decide nothing, got {repeats}.")
    if unknown := [name for name in training if name not in PASSED]:
        raise UserError(f"audit: there is no argument {unknown[0]!r}{nearest(unknown[0], PASSED)}.")
    asked = federation.present(clients)
    sampling = training.get("clients_per_round"), training.get("with_replacement", False)
    checks.drawn(len(federation.clients) - len(asked), *sampling)
    kinds: dict[str, list[dict[str, Any]]] = {"unlearned": [], "retrained": [], "original": []}
    module = plugin("methods", method)
    chosen = plugins.params("methods", choice(method, params), method)
    if hasattr(module, "OWN_OPTIMISER"):
        raise UserError(f"audit: {method} has its own optimiser, which no retraining has; a difference may be its own.")
    noise = getattr(chosen, "noise_std", 0)
    if recovery_rounds != 0:
        count(recovery_rounds, "recovery_rounds")
    if unlearning_rounds is not None:
        count(unlearning_rounds, "unlearning_rounds")
    short = hasattr(module, "FROM_SCRATCH")  # and may have fewer rounds than the training
    anew = short or hasattr(module, "RETRAINS") or hasattr(module, "CONTINUES")
    held = federation.data(asked)
    probes = predictions.audited(held)
    changes = {} if lr is None else {"lr": lr}
    sgd = local_sgd(federation.training.model_dump(), **changes)

    def keep(kind: str, model: "Model", rounds: int, first: int) -> None:
        if rounds and model.diverged is None:  # with the learning rates from round `first` on
            model = model.recover(rounds, lr=sgd.lr * sgd.lr_decay ** (first - model.rounds))
        said = {}
        if model.diverged is None:
            said = {name: federation.network.logits(model.theta, x) for name, (x, _) in probes.items()}
            said |= fresh_heads.logits(federation.network, model.theta, held, probes)
            said[predictions.WEIGHTS] = predictions.sketch(model.theta)
        kinds[kind].append({name: of.cpu().numpy() for name, of in said.items()})

    shown = tqdm(range(repeats), f"audit of {method}", unit="repeat", disable=is_hidden())
    with hidden():
        for number in shown:
            original = federation.train(rounds, record_for=[method], seed=federation.seed + number, **training)
            given = {} if hasattr(module, "CONTINUES") else changes
            unlearned = original.unlearn(method, asked, unlearning_rounds, params, **given)
            apart = replace(original, run=replace(original.run, seed=federation.seed + repeats + number))
            retrained = apart.unlearn("retrain", asked, unlearned.rounds if short else None, {"noise_std": noise})
            before = replace(original, clients=asked)
            if noise:  # of its own, as the retrained model has
                other = replace(original, run=replace(original.run, seed=federation.seed + 2 * repeats + number))
                before = other.unlearn("noise", asked, 1, {"std": noise})
            first = unlearned.rounds if anew or noise else 0
            further = recovery_rounds + unlearned.rounds - first
            keep("original", before, further, first)
            keep("unlearned", unlearned, recovery_rounds, unlearned.rounds)
            keep("retrained", retrained, further, first)
    labels = {name: y for name, (_, y) in probes.items()} | fresh_heads.labels(federation.network, probes)
    whole = [k for k, repeat in enumerate(zip(*kinds.values(), strict=True)) if all(repeat)]
    stacked = {
        kind: {
            name: np.stack([of[k][name] for k in whole]) for name in ([*labels, predictions.WEIGHTS] if whole else ())
        }
        for kind, of in kinds.items()
    }
    models = paired({name: y.cpu().numpy() for name, y in labels.items()}, **stacked)
    frame, control = (assessed(one)[0] for one in (models, replace(models, unlearned=models.original)))
    frame["control_found"] = (
        frame["audit"].map(control.drop_duplicates("audit").set_index("audit")["found"]).astype(object)
    )
    if lost := sum(not all(np.isfinite(of).all() for of in said.values()) or not said for said in kinds["unlearned"]):
        frame.loc[len(frame)] = "diverged", "diverged_runs", lost, True, None
    return frame
