"""Plug-ins are found by their files, here or in a folder of one's own; an archive is known by its checksum."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from fu import plugins
from fu.artefacts.entry import Metric
from fu.data.archives import checksum
from fu.errors import UserError
from fu.pipeline import catalogue, commands, digest
from fu.pipeline.catalogue import available, declared, metrics, needs
from fu.pipeline.digest import ROOT
from fu.pipeline.plan import Plan
from tests.pipeline.plans import RUN, forget_what_was_read, made

METHOD = '''"""Mine."""

from pydantic import BaseModel, ConfigDict

from fu.methods import mine_too

needs = {"update_norms"}


class Params(BaseModel):
    """Hyper-parameters."""

    model_config = ConfigDict(extra="forbid")
    strength: float = 1.0


def start(task, p):
    return {}


def step(task, p, state, round):
    return state
'''
EVALUATOR = '''"""Mine."""

METRICS = {
    "calm": {"label": "C", "unit": "s", "better": "neither", "formula": "1", "source": "me", "spread": "calm_std"},
}


def evaluate(context):
    return {"calm": 1.0, "calm_std": 0.0}
'''


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    forget_what_was_read()


def config(folder: Path, **entry: Any) -> dict[str, Any]:
    """The smoke run with a method of one's own in Table 8."""
    method = {
        **{"label": "Mine", "plugin": "mine", "post_training": "own", "source": "me", "shown_in": ["table8"]},
        "settings": {"grid": {"unlearning.lr": []}},
        **entry,
    }
    settings = {"evaluations": {"own": ["calm"]}} if (folder / "evaluation").exists() else {}
    laid = {"methods": {"mine": method}, "settings": settings}
    return {"preset": "smoke", "papers": ["fedosd"], "plugins": str(folder), "overrides": {"fedosd": laid}}


# ---- plug-ins of the package ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", catalogue.KINDS)
def test_every_kind_has_its_files_and_nothing_else(kind: str) -> None:
    files = {path.stem for path in (ROOT / "fu" / kind).glob("*.py")} - {"__init__"}
    found = available(kind)
    assert found == sorted(set(found) & files)
    for name in files:
        assert (name in found) == hasattr(plugins.load(kind, name), catalogue.NEEDED[kind][0])
    assert all(hasattr(plugins.load(kind, name), needed) for name in found for needed in catalogue.NEEDED[kind])


def test_constants_are_read_without_importing() -> None:
    for kind, constant in (
        ("methods", "needs"),
        ("evaluation", "METRICS"),
        ("artefacts", "READS"),
        ("models", "ESTIMATE"),
    ):
        for name in available(kind):
            assert declared(kind, name)[constant] == getattr(plugins.load(kind, name), constant)


def test_the_metrics_are_those_of_all_evaluators() -> None:
    declared_by = {
        metric: name for name in available("evaluation") for metric in declared("evaluation", name)["METRICS"]
    }
    assert set(metrics()) == set(declared_by)
    assert {"asr", "r_acc", "distance", "conflicts", "steps"} <= set(metrics())
    for name, metric in metrics().items():
        assert metric == Metric(name=name, **declared("evaluation", declared_by[name])["METRICS"][name])


def test_a_choice_among_trials_is_made_where_one_of_them_is_shown() -> None:
    assert {kind for kind in available("artefacts") if catalogue.chooses(kind)} == {
        "table",
        "bars",
        "curves",
        "runtime",
    }
    assert {kind for kind in available("artefacts") if catalogue.reads(kind) == "nothing"} == {"losses"}
    assert catalogue.also("table") == ("distance",)
    assert catalogue.also("curves") == ()


# ---- plug-ins of one's own -----------------------------------------------------------------------------------------


