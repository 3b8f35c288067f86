import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from fu.evaluation.metrics import METRICS
from fu.plan import digest as digests
from fu.plan.digest import closure, digest, modules_of
from fu.plan.inputs import available, needs, reads, selects
from fu.plan.specs import TORCH

ROOT = digests.ROOT


def forget_what_was_read() -> None:
    for function in (digests._read, digests.closure, digests.digest):
        function.cache_clear()


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the package that the digests look at instead."""
    folder = tmp_path / "fu"
    shutil.copytree(ROOT / "fu", folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(digests, "ROOT", tmp_path)
    forget_what_was_read()
    yield folder
    forget_what_was_read()


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    forget_what_was_read()


# ---- what counts ---------------------------------------------------------------------------------------------------

SOURCE = '''"""About."""

from fu.errors import UserError

LIMIT = 3  # why


class Thing:
    """A thing."""

    def size(self) -> int:
        """How large."""
        return LIMIT


async def wait() -> None:
    """Nothing."""
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # why", "  # another reason"),
        ("  # why", ""),
        ('"""About."""', '"""About\n\nmore than one line."""'),
        ('"""About."""\n', ""),
        ('"""A thing."""', "'''Another text.'''"),
        ('        """How large."""\n', ""),
        ('    """Nothing."""', "    pass"),
        ("\n\n\nclass", "\n\n\n\n# a comment\n\nclass"),
        ("LIMIT = 3", "LIMIT = (\n    3\n)"),
        ("LIMIT = 3", "LIMIT   =   0x3"),
    ],
)
def test_comments_docstrings_and_layout_do_not_count(copy: Path, old: str, new: str) -> None:
    assert SOURCE.count(old) == 1
    write(copy / "methods" / "new.py", SOURCE)
    before = digest("fu.methods.new")
    write(copy / "methods" / "new.py", SOURCE.replace(old, new))
    assert digest("fu.methods.new") == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("LIMIT = 3", "LIMIT = 3.0"),
        ("LIMIT = 3", 'LIMIT = "3"'),
        ("LIMIT = 3", "LIMIT = 3\nOTHER = 1"),
        ("return LIMIT", "return -LIMIT"),
        ("return LIMIT", 'return "How large."'),
        ('"""How large."""', '_ = """How large."""'),
        ("-> int", "-> float"),
        ("from fu.errors import UserError", "from fu.errors import nearest"),
        ("from fu.errors import UserError\n", ""),
        ("class Thing", "class Another"),
    ],
)
def test_whatever_can_change_a_result_counts(copy: Path, old: str, new: str) -> None:
    assert SOURCE.count(old) == 1
    write(copy / "methods" / "new.py", SOURCE)
    before = digest("fu.methods.new")
    write(copy / "methods" / "new.py", SOURCE.replace(old, new))
    assert digest("fu.methods.new") != before


def test_a_string_that_is_no_docstring_counts(copy: Path) -> None:
    write(copy / "methods" / "new.py", '"""About."""\n"""one"""\n')
    before = digest("fu.methods.new")
    write(copy / "methods" / "new.py", '"""About."""\n"""two"""\n')
    assert digest("fu.methods.new") != before


def test_a_digest_is_sixteen_digits_and_depends_on_no_order(copy: Path) -> None:
    one = digest("fu.methods.fedosd", "fu.models.mlp")
    assert len(one) == 16
    assert int(one, 16) >= 0
    assert digest("fu.models.mlp", "fu.methods.fedosd") == one
    assert digest("fu.methods.fedosd") != one


def test_a_digest_counts_what_a_module_is_called(copy: Path) -> None:
    write(copy / "methods" / "one.py", "X = 1\n")
    write(copy / "methods" / "two.py", "X = 1\n")
    assert digest("fu.methods.one") != digest("fu.methods.two")


def test_the_copy_has_the_digests_of_the_package(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = modules_of("unlearn", {"method": {"name": "fedosd"}, "model": {"name": "mlp"}})
    in_copy = digest(*start)
    monkeypatch.setattr(digests, "ROOT", ROOT)
    forget_what_was_read()
    assert digest(*start) == in_copy


def stages() -> dict[str, str]:
    """Return the digest of every stage with plug-ins, as the plan asks for them."""
    base = {"dataset": "digits", "model": {"name": "mlp"}}
    specs: dict[str, dict[str, Any]] = {
        "data": {"dataset": "digits"},
        "partition": {"dataset": "digits"},
        "train": {**base, "training": {"name": "fedavg"}, "history": ["target_model"]},
        "evaluate": {**base, "evaluators": ["utility", "distance"]},
        **{f"unlearn {name}": {**base, "method": {"name": name}} for name in available("methods")},
        "recover free": {**base, "projection": None},
        **{f"recover {name}": {**base, "projection": {"name": name}} for name in available("projections")},
        "select": {"points": ["one", "other"]},
        **{f"publish {name}": {"kind": name} for name in available("publishing")},
    }
    return {name: digest(*modules_of(name.split()[0], spec)) for name, spec in specs.items()}


@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("methods/fedosd.py", {"unlearn fedosd"}),
        ("methods/ewcsga.py", {"unlearn ewcsga"}),
        ("projections/away_from_original.py", {"recover away_from_original"}),
        ("training/fedavg.py", {"train"}),
        ("models/mlp.py", {"train", "evaluate", "unlearn", "recover"}),
        ("models/lenet5.py", set()),
        ("datasets/digits.py", {"data", "partition", "train", "evaluate", "unlearn", "recover"}),
        ("datasets/mnist.py", set()),
        ("histories/target_model.py", {"train"}),
        ("evaluation/utility.py", {"evaluate"}),
        ("evaluation/backdoor.py", set()),
        ("evaluation/watch.py", {"unlearn"}),
        ("evaluation/selection.py", {"select", "publish table", "publish bars", "publish runtime"}),
        ("federation/local.py", {"train", "evaluate", "unlearn", "recover"}),
        ("federation/vectorised.py", {"train", "evaluate", "unlearn", "recover"}),
        ("federation/driver.py", {"train", "unlearn", "recover", "evaluate"}),
        ("federation/recovery.py", {"recover"}),
        ("data/sources.py", {"data"}),
        ("publishing/curves.py", {"publish curves"}),
        ("publishing/sweep.py", {"publish sweep"}),
        ("publishing/table.py", {"publish table", "publish bars", "publish runtime"}),
        ("publishing/result.py", {"publish"}),
        ("stages/partition.py", {"partition"}),
        ("stages/select.py", {"select"}),
        ("stages/common.py", {"data", "partition", "train", "evaluate", "unlearn", "recover", "select", "publish"}),
        ("warm.py", set()),
        ("plan/resources.py", set()),
        ("plan/plan.py", set()),
        ("plan/specs.py", set()),
    ],
)
def test_a_changed_constant_touches_exactly_the_stages_that_can_read_it(
    copy: Path, file: str, changed: set[str]
) -> None:
    before = stages()
    with (copy / file).open("a") as source:
        source.write("\nADDED = 1\n")
    forget_what_was_read()
    after = stages()
    found = {name for name in before if before[name] != after[name]}
    assert found == {name for name in before if name in changed or name.split()[0] in changed}


# ---- closures ------------------------------------------------------------------------------------------------------


def test_a_closure_follows_every_way_to_import(copy: Path) -> None:
    write(
        copy / "methods" / "new.py",
        "import fu.new.plain\n"
        "import fu.new.renamed as other, json\n"
        "from fu.new import named, CONSTANT\n"
        "from fu.new.within import function\n"
        "from . import beside\n"
        "from .beside_too import function\n"
        "from ..new import above\n"
        "from fu.new.starred import *\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from fu.new import typed\n"
        "def late():\n    from fu.new.inside import function\n    import fu.new.deep.er\n"
        "class C:\n    def f(self):\n        import fu.new.method\n",
    )
    names = ["plain", "renamed", "named", "within", "above", "starred", "typed", "inside", "method", "unused"]
    for name in names:
        write(copy / "new" / f"{name}.py", "")
    write(copy / "new" / "__init__.py", "from fu.new.initial import x\n")
    write(copy / "new" / "initial.py", "")
    write(copy / "new" / "deep" / "__init__.py", "from . import in_package\n")
    write(copy / "new" / "deep" / "in_package.py", "")
    write(copy / "new" / "deep" / "er.py", "")
    write(copy / "methods" / "beside.py", "")
    write(copy / "methods" / "beside_too.py", "")
    write(copy / "__init__.py", "")
    assert closure(("fu.methods.new",)) == tuple(
        sorted(
            [
                "fu",
                "fu.methods",
                "fu.methods.new",
                "fu.methods.beside",
                "fu.methods.beside_too",
                "fu.new",
                "fu.new.initial",
                "fu.new.deep",
                "fu.new.deep.in_package",
                "fu.new.deep.er",
                *(f"fu.new.{name}" for name in names if name != "unused"),
            ]
        )
    )


def test_a_closure_ends_where_modules_import_each_other(copy: Path) -> None:
    write(copy / "methods" / "one.py", "import fu.methods.two\n")
    write(copy / "methods" / "two.py", "import fu.methods.one\n")
    expected = {"fu", "fu.methods", "fu.methods.one", "fu.methods.two"}
    assert set(closure(("fu.methods.one",))) == set(closure(("fu.methods.two",))) == expected


def test_a_change_far_down_the_closure_counts(copy: Path) -> None:
    before = digest("fu.methods.fedosd")
    assert "fu.federation.vectorised" in closure(("fu.methods.fedosd",))  # imported inside a function
    source = copy / "federation" / "vectorised.py"
    write(source, source.read_text() + "\nADDED = 1\n")
    assert digest("fu.methods.fedosd") != before


PLUGINS = ("fu.methods.", "fu.models.", "fu.training.", "fu.projections.")


def test_methods_are_in_no_closure_but_their_own() -> None:
    for name in available("methods"):
        found = closure(modules_of("unlearn", {"method": {"name": name}, "model": {"name": "mlp"}}))
        assert {m for m in found if m.startswith(PLUGINS)} == {f"fu.methods.{name}", "fu.models.mlp"}


def test_post_training_knows_its_projection_and_no_method() -> None:
    spec: dict[str, Any] = {"model": {"name": "mlp"}}
    found = closure(modules_of("recover", {**spec, "projection": None}))
    assert {m for m in found if m.startswith(PLUGINS)} == {"fu.models.mlp"}
    for name in available("projections"):
        found = closure(modules_of("recover", {**spec, "projection": {"name": name, "params": {}}}))
        assert {m for m in found if m.startswith(PLUGINS)} == {f"fu.projections.{name}", "fu.models.mlp"}


def test_no_stage_knows_the_server_that_may_run_it() -> None:
    for path in (ROOT / "fu" / "stages").glob("*.py"):
        assert "fu.warm" not in closure((f"fu.stages.{path.stem}",))


# ---- the guard: what a stage really loads is in its digest ---------------------------------------------------------

# Forks for every job, so that the libraries are imported once; prints the modules of fu that each job loaded.
RUNNER = """
import importlib, json, os, runpy, sys
for name in ("torch", "torch.func", "safetensors.torch", "pandas", "seaborn", "matplotlib.figure", "pydantic",
             "sklearn.datasets", "tabulate"):
    importlib.import_module(name)
