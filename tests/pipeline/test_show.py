"""What `make show` and the end of `make reproduce` print: one sentence for every mistake, on every terminal."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from fu.errors import UserError
from fu.pipeline import show
from fu.pipeline.digest import ROOT
from fu.pipeline.plan import Plan
from fu.pipeline.settings.papers import read_yaml


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a config.yaml, in which it runs."""
    shutil.copy2(ROOT / "config.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "usage: make show CELL="),
        (["cell"], "usage: make show CELL="),
        (["cell", ""], "usage: make show CELL="),
        (["everything"], "usage: make show CELL="),
        (["cell", "a=b"], "CELL: the plan makes no 'a=b'"),
        (["cell", "x", "smoke"], "'smoke' is no key=value."),
        (["results", "extra"], "'extra' is no key=value."),
        (["results", "seeds=[1"], "config: seeds: '[1' is no valid YAML."),
        (["results", "seeds=2001-99-99"], "config: seeds: '2001-99-99' is no valid YAML."),
        (["results", "seeds=" + "[" * 5000], "config: seeds: '[["),
        (["results", "data_dir=\udcff"], r"config: data_dir: '\udcff' is no valid YAML."),
        (["results", "data_dir=!!python/name:os.x"], "config: data_dir: '!!python/name:os.x' is no valid YAML."),
        (["results", "data_dir=12"], "config: data_dir: "),
        (["results", "nonsense=1"], "config: nonsense: unknown key"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_mistake_is_one_sentence(words: list[str], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        show.main(words)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", [None, "", "# nothing\n", "- preset\n", "preset: [\n"])
def test_a_config_that_is_none_is_one_sentence(folder: Path, text: str | None) -> None:
    (folder / "config.yaml").unlink()
    if text is not None:
        (folder / "config.yaml").write_text(text)
    with pytest.raises(UserError) as caught:
        show.main(["results"])
    assert str(caught.value).startswith("config.yaml: ")
    assert "\n" not in str(caught.value)


def shown(folder: Path, environment: Mapping[str, str], shell: str = "") -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; '{sys.executable}' -m fu.pipeline.show results {shell}"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        check=False,
    )


@pytest.fixture
def table(folder: Path) -> Path:
    """The first table of the plan, as if it was made."""
    plan = Plan(read_yaml(folder / "config.yaml"))
    paper, artefact = next(key for key, entry in plan.artefacts.items() if entry.kind == "table")
    path = folder / plan.paths("publish", "md", paper=paper, artefact=artefact)
    path.parent.mkdir(parents=True)
    path.write_text("| 0.1 ± 0.2 – |\n", encoding="utf-8")
    return path


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("environment", "line"),
    [
        ({"PYTHONIOENCODING": "utf-8"}, "| 0.1 ± 0.2 – |".encode()),
        ({"PYTHONIOENCODING": "latin-1"}, "| 0.1 ± 0.2 ? |".encode("latin-1")),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, b"| 0.1 ? 0.2 ? |"),
    ],
)
def test_a_terminal_that_lacks_characters_shows_the_others(
    folder: Path, environment: dict[str, str], line: bytes
) -> None:
    done = shown(folder, environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert line in done.stdout.splitlines()


def test_a_table_that_is_no_text_is_shown_as_far_as_it_is(folder: Path, table: Path) -> None:
    table.write_bytes(b"| 0.1 \xff |\n")
    assert "| 0.1 \ufffd |".encode() in shown(folder, {}).stdout.splitlines()


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(("shell", "status"), [("| true", 128 + signal.SIGPIPE), (">&-", 0)])
def test_a_reader_that_has_seen_enough_is_no_error(folder: Path, shell: str, status: int) -> None:
    done = shown(folder, {}, shell)
    assert (done.returncode, done.stderr) == (status, b"")
