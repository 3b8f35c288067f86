"""A folder of a preset with artefacts as their jobs leave them, and the certificates of the jobs behind them."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fu.artefacts.entry import Entry
from fu.artefacts.result import Result, write
from fu.contents import checksum
from fu.pipeline import certificate
from fu.pipeline.certificate import Certificate
from fu.pipeline.paths import CERTIFIED
from tests.artefacts.factories import made

ROOT = Path("results/smoke")  # below the folder that a test works in
EVALUATION = "results/smoke/toy/small/seed0/ours.evaluation.csv"
CODE = "c0de" * 4
VERSIONS = {"python": "3.12.1", "torch": "2.13.0"}
CLAIMS = """\
claim,scenario,verdict,mean,low,high,n,needed,published,published_value,reason,against,text,place,artefact,kind
first,,holds,,,,5,3,does not hold,,,,A < B,section 4,thing,less
first,small,holds,0.25,0.125,0.375,5,3,does not hold,0.5,,,A < B,section 4,thing,less
second,,does not hold,,,,5,4,,,,,Nothing comes back,,other,same
second,small,does not hold,1,,,5,4,,,,,Nothing comes back,,other,same
second,large,undecided,0.5,0.2,0.8,4,4,,,,,Nothing comes back,,other,same
third,,not judged,,,,0,,,,one seed,,,,thing,same
third,small,not judged,,,,0,,,,one seed,,,,thing,same
fourth,,undecided,,,,5,12,,,,,C,,thing,same
fourth,small,undecided,1,,,5,12,,,,,C,,thing,same
fifth,,undecided,,,,5,inf,,,,,D,,thing,same
"""


def certify(stem: Path, stage: str, inputs: Mapping[str, list[str]] | None = None) -> None:
    """Write the certificate of what lies there: of an artefact's job or of one before it."""
    files = [file for file in sorted(stem.parent.glob(f"{stem.name}.*")) if not file.name.endswith(CERTIFIED)]
    outputs = {file.name: (file.stat().st_size, checksum(file)) for file in files}
    read = {role: [[path, checksum(Path(path))] for path in paths] for role, paths in (inputs or {}).items()}
    made = Certificate(f"{stem.name}-key", stage, {}, CODE, {}, read, outputs)
    certificate.write(stem.with_name(f"{stem.name}{CERTIFIED}"), made)


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
    files = [stem.with_name(f"{stem.name}.{suffix}") for suffix in ("csv", "md", "html", "tex", "pdf", "svg", "png")]
    write(result or made(entry), entry, *files)
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
    """Put a paper's verdicts there, which look like an artefact."""
    verdicts = copied(stem, "verdicts", stem.parent.name)
    verdicts.with_name("verdicts.csv").write_text(CLAIMS)
    certify(verdicts, "publish", {"results": [EVALUATION]})
    return verdicts
