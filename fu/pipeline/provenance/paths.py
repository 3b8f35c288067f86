"""Every file name, defined once.

A run is `paper/scenario/seedN`, a trial a training or a method at one point of its grid.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

PICTURES = ("pdf", "svg", "png")  # of a figure; a table has none
FORMATS = ("md", "csv", "html", "tex", *PICTURES)  # the files of an artefact that people open
# Stage -> its outputs by name, below results/{preset}. The stage's `Files` have the same names.
OUTPUTS: dict[str, dict[str, str]] = {
    "data": {"archive": "data/{dataset}.npz"},
    "partition": {"partition": "{run}/partition.npz"},
    "request": {"request": "{run}/request.npz"},
    "train": {
        "model": "{run}/{trial}.trained.safetensors",
        "trace": "{run}/{trial}.trained.csv",
        "cost": "{run}/{trial}.trained.cost.json",
        "history": "{run}/{trial}.trained.history.safetensors",
    },
    "unlearn": {
        "model": "{run}/{trial}.unlearned.safetensors",
        "trace": "{run}/{trial}.unlearned.csv",
        "cost": "{run}/{trial}.unlearned.cost.json",
    },
    "shadow": {"shadows": "{run}/{trial}.shadows.npz"},
    "recover": {
        "model": "{run}/{trial}.recovered.safetensors",
        "trace": "{run}/{trial}.recovered.csv",
        "cost": "{run}/{trial}.recovered.cost.json",
    },
    "evaluate": {
        "evaluation": "{run}/{trial}.{evaluation}.csv",
        "predictions": "{run}/{trial}.{evaluation}.predictions.safetensors",
    },
    "select": {"selection": "{scenario}/{method}.selected.json"},
    "predict": {"predictions": "{scenario}/{trial}.predicted.safetensors"},
    "relearn": {"relearned": "{scenario}/{trial}.relearned.csv"},
    "assess": {"audited": "{scenario}/audits/{audit}/{against}/{trial}.csv"},
    "expose": {"exposed": "{scenario}/audits/{audit}/{against}/{trial}.exposed.npz"},
    "agree": {"agreement": "{run}/agreement/{artefact}/{trial}.csv"},
    "holdings": {"holdings": "{run}/holdings.csv"},
    "examples": {"examples": "{run}/examples.npz"},
    "oracles": {"archive": "oracles/{scenario}.zip"},
    "publish": {
        name: f"artefacts/{{paper}}/{{artefact}}.{suffix}"
        for name, suffix in (
            *(("csv", "csv"), ("rows", "rows.csv"), ("md", "md"), ("html", "html"), ("tex", "tex"), ("json", "json")),
            *((picture, picture) for picture in PICTURES),
        )
    },
}
_STEMS = {stage: next(iter(files.values())).rpartition(".")[0] for stage, files in OUTPUTS.items()}
LOGS = {stage: f"logs/{stem}.log" for stage, stem in _STEMS.items()}
SEED = "seed{}"  # stands for the folder of each seed
CHOSEN = "+chosen"  # after the name of a training or method: the chosen point of its grid
CERTIFIED = ".made.json"  # next to the outputs of a job: what they were made from
CERTIFICATES = {stage: f"{stem}{CERTIFIED}" for stage, stem in _STEMS.items()}


def certificate_of(file: Path) -> Path:
    """Return the certificate of a file that other jobs read."""
    for suffix in (".cost.json", ".history.safetensors", ".predictions.safetensors", ".rows.csv", file.suffix):
        if file.name.endswith(suffix):
            return file.with_name(file.name.removesuffix(suffix) + CERTIFIED)
    raise AssertionError


class Paths:
    """The files of one preset, by stage, output and names: `paths("train", "model", run=run)`."""

    def __init__(self, root: str) -> None:
        """`root`: the folder of the preset."""
        self.root = root

    def __call__(self, stage: str, output: str, **names: Any) -> str:
        """Return one output of a stage."""
        return f"{self.root}/{OUTPUTS[stage][output].format(**names)}"

    def outputs(self, stage: str, names: Mapping[str, Any] | None = None) -> dict[str, str]:
        """Return all outputs of a stage, its certificate included; without names, as wildcard patterns."""
        patterns = {**OUTPUTS[stage], "certificate": CERTIFICATES[stage]}
        files = {output: f"{self.root}/{pattern}" for output, pattern in patterns.items()}
        return files if names is None else {key: pattern.format(**names) for key, pattern in files.items()}

    def certificate(self, stage: str, **names: Any) -> str:
        """Return the certificate of a job."""
        return self.outputs(stage, names)["certificate"]

    @property
    def page(self) -> str:
        """The page with all artefacts."""
        return f"{self.root}/index.html"

    def log(self, stage: str) -> str:
        """Return the pattern of a stage's log."""
        return f"{self.root}/{LOGS[stage]}"


def at(path: str, seed: int) -> str:
    """Return the path for one seed."""
    return path.replace(SEED, f"seed{seed}")
