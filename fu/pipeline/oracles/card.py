"""The data card of an archive of oracles: what it holds, how it was made, how to load it and how to audit with it."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fu.artefacts.provenance import commit
from fu.audits.models import ALTERED, AUGMENTED, FORGOTTEN, HELD_OUT, TEST, TRAIN, TRIGGERED
from fu.data import archives

DIGITS = "UCI Machine Learning Repository, Creative Commons Attribution 4.0"
TERMS = {  # the publishers', as docs/data.md has them
    "mnist": "Creative Commons Attribution-Share Alike 3.0; Yann LeCun and Corinna Cortes (as stated in Keras's "
    "documentation)",
    "fashion_mnist": "MIT licence; Zalando SE",
    **dict.fromkeys(("cifar10", "cifar100"), "no licence stated; the authors ask to be cited (Krizhevsky 2009)"),
    "femnist": "derived from NIST's Special Database 19, a work of the US government; LEAF's code: BSD 2-clause",
    "shakespeare": "public-domain text of Project Gutenberg, prepared by LEAF",
    **dict.fromkeys(("digits", "digits_shifted", "digits_noisy", "digits_rgb", "digits_rgb_20"), DIGITS),
}
UNKNOWN = "none recorded in fu; ask the publisher"
DEFAULT = "fu's default, or as in the phase before"
PROBES = {
    FORGOTTEN: "what is to be forgotten, as it was trained on: with the attack's trigger and labels",
    AUGMENTED: "the same images, shifted and with noise",
    HELD_OUT: "the client's own test samples, or test samples of the same classes",
    TRIGGERED: "test images of the retained clients with the attack's trigger and labels",
    ALTERED: "the same images, shifted and with noise",
    TRAIN: "training samples of the retained clients",
    TEST: "test samples of the retained clients",
}
DESCRIBED = "see `audited` in `fu/evaluation/predictions.py`"  # any other probe
FILES = {
    "`original.safetensors`, `retrained.safetensors`": "the weights of all models of a kind, [N, ...], by the "
    "name of a parameter",
    "`probes.npz`": "`x.{probe}`, as the models take them: images float32 [n, channels, height, width] or text uint8 "
    "[n, length] (numbers of characters); `y.{probe}` int64 [n]; `digest`, which identifies these probes and settings",
    "`logits.npz`": "`{kind}.{probe}` float32 [N, n, C]: the answers of every model",
    "`margins.npz`": "`{kind}.{probe}` float64 [N, n]: log p - log(1 - p), p the probability of a sample's own label",
    "`partition.npz`": "who holds which rows of the data set, whose training part comes before its test part: client k "
    "trains on `train[train_offsets[k]:train_offsets[k + 1]]`, and so for `validation` and `test`; `attacked` clients, "
    "their `backdoored` rows, and what the attack has drawn (`attack.*`)",
    "`request.npz`": "the clients or rows to forget; absent where these are the attacked clients",
    "`card.json`": "the data card in machine-readable form",
    "`SHA256SUMS`": "for `sha256sum --check`",
}
LOADING = """\
```python
import zipfile

import numpy as np
from safetensors.torch import load

archive = zipfile.ZipFile("{name}")
probes = np.load(archive.open("probes.npz"))  # x.forgotten, y.forgotten [n], ...
logits = np.load(archive.open("logits.npz"))  # original.forgotten [N, n, C], retrained.forgotten, ...
part = np.load(archive.open("partition.npz"))
rows = np.split(part["train"], part["train_offsets"][1:-1])  # what each client trains on
weights = load(archive.read("original.safetensors"))
first = {{key: stacked[0] for key, stacked in weights.items()}}  # for `load_state_dict`
```
"""
AUDITING = """\
Unlearn each original model with your method, and save the logits of your models by probe, in the order of the original
models; if a model diverged, save NaN in its place. Here nothing is unlearned:

```python
names = [key.removeprefix("x.") for key in probes if key.startswith("x.")]
mine = {{key: logits[f"original.{{key}}"] for key in names}}  # your models' instead: float [N, n, C]
np.savez("mine.npz", digest=probes["digest"], **mine)
```

