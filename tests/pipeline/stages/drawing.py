"""The spec of a small partition: two clients share the black images of ten classes."""

import json
from typing import Any

SPEC: dict[str, Any] = {
    "dataset": "digits",
    "seed": 0,
    "samples": None,
    "clients": 2,
    "partition": {"name": "iid"},
    "train_share": 0.75,
    "validation_share": 0.0,
    "forget": 1,
    "attack": None,
}


def spec(**changes: Any) -> str:
    return json.dumps({**SPEC, **changes})
