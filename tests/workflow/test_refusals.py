"""A mistake in the config or on the command line ends Snakemake with one sentence, and nothing is made."""

import shutil
from pathlib import Path

import pytest

from tests.mistakes import contents, process
from tests.workflow.project import REPOSITORY

PRESET = "config: preset: there is no preset 'smok'; did you mean 'smoke'? allowed: paper, reduced, smoke."
CACHE = (
    "--cache (`cache:` in a profile): Snakemake's cache would return outputs without the certificates that say what "
    "they were made from; leave it out, and copy results with their *.made.json where others need them."
)
SDM = (
    "--sdm (`software-deployment-method:` in a profile): jobs run in Snakemake's own environment, whose libraries the "
    "plan reads; leave it out, and make that environment with `make version` or `conda env create -f "
    "envs/environment.yaml`."
)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--sdm", "conda"), SDM),
        (("--config", "preset=smok"), PRESET),
        (("--cache",), CACHE),
        (("--profile", "caching"), CACHE),
    ],
)
def test_snakemake_ends_with_the_sentence_and_makes_nothing(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    folder = tmp_path / "work"
    older = folder / "results" / "smoke" / "data" / "digits.npz"
    older.parent.mkdir(parents=True)
    older.write_bytes(b"an older result")
    shutil.copy(REPOSITORY / "config.yaml", folder)
    (folder / "caching").mkdir()
    (folder / "caching/config.yaml").write_text("cache: [train]\n")
    before = contents(tmp_path)
    snakefile = str(REPOSITORY / "Snakefile")
    status, output = process(folder, "snakemake", "-n", "--snakefile", snakefile, *words)
    assert status == 1
    assert "Traceback" not in output
    assert output.splitlines().count(f"error: {told}") == 1
    assert contents(tmp_path) == before
