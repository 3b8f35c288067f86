"""A folder of a preset with artefacts as their jobs leave them, and the certificates of the jobs behind them."""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from fu.artefacts.entry import Entry
from fu.artefacts.result import Result, write
from fu.contents import checksum
from fu.pipeline.provenance import certificate
from fu.pipeline.provenance.certificate import SEAL, Certificate
from fu.pipeline.provenance.paths import CERTIFIED, PICTURES
from fu.pipeline.settings.records import Paper
from tests.artefacts.factories import made

ROOT = Path("results/smoke")  # below the folder that a test works in
EVALUATION = "results/smoke/toy/small/seed0/ours.evaluation.csv"
CODE = "c0de" * 4
VERSIONS = {"python": "3.12.1", "torch": "2.13.0"}
CLAIMS = """\
claim,scenario,verdict,reason,text,place,artefact
first,,holds,,A < B,section 4,thing
first,small,holds,,A < B,section 4,thing
second,,does not hold,,Nothing comes back,,absent
third,,not judged,,,,thing
third,small,not judged,one seed,,,thing
"""


def paper(
    citation: str, *names: str, highlights: Sequence[str] = (), methods: Mapping[str, str] | None = None, url: str = ""
) -> Paper:
    """Return a paper as the page reads it: with these artefacts, "A thing" each, and plug-ins by method."""
    about, construct = {"source": "section 3", "unlearned_from": None}, cast(Any, Paper.model_construct)
    made: Paper = construct(
        citation=citation,
        url=url,
        code=None,
        trainings={},
        methods={k: SimpleNamespace(label=k.title(), plugin=name, **about) for k, name in (methods or {}).items()},
        artefacts={name: SimpleNamespace(title=f"A {name}", highlight=name in highlights) for name in names},
    )
    return made


def certify(stem: Path, stage: str, inputs: Mapping[str, list[str]] | None = None) -> None:
    """Write the certificate of what lies there: of an artefact's job or of one before it."""
    files = [file for file in sorted(stem.parent.glob(f"{stem.name}.*")) if not file.name.endswith(CERTIFIED)]
    outputs = {file.name: (file.stat().st_size, checksum(file)) for file in files}
    read = {role: [[path, checksum(Path(path))] for path in paths] for role, paths in (inputs or {}).items()}
    made = Certificate(f"{stem.name}-key", stage, {}, CODE, {}, read, outputs)
    certificate.write(stem.with_name(f"{stem.name}{CERTIFIED}"), made)


def sealed(content: bytes, old: str, new: str) -> bytes:
    """Return a certificate with another text in it, and a seal that fits."""
    head = content.rpartition(SEAL)[0].decode()
    assert old in head
    head = head.replace(old, new)
    return head.encode() + SEAL + hashlib.sha256(head.encode()).hexdigest().encode() + b'"\n}\n'


def put(entry: Entry, result: Result | None = None, **about: Any) -> Path:
    """Put an artefact there, which rests on one evaluation of one trained model; return its files without suffix."""
    evaluation = Path(EVALUATION)
    if not evaluation.exists():
        evaluation.parent.mkdir(parents=True)
        for name, stage, inputs in (("original.trained", "train", []), ("ours.evaluation", "evaluate", ["original"])):
            evaluation.with_name(f"{name}.csv").write_text(f"{name}\n")
            models = [str(evaluation.with_name(f"{model}.trained.csv")) for model in inputs]
            certify(evaluation.with_name(name), stage, {"models": models})
    stem = ROOT / "artefacts" / entry.paper / entry.artefact
    stem.parent.mkdir(parents=True, exist_ok=True)
    shown: Result = result or made(entry)
    suffixes = ("csv", "md", "html", "tex", *(PICTURES if shown.figure else ()))
    write(shown, entry, *(stem.with_name(f"{stem.name}.{suffix}") for suffix in suffixes))
    stem.with_name(f"{stem.name}.rows.csv").write_text("seed,value\n")
    costs = {EVALUATION: {"seconds": 7200.0}}
    described = {"commit": "abcdef" * 6, "clean": True, "preset": "smoke", "versions": VERSIONS, "seconds": 7200.0}
    described |= {"devices": ["toy"], "threads": [1], "costs": costs, "spec": entry.model_dump(mode="json"), **about}
    stem.with_name(f"{stem.name}.json").write_text(json.dumps(described))
    certify(stem, "publish", {"results": [EVALUATION]})
    return stem


def copied(stem: Path, name: str, paper: str = "toy") -> Path:
    """Put a copy of an artefact there under another name."""
    copy = stem.parent.with_name(paper) / name
    copy.parent.mkdir(exist_ok=True)
    for file in [*stem.parent.glob(f"{stem.name}.*")]:
        shutil.copy(file, copy.with_name(file.name.replace(stem.name, name, 1)))
    certify(copy, "publish", {"results": [EVALUATION]})
    return copy


def judged(stem: Path) -> Path:
    """Put a paper's verdicts there, which look like an artefact; the first claim is on `ours`."""
    verdicts = copied(stem, "verdicts", stem.parent.name)
    about = json.loads(verdicts.with_name("verdicts.json").read_text())
    about["spec"]["claims"] = {"first": {"params": {"of": {"method": "ours"}}}}
    verdicts.with_name("verdicts.json").write_text(json.dumps(about))
    verdicts.with_name("verdicts.csv").write_text(CLAIMS)
    certify(verdicts, "publish", {"results": [EVALUATION]})
    return verdicts
