"""Where the settings of a scenario come from: the sources that a paper's file states, else the file with the value."""

from collections.abc import Mapping, Sequence

from fu.pipeline.settings.papers import coordinates, leaves, load
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
            for path_below, value in leaves(tree):
                setting = ".".join(path_below)
                for inside in [one for one in found if one.startswith(f"{prefix}{setting}.")]:
                    del found[inside]
                found[f"{prefix}{setting}"] = value["source"] if isinstance(value, dict) else place

    add("settings")
    for scenario in reversed(line):
        stated = scenarios[scenario]
        add("scenarios", scenario.removesuffix(coordinates({key: stated.at[key] for key in stated.vary})), "settings")
        found |= {vary.setting: f"coordinate {short} of the scenario" for short, vary in stated.vary.items()}
    found |= {f"{AGAIN}.{key}": source for key, source in found.items() if key.startswith("unlearning.")}
    add("methods", method, "settings", prefix=f"{AGAIN}.")
    return found
