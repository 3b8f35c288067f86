"""A mistake in the config or on the command line ends Snakemake with one sentence, and nothing is made."""

import shutil
from pathlib import Path

import pytest

from tests.mistakes import contents, process
from tests.workflow.project import REPOSITORY

CACHE = "--cache (`cache:` in a profile): Snakemake's cache would return outputs without the certificates that say "


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--sdm", "conda"), "--sdm (`software-deployment-method:` in a profile): jobs run in Snakemake's own "),
        (("--config", "preset=smok"), "config: preset: there is no preset 'smok'; did you mean 'smoke'? allowed: "),
        (("--cache",), CACHE),
        (("--profile", "caching"), CACHE),
    ],
)
def test_snakemake_ends_with_the_sentence_and_makes_nothing(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    older = tmp_path / "results/smoke/data/digits.npz"
    older.parent.mkdir(parents=True)
    older.write_bytes(b"an older result")
    shutil.copy(REPOSITORY / "config.yaml", tmp_path)
    (tmp_path / "caching").mkdir()
    (tmp_path / "caching/config.yaml").write_text("cache: [train]\n")
    before = contents(tmp_path)
    status, output = process(tmp_path, "snakemake", "-n", "--snakefile", f"{REPOSITORY}/Snakefile", *words)
    assert status == 1
    assert "Traceback" not in output
    assert [line.startswith(f"error: {told}") for line in output.splitlines()].count(True) == 1
    assert contents(tmp_path) == before
