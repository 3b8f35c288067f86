"""make's commands where there is no Makefile: `python -m fu reproduce PRESET=smoke TARGETS=fedosd_table8`."""

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from fu.errors import UserError, nearest

SETTINGS = {"PRESET": "preset", "PAPERS": "papers", "DATA_DIR": "data_dir"}
PLANNED = ("reproduce", "results", "why", "plan", "decide", "verify", "bundle", "oracles")  # of TARGETS
TAKES = {
    "show": ["CELL"],
    "compare": ["A", "B"],
    "audit": ["ORACLES", "PREDICTIONS", "CSV"],
    "unlock": [],
    "version": [],
}
COMMANDS = [*PLANNED, *TAKES]
VARIABLES = [*SETTINGS, "TARGETS", "CORES", "PROFILE", "BUNDLE", *(name for names in TAKES.values() for name in names)]


def words(command: str, given: Mapping[str, str]) -> list[str]:
    """Return the words that `fu.pipeline.cli.show` takes for a command and make's variables."""
    pairs = settings(given)
    if command == "verify" and "BUNDLE" in given:
        return ["check", given["BUNDLE"]]
    if command in PLANNED:
        return [command, *given.get("TARGETS", "").split(), *pairs]
    if command == "show":
        return ["cell", given.get("CELL", ""), *pairs]
    taken = [given.get(name, "") for name in TAKES[command]]
    if command == "audit" and "CSV" not in given:
        taken.pop()
    return [command, *taken, *(given.get("TARGETS", "").split() if command == "compare" else [])]


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
        raise UserError(f"{command} needs the workflow's libraries: pip install 'fu[workflow]'.")
    from fu.pipeline.cli import show

    if command in ("oracles", "unlock") and (code := show.run(words(command, given))):  # refuses what cannot be
        return code
    if command == "unlock":
        return exit_code_of([*snakemake({**given, "TARGETS": ""}), "--unlock"])
    if command in ("reproduce", "oracles"):
        if code := exit_code_of(snakemake(given)):
            return code
        command = "results"
    return show.run(words(command, given))


def exit_code_of(command: Sequence[str]) -> int:
    """Wait for a command and return its exit code: 130 after Ctrl-C, which the terminal sends to the command, too."""
    process, interrupted = subprocess.Popen(command), False
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
            "PROFILE: slurm needs Snakemake's plug-in for Slurm: pip install 'fu[cluster]', or in a clone make cluster."
        )
    config, targets = settings(given), given.get("TARGETS", "").split()
    command = [sys.executable, "-m", "snakemake", "--snakefile", f"{ROOT}/Snakefile"]
    command += ["--workflow-profile", str(places[0])] + ["--cores", cores] * ("PROFILE" not in given)
    return command + ["--config", *config] * bool(config) + ["--", *targets] * bool(targets)


def settings(given: Mapping[str, str]) -> list[str]:
    """Return what make's variables set in the config; YAML strings, so that a folder named 12 is not a number."""
    return [f"{key}= {json.dumps(given[name], ensure_ascii=False)} " for name, key in SETTINGS.items() if name in given]


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except UserError as error:
        sys.exit(f"error: {error}")