sys.modules["torch"].use_deterministic_algorithms(True)  # imports much, too
assert not [name for name in sys.modules if name == "fu" or name.startswith("fu.")]
for job in json.loads(sys.stdin.read()):
    child = os.fork()
    if child == 0:
        sys.argv = [job["stage"], *job["argv"]]
        try:
            runpy.run_module("fu.stages." + job["stage"], run_name="__main__")
            loaded = sorted(name for name in sys.modules if name == "fu" or name.startswith("fu."))
            open(job["report"], "w").write(json.dumps(loaded))
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit("failed: " + " ".join(map(str, sys.argv)) + json.dumps(job))
"""
MODEL = {"name": "lenet5", "params": {}}
SHARED = {"dataset": "digits", "model": MODEL, "seed": 0, "torch": TORCH}
LOCAL = {"lr": 1e-4, "lr_decay": 1.0, "batch_size": 64, "local_epochs": 1}
POINTS = {"fedosd": {"fedosd+lr0.0001": 1e-4, "fedosd+lr0.001": 1e-3}}  # the other methods have no grid
PARTITION = {
    "dataset": "digits",
    "seed": 0,
    "samples": 900,
    "clients": 3,
    "partition": {"kind": "iid", "classes_per_client": None},
    "train_share": 0.4,
    "validation_share": 0.1,
    "forget": {"clients": 1},
    "backdoor": {"share": 0.8, "size": 3, "margin": 1, "value": 0.8333, "label_shift": 0.5},
}


class Jobs:
    """The jobs of a toy workflow, in order, each with the modules that its digest covers."""

    def __init__(self, root: Path) -> None:
        self.root, self.run = root, root / "toy" / "small" / "seed0"
        self.jobs: list[dict[str, Any]] = []
        self.covered: dict[str, set[str]] = {}
        self.chosen: dict[str, set[str]] = {}

    def add(self, name: str, spec: dict[str, Any], **paths: Path | list[Path]) -> None:
        stage = name.split()[0]
        argv = ["--spec", json.dumps(spec)]
        for option, path in paths.items():
            argv += [f"--{option.replace('_', '-')}", *map(str, path if isinstance(path, list) else [path])]
        report = self.root / f"{name}.json"
        self.jobs.append({"stage": stage, "argv": argv, "report": str(report)})
        start = modules_of(stage, spec)
        self.covered[name] = set(closure(start))
        self.chosen[name] = set(start[1:])

    def loaded(self) -> dict[str, set[str]]:
        """Run all jobs and return what each loaded."""
        done = subprocess.run(
            [sys.executable, "-c", RUNNER],
            input=json.dumps(self.jobs),
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=900,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return {name: set(json.loads((self.root / f"{name}.json").read_text())) for name in self.covered}


def workflow(root: Path) -> Jobs:
    jobs = Jobs(root)
    run, data = jobs.run, root / "data" / "digits.npz"
    part, original = run / "partition.npz", run / "original.safetensors"
    shared = {"data": data, "partition": part}
    methods, kinds = available("methods"), sorted({kind for name in available("methods") for kind in needs(name)})
    histories = {kind: run / f"history.{kind}.safetensors" for kind in kinds}

    def files(name: str) -> dict[str, Path]:
        return {"model": run / f"{name}.safetensors", "trace": run / f"{name}.csv", "cost": run / f"{name}.cost.json"}

    jobs.add("data", {"dataset": "digits", "archive": None}, data_dir=root, output=data)
    jobs.add("partition", PARTITION, data=data, output=part)
    phase = {**SHARED, "local": LOCAL, "rounds": 1, "evaluate_every": 1}
    for way in available("training"):
        spec = {**phase, "training": {"name": way, "params": {}}, "history": kinds}
        jobs.add(f"train {way}", spec, **shared, **files("original"), histories=list(histories.values()))
    for method in methods:
        needed = [histories[kind] for kind in sorted(needs(method))]
        for point, rate in POINTS.get(method, {method: LOCAL["lr"]}).items():
            local = {**LOCAL, "lr": rate}
            spec = {**phase, "local": local, "method": {"name": method, "params": {}}, "conflicts": True}
            unlearned = files(f"{point}.unlearned")
            jobs.add(f"unlearn {point}", spec, **shared, original=original, **unlearned, histories=needed)
    # Post-training knows no method: every projection, and none, at one of the points.
    projections = [None, *({"name": name, "params": {}} for name in available("projections"))]
    for point, projection in zip(cycle(POINTS["fedosd"]), projections, strict=False):
        spec = {**phase, "projection": projection, "client_weights": "equal", "first_round": 1}
        jobs.add(
            f"recover {projection['name'] if projection else 'free'}",
            spec,
            **shared,
            original=original,
            unlearned=run / f"{point}.unlearned.safetensors",
            **files(f"{point}.recovered"),
        )
    models = {"original": ["original"]}
    for point in (point for method in methods for point in POINTS.get(method, [method])):
        models[point] = [f"{point}.unlearned", *([f"{point}.recovered"] if point in POINTS["fedosd"] else [])]
    evaluators = available("evaluation")
    for point, names in models.items():
        jobs.add(
            f"evaluate {point}",
            {**SHARED, "evaluators": evaluators},
            **shared,
            original=original,
            models=[run / f"{name}.safetensors" for name in names],
            traces=[run / f"{name}.csv" for name in names],
            output=run / f"{point}.evaluation.csv",
        )
    for method, points in POINTS.items():
        evaluations = [run / f"{point}.evaluation.csv" for point in points]
        chosen = run.parent / f"{method}.selected.json"
        jobs.add(f"select {method}", {"points": list(points)}, evaluations=evaluations, output=chosen)
    for kind in available("publishing"):
        about = {"label": "Small", "dataset": "digits", "rounds": [1, 2]}
        nothing, all_points = reads(kind) == "nothing", not selects(kind) and reads(kind) == "evaluations"
        entries = []
        for method in POINTS if all_points else methods:
            rates = POINTS.get(method, {method: LOCAL["lr"]})
            shown = [
                [point, {"lr": rate, "coordinates": {"unlearning.lr": rate}, "models": models[point]}]
                for point, rate in rates.items()
            ]
            entry = {"label": "Method", "in_paper": True, "post_training": "after", "points": {"small": shown}}
            entries.append([method, entry])
        spec = {
            **{"kind": kind, "title": "T", "caption": "C", "in_paper": True, "published": False, "citation": "X"},
            **{"paper": "toy", "artefact": kind, "preset": "smoke", "seeds": [0]},
            "metrics": [metric for metric in METRICS if metric in ("asr", "r_acc")],
            "stages": ["original", "unlearned", "recovered"],
            "scenarios": [] if nothing else [["small", about]],
            "methods": [] if nothing else entries,
        }
        jobs.add(f"publish {kind}", spec, root=root, output=root / "artefacts" / kind)
    return jobs


def test_every_stage_loads_only_what_its_digest_covers(tmp_path: Path) -> None:
    jobs = workflow(tmp_path)
    loaded = jobs.loaded()
    stray = {name: found - jobs.covered[name] for name, found in loaded.items() if found - jobs.covered[name]}
    assert stray == {}
    unused = {name: jobs.chosen[name] - found for name, found in loaded.items() if jobs.chosen[name] - found}
    # The jobs did load their plug-ins; an artefact of evaluations or traces knows its data sets by name alone.
    by_name = [kind for kind in available("publishing") if reads(kind) in ("evaluations", "traces")]
    assert unused == {f"publish {kind}": {"fu.datasets.digits"} for kind in by_name}
    assert json.loads((jobs.run.parent / "fedosd.selected.json").read_text())["selected"] in POINTS["fedosd"]
    assert {name.split()[0] for name in loaded} == {
        path.stem for path in (ROOT / "fu" / "stages").glob("*.py") if "__main__" in path.read_text()
    }
    left = [path.name for path in tmp_path.rglob("*") if path.name.startswith(".")]
    assert left == []  # neither checkpoints nor half-written files
    assert {path.suffix for path in (tmp_path / "artefacts").iterdir()} == {".csv", ".md", ".pdf", ".png", ".json"}
