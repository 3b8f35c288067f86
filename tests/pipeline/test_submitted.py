"""What a run that submits writes for its jobs."""

from pathlib import Path

import pytest

from fu.pipeline.engine import submitted
from tests.mistakes import has, sentence


def test_jobs_read_what_the_run_has_written_and_refuse_a_torn_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for forced in (False, True):
        submitted.write({"preset": "smoke"}, forced, {"a.made.json": "1"})
        assert submitted.read() == ({"preset": "smoke"}, forced, {"a.made.json": "1"})
    assert {path.name for path in submitted.FOLDER.iterdir()} == {"config.json", "jobs.json"}
    for path in (submitted.CONFIG, submitted.JOBS):
        whole = path.read_bytes()
        for torn in (b"", whole[:-2]):
            path.write_bytes(torn)
            has(sentence(submitted.read), f"{submitted.FOLDER}: a file is missing or damaged; start the run")
        path.write_bytes(whole)


def test_commands_of_other_words_have_other_digests() -> None:
    assert len({submitted.digest(words) for words in (["ab", "c"], ["a", "bc"], ["c", "ab"], ["ab", "c", ""])}) == 4
