"""What files are, where a method and its training are chosen together: a run of certificates alone."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from fu import results
from fu.artefacts.entry import Method, Scenario, Trial
from fu.contents import checksum
from fu.errors import UserError
from fu.pipeline.provenance import certificate
from fu.pipeline.provenance.certificate import Certificate
from fu.pipeline.provenance.paths import certificate_of
from fu.pipeline.stages.frames import Source
from tests.artefacts.factories import make_entry

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
    for seed, value in enumerate((3, 2)):
        trained, unlearned = f"s/seed{seed}/m+chosen.trained.csv", f"s/seed{seed}/m+chosen.unlearned.csv"
        make(tmp_path, trained, trace(seed + 1), "train", {"chosen": ["s/m.selected.json"]})
        make(tmp_path, unlearned, trace(value), "unlearn", {"original": [trained], "chosen": ["s/m.selected.json"]})
        inputs = {"original": [trained], "models": [unlearned]}
        evaluation = f"s/seed{seed}/m+chosen.evaluation.csv"
        make(tmp_path, evaluation, EVALUATION.format(value), "evaluate", inputs, roles=["unlearned"])
    return tmp_path


def choose(root: Path, point: str, evaluated: list[str]) -> None:
    """Write a selection among the points, which were evaluated on one seed."""
    text = json.dumps({"selected": point})
    make(root, "s/m.selected.json", text, "select", {"evaluations": evaluated}, trials=POINTS)


def test_results_are_found_in_and_above_the_working_directory(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "empty").mkdir()
    monkeypatch.chdir(root / "empty")
    monkeypatch.setattr(results, "PACKAGES", root)  # as where `fu` is installed from a wheel
    with pytest.raises(UserError, match="not inside a project; pass root=, the folder with the results"):
        results.evaluations()
    (root / "results/here/artefacts").mkdir(parents=True)
    shutil.copytree(root / "here", root / "results/here", dirs_exist_ok=True)
    pd.testing.assert_frame_equal(results.evaluations(), results.evaluations(root=root / "results"))


def test_certificates_say_which_training_and_which_point_was_chosen(root: Path) -> None:
    frame = results.evaluations(root=root)
    columns = ["training", "method", "point", "chosen", "seed", "role", "value"]
    assert [*frame[columns].itertuples(index=False, name=None)] == [
        ("t", "m", "trained-lr0.1-lr0.5", False, 0, "unlearned", 0.0),
        ("t", "m", "trained-lr0.2-lr0.5", True, 0, "unlearned", 3.0),  # the chosen one's own, where both are there
        ("t", "m", "trained-lr0.2-lr0.5", True, 1, "unlearned", 2.0),
    ]
    frame = results.traces(root=root)
    rows = frame[frame.role == "original"][[*columns, "round"]]
    assert [*rows.itertuples(index=False, name=None)] == [
        ("t", "t", "lr0.1", False, 0, "original", 0.0, 0),  # of `t` alone nothing was chosen
        ("t", "t", "lr0.2", False, 0, "original", 1.0, 0),
        ("t", "t", "lr0.2", False, 1, "original", 2.0, 0),
    ]


def test_artefacts_say_what_scenarios_share_and_which_point_a_follower_is(root: Path) -> None:
    """`late` follows the choice of `m`, and differs in post-training."""
    late = "late+trained-lr0.2-lr0.5-recovery-lr7"
    shared = {"trained": "s/m+chosen", "unlearned": "s/m+chosen"}
    trials = {
        "m": Trial(name="m+chosen", rate=None, values={}, points={point: point for point in POINTS}, **shared),
        "late": Trial(name="late+chosen", rate=None, values={}, points={POINTS[1]: late}, **shared),
    }
    methods = [
        Method(name=name, label=name, in_paper=True, post_training="none", trials={"other": (trial,)})
        for name, trial in trials.items()
    ]
    other = Scenario(name="other", label="", dataset="", data="", rounds=(1, 1), at={"p": 2, "seed": 5}, original=None)
    entry = make_entry("table", scenarios=(other,), methods=tuple(methods), chosen={})
    path = "p/s/seed{}/m+chosen.evaluation.csv"
    sources = [Source("evaluations", path, "other", name, trial.name) for name, trial in trials.items()]
    make(root, "../artefacts/p/table.csv", "", "publish", {}, **entry.model_dump(mode="json"), sources=sources)
    frame = results.evaluations(root=root)
    assert [*frame][:5] == ["paper", "scenario", "p", "at.seed", "training"]
    there = frame[frame.scenario == "other"]
    columns = ["p", "at.seed", "training", "method", "point", "chosen", "seed", "value"]
    assert [*there[columns].itertuples(index=False, name=None)] == [
        (2, 5, "t", "late", late.removeprefix("late+"), True, 0, 3.0),
        (2, 5, "t", "late", late.removeprefix("late+"), True, 1, 2.0),
        (2, 5, "t", "m", "trained-lr0.2-lr0.5", True, 0, 3.0),
        (2, 5, "t", "m", "trained-lr0.2-lr0.5", True, 1, 2.0),
    ]
    assert frame[frame.scenario == "s"].p.isna().all()
    rounds = results.traces(root=root)
    rows = rounds[(rounds.scenario == "other") & (rounds.seed == 1)]
    assert [*zip(rows.method, rows.role, rows.point, strict=True)] == [
        ("late", "unlearned", late.removeprefix("late+")),
        ("m", "unlearned", "trained-lr0.2-lr0.5"),
        ("t", "original", "lr0.2"),
    ]


def test_what_was_made_for_another_choice_is_refused(root: Path) -> None:
    choose(root, POINTS[0], [f"s/seed0/{point}.evaluation.csv" for point in POINTS])
    with pytest.raises(UserError, match=r"/m\+chosen\.\w+\.csv: is older than m\.selected\.json; start the run"):
        results.evaluations(root=root)


def test_the_chosen_point_s_training_is_found_among_several_evaluations_of_each_point(root: Path) -> None:
    before = results.traces(root=root)
    choose(root, POINTS[1], [f"s/seed0/{point}.evaluation.csv" for point in POINTS for _ in range(3)])
    pd.testing.assert_frame_equal(results.traces(root=root), before)


def test_a_lost_certificate_behind_a_chosen_point_is_refused(root: Path) -> None:
    certificate_of(root / "here/p/s/seed1/m+chosen.unlearned.csv").unlink()
    with pytest.raises(UserError, match=r"/m\+chosen\.unlearned\.csv: its certificate is missing or damaged; "):
        results.evaluations(root=root)


@pytest.mark.parametrize(
    ("file", "reads"),
    [
        ("s/seed1/m+chosen.evaluation.csv", [results.evaluations]),
        ("s/seed0/m+chosen.unlearned.csv", [results.traces]),
        ("s/m.selected.json", [results.evaluations, results.traces]),
    ],
)
def test_a_file_that_is_not_as_its_job_wrote_it_is_refused(
    root: Path, file: str, reads: list[Callable[..., pd.DataFrame]]
) -> None:
    path = root / "here/p" / file
    path.write_text(path.read_text() + " ")
    for read in (results.evaluations, results.traces):
        if read in reads:
            with pytest.raises(UserError, match=rf"^{re.escape(str(path))}: the content does not match "):
                read(root=root)
        else:
            assert len(read(root=root))


def test_what_jobs_at_work_write_is_not_read(root: Path) -> None:
    before = len(results.evaluations(root=root)), len(results.traces(root=root))
    for file in ("s/seed1/m+chosen.evaluation.csv", "s/seed1/m+chosen.unlearned.csv"):
        path = root / "here/p" / file
        path.with_name(f".part-7-{path.name}").write_text("role,met")
    assert (len(results.evaluations(root=root)), len(results.traces(root=root))) == before


def test_an_artefact_is_the_file_of_its_name_and_one_of_another_version_is_refused(root: Path) -> None:
    make(root, "../artefacts/p/table.csv", "a\n1\n", "publish", {}, **make_entry("table").model_dump(mode="json"))
    (root / "here/artefacts/p/table.rows.csv").write_text("its rows, seed by seed")
    with pytest.raises(
        UserError, match=r"there is no artefact 'table\.rows'; did you mean 'table'\? allowed: table\.$"
    ):
        results.artefact("p", "table.rows", root=root)
    assert [*results.artefact("p", "table", root=root)] == ["paper", "a"]
    (root / "here/artefacts/p/table.csv").write_text("a\n2\n")
    with pytest.raises(UserError, match=r"/p/table\.csv: the content does not match "):
        results.artefact("p", "table", root=root)
    make(root, "../artefacts/p/old.csv", "a\n1\n", "publish", {}, kind="table")
    with pytest.raises(UserError, match=r"/p/old\.csv: made by another version of fu; start the run again\.$"):
        results.evaluations(root=root)


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("metric,quantity,mean\nclient_accuracy,V,2.5\nclient_loss,V,.1\n", ["points", "nats"]),
        ("metric,mean\naccuracy,.9\ngain,2.5\ngain_over_better,1\nV,2.5\n", ["fraction", *["points"] * 3]),
        ("quantity,value\nclients,10\n", []),
    ],
)
def test_what_a_kind_gives_in_points_has_the_unit_points(root: Path, text: str, units: list[str]) -> None:
    make(root, "../artefacts/p/table.csv", text, "publish", {}, **make_entry("table").model_dump(mode="json"))
    assert [*results.artefact("p", "table", root=root).get("unit", [])] == units
