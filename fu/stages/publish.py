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
        inputs, costs = behind(spec, args.root, kind.READS)
        about.write_text(json.dumps(provenance.describe(spec, inputs, costs), indent=2) + "\n")


def behind(spec: dict[str, Any], root: Path, reads: str) -> tuple[list[Path], list[Path]]:
    """Return the files that the artefact was made from and the cost files of its models."""
    inputs: list[Path] = []
    costs: list[Path] = []
    for scenario in spec["scenarios"]:
        for seed in spec["seeds"]:
            folder = root / spec["paper"] / scenario / f"seed{seed}"
            if reads == "data":
                dataset = spec["scenarios"][scenario]["dataset"]
                inputs += [folder / "partition.npz", root / "data" / f"{dataset}.npz"]
                continue
            inputs += sorted(folder / f"{method}.evaluation.csv" for method in ["original", *spec["methods"]])
            costs.append(folder / "original.cost.json")
            for name, method in spec["methods"].items():
                roles = ["unlearned", "recovered"][: method["roles"][scenario]]
                costs += [folder / f"{name}.{role}.cost.json" for role in roles]
    if reads == "traces":
        inputs = [path.with_name(path.name.replace(".cost.json", ".csv")) for path in costs]
    return inputs, costs


if __name__ == "__main__":
    run(main)
