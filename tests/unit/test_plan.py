"""The plan lays paper, preset, scenario, method and overrides over each other, in this order."""

import json
from pathlib import Path
from typing import Any

import pytest

from fu.plan import inputs
from fu.plan.plan import Plan

RUN = "fedosd/mnist-iid/seed0"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "CACHE", tmp_path / "plan.json")


def plan(preset: str = "paper", **fedosd: Any) -> Plan:
    return Plan({"preset": preset, "papers": ["fedosd"], "overrides": {"fedosd": fedosd}})


def rate(made: Plan, run: str, method: str) -> float:
    return float(json.loads(made.spec("unlearn", run, method))["local"]["lr"])


def test_the_paper_preset_is_the_paper() -> None:
    made = plan()
    spec = json.loads(made.spec("train", RUN))
    assert (spec["rounds"], spec["local"]) == (
        2000,
        {"lr": 0.025, "lr_decay": 0.999, "batch_size": 200, "local_epochs": 1},
    )
    assert json.loads(made.spec("partition", RUN))["validation_share"] == 0
    spec = json.loads(made.spec("recover", RUN, "fedosd"))
    assert (spec["first_round"], spec["rounds"], spec["client_weights"]) == (100, 100, "equal")
    assert made.seeds("fedosd") == [0, 1, 2, 3, 4]
    assert not made.cell(RUN, "retraining").recovers


def test_a_method_may_differ_in_all_scenarios_or_in_one() -> None:
    scenarios = {"mnist-iid": {"methods": {"fupga": {"unlearning": {"lr": 0.003}}}}}
    made = plan(scenarios=scenarios, methods={"fupga": {"settings": {"unlearning": {"lr": 0.002}}}})
    assert rate(made, RUN, "fupga") == 0.003
    assert rate(made, "fedosd/mnist-pat50/seed0", "fupga") == 0.002
    assert rate(made, RUN, "ewcsga") == rate(plan(), RUN, "ewcsga")


def test_the_published_codes_post_training_rate_comes_one_round_late() -> None:
    made = plan()
    spec = json.loads(made.spec("recover", RUN, "fedosd.as-published-code"))
    assert (spec["local"]["lr"], spec["local"]["late"]) == (1e-6, [100, 0.0004])
    assert "late" not in json.loads(made.spec("recover", RUN, "fedosd"))["local"]


def test_specs_hold_nothing_that_cannot_change_a_result() -> None:
    made = plan()
    for stage, method in (
        ("train", "original"),
        ("unlearn", "fedosd"),
        ("recover", "fedosd"),
        ("evaluate", "original"),
    ):
        text = made.spec(stage, RUN, method)
        assert json.dumps(json.loads(text), sort_keys=True, separators=(",", ":")) == text
        for foreign in ("caption", "threads", "mem_mb", "device", "label", "title", "paper"):
            assert f'"{foreign}"' not in text


def test_a_forgotten_data_dir_undoes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    archive, made = tmp_path / "mnist.npz", tmp_path / "results/paper/data/mnist.npz"
    archive.write_bytes(b"an archive")
    config = {"preset": "paper", "papers": ["fedosd"]}
    with_archive = Plan({**config, "data_dir": str(tmp_path)}).spec_data("mnist")
    assert json.loads(with_archive)["archive"] is not None
    elsewhere = Plan({**config, "data_dir": "elsewhere"})
    assert json.loads(elsewhere.spec_data("mnist"))["archive"] is None  # nothing made yet: download
    made.parent.mkdir(parents=True)
    made.write_bytes(b"made from it")
    made.with_suffix(".source.json").write_text(json.dumps({"archive": json.loads(with_archive)["archive"]}))
    assert elsewhere.spec_data("mnist") == with_archive
    archive.write_bytes(b"another archive")
    assert Plan({**config, "data_dir": str(tmp_path)}).spec_data("mnist") != with_archive
    assert elsewhere.spec_data("mnist") == with_archive  # planning with another archive made nothing from it
