"""Seconds of a FedAvg round by fu, by a plain loop and by other frameworks on the same work, in one table.

python -m benchmarks.peers [--data-dir DIR with mnist.npz] [--peers-python .venv-peers/bin/python] [--threads 2]

Ten clients of 6,000 images of MNIST (without it: scikit-learn's digits, repeated), batches of 200, one epoch, the same
initial weights and the same order of samples. Each contender is a small program beside this file, runs in a process of
its own, one after another, and warms up for a round. All must arrive at the same models, or there is no table.
"""

import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.peers.common import BATCH, CLIENTS, RATE, SAMPLES
from fu.data import archives, sources
from fu.data.dataset import about

PINS = Path("envs/peers.txt")
MODELS = {"lenet5": "LeNet-5", "mlp": "MLP"}
CHECKED = (1, 3)  # rounds after which models are compared
TOLERANCE = 1e-4  # rounding makes up to 1e-5 in three rounds; another order of samples, 1e-2
SECONDS = 300  # that a contender may take
NOT_COMPARED = (
    "Not compared: BlazeFL 3.0, which needs Python 3.14, where fu has 3.11 to 3.13; the authors' program of FedOSD, as "
    "the paper does not say how it builds batches."
)


@dataclass(frozen=True)
class Contender:
    """One column: `jobs` of a program at the same time, each with its part of the threads."""

    title: str
    program: str
    jobs: int = 1


@dataclass
class Found:
    """What a contender's runs gave; `problem`: why it has no numbers."""

    seconds: list[float] = field(default_factory=list)
    models: NDArray[np.float32] | None = None
    problem: str = ""


def contenders(pins: str) -> list[Contender]:
    """Return the columns, named with the versions that are pinned."""
    version = dict(line.split("==") for line in pins.splitlines() if "==" in line)
    return [
        Contender("fu", "fu"),
        Contender("plain loop", "plain"),
        Contender(f"pfl {version['pfl']}", "pfl"),
        Contender(f"flwr {version['flwr']} (ray)", "flwr"),
        Contender("fu, one-thread jobs side by side", "fu", jobs=2),
    ]


def prepare(data_dir: Path | None, file: Path) -> str:
    """Write 60,000 images in random order, the same whenever; return what they are."""
    archive = data_dir / "mnist.npz" if data_dir else None
    if archive and archive.exists():
        arrays, what = archives.read(archive, "mnist"), "MNIST"
    else:
        arrays, what = sources.digits(about("digits")), "scikit-learn's digits, repeated (no mnist.npz in DATA_DIR)"
        arrays["x_train"] = np.pad(arrays["x_train"], ((0, 0), (4, 4), (4, 4), (0, 0)))
    order = np.resize(np.random.default_rng(0).permutation(len(arrays["y_train"])), CLIENTS * SAMPLES)
    np.savez(file, x=arrays["x_train"][order], y=arrays["y_train"][order])
    return what


def run(contender: Contender, python: str, model: str, data: Path, rounds: int, threads: int) -> Found:
    """Run a contender's jobs at the same time; return seconds a round of one of them, without the first."""
    quiet = {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
    outs = [data.with_name(f"out{job}.npz") for job in range(contender.jobs)]
    command = [python, "-m", "benchmarks.peers.contender", contender.program, model, str(data)]
    options = ["--threads", str(max(1, threads // contender.jobs)), "--rounds", str(rounds)]
    jobs = [
        subprocess.Popen(
            [*command, str(out), *options],
            env=os.environ | quiet,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for out in outs
    ]
    found = Found()
    try:
        for job, out in zip(jobs, outs, strict=True):
            _, said = job.communicate(timeout=SECONDS)
            if job.returncode:
                return Found(problem=(said.strip().splitlines() or [f"exit status {job.returncode}"])[-1])
            with np.load(out) as arrays:
                found.seconds += [float(value) / contender.jobs for value in arrays["seconds"][1:]]
                found.models = arrays["models"]
    except subprocess.TimeoutExpired:
        return Found(problem=f"not done in {SECONDS} s")
    finally:
        for job in jobs:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)  # ray's processes, too
    return found


def distance(models: NDArray[np.float32], reference: NDArray[np.float32]) -> float:
    """Return the largest difference of two contenders' models after the rounds that are checked."""
    return max(float(np.abs(models[number - 1] - reference[number - 1]).max()) for number in CHECKED)


def cell(found: Found) -> str:
    """Return the median and the range, or that there is none."""
    if found.problem:
        return "–"
    low, high = min(found.seconds), max(found.seconds)
    return f"{statistics.median(found.seconds):.2f} ({low:.2f} to {high:.2f})"


def table(columns: Sequence[Contender], rows: Mapping[str, Sequence[Found]]) -> str:
    """Return the table in Markdown, with the reason below where a contender has no numbers."""
    lines = ["| | " + " | ".join(column.title for column in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(map(cell, found)) + " |" for name, found in rows.items()]
    problems = {c.title: f.problem for found in rows.values() for c, f in zip(columns, found, strict=True) if f.problem}
    return "\n".join([*lines, *(f"\n{title} could not be run: {problem}" for title, problem in problems.items())])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=4, help="of a run, the first of which warms up")
    parser.add_argument("--passes", type=int, default=2, help="runs of each contender, alternating")
    parser.add_argument("--all", action="store_true", help="end with status 1 where a contender cannot be run")
    args = parser.parse_args()
    if args.rounds < max(CHECKED):
        parser.error(f"--rounds: at least {max(CHECKED)}, after which models are compared")
    columns = contenders(PINS.read_text())
    rows: dict[str, list[Found]] = {}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.npz"
        what = prepare(args.data_dir, data)
        for model, title in MODELS.items():
            rows[title] = [Found() for _ in columns]
            for _ in range(args.passes):
                for column, total in zip(columns, rows[title], strict=True):
                    python = sys.executable if column.program in ("fu", "plain") else args.peers_python
                    found = run(column, python, model, data, args.rounds, args.threads)
                    total.seconds += found.seconds
                    total.problem = total.problem or found.problem
                    total.models = found.models
            plain = rows[title][1]
            if plain.models is None:
                sys.exit(f"error: the plain loop could not be run: {plain.problem}")
            for column, total in zip(columns, rows[title], strict=True):
                if total.models is None:
                    continue
                apart = distance(total.models, plain.models)
                if not apart <= TOLERANCE:
                    sys.exit(
                        f"error: {title}: a parameter of {column.title} is {apart:.1e} away from the plain loop's "
                        f"({TOLERANCE:.0e} is allowed), so they do not do the same work: no table."
                    )
                print(f"{title}, {column.title}: at most {apart:.1e} from the plain loop", flush=True)
    number = args.passes * (args.rounds - 1)
    print(
        f"\nSeconds a round: {what}; {CLIENTS} clients of {SAMPLES:,} images, B = {BATCH}, one epoch, rate {RATE}; "
        f"{args.threads} threads, torch {torch.__version__}; medians of {number} rounds (from fastest to slowest).\n"
    )
    print(f"{table(columns, rows)}\n\n{NOT_COMPARED}")
    if args.all and any(found.problem for row in rows.values() for found in row):
        sys.exit("error: not every contender could be run (see above).")


if __name__ == "__main__":
    main()
