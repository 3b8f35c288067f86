"""How seconds and memory grow with clients, samples, kept models, jobs and results; each point in a process of its own.

python -m benchmarks.scale [clients data kept owners plan results] [--out results/scale]

writes a CSV and a picture for each part, and prints exponents: k of cost ~ n^k, between the last two points. One
thread, random images of MNIST's shape: time and memory count, nothing is learned. `data` needs 6 GB on disk.
"""

import argparse
import json
import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch

from benchmarks.scale import points
from benchmarks.scale.points import MODELS, Point
from fu.pipeline.stages.compute import keep_memory


class Part(NamedTuple):
    """A function of `points`, the axis, what makes a line, and what is drawn over the axis."""

    point: Callable[..., Point]
    axis: str
    lines: list[str]
    numbers: list[str]


PLANNING = [f"seconds of {name}{when}" for when in ("", ", all made") for name in ("make why", "snakemake -n")]
PARTS = {
    "clients": Part(points.of_clients, "clients", ["model", "who"], ["seconds a round", "MB of the rounds"]),
    "data": Part(points.of_data, "samples", ["images"], ["seconds to load", "seconds a round", "MB"]),
    "kept": Part(points.of_kept, "rounds", [], ["MB on disk", "seconds of a checkpoint", "seconds of a restart"]),
    "owners": Part(points.of_owners, "owners", ["method"], ["seconds to load", "seconds of 99 rounds"]),
    "plan": Part(points.of_plan, "jobs", [], ["seconds", "MB", *PLANNING]),
    "results": Part(points.of_results, "certificates", [], ["seconds to read", "seconds to verify"]),
}


def asked(part: str, folder: Path) -> Iterator[Point]:
    """Yield what each point of a part is given."""
    place = {"folder": str(folder)}
    match part:
        case "clients":
            for model in MODELS:
                for number in (10, 100, 1_000, 10_000):
                    for present, held in dict.fromkeys([(number, "mean"), (number, "all"), (10, "mean")]):
                        yield {"clients": number, "present": present, "model": model, "held": held}
        case "data":
            for samples in (70_000, 700_000, 7_000_000):
                points.write_data(folder, samples)
                for images in ("streamed", "resident")[: 1 if samples > 1_000_000 else 2]:  # 22 GB as float32
                    yield {"samples": samples, "images": images, **place}
                (folder / f"{samples}.npz").unlink()
        case "kept":
            yield from ({"rounds": rounds, **place} for rounds in (300, 3_000, 30_000))
        case "owners":
            yield from ({"method": name, "owners": n, **place} for name in ("fedavg", "fats") for n in (355, 3_550))
        case "plan":
            for seeds in (2, 16, 81):  # 1,300 to 50,000 jobs
                (room := folder / str(seeds)).mkdir()
                yield {"seeds": seeds, "folder": str(room)}
                shutil.rmtree(room)
        case "results":
            yield from ({"certificates": number, **place} for number in (500, 5_000, 50_000))


def measured(part: str, given: Point) -> Point:
    """Return what a point is given and its numbers, from a process of its own; `problem`: why there are none."""
    command = [sys.executable, "-m", "benchmarks.scale", "--point", part, json.dumps(given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    about = {key: value for key, value in given.items() if key != "folder"}
    if part == "clients":
        about["who"] = "10 present" if given["present"] != given["clients"] else f"all present, {given['held']} held"
    if done.returncode:
        return {**about, "problem": (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]}
    return {**about, **json.loads(done.stdout.splitlines()[-1])}


def lines(part: Part, rows: pd.DataFrame, number: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the name and the rows of each line, those that have the number."""
    if number in rows:
        for key, group in rows.groupby(part.lines, sort=False) if part.lines else [((), rows)]:
            yield ", ".join(map(str, key)), group.dropna(subset=[number]).sort_values(part.axis)


def exponents(part: Part, rows: pd.DataFrame) -> Iterator[str]:
    """Yield the exponent of each number of each line, between its last two points."""
    for number in part.numbers:
        for name, line in lines(part, rows, number):
            last = line[[part.axis, number]].to_numpy(float)[-2:]
            if len(last) == 2 and (last > 0).all():
                (n0, cost0), (n1, cost1) = last
                power = math.log(cost1 / cost0) / math.log(n1 / n0)
                yield f"  {number}{f' ({name})' if name else ''}: {part.axis}^{power:.2f}"


def draw(part: Part, rows: pd.DataFrame, path: Path) -> None:
    """Draw every number of a part over its axis, both logarithmic."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter, NullLocator, StrMethodFormatter

    size = 3.4 * len(part.numbers), 3.4
    figure, panels = plt.subplots(1, len(part.numbers), figsize=size, layout="constrained", squeeze=False)
    for panel, number in zip(panels[0], part.numbers, strict=True):
        for name, line in lines(part, rows, number):
            panel.loglog(line[part.axis], line[number], "o-", label=name, markersize=4)
        panel.set(xlabel=part.axis, ylabel=number)
        panel.set_xticks(values := sorted({*rows[part.axis]}), [f"{value:,}" for value in values], fontsize=7)
        panel.xaxis.set_minor_locator(NullLocator())
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        panel.yaxis.set_minor_formatter(NullFormatter())
        panel.grid(alpha=0.3)
    if part.lines:
        figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=7)
    figure.savefig(path)
    plt.close(figure)


def text(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of: {', '.join(PARTS)}")
    parser.add_argument("--out", type=Path, default=Path("results/scale"))
    parser.add_argument("--point", nargs=2, metavar=("PART", "GIVEN"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.point:
        keep_memory()
        torch.set_num_threads(1)
        print(json.dumps(PARTS[args.point[0]].point(**json.loads(args.point[1]))))
        return
    if unknown := [part for part in args.parts if part not in PARTS]:
        parser.error(f"there is no part {unknown[0]!r}; allowed: {', '.join(PARTS)}")
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.parts or PARTS:
        rows = []
        with tempfile.TemporaryDirectory(dir=args.out) as folder:
            for given in asked(name, Path(folder)):
                rows.append(measured(name, given))
                print(f"{name}: {', '.join(f'{key} {text(value)}' for key, value in rows[-1].items())}", flush=True)
        frame = pd.DataFrame(rows)
        frame.to_csv(args.out / f"{name}.csv", index=False, float_format="%.4g")
        draw(PARTS[name], frame, args.out / f"{name}.svg")
        print("\n".join(exponents(PARTS[name], frame)), flush=True)


if __name__ == "__main__":
    main()
