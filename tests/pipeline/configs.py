"""Configs with one thing changed: all are laid over the small papers of `tests/workflow`, where everything is right."""

from typing import Any

NAME_RULE = "a name must be letters and digits, with '-', '_' or '.' inside and no '/'"


def toy(**parts: Any) -> dict[str, Any]:
    """Return a config of the small paper that unlearns, with something laid over it."""
    return {"preset": "paper", "papers": ["toy"], "overrides": {"toy": parts}}


def helped(**parts: Any) -> dict[str, Any]:
    """The same of the small paper that trains and unlearns nothing."""
    return {"preset": "paper", "papers": ["helped"], "overrides": {"helped": parts}}


def config(**changes: Any) -> dict[str, Any]:
    return {**toy(), **changes}


def settings(**parts: Any) -> dict[str, Any]:
    return toy(settings=parts)


def data(**parts: Any) -> dict[str, Any]:
    return settings(data=parts)


def attack(**params: Any) -> dict[str, Any]:
    return data(attack={"params": params})


def pat(class_share: float | str) -> dict[str, Any]:
    return data(partition={"name": "pat", "params": {"class_share": class_share}})


def method(name: str, **parts: Any) -> dict[str, Any]:
    return toy(methods={name: parts})


def scenario(name: str, **parts: Any) -> dict[str, Any]:
    return toy(scenarios={name: parts})


def iid(**parts: Any) -> dict[str, Any]:
    return scenario("iid", settings=parts)


def artefact(name: str, **parts: Any) -> dict[str, Any]:
    return toy(artefacts={name: parts})


def grid(name: str, values: Any) -> dict[str, Any]:
    return method(name, settings={"grid": values})


def at(path: str, value: Any, paper: str = "toy") -> dict[str, Any]:
    """Return a config with one value of a small paper changed, or one of the config's own: `config/threads`."""
    *outer, last = path.split("/")
    if outer == ["config"]:
        return config(**{last: value})
    for key in reversed([*outer, last] if path else []):
        value = {key: value}
    return {"preset": "paper", "papers": [paper], "overrides": {paper: value}}
