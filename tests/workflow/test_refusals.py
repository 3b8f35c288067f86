"""A mistake in the config ends Snakemake with one sentence, and nothing is made."""

import shutil
from pathlib import Path

import pytest

from tests.mistakes import contents, process
from tests.pipeline.configs import NAME_RULE
from tests.workflow.project import REPOSITORY


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("presett=smoke", ("config: presett: unknown key; did you mean 'preset'?",)),
        ("preset=smok", ("config: preset: there is no preset 'smok'; did you mean 'smoke'?",)),
        ("preset=../x", (NAME_RULE, "got '../x'")),
        (
            "overrides={fedosd: {scenarios: {mnist-pat20: {settings: {data: {clients: 3}}}}}}",
            ("data: partition: 3 clients with 2 of 10 classes each leave client 0 without data",),
        ),
    ],
    ids=["unknown key", "unknown preset", "preset outside its folder", "bad partition"],
)
def test_snakemake_ends_with_the_sentence_and_makes_nothing(
    tmp_path: Path, option: str, words: tuple[str, ...]
) -> None:
    folder = tmp_path / "work"
    older = folder / "results" / "smoke" / "data" / "digits.npz"
    older.parent.mkdir(parents=True)
    older.write_bytes(b"an older result")
    shutil.copy(REPOSITORY / "config.yaml", folder)
    before = contents(tmp_path)
    snakefile = str(REPOSITORY / "Snakefile")
    status, output = process(folder, "snakemake", "-n", "--snakefile", snakefile, "--config", option)
    assert status == 1
    assert "Traceback" not in output
    assert sum(all(word in line for word in words) for line in output.splitlines()) == 1
    assert contents(tmp_path) == before
