"""Configs with one thing changed: all are laid over the papers at preset smoke, where everything is right."""

from typing import Any

NAME_RULE = "a name must be letters and digits, with '-', '_' or '.' inside and no '/'"


def config(**changes: Any) -> dict[str, Any]:
    return {"preset": "smoke", "papers": ["fedosd"], **changes}


def laid_over(**parts: Any) -> dict[str, Any]:
    return config(overrides={"fedosd": parts})


def settings(**parts: Any) -> dict[str, Any]:
    return laid_over(settings=parts)


def data(**parts: Any) -> dict[str, Any]:
    return settings(data=parts)


def attack(**params: Any) -> dict[str, Any]:
    return data(attack={"params": params})


def pat(class_share: float | str) -> dict[str, Any]:
    return data(partition={"name": "pat", "params": {"class_share": class_share}})


def method(name: str, **parts: Any) -> dict[str, Any]:
    return laid_over(methods={name: parts})


def scenario(name: str, **parts: Any) -> dict[str, Any]:
    return laid_over(scenarios={name: parts})


def iid(**parts: Any) -> dict[str, Any]:
    return scenario("mnist-iid", settings=parts)


def artefact(name: str, **parts: Any) -> dict[str, Any]:
    return laid_over(artefacts={name: parts})


def grid(name: str, values: Any) -> dict[str, Any]:
    return method(name, settings={"grid": values})


def helped(**parts: Any) -> dict[str, Any]:
    """The same of the small paper that trains and unlearns nothing."""
    return {"preset": "paper", "papers": ["helped"], "overrides": {"helped": parts}}


def toy(**parts: Any) -> dict[str, Any]:
    """Return a config of the small paper of `tests/workflow`, with something laid over it."""
    return {"preset": "paper", "papers": ["toy"], "overrides": {"toy": parts}}