def test_a_plugin_of_one_s_own_is_found_planned_and_digested(mine: Path) -> None:
    write(mine / "methods/mine.py", METHOD)
    write(mine / "methods/mine_too.py", "X = 1\n")
    planned = Plan(config(mine, params={"strength": 2.0}))
    assert available("methods") == sorted([*(path.stem for path in (ROOT / "fu/methods").glob("[a-z]*.py")), "mine"])
    assert needs("mine") == {"update_norms"}
    job = planned.job("unlearn", {"run": RUN, "trial": "mine"})
    assert json.loads(job.json)["method"] == {"name": "mine", "params": {"strength": 2.0}}
    assert job.inputs["history"] == [f"results/smoke/{RUN}/original.history.safetensors"]
    covered = digest.closure(digest.modules_of(job.stage, job.spec))
    assert {name for name in covered if name.startswith("fu.methods.")} == {"fu.methods.mine", "fu.methods.mine_too"}
    assert commands.complete(planned, job, "python").endswith(f" --plugins {mine}")
    assert plugins.load("methods", "mine").__file__ == str(mine / "methods/mine.py")


def test_an_edit_of_a_plugin_of_one_s_own_touches_its_jobs_alone(mine: Path) -> None:
    write(mine / "methods/mine.py", METHOD)
    write(mine / "methods/mine_too.py", "X = 1\n")

    def codes() -> dict[str, str]:
        planned = Plan(config(mine))
        trials = ["mine", "retraining"]
        return {trial: planned.job("unlearn", {"run": RUN, "trial": trial}).code for trial in trials}

    before = codes()
    write(mine / "methods/mine_too.py", "X = 2\n")
    after = codes()
    assert after["mine"] != before["mine"]
    assert (
        after["retraining"]
        == before["retraining"]
        == made("smoke").job("unlearn", {"run": RUN, "trial": "retraining"}).code
    )


def test_an_evaluator_of_one_s_own_brings_its_metrics(mine: Path) -> None:
    write(mine / "methods/mine.py", METHOD.replace("from fu.methods import mine_too\n", ""))
    write(mine / "evaluation/calm.py", EVALUATOR)
    write(mine / "evaluation/helper.py", "NOTHING = 1\n")
    planned = Plan(config(mine))
    assert metrics()["calm"].spread == "calm_std"
    assert "helper" not in available("evaluation")
    assert planned.evaluations == ["evaluation", "own"]
    found = planned.job("evaluate", {"run": RUN, "trial": "mine", "evaluation": "own"})
    assert json.loads(found.json)["evaluators"] == ["calm"]
    assert "fu.evaluation.calm" in digest.closure(digest.modules_of("evaluate", found.spec))


def test_the_values_of_a_plugin_of_one_s_own_are_checked(mine: Path) -> None:
    write(mine / "methods/mine.py", METHOD)
    write(mine / "methods/mine_too.py")
    with pytest.raises(
        UserError, match=r"^fedosd.yaml: methods.mine: params: strenth: unknown key; did you mean 'strength'"
    ):
        Plan(config(mine, params={"strenth": 2.0}))


def test_a_folder_for_no_kind_of_plugin_is_told_in_one_sentence(mine: Path) -> None:
    write(mine / "method/mine.py", METHOD)
    with pytest.raises(UserError) as error:
        Plan(config(mine))
    assert str(error.value).startswith(f"{mine}/method: there is no kind of plug-in 'method'; did you mean 'methods'?")
    assert plugins.FOLDERS == []


def test_a_name_that_is_taken_is_told_in_one_sentence(mine: Path) -> None:
    write(mine / "methods/fedosd.py", METHOD)
    with pytest.raises(UserError) as error:
        Plan(config(mine))
    assert str(error.value) == (
        f"{mine}/methods/fedosd.py: fu has methods of this name itself; give the file another one."
    )
    assert plugins.FOLDERS == []


def test_a_folder_that_is_not_there_is_told_in_one_sentence(mine: Path) -> None:
    with pytest.raises(UserError) as error:
        Plan(config(mine / "gone"))
    assert str(error.value) == f"config: plugins: there is no folder '{mine}/gone'."


def test_folders_without_python_are_left_alone(mine: Path) -> None:
    write(mine / "methods/mine.py", METHOD.replace("from fu.methods import mine_too\n", ""))
    write(mine / "notes/today.md", "nothing")
    assert "mine" in {method for _, method in Plan(config(mine)).names}


