"""A mistake in the config ends Snakemake with one sentence, and nothing is made."""

import shutil
from pathlib import Path

from tests.mistakes import contents, process
from tests.workflow.project import REPOSITORY


def test_snakemake_ends_with_the_sentence_and_makes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    older = folder / "results" / "smoke" / "data" / "digits.npz"
    older.parent.mkdir(parents=True)
    older.write_bytes(b"an older result")
    shutil.copy(REPOSITORY / "config.yaml", folder)
    before = contents(tmp_path)
    snakefile = str(REPOSITORY / "Snakefile")
    status, output = process(folder, "snakemake", "-n", "--snakefile", snakefile, "--config", "preset=smok")
    assert status == 1
    assert "Traceback" not in output
    told = "error: config: preset: there is no preset 'smok'; did you mean 'smoke'? allowed: paper, reduced, smoke."
    assert output.splitlines().count(told) == 1
    assert contents(tmp_path) == before
