"""The command line, with make's targets and variables: `python -m fu reproduce TARGETS=fedosd_table8 CORES=2`."""

import importlib.util
import json
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from fu.errors import UserError, nearest

COMMANDS = (
    *("reproduce", "results", "show", "why", "plan", "decide", "verify", "bundle", "keep", "compare"),
    *("oracles", "audit", "unlock", "version"),
)
VARIABLES = (
    *("PRESET", "PAPERS", "DATA_DIR", "TARGETS", "CORES", "PROFILE", "CELL", "BUNDLE", "RUN", "A", "B"),
    *("ORACLES", "PREDICTIONS", "CSV"),
)


def main(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; `UserError` where there is no such command, variable or value."""
    command, *rest = arguments or [""]
    if command not in COMMANDS:
        raise UserError(f"usage: python -m fu COMMAND [VARIABLE=value ...], with COMMAND one of {', '.join(COMMANDS)}.")
    if plain := [word for word in rest if "=" not in word]:
        raise UserError(f"expected VARIABLE=value, got {plain[0]!r}; tables and figures are named in TARGETS=...")
    given = dict(word.split("=", 1) for word in rest)
    if unknown := next((name for name in given if name not in VARIABLES), None):
        raise UserError(f"there is no variable {unknown!r}{nearest(unknown, VARIABLES)}.")
    given = {name: value for name, value in given.items() if value or name == "CORES"}  # as make takes them
    if not importlib.util.find_spec("snakemake"):
        raise UserError(f"{command} needs the workflow's libraries: in a clone of fu, pip install '.[workflow]'.")
    if command in ("oracles", "unlock") and (code := report(command, given)):  # refuses what cannot be
        return code
    if command == "unlock":
        return exit_code_of([*snakemake({**given, "TARGETS": ""}), "--unlock"])
    if command in ("reproduce", "oracles"):
        if code := exit_code_of(snakemake(given)):
            return code
        command = "results"
    return report(command, given)


def report(command: str, given: Mapping[str, str]) -> int:
    """Print a command's report and return its exit code."""
    from fu.pipeline.cli import show  # only now: during a run its libraries would take memory

    return show.run(command, given)


def exit_code_of(command: Sequence[str]) -> int:
    """Wait for a command and return its exit code: 130 after Ctrl-C, which the terminal sends to the command, too.

    SIGTERM is passed on.
    """
    process, interrupted = subprocess.Popen(command), False
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    while True:
        try:
            code = process.wait()
            return 130 if interrupted else code
        except KeyboardInterrupt:
            interrupted = True


def snakemake(given: Mapping[str, str]) -> list[str]:
    """Return Snakemake's command line for make's variables; `UserError` for a wrong value of CORES or PROFILE."""
    from fu.pipeline.provenance.digest import ROOT

    cores, profile = given.get("CORES", "all"), given.get("PROFILE", "default")
    if not re.fullmatch(r"all|[1-9]\d*", cores):
        raise UserError(f"CORES: must be 'all' or a positive integer, got {cores!r}.")
    places = [path for path in (ROOT / "profiles" / profile, Path(profile)) if (path / "config.yaml").is_file()]
    if not places:
        raise UserError(f"PROFILE: there is no profile {profile!r}; allowed: default, slurm, a folder with one.")
    if profile == "slurm" and not importlib.util.find_spec("snakemake_executor_plugin_slurm"):
        raise UserError(
            "PROFILE: slurm needs Snakemake's plug-in for Slurm: in a clone of fu, make cluster, or pip install "
            "'.[cluster]'."
        )
    config, targets = settings(given), given.get("TARGETS", "").split()
    command = [sys.executable, "-m", "snakemake", "--snakefile", f"{ROOT}/Snakefile"]
    command += ["--workflow-profile", str(places[0])] + ["--cores", cores] * ("PROFILE" not in given)
    return command + ["--config", *config] * bool(config) + ["--", *targets] * bool(targets)


def settings(given: Mapping[str, str]) -> list[str]:
    """Return what make's variables set in the config; YAML strings, so that a folder named 12 is not a number."""
    from fu.pipeline.settings import papers

    keys = {key: given[name] for name, key in papers.MAKE_VARIABLES.items() if name in given}
    return [f"{key}= {json.dumps(value, ensure_ascii=False)} " for key, value in keys.items()]


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except UserError as error:
        sys.exit(f"error: {error}")
