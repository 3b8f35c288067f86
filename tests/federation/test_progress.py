"""Progress: readable lines in a log file."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from fu.federation import progress
from fu.federation.progress import Progress
from fu.federation.task import State
from tests.federation.runs import drive, never, toy


def test_progress_says_where_a_run_diverges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drive(toy(), never(tmp_path), lambda state, round: State(state.theta * torch.nan))
    assert capsys.readouterr().err.endswith(" toy: diverged in round 1\n")


def test_progress_speaks_every_few_seconds_with_the_time_left_of_this_session(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = SimpleNamespace(now=0.0, strftime=lambda _: "12:00:00")
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(progress, "time", clock)
    shown = Progress("toy", 100, done=90)
    for done in range(10):
        clock.now += 2.5
        shown.advance({"asr": done / 10} if done % 2 == 0 else {})
    said = [line.removeprefix("12:00:00 toy: ") for line in capsys.readouterr().err.splitlines()]
    assert said == [
        "resumed after round 90",
        "round 94/100 (94%), asr 0.200, 2.50 s per round, 15 s left",
        "round 98/100 (98%), asr 0.600, 2.50 s per round, 5 s left",
        "round 100/100 (100%), asr 0.800, 2.50 s per round, 0 s left",
    ]
