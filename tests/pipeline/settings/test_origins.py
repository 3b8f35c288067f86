"""Every setting has the source of the last layer that states it: for all scenarios, of a base, of the scenario."""

from typing import Any

import pytest

from fu.pipeline.settings import origins
from fu.pipeline.settings.origins import origins as origins_of
from fu.pipeline.settings.records import Config, Preset, Scenario, Vary


def sourced(value: Any, source: str) -> dict[str, Any]:
    return {"value": value, "source": source}


FILE: dict[str, Any] = {
    "settings": {
        "training": {
            "lr": sourced(1, "section 1"),
            "rounds": sourced(2, "section 2"),
            "batch_size": sourced(3, "section 3"),
        },
        "unlearning": {"lr": sourced(4, "section 4"), "rounds": sourced(5, "section 5")},
        "model": sourced({"name": "mlp", "params": {"hidden": 4}}, "section 6"),
    },
    "scenarios": {
        "base": {"settings": {"training": {"rounds": sourced(7, "section 7"), "batch_size": sourced(7, "section 7")}}},
        "above": {"settings": {"training": {"batch_size": sourced(8, "section 8")}}},
    },
    "methods": {"again": {"settings": {"unlearning": {"rounds": sourced(None, "section 9")}}}},
}
PRESET = Preset(
    description="", papers={"mine": {"settings": {"training": {"rounds": 10}, "model": {"params": {"hidden": 11}}}}}
)


def found(monkeypatch: pytest.MonkeyPatch, *line: str, **changes: Any) -> dict[str, str]:
    monkeypatch.setattr(origins, "load", lambda *words: FILE)
    scenario = Scenario(label="L")
    vary = {"m": Vary(setting="data.clients", values=[5, 10])}
    several = {"base": scenario, "above": scenario, "above-m5": Scenario(label="M", at={"m": 5}, vary=vary)}
    config = Config(preset="small", papers=["mine"], **changes)
    return origins_of(config, PRESET, "mine", several, line, "again")


def test_the_last_layer_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, "above", "base") == {
        "training.lr": "section 1",
        "training.rounds": "section 7",  # of the base, over the preset's for all scenarios
        "training.batch_size": "section 8",  # over its base's
        "unlearning.lr": "section 4",
        "unlearning.rounds": "section 5",
        "model": "section 6",
        "model.params.hidden": "small.yaml",
        "retraining.unlearning.lr": "section 4",
        "retraining.unlearning.rounds": "section 9",
    }


def test_a_value_of_the_config_counts_most_and_a_whole_replaces_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    above = {"settings": {"model": sourced({"name": "cnn"}, "mine"), "training": {"rounds": 2}}}
    parts = {"settings": {"training": {"lr": 0.5}}, "scenarios": {"base": above}}
    sources = found(monkeypatch, "base", overrides={"mine": parts})
    assert {name: sources.get(name) for name in ("training.lr", "training.rounds", "model", "model.params.hidden")} == {
        **{"training.lr": "config.yaml", "training.rounds": "config.yaml", "model": "mine", "model.params.hidden": None}
    }


def test_a_coordinate_says_what_it_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = found(monkeypatch, "above-m5", "base")
    assert sources["data.clients"] == "coordinate m of the scenario"
    assert sources["training.batch_size"] == "section 8"  # of the scenario as the file names it
