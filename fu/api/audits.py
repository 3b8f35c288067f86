"""All audits on models of three kinds, wherever these were trained, with their p-values corrected together."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from fu import plugins
from fu.api.given import count, names, plugin
from fu.audits.models import Models, finite
from fu.claims.correction import adjusted
from fu.errors import UserError
from fu.evaluation import fresh_heads, predictions
from fu.federation.progress import hidden

if TYPE_CHECKING:
    from pandas import DataFrame

    from fu.api.federation import Federation
    from fu.api.model import Model

LEVEL = 0.05  # of all audits together
LEAST = 8  # models of each kind, with which audits can decide once their p-values are corrected (our choice)
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
    are to be forgotten; unlearns the former, and lets the latter continue training for as many rounds as unlearning
    and post-training take (a method that trains anew: as post-training alone), so that only the clients' data
    distinguish them. `found`: whether the p-value of the audit, corrected for the number of audits (Holm), is below
    .05; missing for an audit that only describes. `control_found`: the same of doing nothing, the original models:
    an audit that misses them says nothing where it finds nothing. Runs of the method that diverge are counted, and
    found. Audits that need more models or a backdoor are left out. `lr`: of unlearning and post-training;
    `training`: arguments of `train`. `UserError` for fewer than 8 repeats, which could decide nothing.
    """
    if count(repeats, "repeats") < LEAST:
        raise UserError(f"repeats: must be {LEAST} at least, as fewer models can decide nothing, got {repeats}.")
    asked = federation.present(clients)
    kinds: dict[str, list[dict[str, Any]]] = {"unlearned": [], "retrained": [], "original": []}
    module = plugin("methods", method)
    anew = hasattr(module, "RETRAINS") or hasattr(module, "CONTINUES")
    held = federation.data(asked)
    probes = predictions.audited(held)
    again = {"lr": lr} if lr else {}

    def keep(kind: str, model: "Model") -> None:
        if model.diverged is None:
            said = {name: federation.network.logits(model.theta, x) for name, (x, _) in probes.items()}
            said |= fresh_heads.logits(federation.network, model.theta, held, probes)
            kinds[kind].append({name: of.cpu().numpy() for name, of in said.items()})

    with hidden():
        for number in tqdm(range(repeats), f"audit of {method}", unit="repeat"):
            original = federation.train(rounds, record_for=[method], seed=federation.seed + number, **training)
            unlearned = original.unlearn(method, asked, unlearning_rounds, params, **again)
            apart = replace(original, run=replace(original.run, seed=federation.seed + repeats + number))
            retrained = apart.unlearn("retrain", asked)
            further = recovery_rounds + (0 if anew else unlearned.rounds)
            keep("original", original)
            ends = unlearned.diverged or not recovery_rounds
            keep("unlearned", unlearned if ends else unlearned.recover(recovery_rounds, **again))
            keep("retrained", retrained.recover(further, **again) if further else retrained)
    labels = {name: y for name, (_, y) in probes.items()} | fresh_heads.labels(federation.network, probes)
    stacked = {
        kind: finite({name: np.stack([one[name] for one in of]) for name in (of[0] if of else ())})
        for kind, of in kinds.items()
    }
    models = Models({name: y.cpu().numpy() for name, y in labels.items()}, **stacked)
    frame, control = (assessed(one)[0] for one in (models, replace(models, unlearned=models.original)))
    frame["control_found"] = (
        frame["audit"].map(control.drop_duplicates("audit").set_index("audit")["found"]).astype(object)
    )
    if lost := repeats - len(next(iter(stacked["unlearned"].values()), ())):
        frame.loc[len(frame)] = "diverged", "diverged_runs", lost, True, None
    return frame
