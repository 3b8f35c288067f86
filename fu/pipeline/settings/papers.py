"""Read papers, presets and overrides, and lay them over each other."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from fu.errors import UserError, first_problem, nearest
from fu.pipeline.digest import ROOT
from fu.pipeline.settings.records import Config, Paper, Preset

Model = TypeVar("Model", bound=BaseModel)
LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one is ten times as fast


def validate(model: type[Model], values: Any, where: str) -> Model:
    """Return the typed record, or raise `UserError` with one sentence."""
    if not isinstance(values, dict):
        raise UserError(f"{where}: must be a mapping of keys to values, got {type(values).__name__}.")
    try:
        return model(**{str(key): value for key, value in values.items()})
    except ValidationError as error:
        raise UserError(first_problem(error, model, where)) from None


def read_yaml(path: Path) -> Any:
    """Read a YAML file with the safe loader."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)  # noqa: S506 (a safe loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        raise UserError(f"{path.name}:{line} is no valid YAML ({getattr(error, 'problem', 'not UTF-8')}).") from None


def unique_keys(path: Path) -> None:
    """Raise `UserError` where a YAML file names a key twice (YAML itself would keep the last one silently)."""

    def walk(node: yaml.Node) -> None:
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                if key.value in seen:
                    line = key.start_mark.line + 1
                    raise UserError(f"{path.name}: line {line}: {key.value!r} is named twice; names must differ.")
                seen.add(key.value)
                walk(value)
        elif isinstance(node, yaml.SequenceNode):
            for value in node.value:
                walk(value)

    root = yaml.compose(path.read_text(encoding="utf-8"), Loader=LOADER)
    if root is not None:
        walk(root)


def names(folder: str) -> list[str]:
    """Return the names of the YAML files in a folder of `workflow/`."""
    return sorted(path.stem for path in (ROOT / "workflow" / folder).glob("*.yaml"))


def load(folder: str, name: str, what: str) -> Any:
    """Read `workflow/<folder>/<name>.yaml`; an unknown name is one sentence."""
    if name not in names(folder):
        raise UserError(f"config: {what}: there is no {what} {name!r}{nearest(name, names(folder))}.")
    path = ROOT / "workflow" / folder / f"{name}.yaml"
    content = read_yaml(path)
    unique_keys(path)
    return content


def without_sources(tree: Any) -> Any:
    """Return the plain values of a tree with `{value: ..., source: ...}` leaves."""
    if not isinstance(tree, dict):
        return tree
    if set(tree) == {"value", "source"}:
        return tree["value"]
    return {key: without_sources(below) for key, below in tree.items()}


def unsourced(tree: Any, path: str) -> list[str]:
    """Return the paths of leaves that have no source."""
    if isinstance(tree, dict):
        if set(tree) == {"value", "source"}:
            return [] if isinstance(tree["source"], str) and tree["source"].strip() else [path]
        return [found for key, below in tree.items() for found in unsourced(below, f"{path}.{key}")]
    return [path]


def read_paper(name: str) -> dict[str, Any]:
    """Return a paper's plain values; a value without a source is refused."""
    raw = load("papers", name, "paper")
    if not isinstance(raw, dict):
        raise UserError(f"{name}.yaml: must be a mapping of keys to values.")
    parts: dict[str, Any] = {"settings": raw.get("settings", {}), "seeds": raw.get("seeds", {})}
    for group in ("scenarios", "methods"):
        entries = raw.get(group)
        for key, entry in entries.items() if isinstance(entries, dict) else ():
            if isinstance(entry, dict):
                parts[f"{group}.{key}.settings"] = entry.get("settings", {})
                parts[f"{group}.{key}.params"] = entry.get("params", {})
                parts[f"{group}.{key}.methods"] = entry.get("methods", {})
    missing = [path for part, tree in parts.items() for path in unsourced(tree, part)]
    if missing:
        raise UserError(f"{name}.yaml: {missing[0]}: has no source; write {{value: ..., source: ...}}.")
    plain: dict[str, Any] = without_sources(raw)
    return plain


def merge(base: Any, top: Any) -> Any:
    """Return `base` with `top` laid over it: mappings key by key, anything else replaced.

    A plug-in of another name brings its own parameters.
    """
    if isinstance(base, Mapping) and isinstance(top, Mapping):
        names = base.get("name"), top.get("name")
        if all(isinstance(name, str) for name in names) and names[0] != names[1]:
            return top
        merged = dict(base)
        for key, value in top.items():
            merged[key] = merge(base[key], value) if key in base else value
        return merged
    return top


def resolve(config: Config) -> tuple[Preset, dict[str, Paper]]:
    """Return the preset, and the papers with preset and overrides laid over them."""
    preset = validate(Preset, load("presets", config.preset, "preset"), f"{config.preset}.yaml")
    papers = {}
    for name in config.papers:
        values = read_paper(name)
        values = merge(values, preset.papers.get(name, {}))
        values = merge(values, config.overrides.get(name, {}))
        papers[name] = _with_shown(validate(Paper, values, f"{name}.yaml"), f"{name}.yaml")
    known = names("papers")
    for where, given in (("config: overrides", config.overrides), (f"{config.preset}.yaml: papers", preset.papers)):
        for name in given:
            if name not in known:
                raise UserError(f"{where}: there is no paper {name!r}{nearest(name, known)}.")
    return preset, papers


def _with_shown(paper: Paper, where: str) -> Paper:
    """Return the paper with every method in the artefacts that its entry says it is shown in."""
    artefacts = dict(paper.artefacts)
    for name, method in paper.methods.items():
        for shown in method.shown_in:
            if shown not in artefacts:
                hint = nearest(shown, artefacts)
                raise UserError(f"{where}: methods.{name}.shown_in: there is no artefact {shown!r}{hint}.")
            listed = artefacts[shown].methods
            if name not in listed:
                artefacts[shown] = artefacts[shown].model_copy(update={"methods": [*listed, name]})
    return paper.model_copy(update={"artefacts": artefacts})
