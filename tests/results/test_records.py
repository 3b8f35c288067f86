"""What files are, where a method and its training are chosen together: a run of certificates alone."""

import json
from pathlib import Path

import pytest

from fu import results
from fu.contents import checksum
from fu.errors import UserError
from fu.pipeline import certificate
from fu.pipeline.certificate import Certificate
from fu.pipeline.paths import certificate_of

POINTS = ("m+trained-lr0.1-lr0.5", "m+trained-lr0.2-lr0.5")
EVALUATION = "role,metric,client,value\nunlearned,asr,,{}\n"
Inputs = dict[str, list[str]]


def make(root: Path, file: str, text: str, stage: str, inputs: Inputs, **spec: object) -> None:
    """Write a file and its certificate; inputs are named without results/{preset}/p."""
    path = root / "here/p" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    read = {
        role: [[f"results/there/p/{name}", checksum(root / "here/p" / name)] for name in several]
        for role, several in inputs.items()
    }
    outputs = {path.name: (path.stat().st_size, checksum(path))}
    certificate.write(certificate_of(path), Certificate("", stage, spec, "", {}, read, outputs))


def trace(asr: float) -> str:
    return f"round,asr\n0,{asr}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A method `m` at one rate, from a training `t` at two: seed 0 compares both, seed 1 runs the chosen."""
    evaluated = []
    for k, (rate, point) in enumerate(zip(("0.1", "0.2"), POINTS, strict=True)):
        trained, unlearned = f"s/seed0/t+lr{rate}.trained.csv", f"s/seed0/{point}.unlearned.csv"
        make(tmp_path, trained, trace(k), "train", {})
        make(tmp_path, unlearned, trace(k), "unlearn", {"original": [trained]})
        evaluation = f"s/seed0/{point}.evaluation.csv"
        inputs = {"original": [trained], "models": [unlearned]}
        make(tmp_path, evaluation, EVALUATION.format(k), "evaluate", inputs, roles=["unlearned"])
        evaluated.append(evaluation)
    choose(tmp_path, POINTS[1], evaluated)
    trained, unlearned = "s/seed1/m+chosen.trained.csv", "s/seed1/m+chosen.unlearned.csv"
    make(tmp_path, trained, trace(2), "train", {"chosen": ["s/m.selected.json"]})
    make(tmp_path, unlearned, trace(2), "unlearn", {"original": [trained], "chosen": ["s/m.selected.json"]})
    inputs = {"original": [trained], "models": [unlearned]}
    make(tmp_path, "s/seed1/m+chosen.evaluation.csv", EVALUATION.format(2), "evaluate", inputs, roles=["unlearned"])
    return tmp_path


def choose(root: Path, point: str, evaluated: list[str]) -> None:
    """Write a selection among the points, which were evaluated on one seed."""
    text = json.dumps({"selected": point})
    make(root, "s/m.selected.json", text, "select", {"evaluations": evaluated}, trials=POINTS)


def test_certificates_say_which_training_and_which_point_was_chosen(root: Path) -> None:
    frame = results.evaluations(root=root)
    columns = ["training", "method", "point", "chosen", "seed", "role", "value"]
    assert [*frame[columns].itertuples(index=False, name=None)] == [
        ("t", "m", "trained-lr0.1-lr0.5", False, 0, "unlearned", 0.0),
        ("t", "m", "trained-lr0.2-lr0.5", True, 0, "unlearned", 1.0),
        ("t", "m", "trained-lr0.2-lr0.5", True, 1, "unlearned", 2.0),
    ]
    frame = results.traces(root=root)
    rows = frame[frame.role == "original"][[*columns, "round"]]
    assert [*rows.itertuples(index=False, name=None)] == [
        ("t", "t", "lr0.1", False, 0, "original", 0.0, 0),  # of `t` alone nothing was chosen
        ("t", "t", "lr0.2", False, 0, "original", 1.0, 0),
        ("t", "t", "lr0.2", False, 1, "original", 2.0, 0),
    ]


def test_what_was_made_for_another_choice_is_refused(root: Path) -> None:
    choose(root, POINTS[0], [f"s/seed0/{point}.evaluation.csv" for point in POINTS])
    with pytest.raises(UserError, match=r"/m\+chosen\.\w+\.csv: was made before m\.selected\.json was; run snakemake"):
        results.evaluations(root=root)


def test_a_lost_certificate_behind_a_chosen_point_is_refused(root: Path) -> None:
    certificate_of(root / "here/p/s/seed1/m+chosen.unlearned.csv").unlink()
    with pytest.raises(UserError, match=r"/m\+chosen\.unlearned\.csv: its certificate is missing or damaged; "):
        results.evaluations(root=root)
