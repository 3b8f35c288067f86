"""Make what a release consists of, in dist/, and check that each package works in an environment of its own.

`make release`: a wheel and a source distribution, the SBOM, and the kept results as a zip. Then, in fresh environments:
the wheel and the source distribution alone run the federation of docs/python.md; the wheel with `[workflow]` makes a
table in an empty folder, whose numbers are those of docs/expected. torch and torchvision have the versions of the lock
file, as their newest may not be on this machine.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from fu.pipeline.documents.kept import kept

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
TARGET = "fedosd_table8"
CORE = """
import importlib.util
from pathlib import Path
import fu.api, fu.results
assert "site-packages" in fu.api.__file__, fu.api.__file__
assert not importlib.util.find_spec("snakemake")
assert (Path(fu.api.__file__).parents[1] / "py.typed").is_file()
"""


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command and return what it prints; the release fails where it fails."""
    print("+", *(str(word) for word in command), flush=True)
    done = subprocess.run([*map(str, command)], cwd=cwd, text=True, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}\nerror: this command failed with exit code {done.returncode}.")
    return done.stdout


def environment(folder: Path, *packages: str) -> Path:
    """Return the Python of a new environment with these packages."""
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin/python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return python


def pinned(library: str) -> str:
    """Return a library with its version in the lock file, as pip takes it."""
    lock = (ROOT / "envs/lock.txt").read_text()
    return re.findall(rf"^{library}==\S+", lock, re.MULTILINE)[0]


def build() -> tuple[Path, Path]:
    """Make everything in dist/, and return the wheel and the source distribution."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "hatchling", "build", "-d", DIST)
    run("make", "sbom")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("docs/measurements", "docs/reports"):
            shutil.copytree(ROOT / name, Path(folder, name))
        shutil.copy(ROOT / "docs/results.md", Path(folder, "docs/results.md"))
        shutil.make_archive(str(DIST / f"fu-{version}-results"), "zip", folder)
    return DIST / f"fu-{version}-py3-none-any.whl", DIST / f"fu-{version}.tar.gz"


def check(wheel: Path, source: Path, folder: Path) -> None:
    """Install each package in an environment of its own, and use it from an empty folder."""
    empty = folder / "empty"
    empty.mkdir()
    page = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.DOTALL)[2]
    for package in (wheel, source):
        core = environment(folder / f"core from {package.suffix[1:]}", pinned("torch"), str(package))
        run(core, "-c", CORE, cwd=empty)
        print(run(core, "-c", page, cwd=empty))
    workflow = environment(folder / "workflow", pinned("torch"), pinned("torchvision"), f"{wheel}[workflow]")
    run(workflow, "-m", "fu", "reproduce", f"TARGETS={TARGET}", cwd=empty)
    expected = ROOT / "docs/expected/smoke"
    print(run(workflow, "-m", "fu", "compare", "A=results/smoke", f"B={expected}", f"TARGETS={TARGET}", cwd=empty))
    print(run(workflow, "-c", "from fu import results; print(results.evaluations().shape)", cwd=empty))
    print(run(workflow, "-m", "fu", "bundle", f"TARGETS={TARGET}", cwd=empty))
    [bundle] = empty.rglob("*.crate.zip")
    print(run(workflow, "-m", "fu", "verify", f"BUNDLE={bundle}", cwd=empty))


def check_rest(folder: Path) -> None:
    """Check that the SBOM has what the lock file pins, and that the kept results are as their certificates say."""
    named = {part["name"] for part in json.loads((DIST / "sbom.cdx.json").read_text())["components"]}
    pins = {*re.findall(r"^([\w.-]+)==", (ROOT / "envs/lock.txt").read_text(), re.MULTILINE)}
    [results] = DIST.glob("*-results.zip")
    shutil.unpack_archive(results, folder)
    runs = kept(folder / "docs/measurements")
    wrong = [f"{run.paper}/{run.name}: {run.wrong}" for run in runs if run.wrong]
    if pins - named or wrong or not runs:
        sys.exit(f"error: the SBOM lacks {sorted(pins - named)}; of {len(runs)} kept runs these are wrong: {wrong}.")


if __name__ == "__main__":
    packages = build()
    with tempfile.TemporaryDirectory(prefix="fu-release-") as place:
        check_rest(Path(place, "rest"))
        check(*packages, Path(place))
    print("dist:", *sorted(path.name for path in DIST.iterdir()))
