"""Configs with one thing changed: all are laid over the small papers of `tests/workflow`, where everything is right."""

from typing import Any


def toy(**parts: Any) -> dict[str, Any]:
    """Return a config of the small paper that unlearns, with something laid over it."""
    return {"preset": "paper", "papers": ["toy"], "overrides": {"toy": parts}}


def helped(**parts: Any) -> dict[str, Any]:
    """The same of the small paper that trains and unlearns nothing."""
    return {"preset": "paper", "papers": ["helped"], "overrides": {"helped": parts}}


def config(**changes: Any) -> dict[str, Any]:
    return {**toy(), **changes}


def at(path: str, value: Any, paper: str = "toy") -> dict[str, Any]:
    """Return a config with one value of a small paper changed, or one of the config's own: `config/threads`."""
    *outer, last = path.split("/")
    if outer == ["config"]:
        return config(**{last: value})
    for key in reversed([*outer, last] if path else []):
        value = {key: value}
    return {"preset": "paper", "papers": [paper], "overrides": {paper: value}}
