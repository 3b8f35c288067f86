"""Pages that take somebody from nothing to a result, followed word by word in a copy of the project."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from fu.pipeline.provenance.digest import ROOT
from tests.workflow.project import from_repository

FENCED = r"[^`]*?```\w+\n(.*?)```"


def page(name: str) -> str:
    """Return the text of a page."""
    return (ROOT / f"docs/{name}.md").read_text()


def block(text: str, language: str) -> str:
    """Return a page's one block of code in a language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", text, re.S)
    return str(found)


def files(text: str) -> dict[str, str]:
    """Return what a page says to save, by its path."""
    return dict(re.findall(rf"Save\s+this\s+as\s+`([^`]*)`{FENCED}", text, re.S))


def config(text: str) -> tuple[tuple[str, ...], str]:
    """Return which keys of config.yaml a page replaces, and by what."""
    ((keys, lines),) = re.findall(rf"in\s+place\s+of\s+the\s+lines\s+((?:`\w+:`(?:,| and)?\s*)+){FENCED}", text, re.S)
    return tuple(re.findall(r"\w+:", keys)), lines


def commands(text: str) -> list[str]:
    """Return the lines that a page says to run."""
    return block(text, "sh").splitlines()


def write(text: str, root: Path) -> None:
    """Save a page's files below a folder."""
    for path, content in files(text).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)


def configure(text: str, path: Path) -> None:
    """Edit config.yaml as a page says."""
    keys, lines = config(text)
    kept = [line for line in path.read_text().splitlines() if not line.startswith(keys)]
    path.write_text("\n".join([*kept, lines]))


def followed(text: str, root: Path) -> Path:
    """Copy the project with its tests, as if it were installed, and save and edit what a page says."""
    from_repository(root).install()
    shutil.copytree(ROOT / "tests", root / "tests")
    shutil.copy2(ROOT / "pyproject.toml", root)
    write(text, root)
    configure(text, root / "config.yaml")
    return root


def run(root: Path, line: str) -> str:
    """Run a line of a page in a copy; return what it prints."""
    done = subprocess.run(
        line,
        shell=True,
        cwd=root,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(root)},  # not what another make or FU_PLUGINS says
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def linted(root: Path, *paths: str) -> None:
    """Hold files of a copy to the linter and the format of this repository."""
    for words in (("check",), ("format", "--check")):
        command = [sys.executable, "-m", "ruff", *words, "--config", str(ROOT / "pyproject.toml")]
        command += ["--config", "lint.isort.known-first-party = ['fu']"] * (words == ("check",))
        subprocess.run([*command, *paths], cwd=root, check=True)


def first_column(text: str, head: str) -> list[str]:
    """Return the names, in backticks, of the first column of a page's one table that begins with this heading."""
    (rows,) = re.findall(rf"^\| {re.escape(head)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.M)
    return re.findall(r"`(.*?)`", " ".join(line.split("|")[1] for line in rows.splitlines()))