@pytest.mark.parametrize("home", ["~/mine", "~/mine/"])
def test_a_tilde_is_one_s_home_for_the_plan_and_its_jobs(
    mine: Path, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(mine.parent))
    write(mine / "methods/mine.py", METHOD.replace("from fu.methods import mine_too\n", ""))
    planned = Plan({**config(mine), "plugins": home, "data_dir": "~/archives"})
    command = commands.complete(planned, planned.job("data", {"dataset": "digits"}), "python")
    assert f"--data-dir {mine.parent}/archives " in command
    assert command.rstrip("/").endswith(f" --plugins {mine}")


def test_two_evaluators_of_one_metric_are_told_in_one_sentence(mine: Path) -> None:
    about = declared("evaluation", "distance")["METRICS"]["distance"]
    write(mine / "evaluation/mine.py", f"METRICS = {{'asr': {about}}}\n")
    with pytest.raises(
        UserError, match=r"^mine\.py \(evaluation\): METRICS: another evaluator has 'asr'; rename it\.$"
    ):
        Plan({**config(mine), "overrides": {}})


def test_a_plugin_that_is_no_python_is_told_with_file_and_line(mine: Path) -> None:
    write(mine / "methods/mine.py", METHOD + "\ndef broken(:\n")
    lines = (METHOD + "\ndef broken(:").count("\n") + 1
    with pytest.raises(UserError, match=rf"methods/mine\.py: line {lines}: invalid syntax\.$"):
        Plan(config(mine))


# ---- archives ------------------------------------------------------------------------------------------------------


def archive(data_dir: str = "data") -> str:
    planned = Plan({"preset": "paper", "papers": ["fedosd"], "data_dir": data_dir})
    return planned.job("data", {"dataset": "mnist"}).json


def test_a_forgotten_data_dir_undoes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given, made_from_it = tmp_path / "mnist.npz", tmp_path / "results/paper/data/mnist.npz"
    given.write_bytes(b"an archive")
    with_archive = archive(str(tmp_path))
    assert json.loads(with_archive)["archive"] is not None
    assert json.loads(archive("elsewhere"))["archive"] is None  # nothing made yet: download
    made_from_it.parent.mkdir(parents=True)
    made_from_it.write_bytes(b"made from it")
    made_from_it.with_suffix(".source.json").write_text(json.dumps({"archive": json.loads(with_archive)["archive"]}))
    assert archive("elsewhere") == with_archive
    given.write_bytes(b"another archive")
    assert archive(str(tmp_path)) != with_archive
    assert archive("elsewhere") == with_archive  # planning with another archive made nothing from it
    made_from_it.unlink()
    assert json.loads(archive("elsewhere"))["archive"] is None


def test_an_archive_is_hashed_again_only_where_its_file_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "CACHE", tmp_path / "cache/plan.json")
    hashed: list[Path] = []

    def counted(path: Path) -> str:
        hashed.append(path)
        return checksum(path)

    monkeypatch.setattr(catalogue, "checksum", counted)
    path, source = tmp_path / "mnist.npz", tmp_path / "mnist.source.json"
    path.write_bytes(b"one")
    first = catalogue.archive_of(path, source)
    assert catalogue.archive_of(path, source) == first == checksum(path)
    assert hashed == [path]
    path.write_bytes(b"other!")
    assert catalogue.archive_of(path, source) == checksum(path) != first
    assert hashed == [path, path]
    about = path.stat()
    path.write_bytes(b"longer")  # of the same size, at another time
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns + 1))
    assert catalogue.archive_of(path, source) == checksum(path)
    path.write_bytes(b"longer still")  # at the same time, of another size
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns + 1))
    assert catalogue.archive_of(path, source) == checksum(path)
    assert len(hashed) == 4


def test_embedded_data_have_no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/digits.npz").write_bytes(b"somebody's")
    job = Plan({"preset": "smoke", "papers": ["fedosd"]}).job("data", {"dataset": "digits"})
    assert json.loads(job.json) == {"archive": None, "dataset": "digits"}
