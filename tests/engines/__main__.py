"""Run the toy paper on the oldest and the newest Snakemake that the project admits: `python -m tests.engines`.

Each gets an environment of its own, with all other libraries of this one, and tests of what touches Snakemake: due,
forced and absent jobs, wrong clocks, failures, submission.
"""

import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / ".venv-engines"
TESTS = (
    "tests/pipeline/test_screen.py",
    "tests/workflow/test_submitted.py",
    "tests/workflow/test_failures.py",
    "tests/workflow/test_edits.py::test_a_finished_run_has_nothing_to_do",
    "tests/workflow/test_edits.py::test_an_absent_intermediate_is_made_where_it_is_needed",
    "tests/workflow/test_edits.py::test_a_run_killed_after_the_first_affected_job_leaves_the_rest_scheduled",
    "tests/workflow/test_exact.py::test_times_hide_nothing",
    "tests/workflow/test_exact.py::test_what_a_person_forces_runs_besides_what_is_due",
)


def admitted() -> dict[str, str]:
    """Return what pip is to install for the oldest and the newest Snakemake that pyproject.toml admits."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    listed = map(Requirement, project["optional-dependencies"]["workflow"])
    (named,) = (one for one in listed if one.name == "snakemake")
    (oldest,) = (one.version for one in named.specifier if one.operator == ">=")
    return {"oldest": f"snakemake=={oldest}", "newest": str(named)}


def environment(name: str, requirement: str) -> str:
    """Return the Python of an environment with this Snakemake, which finds everything else where this one does."""
    folder = FOLDER / name
    python = str(folder / "bin/python")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--clear", str(folder)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "-qq", "--disable-pip-version-check"]
    subprocess.run([*pip, requirement], check=True)
    (libraries,) = folder.glob("lib/python*/site-packages")
    (libraries / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return python


def main() -> int:
    """Return 0 if all tests pass with both."""
    failed = []
    for name, requirement in admitted().items():
        python = environment(name, requirement)
        subprocess.run([python, "-m", "snakemake", "--version"], check=True)
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "", *TESTS]
        tests = subprocess.run(command, cwd=REPOSITORY)
        failed += [name] * (tests.returncode != 0)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
