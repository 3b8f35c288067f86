"""What `fu.results` reads of finished runs, and what it refuses."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from fu import results
from fu.contents import checksum
from fu.errors import UserError
from fu.pipeline.provenance import certificate
from fu.pipeline.provenance.certificate import Certificate
from fu.pipeline.provenance.paths import certificate_of
from tests.mistakes import python
from tests.workflow.project import Project

COLUMNS = [
    *("paper", "scenario", "training", "method", "point", "chosen", "seed", "role"),
    *("client", "metric", "value", "unit"),
]
TRIALS = {  # scenario, method, point -> whether tables show it, and the roles of its models
    ("iid", "original", ""): (True, ["original"]),
    ("iid", "retraining", ""): (True, ["unlearned"]),
    ("iid", "fupga", "lr0.02"): (True, ["unlearned", "recovered"]),
    ("iid", "fedosd", "lr0.02"): (True, ["unlearned", "recovered"]),
    ("iid", "fedosd.rates", "lr0.02-recovery-lr0.001"): (False, ["unlearned", "recovered"]),
    ("iid", "fedosd.rates", "lr0.02-recovery-lr0.02"): (False, ["unlearned", "recovered"]),
    ("pat", "original", ""): (True, ["original"]),
    ("pat", "retraining", ""): (True, ["unlearned"]),
    ("pat", "fupga", "lr0.02"): (True, ["unlearned", "recovered"]),
    ("pat", "fedosd", "lr0.02"): (True, ["unlearned", "recovered"]),
    ("pat", "fedosd", "lr0.005"): (False, ["unlearned"]),
    ("pat", "fedosd.m5", "lr0.02"): (True, ["unlearned", "recovered"]),
}


@pytest.fixture(scope="module")
def root(toy: Project) -> Path:
    """The results of the toy paper; nobody edits them."""
    return toy.root / "results"


def trials(frame: pd.DataFrame) -> dict[tuple[str, str, str], tuple[bool, list[str]]]:
    """Return the trials of a frame: whether they are chosen, and the roles of their models in order."""
    groups = frame.groupby(["scenario", "method", "point"])
    return {key: (bool(rows.chosen.all()), [*rows.role.unique()]) for key, rows in groups}  # type: ignore[misc]


def test_evaluations_hold_every_metric_of_every_model_once(root: Path) -> None:
    frame = results.evaluations("toy", root=root)
    assert [*frame] == COLUMNS
    assert not frame.duplicated(COLUMNS[:-2]).any()
    assert not frame.duplicated([name for name in COLUMNS[:-2] if name != "chosen"]).any()
    assert trials(frame) == TRIALS
    assert set(frame.training) == {"original"}
    assert frame.client.isna().all()
    assert dict(frame.groupby("metric").unit.first()[["asr", "distance"]]) == {
        "asr": "fraction",
        "distance": "Euclidean norm",
    }
    written = pd.read_csv(root / "toy/toy/iid/seed0/fupga+lr0.02.evaluation.csv")
    found = frame[(frame.scenario == "iid") & (frame.method == "fupga")]
    assert [*zip(found.role, found.metric, found.value, strict=True)] == [
        *zip(written.role, written.metric, written.value, strict=True)
    ]


def test_the_chosen_evaluations_are_what_the_tables_show(root: Path) -> None:
    frame = results.evaluations("toy", root=root)
    shown = frame[frame.chosen].set_index(["scenario", "method", "role", "metric"]).value
    for name in ("numbers", "utility", "bars"):
        table = results.artefact("toy", name, root=root)
        means = table.set_index(["scenario", "method", "role", "metric"])["mean"]
        assert len(means) > 3
        pd.testing.assert_series_equal(shown[means.index], means, check_names=False, rtol=1e-5)


def test_traces_hold_what_was_measured_and_counted_in_every_round(root: Path) -> None:
    frame = results.traces("toy", root=root)
    assert [*frame] == ["round" if name == "client" else name for name in COLUMNS]
    assert not frame.duplicated([name for name in frame if name not in ("chosen", "value", "unit")]).any()
    assert trials(frame) == TRIALS | {("pat", "fedosd.m5", "lr0.02"): (True, ["unlearned", "recovered"])}
    one = frame[(frame.scenario == "pat") & (frame.method == "fedosd") & frame.chosen]
    asr = one[one.metric == "asr"]
    assert [*zip(asr.role, asr["round"], strict=True)] == [
        *(("unlearned", round) for round in (0, 1, 2)),
        *(("recovered", round) for round in (2, 3, 4)),
    ]
    written = pd.read_csv(root / "toy/toy/pat/seed0/fedosd+chosen.recovered.csv")
    assert [*asr.value[3:]] == [*written.asr]
    assert {*one[one.metric == "bytes_up"].unit} == {"bytes"}


def test_an_artefact_is_its_csv_with_paper_and_units(root: Path) -> None:
    frame = results.artefact("toy", "numbers", "toy", root=root)
    written = pd.read_csv(root / "toy/artefacts/toy/numbers.csv")
    assert [*frame] == ["paper", *("role" if name == "stage" else name for name in written), "unit"]
    assert [*frame["mean"]] == [*written["mean"]]
    assert {*frame.unit} == {"fraction"}
    assert [*results.artefact("toy", "losses", root=root)] == ["paper", "loss", "p", "value", "derivative"]


@pytest.mark.small
def test_coordinates_of_scenarios_are_columns(few: Project) -> None:
    root = few.root / "results"
    frame = results.evaluations("smoke", paper="safari", root=root)
    assert [[*frame][:2], {*[*frame][2:5]}, [*frame][5]] == [["paper", "scenario"], {"n", "p", "s"}, "training"]
    server = frame[frame.n.notna()]  # the others are files of scenarios that nothing shows here
    assert {*server.p} == {1, 10}
    assert [*server.scenario] == [f"mnist-server-p{row.p:.0f}-s{row.s:.0f}-n{row.n:.0f}" for row in server.itertuples()]
    all_of_them = results.evaluations(root=root)
    assert all_of_them[all_of_them.paper == "fedosd"][["p", "s"]].isna().all(axis=None)
    fats = results.evaluations(paper="fats", root=root)
    assert {*zip(fats.training, fats.method, fats.role, strict=True)} >= {
        ("fats.training", "fats.training", "original"),
        ("fats.training", "fats", "unlearned"),
    }
    assert "at.K" in results.artefact("fats", "fig7", root=root)  # the CSV has a column K, too


@pytest.mark.whole
def test_scenarios_that_share_a_file_have_its_rows_each(helped: Project) -> None:
    root = helped.root / "results"
    frame = results.evaluations(root=root)
    assert not [*(root / "toy/helped").glob("few-server*/seed0/fedavg.*")]  # they lie with the scenarios' base
    shown = frame[frame.chosen & (frame.metric == "accuracy") & frame.scenario.str.contains("server")]
    assert {*zip(shown.scenario, shown.level, shown.s, shown.n, shown.method, strict=True)} == {
        (f"few-server-s{s}-n{n}", 2, s, n, method) for s in (0, 1) for n in (5, 20) for method in ("fedavg", "safari")
    }
    table = results.artefact("helped", "numbers", root=root)
    means = table[table.metric == "accuracy"].set_index(["scenario", "method"])["mean"]
    found = shown.set_index(["scenario", "method"]).value[means.index]
    pd.testing.assert_series_equal(found, means, check_names=False, rtol=1e-5)


@pytest.mark.parametrize(
    ("given", "file"),
    [
        ({}, "pat/seed0/original.trained"),
        ({"method": "fedosd"}, "pat/seed0/fedosd+chosen.recovered"),
        ({"method": "fedosd", "point": "lr0.005"}, "pat/seed0/fedosd+lr0.005.unlearned"),
        ({"method": "fedosd.m5", "role": "unlearned"}, "pat/seed0/fedosd+chosen.unlearned"),
    ],
)
def test_a_model_has_the_weights_of_its_file(root: Path, given: dict[str, Any], file: str) -> None:
    model = results.model("toy", "pat", root=root, **given)
    weights = load_file(root / f"toy/toy/{file}.safetensors")
    assert model.state_dict().keys() == weights.keys()
    assert all(torch.equal(model.state_dict()[name], weights[name]) for name in weights)
    assert not model.training
    assert model(torch.zeros(2, 1, 20, 20)).shape == (2, 10)


def model(root: Path, scenario: str = "pat", method: str = "fedosd", **given: Any) -> torch.nn.Module:
    """Return a model of the toy paper."""
    return results.model("toy", scenario, method, root=root, **given)


RATES = "lr0.02-recovery-lr0.001, lr0.02-recovery-lr0.02"


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda root: results.evaluations("tyo", root=root), "no preset 'tyo'; did you mean 'toy'? allowed: toy."),
        (lambda root: results.traces(paper="toys", root=root), "no paper 'toys'; did you mean 'toy'? allowed: toy."),
        (lambda root: results.artefact("toy", "nunbers", root=root), "no artefact 'nunbers'; did you mean 'numbers'? "),
        (lambda root: results.claims(root=root), "no verdicts on claims yet; make them first."),
        (lambda root: model(root, "pta"), "no scenario 'pta'; did you mean 'pat'? allowed: iid, pat."),
        (lambda root: model(root, role="original"), "no role 'original'; allowed: recovered, unlearned."),
        (lambda root: model(root, seed=3), "no seed 3; allowed: 0."),
        (lambda root: model(root, "iid", "fedosd.rates"), f"of 'fedosd.rates' was chosen; pass one: {RATES}."),
        (lambda root: results.claims(root=root / "x"), "folder; root must be the folder `results` of a project."),
    ],
)  # fmt: skip
def test_a_wrong_name_gets_one_sentence_with_the_nearest(root: Path, ask: Callable[[Path], Any], sentence: str) -> None:
    with pytest.raises(UserError) as refused:
        ask(root)
    assert str(refused.value).startswith(str(root))
    assert sentence in str(refused.value)


def test_of_several_presets_one_must_be_named(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "toy", tmp_path / "results/one")
    shutil.copytree(root / "toy", tmp_path / "results/two")
    with pytest.raises(UserError, match=r"/results: pass a preset; allowed: one, two\.$"):
        results.evaluations(root=tmp_path / "results")
    assert trials(results.evaluations("two", root=tmp_path / "results")) == TRIALS  # wherever results lie


def test_claims_are_the_verdicts_of_all_papers(root: Path, tmp_path: Path) -> None:
    rows = ["claim,scenario,verdict,mean,published", "forgets,,holds,0.5,holds", "keeps,iid,undecided,,not judged"]
    for paper in ("one", "two"):
        path = tmp_path / f"results/toy/artefacts/{paper}/verdicts.csv"
        path.parent.mkdir(parents=True)
        path.write_text("\n".join(rows) + "\n")
        outputs = {path.name: (path.stat().st_size, checksum(path))}
        made = Certificate("", "judge", {}, "", {}, {}, outputs)
        certificate.write(certificate_of(path), made)
    frame = results.claims(root=tmp_path / "results")
    assert [*frame] == ["paper", "claim", "scenario", "verdict", "mean", "published"]
    assert [*zip(frame.paper, frame.claim, frame.scenario, strict=True)] == [
        *(("one", "forgets", ""), ("one", "keeps", "iid")),
        *(("two", "forgets", ""), ("two", "keeps", "iid")),
    ]
    path.write_text(path.read_text().replace("holds", "fails"))
    with pytest.raises(UserError, match=r"two/verdicts\.csv: the content does not match verdicts\.made\.json"):
        results.claims(root=tmp_path / "results")


def test_results_are_found_from_any_folder_of_a_project_without_snakemake_and_torch(
    toy: Project, tmp_path: Path
) -> None:
    code = (
        "import sys; from fu import results; "
        "print(len(results.evaluations()), len(results.artefact('toy', 'numbers'))); "
        "assert not {'snakemake', 'torch', 'fu.pipeline.plan.plan', 'fu.pipeline.plan.grid'} & sys.modules.keys()"
    )
    found = []
    for folder in (toy.root, toy.root / "workflow/papers"):
        status, output = python(folder, "-c", code)
        assert status == 0, output
        found.append(output.splitlines()[0])
    frame = results.evaluations(root=toy.root / "results")
    assert found == [f"{len(frame)} {len(results.artefact('toy', 'numbers', root=toy.root / 'results'))}"] * 2
