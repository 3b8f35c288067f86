"""Small files as LEAF's `preprocess.sh` writes them."""

import json
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

Users = dict[str, tuple[list[Any], list[Any]]]  # user -> x, y


def content(users: Users) -> dict[str, Any]:
    return {
        "users": list(users),
        "num_samples": [len(y) for _, y in users.values()],
        "user_data": {user: {"x": x, "y": y} for user, (x, y) in users.items()},
    }


def write(folder: Path, split: str, number: int, users: Users, **changes: Any) -> Path:
    path = folder / split / f"all_data_{number}_niid_0_keep_100_{split}_9.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**content(users), **changes}))
    return path


def written(images: NDArray[Any], labels: NDArray[Any]) -> tuple[list[list[float]], list[int]]:
    """Return bytes [n, 28, 28, 1] and labels as a user's lists."""
    return (images.reshape(len(images), -1) / 255).tolist(), labels.tolist()
