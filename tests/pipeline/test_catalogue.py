"""Plug-ins are found by their files, here or in a folder of one's own; an archive is known by its checksum."""

import errno
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fu import plugins
from fu.contents import checksum
from fu.pipeline.plan import commands
from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance import cached, catalogue, certificate, digest
from fu.pipeline.provenance.catalogue import available, declared, metrics, needs
from fu.pipeline.provenance.certificate import Certificate
from fu.pipeline.provenance.digest import ROOT
from tests.mistakes import has, sentence
from tests.pipeline.configs import toy
from tests.pipeline.plans import forget_what_was_read

RUN = "toy/pat/seed0"
pytestmark = pytest.mark.usefixtures("with_toy")
METHOD = '''"""Mine."""

from pydantic import BaseModel, ConfigDict

needs = {"last_local_models"}


class Params(BaseModel):
    """Hyper-parameters."""

    model_config = ConfigDict(extra="forbid")
    strength: float = 1.0


def start(task, p):
    return {}


def step(task, p, state, round):
    return state
'''
IMPORTING = METHOD.replace("needs =", "from fu.methods import mine_too\n\nneeds =")
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
    """The toy paper with a method of one's own in a table."""
    method = {
        **{"label": "Mine", "plugin": "mine", "post_training": "own", "source": "me", "shown_in": ["utility"]},
        "settings": {"grid": {"unlearning.lr": []}},
        **entry,
    }
    settings = {"evaluations": {"own": ["calm"]}} if (folder / "evaluation").exists() else {}
    laid = {"methods": {"mine": method}, "settings": settings}
    return {**toy(**laid), "plugins": str(folder)}


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
    for kind, constants in catalogue.CONSTANTS.items():
        for name in available(kind):
            known, module = declared(kind, name), plugins.load(kind, name)
            for constant in constants:
                assert known.get(constant) == getattr(module, constant, None)


# ---- plug-ins of one's own -----------------------------------------------------------------------------------------


def test_a_plugin_of_one_s_own_is_found_planned_and_digested(mine: Path) -> None:
    write(mine / "methods/mine.py", IMPORTING)
    write(mine / "methods/mine_too.py", "X = 1\n")
    planned = Plan(config(mine, params={"strength": 2.0}))
    assert available("methods") == sorted([*(path.stem for path in (ROOT / "fu/methods").glob("[a-z]*.py")), "mine"])
    assert needs("mine") == {"last_local_models"}
    job = planned.job("unlearn", {"run": RUN, "trial": "mine"})
    assert json.loads(job.json)["method"] == {"name": "mine", "params": {"strength": 2.0}}
    assert job.inputs["history"] == [f"results/paper/{RUN}/original.trained.history.safetensors"]
    covered = digest.closure(digest.modules_of(job.stage, job.spec))
    assert {name for name in covered if name.startswith("fu.methods.")} == {"fu.methods.mine", "fu.methods.mine_too"}
    assert commands.complete(planned, job, "python").endswith(f" --plugins {mine}")
    assert plugins.load("methods", "mine").__file__ == str(mine / "methods/mine.py")


def test_an_edit_of_a_plugin_of_one_s_own_touches_its_jobs_alone(mine: Path) -> None:
    write(mine / "methods/mine.py", IMPORTING)
    write(mine / "methods/mine_too.py", "X = 1\n")

    def code(config: dict[str, Any], trial: str) -> str:
        return Plan(config).job("unlearn", {"run": RUN, "trial": trial}).code

    before, ours = code(config(mine), "mine"), code(config(mine), "retraining")
    write(mine / "methods/mine_too.py", "X = 2\n")
    assert code(config(mine), "mine") != before
    assert code(config(mine), "retraining") == ours == code(toy(), "retraining")


