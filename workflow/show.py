"""Show where results lie, or the command that makes one of them. Used by `make reproduce` and `make show`.

python workflow/show.py results [key=value ...]
python workflow/show.py cell fedosd/mnist-pat50/seed0/fedosd.unlearned [key=value ...]
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.chdir(ROOT)

from fu.errors import UserError, nearest  # noqa: E402
from fu.plan.papers import read_yaml  # noqa: E402
from fu.plan.plan import Plan  # noqa: E402


def results(plan: Plan) -> None:
    """Print the path of every artefact that was made, and the first table itself."""
    tables = []
    print(f"\nTables and figures ({plan.root}/artefacts):")
    for (paper, artefact), entry in plan.artefacts.items():
        base = f"{plan.root}/artefacts/{paper}/{artefact}"
        if not Path(f"{base}.md").exists():
            continue
        print(f"  {base}.{{md,csv,pdf,png}}   {entry.title}")
        if entry.kind == "table":
            tables.append(Path(f"{base}.md"))
    if tables:
        print(f"\n{tables[0].read_text(encoding='utf-8')}")


def cell(plan: Plan, name: str, config: list[str]) -> None:
    """Print the command of the job that makes a result."""
    path = name if name.startswith("results/") else f"{plan.root}/{name}"
    known = plan.all_targets()
    found = [file for file in known if file == path or file.startswith(f"{path}.")]
    if not found:
        short = {re.sub(r"\.[a-z]+$", "", file.removeprefix(f"{plan.root}/")) for file in known}
        hint = nearest(name, short).partition(" allowed")[0].rstrip(";")
        raise UserError(f"CELL: the plan makes no {name!r}{hint} (`snakemake -n` lists all).")
    options = ["--config", *config] if config else []
    command = [sys.executable, "-m", "snakemake", "-n", "-p", "--force", found[0], *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for block in re.split(r"\n(?=\[\w{3} \w{3} +\d)", done.stdout + done.stderr):
        output = re.search(r"^ +output: (.*)$", block, re.M)
        shell = re.search(r"^Shell command: (.*)$", block, re.M)
        if output and shell and found[0] in output[1].split(", "):
            bare = shell[1].rpartition(" 2> ")[0]  # the log is for batch runs
            bare = bare.replace(" -m fu.warm ", " -m ", 1)  # as is the server
            print(bare.replace("python ", f"{os.path.relpath(sys.executable)} ", 1))
            return
    sys.exit(done.stdout + done.stderr)


def main(arguments: list[str]) -> None:
    """Read config.yaml and the overriding key=value pairs, and show what was asked for."""
    pairs = [argument for argument in arguments if "=" in argument]
    words = [argument for argument in arguments if "=" not in argument]
    config = read_yaml(Path("config.yaml"))
    config.update({key: yaml.safe_load(value) for key, _, value in (pair.partition("=") for pair in pairs)})
    plan = Plan(config)
    if words == ["results"]:
        results(plan)
    elif len(words) == 2 and words[0] == "cell":
        cell(plan, words[1], pairs)
    else:
        raise UserError("usage: make show CELL=fedosd/mnist-pat50/seed0/fedosd.unlearned")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except UserError as error:
        sys.exit(f"error: {error}")
