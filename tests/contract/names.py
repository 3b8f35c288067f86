"""Which plug-ins the contracts are tested on: all, or only those of the folder that FU_PLUGINS names."""

import os
from pathlib import Path

from fu.pipeline import catalogue

FOLDER = Path(os.environ["FU_PLUGINS"]).expanduser().resolve() if os.environ.get("FU_PLUGINS") else None


def plugins_of(kind: str) -> list[str]:
    """Return the names of the plug-ins of a kind that are tested."""
    names = catalogue.available(kind)
    return names if FOLDER is None else [name for name in names if (FOLDER / kind / f"{name}.py").is_file()]


def pairs_of(*kinds: str) -> list[tuple[str, str]]:
    """Return (kind, name) of the plug-ins of several kinds."""
    return [(kind, name) for kind in kinds for name in plugins_of(kind)]