def test_an_evaluator_of_one_s_own_brings_its_metrics(mine: Path) -> None:
    write(mine / "methods/mine.py", METHOD)
    write(mine / "evaluation/calm.py", EVALUATOR)
    write(mine / "evaluation/helper.py", "NOTHING = 1\n")
    planned = Plan(config(mine))
    assert metrics()["calm"].spread == "calm_std"
    assert "helper" not in available("evaluation")
    assert planned.evaluations == ["evaluation", "own"]
    found = planned.job("evaluate", {"run": RUN, "trial": "mine", "evaluation": "own"})
    assert json.loads(found.json)["evaluators"] == ["calm"]
    assert "fu.evaluation.calm" in digest.closure(digest.modules_of("evaluate", found.spec))


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("method/mine.py", "{mine}/method: there is no kind of plug-in 'method'; did you mean 'methods'? allowed: "),
        ("methods/fedosd.py", "{mine}/methods/fedosd.py: fu/methods already has a plug-in with this name; rename the"),
        ("methods/fupga/__init__.py", "{mine}/methods/fupga: fu/methods already has a plug-in with this name; rename"),
        ("mine/methods/mine.py", "config: plugins: '{mine}' is not a plug-in folder; use your own folder with one or "),
        (None, "config: plugins: there is no folder '{mine}'."),
    ],
)
def test_a_folder_without_plugins_of_its_own_is_told_in_one_sentence(mine: Path, file: str | None, told: str) -> None:
    if file:
        write(mine / file, METHOD)
    else:
        mine.rmdir()
    assert sentence(lambda: Plan(config(mine))).startswith(told.format(mine=mine))
    assert plugins.FOLDERS == []