In a clone of fu, `make audit ORACLES={name} PREDICTIONS=mine.npz` then prints what every audit finds. The probes are
public here: a method that was tuned on them proves nothing.
"""


def data_of(archive: Path, dataset: str) -> dict[str, Any]:
    """Return what the card says of a data set: its name, its terms, and the SHA-256 of the bytes of its arrays."""
    arrays = archives.read(archive, dataset, mapped=True)
    sums = {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in arrays.items()}
    return {"dataset": dataset, "terms": TERMS.get(dataset, UNKNOWN), "sha256": sums}


def made_by(costs: Iterable[Path]) -> dict[str, Any]:
    """Return version, commit, and each machine of the models whose costs these files hold."""
    found = [json.loads(path.read_text()) for path in costs]
    machines = {
        f"{of['device']}, {of['threads']} thread(s), Python {of['python']}, torch {of['torch']}" for of in found
    }
    return {"version": version("fu"), **commit(), "machines": sorted(machines)}


def write(card: Mapping[str, Any], folder: Path, name: str) -> None:
    """Write the card of an archive with this file name into a folder, for programs and for people."""
    (folder / "card.json").write_text(json.dumps(card, indent=1, sort_keys=True) + "\n")
    (folder / "README.md").write_text(readme(card, name))


def readme(card: Mapping[str, Any], name: str) -> str:
    """Return the data card, in Markdown, of an archive with this file name; `card`: the content of its card.json."""
    parts = [
        f"# Oracles: {card['label']}",
        f"Original and retrained models of the scenario `{card['paper']}/{card['scenario']}` of fu at preset "
        f"`{card['preset']}`, with their outputs on fixed probes, to audit a method without training. The models of "
        "a kind differ in their seeds alone. A retrained model repeats the training of the original one with the same "
        "seed, without what is forgotten and from other initial weights.",
        _table(("", ""), _facts(card)),
        "## Probes\n\nAccuracy is that of a sample's own label: mean ± standard deviation over the models.",
        _table(("probe", "samples", "content", *(f"{kind} models" for kind in card["models"])), _probes(card)),
        "## Files\n\nArrays without pickle; N models, n samples, C classes.",
        _table(("file", "content"), FILES.items()),
        f"## Load\n\n{LOADING.format(name=name)}",
        f"## Audit\n\n{AUDITING.format(name=name)}",
        "## Settings",
        _table(("setting", "value", "source"), _settings(card["settings"], card["sources"])),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _facts(card: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what was made of what, by whom and where."""
    made, data = card["made"], card["data"]
    for kind, models in card["models"].items():
        gone = f"; diverged and left out: {_listed(models['left_out'])}" if models["left_out"] else ""
        yield f"{kind} models", f"{len(models['seeds'])}, of the seeds {_listed(models['seeds'])}{gone}"
    yield "architecture", f"`fu/models/{card['settings']['model']['name']}.py`"
    yield (
        "forgotten",
        f"client {_listed(card['forgotten'])}" if card["forgotten"] else f"{card['forgotten_samples']} samples",
    )
    yield "attack", f"`fu/attacks/{card['attack']}.py`" if card["attack"] else "none"
    yield "data set", f"{data['dataset']}; its terms, which hold for `probes.npz`: {data['terms']}"
    yield from ((f"SHA-256 of the bytes of `{array}`", f"`{content}`") for array, content in data["sha256"].items())
    edited = ", edited" if made["clean"] is False else ""
    yield "made by", f"fu {made['version']}, commit {made['commit'] or 'unknown'}{edited}; MIT licence"
    yield "machine", "; ".join(made["machines"])


def _probes(card: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield name, number of samples and content of every probe, and the accuracy of the models of each kind."""
    for probe, samples in card["probes"].items():
        accuracies = (models["accuracy"][probe] for models in card["models"].values())
        shown = (f"{mean:.3f} ± {deviation:.3f}" for mean, deviation in accuracies)
        yield f"`{probe}`", str(samples), PROBES.get(probe, DESCRIBED), *shown


def _settings(tree: Mapping[str, Any], sources: Mapping[str, str], *path: str) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and source of every setting; the source is that of the innermost part that has one."""
    for key, below in tree.items():
        here = (*path, key)
        if isinstance(below, Mapping) and below:
            yield from _settings(below, sources, *here)
            continue
        above = (".".join(here[:depth]) for depth in range(len(here), 0, -1))
        source = next((sources[one] for one in above if one in sources), DEFAULT)
        yield f"`{'.'.join(here)}`", f"`{json.dumps(below)}`", source


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(map(str, values))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
