"""All audits on models of three kinds, wherever these were trained, with their p-values corrected together."""

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING, Any

from fu import plugins
from fu.audits.models import Models
from fu.claims.correction import adjusted
from fu.errors import UserError, nearest

if TYPE_CHECKING:
    from pandas import DataFrame

LEVEL = 0.05  # of all audits together
COLUMNS = ("audit", "metric", "value", "found")
CALLED = {"methods": "method", "training": "training", "evaluation": "evaluator", "audits": "audit"}
FUNCTION = {"methods": "step", "training": "step", "evaluation": "evaluate", "audits": "audit"}


@cache
def names(kind: str) -> list[str]:
    """Return the names of a kind's plug-ins, those in users' own folders included."""
    folders = [*importlib.import_module(f"fu.{kind}").__path__, *(str(folder / kind) for folder in plugins.FOLDERS)]
    every = sorted({module.name for module in pkgutil.iter_modules(folders)})
    return [name for name in every if hasattr(plugins.load(kind, name), FUNCTION[kind])]


def plugin(kind: str, name: str) -> Any:
    """Return a plug-in; `UserError` where there is none of that name."""
    if not plugins.exists(kind, name) or not hasattr(found := plugins.load(kind, name), FUNCTION[kind]):
        raise UserError(f"there is no {CALLED[kind]} {name!r}{nearest(name.lower(), names(kind))}.")
    return found


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