@contextmanager
def forbidden(folder: Path) -> Iterator[None]:
    """Have the system refuse to look into a folder, also to root."""
    stat = os.stat

    def refuse(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
        if str(path).startswith(f"{folder}/"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "stat", refuse)
        yield


def test_a_folder_without_permission_is_refused_in_one_sentence(mine: Path) -> None:
    write(mine / "methods/mine.py", METHOD)
    for folder, inside in ((mine.parent, mine), (mine, mine / "methods")):
        with forbidden(folder):
            told = sentence(lambda: catalogue.add_folder(mine))
        assert told == f"{inside}: the folder cannot be read: Permission denied."
    assert plugins.FOLDERS == []


@pytest.mark.parametrize("name", ["results/smoke", ".snakemake/log", "fu"])
def test_a_folder_of_fu_s_own_is_told_though_it_has_folders_that_are_called_as_kinds_are(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(catalogue, "ROOT", tmp_path)
    monkeypatch.setattr(catalogue, "PACKAGES", tmp_path)
    (tmp_path / name / "methods").mkdir(parents=True)
    told = sentence(lambda: catalogue.add_folder(tmp_path / name))
    has(told, f"config: plugins: '{tmp_path / name}' is not a plug-in folder; use your own ")
    assert plugins.FOLDERS == []


def test_a_folder_is_looked_into_though_plugins_were_asked_for_before(mine: Path) -> None:
    assert "mine" not in available("methods")
    assert digest.module_file("fu.methods.mine") is None
    (mine / "methods").mkdir()
    (mine / "methods/mine.py").write_text(METHOD)
    catalogue.add_folder(mine)
    assert "mine" in available("methods")


@pytest.mark.parametrize("below", ["", "methods", "papers", "published", "presets"])
def test_a_folder_that_has_something_of_its_own_is_taken(below: str, mine: Path) -> None:
    (mine / below).mkdir(parents=True, exist_ok=True)
    (mine / ".git").mkdir()
    catalogue.add_folder(mine)
    assert mine in plugins.FOLDERS


def test_a_tilde_is_one_s_home_for_the_plan_and_its_jobs(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(mine.parent))
    write(mine / "methods/mine.py", METHOD)
    planned = Plan({**config(mine), "plugins": "~/mine/", "data_dir": "~/archives"})
    command = commands.complete(planned, planned.job("data", {"dataset": "digits"}), "python")
    assert f"--data-dir {mine.parent}/archives " in command
    assert command.rstrip("/").endswith(f" --plugins {mine}")


def test_two_evaluators_of_one_metric_are_told_in_one_sentence(mine: Path) -> None:
    about = declared("evaluation", "distance")["METRICS"]["distance"]
    write(mine / "evaluation/mine.py", f"METRICS = {{'asr': {about}}}\n\n\ndef evaluate(context):\n    return {{}}\n")
    told = sentence(lambda: Plan({**config(mine), "overrides": {}}))
    assert told == "mine.py (evaluation): METRICS: another plug-in already defines 'asr'; rename it."


# ---- stray and broken files ----------------------------------------------------------------------------------------

STRAY = {
    "._mine.py": b"\0\5\26\7",
    "mine copy.py": b"def step(:",
    "half.py": b"def step(:",
    "my-method.py": b"def step(:",
    "odd.py": b"X = {[]: 1}\n",
    "class.py": b"def step(:",
    "helper.py": b"import tensorflwo\nSTEP = 1\n",
    "hidden.py": b"exec('1')\n",
    "compiled.pyc": b"nothing",
    "folder.py/inner.py": b"x = 1\n",
    ".ipynb_checkpoints/mine.py": b"def step(:",
    "__init__.py": b"1 / 0\n",
}


def write_strays(folder: Path) -> None:
    for name, content in STRAY.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    os.mkfifo(folder / "pipe.py")
    (folder / ".#mine.py").symlink_to(folder / "nowhere.py")


@pytest.mark.parametrize("kind", ["methods", "evaluation"])
def test_files_that_a_run_does_not_use_never_stop_it(mine: Path, kind: str) -> None:
    without = available(kind)
    write(mine / "methods/mine.py", METHOD)
    write_strays(mine / kind)
    write(mine / ".cache/mine.py", "def step(:")
    write(mine / "notes/today.md", "nothing")
    assert "mine" in {method for _, method in Plan({**config(mine / "methods"), "plugins": str(mine)}).names}
    assert available(kind) == sorted([*without, *(["mine"] if kind == "methods" else [])])


@pytest.mark.parametrize(
    ("name", "told"),
    [
        *(
            (name, f"config.yaml: overrides.toy: methods.mine: there is no methods plug-in '{name}'; ")
            for name in ("helper", "pipe", "folder")
        ),
        ("half", "{mine}/methods/half.py: line 1: invalid syntax"),
        ("my-method", "{mine}/methods/my-method.py: a plug-in's name must be letters, digits and '_', not starting "),
    ],
)
def test_a_file_that_is_no_plugin_is_told_where_it_is_used(mine: Path, name: str, told: str) -> None:
    write_strays(mine / "methods")
    assert sentence(lambda: Plan(config(mine, plugin=name))).startswith(told.format(mine=mine))


def test_a_package_is_a_plugin_as_a_file_is(mine: Path) -> None:
    write(mine / "methods/mine/__init__.py", METHOD + "\n\nfrom . import more\n")
    write(mine / "methods/mine/more.py", "X = 1\n")
    planned = Plan(config(mine))
    job = planned.job("unlearn", {"run": RUN, "trial": "mine"})
    assert "fu.methods.mine.more" in digest.closure(digest.modules_of("unlearn", job.spec))
    assert plugins.load("methods", "mine").__file__ == str(mine / "methods/mine/__init__.py")


PLUGIN = {
    "methods": METHOD,
    "models": "class Params: pass\ndef build(): pass\n",
    "histories": "def record(): pass\n",
    "evaluation": EVALUATOR,
    "artefacts": "INPUTS = ()\n\ndef make(): pass\n",
}


@pytest.mark.parametrize(
    ("kind", "item"), [*(("methods", item) for item in catalogue.NEEDED["methods"]), ("histories", "record")]
)
def test_a_plugin_that_lacks_what_its_kind_needs_is_told_at_planning(mine: Path, kind: str, item: str) -> None:
    write(mine / kind / "mine.py", PLUGIN[kind])
    catalogue.add_folder(mine)
    catalogue.check(kind, "mine", "here")
    write(mine / kind / "mine.py", re.sub(rf"\b{item}\b", "other", PLUGIN[kind]))
    told = sentence(lambda: catalogue.check(kind, "mine", "here"))
    if kind == "histories":  # it has no other name to be known by
        assert told.startswith("here: there is no histories plug-in 'mine'; ")
    else:
        needed = "a plug-in of methods defines step, start, needs, Params."
        assert told == f"{mine}/methods/mine.py: lacks {item}; {needed}"


@pytest.mark.parametrize(
    "text",
    [
        f"from fu.methods.retrain import *\n{METHOD.partition('def start')[0]}",
        f"from fu.methods.retrain import start, step as step\n{METHOD.partition('def start')[0]}",
        f"if True:\n    start = step = print\n{METHOD.partition('def start')[0]}",
        f"try:\n    pass\nfinally:\n    start, (step, _) = print, (print, 1)\n{METHOD.partition('def start')[0]}",
    ],
)
def test_what_a_kind_needs_may_be_defined_in_any_way(mine: Path, text: str) -> None:
    write(mine / "methods/mine.py", text)
    Plan(config(mine))


@pytest.mark.parametrize(
    ("kind", "old", "new", "text"),
    [
        ("methods", '{"last_local_models"}', "5", "mine.py: needs: Input should be a valid set, got 5."),
        ("methods", '{"last_local_models"}', "set(['update_norms'])",
         "mine.py: needs must be a literal: the plan reads it without importing the file."),
        ("methods", "def step", "FIDELITY = {'source': 'paper'}\n\n\ndef step", "mine.py: FIDELITY: citation: "),
        ("methods", METHOD.partition("class")[0], "from fu.methods.retrain import *\n\n\n",
         "mine.py: needs must be a literal: the plan reads it without importing the file."),
        ("evaluation", EVALUATOR.partition("def")[0], "from fu.evaluation.utility import *\n\n\n",
         "mine.py: METRICS must be a literal: the plan reads it without importing the file."),
        ("artefacts", "INPUTS = ()", "from fu.artefacts.losses import *",
         "mine.py: INPUTS must be a literal: the plan reads it without importing the file."),
        ("evaluation", '"label": "C", ', "", "mine.py (evaluation): METRICS: label: is missing."),
        ("evaluation", '"label":', '"tells": {"original": "worse"}, "label":',
         "mine.py (evaluation): METRICS: tells.original: Input should be 'lower' or 'higher', got 'worse'."),
        ("artefacts", "()", "('all',)", "mine.py: INPUTS: 0: Input should be 'evaluations', "),
        ("models", "class", "ESTIMATE = {'step_ms': -1}\nclass",
         "mine.py: ESTIMATE: step_ms: Input should be greater than 0"),
        ("evaluation", "def", "exec('1')\n\n\ndef",
         "mine.py: line 8: exec can import code that no digest covers; use a plain `import`."),
        ("methods", "needs =", "import tensorflwo.keras\nneeds =",
         "mine.py: line 5: there is no module 'tensorflwo.keras'."),
        ("methods", "needs =", "from fu.nothing import x\nneeds =",
         "mine.py: line 5: there is no module 'fu.nothing'."),
    ],
)  # fmt: skip
def test_a_plugin_that_the_plan_cannot_use_is_told_in_one_sentence_and_only_where_it_is_used(
    mine: Path, kind: str, old: str, new: str, text: str
) -> None:
    write(mine / kind / "mine.py", PLUGIN[kind].replace(old, new, 1))
    catalogue.add_folder(mine)
    assert "asr" in metrics()
    has(sentence(lambda: catalogue.check(kind, "mine", "here")), text)


MODEL = '''"""Mine."""

from pydantic import BaseModel
from torch import nn


class Params(BaseModel):
    """None."""


def build(shape, classes, p):
    return nn.Sequential(nn.Flatten(), nn.Linear(400, classes))
'''
MINE: dict[str, tuple[str, dict[str, Any]]] = {
    "methods": (METHOD, {"methods": config(Path())["overrides"]["toy"]["methods"]}),
    "models": (MODEL, {"settings": {"model": {"name": "mine"}}}),
    "evaluation": (EVALUATOR, {"settings": {"evaluations": {"mine": ["mine"]}}}),
    "histories": (
        "def record(task, so_far, theta, round):\n    return {}\n",
        {"settings": {"training": {"history": ["last_local_models", "mine"]}}},
    ),
    "partitions": ("from fu.partitions.iid import *\n", {"settings": {"data": {"partition": {"name": "mine"}}}}),
}


@pytest.mark.parametrize(
    ("kind", "old", "new", "told"),
    [
        ("methods", "def step(task, p, state, round)", "def step(task, p, state)",
         "line 19: step is called with (task, p, state, round): too many positional arguments."),
        ("models", "nn.Linear(400, classes)", "nn.BatchNorm1d(400), nn.Linear(400, classes)",
         "line 11: build returns a model with buffers (1.running_mean), which few methods here average; declare STAT"),
        ("models", "nn.Linear(400, classes)", "nn.Linear(400, 3)",
         "line 11: build returns a model with outputs [1, 3] for one sample, expected [1, 10]: one per class."),
        ("evaluation", "def evaluate(context)", "def evaluate(theta, context)",
         "line 8: evaluate is called with (context): missing a required argument: 'context'."),
        ("histories", "(task, so_far, theta, round)", "(task, theta, round)",
         "line 1: record is called with (task, so_far, theta, round): too many positional arguments."),
        ("partitions", "*\n", "*\n\n\ndef check(*given):\n    return given[5]\n",
         "line 5: IndexError: tuple index out of range"),
    ],
)  # fmt: skip
def test_what_can_be_seen_of_a_plugin_is_refused_at_planning(
    mine: Path, kind: str, old: str, new: str, told: str
) -> None:
    text, laid = MINE[kind]
    planned = {**toy(**laid), "plugins": str(mine)}
    write(mine / kind / "mine.py", text)
    Plan(planned)
    cached._size.cache_clear()
    sys.modules.pop(f"fu.{kind}.mine", None)
    assert text.count(old) == 1
    write(mine / kind / "mine.py", text.replace(old, new))
    has(sentence(lambda: Plan(planned)), f"{mine}/{kind}/mine.py: {told}")


REFUSES = "\n\ndef check(model, p):\n    model.refused\n"


def test_a_method_may_refuse_a_model_before_any_job(mine: Path) -> None:
    write(mine / "methods/mine.py", METHOD + "\n\ndef check(model, p):\n    pass\n")
    Plan(config(mine))
    sys.modules.pop("fu.methods.mine", None)
    write(mine / "methods/mine.py", METHOD + REFUSES)
    has(sentence(lambda: Plan(config(mine))), "method mine: ", "methods/mine.py: line ", "no attribute 'refused'")


def test_every_method_says_what_of_a_source_that_is_second_hand_was_not_read() -> None:
    told = [declared("methods", name)["FIDELITY"] for name in available("methods")]
    assert all(one["not_read"] for one in told if one["source"] == "second-hand")


def test_an_import_that_may_fail_is_no_mistake(mine: Path) -> None:
    text = "try:\n    import tensorflwo\nexcept ImportError:\n    tensorflwo = None\n"
    write(mine / "methods/mine.py", f"{METHOD}{text}\n\ndef later():\n    import nothing\n")
    Plan(config(mine))


# ---- archives ------------------------------------------------------------------------------------------------------


def archive(data_dir: str = "data") -> str:
    planned = Plan({**toy(settings={"data": {"dataset": "mnist"}}), "data_dir": data_dir})
    return planned.job("data", {"dataset": "mnist"}).json


def test_a_forgotten_data_dir_undoes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given, made_from_it = tmp_path / "mnist.npz", tmp_path / "results/paper/data/mnist.made.json"
    given.write_bytes(b"an archive")
    with_archive = archive(str(tmp_path))
    assert json.loads(with_archive)["archive"] is not None
    assert json.loads(archive("elsewhere"))["archive"] is None  # nothing made yet: download
    made_from_it.parent.mkdir(parents=True)
    certificate.write(made_from_it, Certificate("k", "data", json.loads(with_archive), "c", {}, {}))
    assert archive("elsewhere") == with_archive
    given.write_bytes(b"another archive")
    assert archive(str(tmp_path)) != with_archive
    assert archive("elsewhere") == with_archive  # planning with another archive made nothing from it
    made_from_it.unlink()
    assert json.loads(archive("elsewhere"))["archive"] is None


def test_an_archive_is_hashed_again_only_where_its_file_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached, "CACHE", tmp_path / "cache/plan.json")
    hashed: list[Path] = []

    def counted(path: Path) -> str:
        hashed.append(path)
        return checksum(path)

    monkeypatch.setattr(cached, "checksum", counted)
    path, other = tmp_path / "mnist.npz", tmp_path / "other.npz"

    def put(content: bytes, place: Path = path, later: int = 0) -> None:
        """Write a file with the time of the first, or nanoseconds later."""
        time.sleep(0.02)  # longer than the file system's clock ticks
        place.write_bytes(content)
        os.utime(place, ns=(about.st_atime_ns, about.st_mtime_ns + later))

    path.write_bytes(b"one")
    about = path.stat()
    for _ in range(2):
        assert cached.archive_of(path) == checksum(path)
    assert len(hashed) == 1
    put(b"another")  # of another size
    assert cached.archive_of(path) == checksum(path)
    put(b"two", later=1)
    assert cached.archive_of(path) == checksum(path)
    put(b"six")  # of the size and time of the first
    assert cached.archive_of(path) == checksum(path)
    put(b"ten", other)
    other.replace(path)
    assert cached.archive_of(path) == checksum(path)
    assert len(hashed) == 5


def test_an_archive_in_a_folder_without_permission_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with forbidden(tmp_path):
        told = sentence(lambda: cached.archive_of(tmp_path / "mnist.npz"))
    assert told == f"{tmp_path}/mnist.npz: the archive cannot be read: Permission denied."


def test_a_damaged_memory_of_the_plan_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached, "CACHE", tmp_path / "plan.json")
    for content in ('{"archives": [], "params": 1}', "torn"):
        cached.CACHE.write_text(content)
        for _ in range(2):
            assert cached.archive_of(ROOT / "config.yaml") == checksum(ROOT / "config.yaml")
        cached.remember("params", {"a": True})
        assert {*json.loads(cached.CACHE.read_text())} == {*cached.TOPICS}


def test_embedded_data_have_no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/digits.npz").write_bytes(b"somebody's")
    job = Plan(toy()).job("data", {"dataset": "digits"})
    assert json.loads(job.json) == {"archive": None, "dataset": "digits"}
