"""Read papers, presets and overrides, and merge them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from fu import plugins
from fu.errors import UserError, first_problem, nearest
from fu.pipeline.provenance.digest import ROOT
from fu.pipeline.provenance.paths import LOGS, OUTPUTS
from fu.pipeline.settings.records import Artefact, Config, Method, Paper, Preset, Scenario, Trained, Vary

Model = TypeVar("Model", bound=BaseModel)
Made = TypeVar("Made")
LAYERS = 3  # paper, preset, overrides
MAKE_VARIABLES = {"PRESET": "preset", "PAPERS": "papers", "DATA_DIR": "data_dir"}  # keys of config.yaml
SOURCED = {"value", "source"}
ENTRIES: dict[str, type[BaseModel]] = {
    "scenarios": Scenario,
    "trainings": Trained,
    "methods": Method,
    "artefacts": Artefact,
}
LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader is ten times faster
KEYS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "merge")}


def validate(model: type[Model], values: Any, where: str) -> Model:
    """Return the typed record, or raise `UserError` with one sentence."""
    try:
        return model.model_validate(_mapping(values, where))
    except ValidationError as error:
        raise UserError(first_problem(error, model, where)) from None


def _mapping(values: Any, where: str) -> dict[str, Any]:
    if not isinstance(values, dict):
        got = "nothing" if values is None else type(values).__name__
        raise UserError(f"{where}: must be a mapping (key: value), got {got}.")
    return values


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a mapping from a YAML file: keys are text and unique."""
    try:
        loader = LOADER(path.read_text(encoding="utf-8"))
        root = loader.get_single_node()
        _check_keys(root, path.name)
        values = None if root is None else loader.construct_document(root)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: not UTF-8, 2024-13-45
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        problem = "not UTF-8" if isinstance(error, UnicodeDecodeError) else getattr(error, "problem", None) or error
        raise UserError(f"{path.name}:{line} is not valid YAML ({' '.join(str(problem).split())}).") from None
    except OSError as error:
        raise UserError(f"{path.name}: cannot be read ({error.strerror}).") from None
    return _mapping(values, path.name)


def _check_keys(node: yaml.Node | None, where: str) -> None:
    """Raise `UserError` where a key is not text, or occurs twice: YAML would silently keep the last one."""
    seen: set[str] = set()
    for item in node.value if isinstance(node, yaml.CollectionNode) else ():
        key, value = item if isinstance(item, tuple) else (None, item)
        if key is not None:
            line = f"{where}: line {key.start_mark.line + 1}:"
            if not isinstance(key, yaml.ScalarNode) or key.tag not in KEYS:
                quoted = f"; put {key.value} in quotes" if isinstance(key, yaml.ScalarNode) else ""
                raise UserError(f"{line} keys must be text{quoted}.")
            if key.value in seen:
                raise UserError(f"{line} duplicate key {key.value!r}.")
            seen.add(key.value)
        _check_keys(value, where)


def config_file() -> Path:
    """Return the config of the working directory, wherever Snakemake's users keep it; else this checkout's."""
    places = Path("config.yaml"), Path("config/config.yaml")
    return next((path for path in places if path.exists()), ROOT / "config.yaml")


def configured(values: Any) -> Config:
    """Return the typed config of what Snakemake read from config.yaml and the command line."""
    return validate(Config, values, "config")


def files(folder: str) -> dict[str, Path]:
    """Return the YAML files in a folder of `workflow/` by name, then those of users' own folders."""
    found = {path.stem: path for path in sorted((ROOT / "workflow" / folder).glob("*.yaml"))}
    ours = {*found}
    for own in plugins.FOLDERS:
        for path in sorted((own / folder).glob("*.yaml")):
            if path.stem in ours:
                raise UserError(f"{path}: workflow/{folder} already has a file with this name; rename yours.")
            found[path.stem] = path
    return found


def load(folder: str, name: str, what: str) -> dict[str, Any]:
    """Read `<folder>/<name>.yaml`, ours or a user's; `UserError` for an unknown name."""
    known = files(folder)
    if name not in known:
        raise UserError(f"config: {what}: there is no {what} {name!r}{nearest(name, known)}.")
    return read_yaml(known[name])


def without_sources(tree: Any) -> Any:
    """Return the plain values of a tree with `{value: ..., source: ...}` leaves."""
    if not isinstance(tree, dict):
        return tree
    if {*tree} == SOURCED:
        return tree["value"]
    return {key: without_sources(below) for key, below in tree.items()}


