"""What is written wrong ends in a plan or in one sentence; a failure or a hang ends with the seed of its case."""

import time

import pytest

from fu.errors import UserError
from tests.faults import fuzz_settings


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError("x"), "KeyError: 'x'"),
        (UserError("two\nlines."), "no sentence"),
        (None, "HangError: more than 0.05 s"),
    ],
    ids=["a traceback", "two lines", "a hang"],
)
def test_the_first_failure_is_told_by_its_seed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception | None, words: str
) -> None:
    def plan(config: object) -> None:
        if error:
            raise error
        time.sleep(5)

    monkeypatch.setattr(fuzz_settings, "Plan", plan)
    monkeypatch.setattr(fuzz_settings, "SECONDS", 0.05)
    assert fuzz_settings.main(["--cases", "3"]) == 1
    text = capsys.readouterr().err
    assert words in text
    assert text.splitlines()[-1] == "config-0 failed: python -m tests.faults.fuzz_settings --only config-0"
