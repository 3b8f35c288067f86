"""Where the settings of a scenario come from: the sources that a paper's file states, else the file with the value."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fu.pipeline.settings.papers import coordinates, load
from fu.pipeline.settings.records import Config, Preset, Scenario

AGAIN = "retraining"  # before the settings of retraining


def origins(
    config: Config, preset: Preset, name: str, scenarios: Mapping[str, Scenario], line: Sequence[str], method: str
) -> dict[str, str]:
    """Return the source of every stated setting of a scenario, by its name: `training.lr`.

    `name`: the paper; `line`: one of its scenarios, the base of that and so on; `method`: the retraining, whose
    unlearning is its training. A setting without a source has its default.
    """
    layers = {
        f"{name}.yaml": load("papers", name, "paper"),
        f"{config.preset}.yaml": preset.papers.get(name, {}),
        "config.yaml": config.overrides.get(name, {}),
    }
    found: dict[str, str] = {}

    def add(*path: str, prefix: str = "") -> None:
        for place, tree in layers.items():
            for key in path:
                tree = tree.get(key) or {}
            for setting, source in _leaves(tree, place):
                for inside in [one for one in found if one.startswith(f"{prefix}{setting}.")]:
                    del found[inside]
                found[f"{prefix}{setting}"] = source

    add("settings")
    for scenario in reversed(line):
        stated = scenarios[scenario]
        add("scenarios", scenario.removesuffix(coordinates({key: stated.at[key] for key in stated.vary})), "settings")
        found |= {vary.setting: f"coordinate {short} of the scenario" for short, vary in stated.vary.items()}
    found |= {f"{AGAIN}.{key}": source for key, source in found.items() if key.startswith("unlearning.")}
    add("methods", method, "settings", prefix=f"{AGAIN}.")
    return found


def _leaves(tree: Any, place: str, *path: str) -> Iterator[tuple[str, str]]:
    """Yield name and source of every value; a plain one is from the file itself."""
    if not isinstance(tree, dict) or {*tree} == {"value", "source"}:
        yield ".".join(path), tree["source"] if isinstance(tree, dict) else place
        return
    for key, below in tree.items():
        yield from _leaves(below, place, *path, key)