def leaves(tree: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path and the value of every leaf, `{value: ..., source: ...}` where its source is stated."""
    if not isinstance(tree, dict) or {*tree} == SOURCED:
        yield path, tree
        return
    for key, below in tree.items():
        yield from leaves(below, *path, key)


def read_paper(name: str) -> dict[str, Any]:
    """Return a paper's plain values."""
    plain: dict[str, Any] = without_sources(load("papers", name, "paper"))
    return plain


def merge(base: Any, top: Any) -> Any:
    """Return `top` merged into `base`: mappings key by key, anything else replaced.

    A plug-in of another name keeps only its own parameters.
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


class Resolved(NamedTuple):
    """The preset, the merged papers, for each paper the place of its last layer, and what it states by itself.

    A preset may have fewer values of a coordinate than the paper, whose numbers name the paper's.
    """

    preset: Preset
    papers: dict[str, Paper]
    where: dict[str, str]
    stated: dict[str, set[str]]
    grids: dict[str, dict[str, list[Any]]]  # the values of each setting in a grid of the paper's
    claimed: dict[str, dict[str, list[str]]]  # by claim, the scenarios in which the paper states it
    claims: dict[str, set[str]]  # those to check: all of a paper that nothing is laid over, else those laid over it


def resolve(config: Config, depth: int = LAYERS) -> Resolved:
    """Return the papers merged with preset and overrides; depth 1: the papers alone, 2: with the preset."""
    preset = Preset(description="none")
    if depth > 1:
        preset = validate(Preset, load("presets", config.preset, "preset"), f"{config.preset}.yaml")
    papers, where, stated, grids, claimed, claims = {}, {}, {}, {}, {}, {}
    seeds = {"seeds": preset.seeds} if preset.seeds else {}
    for name in config.papers:
        first, tree = f"{name}.yaml", read_paper(name)
        own, grids[name], place = validate(Paper, tree, first), _grids(tree), first
        layers = {
            f"{config.preset}.yaml: papers.{name}": merge(seeds, without_sources(preset.papers.get(name, {}))),
            f"config.yaml: overrides.{name}": without_sources(config.overrides.get(name, {})),
        }
        above = {place: layer for place, layer in [*layers.items()][: depth - 1] if layer != {}}
        for place, layer in above.items():
            _check_known(tree, layer, place)
            tree = merge(tree, layer)
        alone, merged, where[name] = _expanded(own, first), validate(Paper, tree, place), place
        varies = any(scenario.vary for scenario in merged.scenarios.values())
        stated[name] = set(alone.scenarios if varies else ())
        shown = {key: entry.scenarios for key, entry in alone.artefacts.items()}
        papers[name] = _with_shown(_expanded(merged, place, shown), place)
        claimed[name] = {key: _stated(alone, papers[name], key) for key in alone.claims}
        if config.seeds:
            papers[name] = papers[name].model_copy(update={"seeds": config.seeds})
        claims[name] = {key for key, claim in merged.claims.items() if not above or own.claims.get(key) != claim}
    known = files("papers")
    for place, given in (
        ("config.yaml: overrides", config.overrides if depth > 2 else {}),
        (f"{config.preset}.yaml: papers", preset.papers),
    ):
        for name in given:
            if name not in known:
                raise UserError(f"{place}: there is no paper {name!r}{nearest(name, known)}.")
    _check_targets(papers, where)
    return Resolved(preset, papers, where, stated, grids, claimed, claims)


def _stated(alone: Paper, laid: Paper, claim: str) -> list[str]:
    """Return the scenarios in which a paper states a claim; where preset or configuration give a coordinate other
    values, those that they give it.
    """
    ours, found = _families(laid, laid.claims[claim].scenarios), list[str]()
    for family, names in _families(alone, alone.claims[claim].scenarios).items():
        shown = ours.get(family, [])
        found += names if {*shown} <= {*names} else shown
    return found


def _families(paper: Paper, names: Sequence[str]) -> dict[str, list[str]]:
    """Return scenarios by the name that the paper's file gives them, without coordinates."""
    found: dict[str, list[str]] = {}
    for name in names:
        scenario = paper.scenarios[name]
        short = name.removesuffix(coordinates({key: scenario.at[key] for key in scenario.vary}))
        found.setdefault(short, []).append(name)
    return found


def _grids(tree: Any) -> dict[str, list[Any]]:
    """Return the values of each setting in any grid of a paper."""
    found: dict[str, list[Any]] = {}
    for key, below in tree.items() if isinstance(tree, dict) else ():
        inside = below if key == "grid" and isinstance(below, dict) else _grids(below)
        for setting, several in inside.items():
            found.setdefault(setting, []).extend(several if isinstance(several, list) else [])
    return found


def blamed(make: Callable[[Resolved], Made], config: Config) -> Made:
    """Return `make` of the resolved papers; a `UserError` names the file with the wrong value.

    That is the first of paper, preset and overrides with which `make` fails.
    """
    try:
        return make(resolve(config))
    except UserError:
        for depth in range(1, LAYERS):
            make(resolve(config, depth))
        raise


def _check_known(below: Any, top: Any, where: str) -> None:
    """Raise `UserError` where an entry exists in no lower layer and lacks what a new one needs."""
    for group, model in ENTRIES.items():
        given, known = (layer.get(group) if isinstance(layer, dict) else None for layer in (top, below))
        if not (isinstance(given, dict) and isinstance(known, dict)):
            continue  # validation reports it
        needed = [key for key, field in model.model_fields.items() if field.is_required()]
        for name in given.keys() - known.keys():
            lacking = [key for key in needed if isinstance(given[name], dict) and key not in given[name]]
            if lacking:
                hint = nearest(name, known).partition(" allowed")[0].strip("; ")
                text = f"a new {group[:-1]} needs {', '.join(lacking)}{f' ({hint})' if hint else ''}"
                raise UserError(f"{where}: {group}.{name}: {text}.")


def _check_targets(papers: Mapping[str, Paper], places: Mapping[str, str]) -> None:
    """Raise `UserError` where two Snakemake targets, or a paper's result folder and another one, share a name."""
    patterns = (*LOGS.values(), *(pattern for files in OUTPUTS.values() for pattern in files.values()))
    folders = {pattern.partition("/")[0] for pattern in patterns if not pattern.startswith("{")}
    taken = {**dict.fromkeys(folders, "a folder of results"), **dict.fromkeys(("all", *OUTPUTS), "a rule")}
    for name, paper in papers.items():
        targets = {name: f"{name}.yaml"}
        targets |= {f"{name}_{key}": f"{places[name]}: artefacts.{key}" for key in paper.artefacts}
        for target, where in targets.items():
            if target in taken:
                raise UserError(f"{where}: {target!r} is already the name of {taken[target]}; choose another name.")
            taken[target] = where


def _expanded(paper: Paper, where: str, stated: Mapping[str, Collection[str]] = MappingProxyType({})) -> Paper:
    """Return the paper with a scenario for every combination of what varies, and artefacts and claims that name these.

    `stated`: by artefact the scenarios that the paper shows, of which a preset may leave out some.

    A scenario whose base varies does so, too, and each of its combinations is based on that one of its base.
    """

    def vary(name: str, *line: str) -> dict[str, Vary]:
        base = paper.scenarios[name].base
        known = base in paper.scenarios and base not in line  # else reported with the base
        return {**(vary(str(base), name, *line) if known else {}), **paper.scenarios[name].vary}

    groups: dict[str, dict[str, Scenario]] = {}
    for name, scenario in paper.scenarios.items():
        several = vary(name)
        if not several:
            groups[name] = {name: scenario}
            continue
        groups[name] = {}
        place, paths = f"{where}: scenarios.{name}", [coordinate.setting for coordinate in several.values()]
        if fixed := [short for short in several if short in scenario.at]:
            raise UserError(f"{place}.at: {fixed[0]!r} varies; remove it.")
        if again := [path for path in paths if paths.count(path) > 1]:
            raise UserError(f"{place}: {again[0]} is varied by two coordinates; remove one of them.")
        for short in (short for short in several if short not in scenario.vary):
            keys = tuple(several[short].setting.split("."))
            if any(path[: len(keys)] == keys for path, _ in leaves(scenario.settings)):
                raise UserError(f"{place}.settings: {several[short].setting} varies in its base; remove it.")
        shared = [short for short in several if short not in scenario.vary]
        for values in product(*(coordinate.values for coordinate in several.values())):
            given = dict(zip(several, values, strict=True))
            at = {short: _named(value) for short, value in given.items()}
            settings = scenario.settings
            for short, coordinate in scenario.vary.items():
                settings = merge(settings, _nested(coordinate.setting.split("."), given[short]))
            label = ", ".join([scenario.label, *(f"{short} = {value}" for short, value in at.items())])
            base = scenario.base and scenario.base + coordinates({short: at[short] for short in shared})
            changed = {"label": label, "base": base, "at": {**at, **scenario.at}, "settings": settings, "vary": several}
            groups[name][name + coordinates(at)] = scenario.model_copy(update=changed)
    scenarios = {key: scenario for group in groups.values() for key, scenario in group.items()}
    if len(scenarios) < sum(map(len, groups.values())):
        twice = next(key for key in scenarios if sum(key in group for group in groups.values()) > 1)
        raise UserError(f"{where}: scenarios: {twice!r} is used twice; rename one of them.")
    artefacts = {}
    for key, entry in paper.artefacts.items():
        shown: list[str] = []
        for wanted in entry.scenarios:
            matching = [*groups.get(wanted, {})] or [name for name in scenarios if fnmatchcase(name, wanted)]
            if not matching:
                hint = nearest(wanted, scenarios)
                if len(scenarios) > len(groups):
                    hint = f"{hint.partition(' allowed')[0]} allowed: {', '.join(groups)}, or a pattern (mnist-p1-*)"
                raise UserError(f"{where}: artefacts.{key}: there is no scenario {wanted!r}{hint}.")
            shown += matching
        artefacts[key] = entry.model_copy(update={"scenarios": list(dict.fromkeys(shown))})
    claimed = [claim.artefact for claim in paper.claims.values()]
    for key, entry in artefacts.items():
        if unclaimed := [name for name in entry.judges if name not in claimed]:
            hint = nearest(unclaimed[0], dict.fromkeys(claimed))
            raise UserError(f"{where}: artefacts.{key}.judges: there are no claims on {unclaimed[0]!r}{hint}.")
    claims = {}
    for key, claim in paper.claims.items():
        if claim.artefact not in artefacts:
            hint = nearest(claim.artefact, artefacts)
            raise UserError(f"{where}: claims.{key}.artefact: there is no artefact {claim.artefact!r}{hint}.")
        known = artefacts[claim.artefact].scenarios
        judged = known if not claim.scenarios else []
        for wanted in claim.scenarios:
            matching = [name for name in known if name in groups.get(wanted, {}) or fnmatchcase(name, wanted)]
            if not matching and not any(fnmatchcase(name, wanted) for name in stated.get(claim.artefact, ())):
                hint = nearest(wanted, known)
                raise UserError(f"{where}: claims.{key}.scenarios: {claim.artefact} does not show {wanted!r}{hint}.")
            judged += matching
        claims[key] = claim.model_copy(update={"scenarios": list(dict.fromkeys(judged))})
    return paper.model_copy(update={"scenarios": scenarios, "artefacts": artefacts, "claims": claims})


def _named(value: Any) -> Any:
    """Return a value as a coordinate: a client by its number, several clients by theirs, separated by dots."""
    clients = value if isinstance(value, tuple) else (value,)
    return clients[0] if len(clients) == 1 else ".".join(map(str, clients))


def _nested(keys: Sequence[str], value: Any) -> Any:
    if not keys:
        return [*value] if isinstance(value, tuple) else value
    return {keys[0]: _nested(keys[1:], value)}


def coordinates(at: Mapping[str, Any]) -> str:
    """Return the end of a scenario's name: `-p1-s4`."""
    return "".join(
        f"-{short}{value:g}" if isinstance(value, float) else f"-{short}{value}" for short, value in at.items()
    )


def _with_shown(paper: Paper, where: str) -> Paper:
    """Return the paper with every training and method added to the artefacts in its `shown_in`."""
    artefacts = dict(paper.artefacts)
    for group in ("trainings", "methods"):
        for name, entry in getattr(paper, group).items():
            for shown in entry.shown_in:
                if shown not in artefacts:
                    hint = nearest(shown, artefacts)
                    raise UserError(f"{where}: {group}.{name}.shown_in: there is no artefact {shown!r}{hint}.")
                listed = getattr(artefacts[shown], group)
                if name not in listed:
                    artefacts[shown] = artefacts[shown].model_copy(update={group: [*listed, name]})
    return paper.model_copy(update={"artefacts": artefacts})
