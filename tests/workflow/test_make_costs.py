"""What a user gives to `make plan` arrives as it is."""

from pathlib import Path

import yaml

from tests.workflow.test_make import WILD, Make


def test_targets_and_settings_reach_the_plan_as_text(tmp_path: Path) -> None:
    make = Make(tmp_path)
    for value in WILD[::5]:
        (plan,) = make.calls("plan", f"TARGETS={value}", f"DATA_DIR={value}", "PRESET=paper")
        words, preset, data_dir = plan[5:-2], *(yaml.safe_load(pair.partition("=")[2]) for pair in plan[-2:])
        assert plan[:5] == ["python", "", "-m", "fu.pipeline.show", "plan"]
        assert (words, preset, data_dir) == (value.split(), "paper", value)
