"""Make one artefact: csv, md, pdf, png, and its provenance as json."""

import json
from pathlib import Path
from typing import Any

from fu import plugins
from fu.publishing import provenance, result
from fu.stages.common import arguments, run, whole


def main(argv: list[str] | None = None) -> None:
    """Spec: the artefact's entry with its scenarios, methods and seeds."""
    args = arguments(__doc__, ["root"], ["output"], argv, compute=False)
    spec = {**args.spec, "scenarios": dict(args.spec["scenarios"]), "methods": dict(args.spec["methods"])}
    kind = plugins.load("publishing", spec["kind"])
    made = kind.make(spec, args.root)
    files = [args.output.with_name(f"{args.output.name}.{suffix}") for suffix in ("csv", "md", "pdf", "png", "json")]
    with whole(*files) as (csv, md, pdf, png, about):
        result.write(made, spec, csv, md, pdf, png)
        inputs, costs = behind(spec, args.root, kind.READS, getattr(kind, "POINTS", "chosen") == "chosen")
        about.write_text(json.dumps(provenance.describe(spec, inputs, costs), indent=2) + "\n")


def behind(spec: dict[str, Any], root: Path, reads: str, chosen: bool) -> tuple[list[Path], list[Path]]:
    """Return the files that the artefact was made from and the cost files of its models."""
    inputs: list[Path] = []
    costs: list[Path] = []
    for scenario, about in spec["scenarios"].items():
        points = {name: found for method in spec["methods"].values() for name, found in method["points"][scenario]}
        for seed in spec["seeds"]:
            folder = root / spec["paper"] / scenario / f"seed{seed}"
            if reads == "data":
                inputs += [folder / "partition.npz", root / "data" / f"{about['dataset']}.npz"]
                continue
            stems = ["original", *(stem for found in points.values() for stem in found["models"])]
            costs += [folder / f"{stem}.cost.json" for stem in stems]
            ends = [f"{name}.evaluation.csv" for name in ["original", *points]]
            inputs += [
                folder / name for name in (ends if reads == "evaluations" else [f"{stem}.csv" for stem in stems])
            ]
        several = [name for name, method in spec["methods"].items() if len(method["points"][scenario]) > 1]
        inputs += [root / spec["paper"] / scenario / f"{name}.selected.json" for name in several if chosen]
    return list(dict.fromkeys(inputs)), list(dict.fromkeys(costs))


if __name__ == "__main__":
    run(main)
