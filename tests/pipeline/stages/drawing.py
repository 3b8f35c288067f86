"""The spec of a small partition: two clients share the black images of ten classes. And of a phase of few steps."""

import json
from typing import Any

SPEC: dict[str, Any] = {
    "dataset": "digits",
    "seed": 0,
    "samples": None,
    "split": "merged",
    "test": "clients",
    "clients": 2,
    "partition": {"name": "iid"},
    "train_share": 0.75,
    "validation_share": 0.0,
    "server": 0,
    "held_out": 0,
    "absent": 0,
    "attacked": 1,
    "attack": None,
}
LOCAL: dict[str, Any] = {
    "lr": 0.05,
    "lr_decay": 1.0,
    "batch_size": 8,
    "local_epochs": 1,
    "local_steps": None,
    "momentum": 0.0,
    "weight_decay": 0.0,
}
PHASE: dict[str, Any] = {
    "local": LOCAL,
    "evaluate_every": 1,
    "evaluate_last": 1,
    "clients_per_round": None,
    "with_replacement": False,
    "traced": (),
}


def spec(**changes: Any) -> str:
    return json.dumps({**SPEC, **changes})
