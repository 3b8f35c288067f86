"""`config/claims/run.sh` makes and keeps what judges claims, goes on where it stopped, and leaves config.yaml alone."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fu.pipeline.plan.plan import Plan
from fu.pipeline.settings.papers import read_yaml
from tests.workflow.project import REPOSITORY

SCRIPT = REPOSITORY / "config/claims/run.sh"
(LIST,) = re.findall(r"<<'END'\n(.*?)\nEND\n", SCRIPT.read_text(), re.S)
RUNS = [line.split(maxsplit=2) for line in LIST.splitlines()]
# Records how it is called and the config that it sees.
MAKE = """#!/bin/sh
{ echo "$@"; head -n 2 config.yaml | tail -n 1; } >> calls
case "$*" in *reproduce*$FAILS*) exit 1 ;; *reproduce*$SLEEPS*) exec sleep 60 ;; esac
case "$*" in keep*) for word in "$@"; do case $word in RUN=*) mkdir -p "kept/${word#RUN=}" ;; esac; done ;; esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with the script, its configurations, and a `make` that computes nothing."""
    shutil.copytree(SCRIPT.parent, tmp_path / "config/claims")
    (tmp_path / "config.yaml").write_text("preset: smoke\npapers: [mine]\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/make").write_text(MAKE)
    (tmp_path / "bin/make").chmod(0o755)
    return tmp_path


def run(clone: Path, *words: str, fails: str = "nothing", sleeps: str = "nothing") -> tuple[int, str, list[str]]:
    """Return status, what was printed, and the calls of make with the papers of the configuration at that time."""
    (clone / "calls").unlink(missing_ok=True)
    path = f"{clone / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", clone / "config/claims/run.sh", *words],
        env={"PATH": path, "DATA_DIR": "/my data", "FAILS": fails, "SLEEPS": sleeps},
        capture_output=True, text=True, check=False, cwd="/",
    )  # fmt: skip
    calls = (clone / "calls").read_text().splitlines() if (clone / "calls").exists() else []
    assert (clone / "config.yaml").read_text() == "preset: smoke\npapers: [mine]\n"
    assert not (clone / "config.yaml.aside").exists()
    return done.returncode, done.stdout + done.stderr, calls


def test_every_configuration_is_run_once_and_plans_its_targets() -> None:
    named = [f"{paper}-{name}" for paper, name, _ in RUNS]
    assert sorted(named) == sorted(path.stem for path in SCRIPT.parent.glob("*.yaml"))
    for paper, name, targets in RUNS:
        plan = Plan(read_yaml(SCRIPT.parent / f"{paper}-{name}.yaml"))
        assert len(plan.asked([f"{paper}_{target}" for target in targets.split()])) == len(targets.split())
        spec: Any = plan.job("publish", {"paper": paper, "artefact": "verdicts"}).specs[0]
        judged, stated = ({one.artefact for one in of.values()} for of in (spec.claims, plan.papers[paper].claims))
        assert judged == stated & {*targets.split()}


def test_runs_are_made_and_kept_with_their_own_configuration(clone: Path) -> None:
    status, text, calls = run(clone)
    assert status == 0, text
    expected = []
    for paper, name, targets in RUNS:
        words = "".join(f"{paper}_{target} " for target in targets.split())
        papers = f"papers: [{paper}]"
        expected += [f"reproduce TARGETS={words} DATA_DIR=/my data", papers]
        expected += [f"keep RUN={name} TARGETS={words} DATA_DIR=/my data", papers]
    assert calls[:-2] == expected
    assert calls[-2] == "docs"


def test_what_is_kept_is_skipped_and_what_fails_is_named_and_passed_over(clone: Path) -> None:
    kept, (paper, name, targets), *others = RUNS
    (clone / "docs/measurements" / kept[0] / kept[1]).mkdir(parents=True)
    status, text, calls = run(clone, fails=f"{paper}_{targets.split()[1]}")
    assert status == 1
    assert f"error: failed: {paper}-{name}; " in text
    assert [call.split()[1] for call in calls if call.startswith("keep")] == [f"RUN={other}" for _, other, _ in others]


def test_it_stops_in_time_and_says_how_to_go_on(clone: Path) -> None:
    assert run(clone, "1.5") == (1, "error: MINUTES: a whole number from 1 to 99999, got '1.5'.\n", [])
    script = clone / "config/claims/run.sh"
    script.write_text(script.read_text().replace("60 * minutes", "2"))
    status, text, calls = run(clone, sleeps=RUNS[1][2].split()[1])
    assert status == 0
    assert text.endswith(f"{RUNS[1][0]}-{RUNS[1][1]} is not finished; run this again to go on.\n")
    assert sum(call.startswith("keep") for call in calls) == 1
