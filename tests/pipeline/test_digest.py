"""A digest counts whatever can change a result, and nothing else; a closure holds all that an import can load."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from fu import plugins
from fu.errors import UserError
from fu.pipeline import digest as digests
from fu.pipeline.catalogue import KINDS, available
from fu.pipeline.digest import UNCOUNTED, closure, digest, modules_of
from fu.pipeline.paths import OUTPUTS
from fu.pipeline.stages import predict, relearn, request
from fu.pipeline.syntax import DECLARED
from fu.plugins import Choice
from tests.mistakes import sentence
from tests.pipeline.damages import DAMAGES, damage
from tests.pipeline.plans import PAT50, forget_what_was_read, made

ROOT = digests.ROOT


@contextmanager
def looked_at(root: Path, left_out: Callable[[str, list[str]], set[str]]) -> Iterator[Path]:
    """Have the digests look at a copy of the package."""
    shutil.copytree(ROOT / "fu", root / "fu", ignore=left_out)
    shutil.copytree(ROOT / "envs", root / "envs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digests, "ROOT", root)
        forget_what_was_read()
        yield root / "fu"
    forget_what_was_read()


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Path]:
    """A copy of the package without most of its modules."""
    kept = {f"{module.replace('.', '/')}.py" for module in UNCOUNTED}

    def left_out(folder: str, names: list[str]) -> set[str]:
        place = Path(folder).relative_to(ROOT)
        files = (
            [] if place == Path("fu") else [name for name in names if name.endswith(".py") and name != "__init__.py"]
        )
        return {"__pycache__", *(name for name in files if str(place / name) not in kept)}

    with looked_at(tmp_path, left_out) as folder:
        yield folder


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Path]:
    """A copy of the whole package."""
    unedited()
    with looked_at(tmp_path, shutil.ignore_patterns("__pycache__")) as folder:
        yield folder


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    forget_what_was_read()


def counts(folder: Path, text: str, old: str, new: str, module: str = "methods.new") -> bool:
    """Whether the digest of a new module counts an edit."""
    assert text.count(old) == 1
    assert text.replace(old, new) != text
    path = folder / f"{module.replace('.', '/')}.py"
    write(path, text)
    before = digest(f"fu.{module}")
    write(path, text.replace(old, new))
    return digest(f"fu.{module}") != before


# ---- what counts ---------------------------------------------------------------------------------------------------

SOURCE = '''"""About."""

from fu.seeds import derive_integer

LIMIT = 3  # why


class Thing:
    """A thing."""

    def size(self) -> int:
        """How large."""
        return LIMIT


async def wait() -> None:
    """Nothing."""
'''


EDITS_OF_LAYOUT = [
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
]


@pytest.mark.parametrize(("old", "new"), EDITS_OF_LAYOUT)
def test_comments_docstrings_and_layout_do_not_count(copy: Path, old: str, new: str) -> None:
    assert not counts(copy, SOURCE, old, new)


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
        ("from fu.seeds import derive_integer", "from fu.seeds import Other"),
        ("from fu.seeds import derive_integer\n", ""),
        ("class Thing", "class Another"),
    ],
)
def test_whatever_can_change_a_result_counts(copy: Path, old: str, new: str) -> None:
    assert counts(copy, SOURCE, old, new)


def test_a_string_that_is_no_docstring_counts(copy: Path) -> None:
    assert counts(copy, '"""About."""\n"""one"""\n', "one", "two")


def test_a_digest_is_sixteen_digits_and_depends_on_no_order(whole: Path) -> None:
    one = digest("fu.methods.fedosd", "fu.models.mlp")
    assert len(one) == 16
    assert int(one, 16) >= 0
    assert digest("fu.models.mlp", "fu.methods.fedosd") == one
    assert digest("fu.methods.fedosd") != one


def test_a_digest_counts_what_a_module_is_called(copy: Path) -> None:
    write(copy / "methods" / "one.py", "X = 1\n")
    write(copy / "methods" / "two.py", "X = 1\n")
    assert digest("fu.methods.one") != digest("fu.methods.two")


TEXTS = """from pydantic import Field
from fu.errors import UserError, nearest

METRICS = {"asr": {"label": "ASR"}}
ESTIMATE: dict[str, float] = {"step_ms": 14.0}
OTHER = {"r_acc": {"label": "R-Acc"}}


class Params:
    share: float = Field(0.5, gt=0, description="a share", examples=[0.25])


def check(x: int) -> int:
    if x > 3:
        limit = 3
        raise UserError(f"{x} is more than {limit}" + nearest("a", ["b"])) from None
    return argument(x, description="a number", examples=[1])


class C:
    METRICS = "of a class"
"""


EDITS_OF_TEXTS = [
    ('is more than {limit}" + nearest("a", ["b"])', 'exceeds {limit}"'),
    ('(f"{x} is more than {limit}" + nearest("a", ["b"]))', "(where=x, text='no')"),
    ('description="a share"', 'description="another text"'),
    (', description="a share"', ""),
    ("examples=[0.25]", "examples=[0.75]"),
    ('"label": "ASR"', '"label": "attack success"'),
    ('METRICS = {"asr": {"label": "ASR"}}\n', ""),
    ('METRICS = {"asr": {"label": "ASR"}}\n', 'METRICS: dict = {"asr": {"label": "ASR"}}\n'),
    ("14.0", "15.0"),
    ('ESTIMATE: dict[str, float] = {"step_ms": 14.0}\n', ""),
]


@pytest.mark.parametrize(("old", "new"), EDITS_OF_TEXTS)
def test_what_is_said_to_people_and_to_the_plan_does_not_count(copy: Path, old: str, new: str) -> None:
    assert not counts(copy, TEXTS, old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        limit = 3\n", "        limit = 4\n"),  # before the raise
        ("x > 3", "x > 4"),
        ("raise UserError(", "raise ValueError("),
        ('["b"])) from None', '["b"])) from x'),
        ("Field(0.5", "Field(0.25"),
        ("gt=0", "ge=0"),
        ("share: float = Field(0.5, gt=0, ", "share: float = Other(0.5, gt=0, "),
        ('description="a number"', 'description="another text"'),  # of another call
        ('description="a number", examples=[1]', 'description="a number", examples=[2]'),
        ('"label": "R-Acc"', '"label": "accuracy"'),
        ('OTHER = {"r_acc"', 'RULES = {"r_acc"'),
        ('METRICS = "of a class"', 'METRICS = "of another class"'),
        ('METRICS = {"asr"', 'METRICS = OTHER = {"asr"'),
    ],
)
def test_what_stands_beside_it_counts(copy: Path, old: str, new: str) -> None:
    assert counts(copy, TEXTS, old, new)


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_a_constant_for_the_plan_counts_where_its_own_module_reads_it(copy: Path, name: str) -> None:
    unread = f"{name} = {{'a': 1}}\n\n\ndef evaluate(x):\n    return x\n"
    read = unread.replace("return x", f"return {name}[x]")
    assert not counts(copy, unread, "'a': 1", "'a': 2")
    assert counts(copy, read, "'a': 1", "'a': 2")
    assert counts(copy, unread, "return x", f"return {name}[x]")


@pytest.mark.parametrize("module", sorted(UNCOUNTED))
def test_a_module_that_only_speaks_to_people_does_not_count(copy: Path, module: str) -> None:
    parent, _, name = module.rpartition(".")
    text = f"import {module}\nfrom {parent} import {name}\nfrom {module} import x\n\nLIMIT = 1\n"
    write(copy / "methods/new.py", text)
    before = digest("fu.methods.new")
    assert module not in closure(("fu.methods.new",))
    uncounted = copy.joinpath(*module.split(".")[1:]).with_suffix(".py")
    write(uncounted, f"{uncounted.read_text()}\nADDED = 1\n")
    assert digest("fu.methods.new") == before
    write(copy / "seeds.py", f"{(copy / 'seeds.py').read_text()}\nADDED = 1\n")
    assert digest("fu.methods.new") == before
    write(copy / "methods/new.py", f"from fu import seeds\n{text}")
    assert digest("fu.methods.new") != before
    assert {"fu.seeds"} == {found for found in closure(("fu.methods.new",)) if found in (module, "fu.seeds")}


def test_what_is_imported_by_an_uncounted_module_alone_does_not_count_either(copy: Path) -> None:
    write(copy / "errors.py", "import fu.seeds\n")
    write(copy / "methods/new.py", "import fu.errors\n")
    assert set(closure(("fu.methods.new",))) == {"fu", "fu.methods", "fu.methods.new"}


def test_what_was_read_before_is_read_again_when_a_file_or_the_rules_change(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache/digests.json"
    monkeypatch.setattr(digests, "CACHE", cache)
    digests._remembered.cache_clear()
    fresh = digest("fu.methods.fedosd")
    digests.remember()
    entries = json.loads(cache.read_text())
    assert len(entries) == len(closure(("fu.methods.fedosd",)))

    def read_anew() -> str:
        digests._remembered.cache_clear()
        forget_what_was_read()
        return digest("fu.methods.fedosd")

    assert read_anew() == fresh
    cache.write_text(json.dumps({key: ["0" * 64, "0" * 64, False, [], []] for key in entries}))
    assert read_anew() != fresh  # what was read before is believed
    monkeypatch.setattr(digests, "OWN", b"other rules")
    assert read_anew() == fresh  # but not what other rules made of it
    digests._remembered.cache_clear()


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_cache_is_made_again(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    cache = tmp_path / "cache/digests.json"
    monkeypatch.setattr(digests, "CACHE", cache)
    digests._remembered.cache_clear()
    fresh = digest("fu.seeds")
    digests.remember()
    whole = cache.read_text()
    damage(cache, kind, next(iter(json.loads(whole))))
    digests._remembered.cache_clear()
    forget_what_was_read()
    assert digest("fu.seeds") == fresh
    digests.remember()
    assert cache.is_dir() or json.loads(cache.read_text()) == json.loads(whole)
    assert [path.name for path in cache.parent.iterdir()] == [cache.name]
    digests._remembered.cache_clear()


# ---- plug-ins outside fu, and what other modules read ---------------------------------------------------------------

RATES = {  # where a rate stands in a helper, and how the plug-in beside it reads it
    **{
        f"{name} of a module": (f"{name} = {{'rate': 0.1}}\n", f"RATE = helper.{name}['rate']")
        for name in ("METRICS", "ESTIMATE", "ABOUT")
    },
    "METRICS by name": ("METRICS = {'rate': 0.1}\n", "from fu.methods.helper import METRICS as m\nRATE = m['rate']"),
    "METRICS by a star": ("METRICS = {'rate': 0.1}\n", "from fu.methods.helper import *\nRATE = METRICS['rate']"),
    "METRICS as text": ("METRICS = {'rate': 0.1}\n", "RATE = getattr(helper, 'METRICS')['rate']"),
    "description of a field": (
        "from pydantic import BaseModel, Field\nclass Params(BaseModel):\n    x: int = Field(1, description='0.1')\n",
        "RATE = float(helper.Params.model_fields['x'].description)",
    ),
    "example of a field": (
        "from pydantic import BaseModel, Field\nclass Params(BaseModel):\n    x: int = Field(1, examples=[0.1])\n",
        "RATE = helper.Params.model_json_schema()['properties']['x']['examples'][0]",
    ),
    "docstring": ('"""0.1"""\n', "RATE = float(helper.__doc__)"),
    "docstring of a function": ('def f():\n    """0.1"""\n', "import inspect\nRATE = float(inspect.getdoc(helper.f))"),
    "argument of a raise": (
        "def f():\n    raise ValueError(0.1)\n",
        "try:\n    helper.f()\nexcept ValueError as error:\n    RATE = error.args[0]",
    ),
}


@pytest.fixture
def outside(copy: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a user's own methods, beside the copy of the package."""
    monkeypatch.setattr(plugins, "FOLDERS", [copy.parent / "mine"])
    return copy.parent / "mine/methods"


@pytest.mark.parametrize(("where", "place"), [*((where, "inside") for where in RATES), ("METRICS by name", "outside")])
def test_what_another_module_reads_counts_wherever_it_stands(copy: Path, outside: Path, where: str, place: str) -> None:
    folder = outside if place == "outside" else copy / "methods"
    text, reading = RATES[where]
    write(folder / "mine.py", f"from fu.methods import helper\n\n{reading}\n")
    write(folder / "helper.py", text)
    before = digest("fu.methods.mine")
    assert text.count("0.1") == 1
    write(folder / "helper.py", text.replace("0.1", "0.2"))
    assert digest("fu.methods.mine") != before


@pytest.mark.parametrize(("old", "new"), EDITS_OF_TEXTS)
def test_outside_fu_only_comments_docstrings_and_layout_do_not_count(outside: Path, old: str, new: str) -> None:
    """What only people read may be read by what else a user wrote: it counts."""
    assert counts(outside.parent, TEXTS, old, new)


def test_a_file_that_moves_out_of_fu_is_looked_at_anew(copy: Path, outside: Path) -> None:
    write(copy / "methods/mine.py", "METRICS = {'a': 1}\n")
    inside = digest("fu.methods.mine")
    outside.mkdir(parents=True)
    (copy / "methods/mine.py").rename(outside / "mine.py")
    forget_what_was_read()
    assert digest("fu.methods.mine") != inside


def test_no_stage_reads_what_only_people_read() -> None:
    found = {module for stage in OUTPUTS for module in closure(modules_of(stage, base(stage)))}
    found |= set(closure(tuple(f"fu.{kind}.{name}" for kind in KINDS for name in available(kind))))
    assert {module for module in found if digests.disk().source(module).about.reads} == set()


# ---- files that a plug-in opens ----------------------------------------------------------------------------------


def test_a_file_counts_where_the_module_that_opens_it_declares_it(outside: Path) -> None:
    write(outside / "mine.py", "from fu.methods import helper\n")
    write(outside / "helper.py", 'READS = ["rate.txt", "more/rates.txt"]\n')
    write(outside / "rate.txt", "0.1")
    write(outside / "more/rates.txt", "0.1")
    write(outside / "other.txt", "0.1")
    planned, before = digest("fu.methods.mine"), digests.parts("fu.methods.mine")
    write(outside / "other.txt", "0.2")
    assert digest("fu.methods.mine") == planned
    write(outside / "more/rates.txt", "0.2")
    after = digests.parts("fu.methods.mine")
    assert {name for name in before if before[name] != after[name]} == {"fu.methods.helper:more/rates.txt"}
    (outside / "rate.txt").unlink()
    forget_what_was_read()
    told = f"{outside}/helper.py: READS: the file {outside}/rate.txt cannot be read."
    assert sentence(lambda: digest("fu.methods.mine")) == told


@pytest.mark.parametrize(
    "text",
    [
        "READS = ['../rate.txt']",
        "READS = ['/rate.txt']",
        "READS = ['']",
        "READS = [1]",
        "READS = 5",
        "READS = list('a')",
        "READS: list[str]",
        "READS = []\nREADS += ['rate.txt']",
        "if True:\n    READS = ['rate.txt']",
        "READS = OTHER = ['rate.txt']",
    ],
)
def test_a_declaration_that_cannot_be_read_off_the_file_is_refused(outside: Path, text: str) -> None:
    write(outside / "mine.py", f"{text}\n")
    line = 2 if text.startswith("READS = []") else 1
    assert sentence(lambda: digest("fu.methods.mine")) == (
        f'{outside}/mine.py: line {line}: READS must list files in this folder or below, as in READS = ["rate.txt"].'
    )


# ---- which stages an edit touches ----------------------------------------------------------------------------------


@cache
def base(stage: str) -> BaseModel:
    """A spec of the smoke run, with a multilayer perceptron on the digits."""
    names: dict[str, dict[str, str]] = {
        "data": {"dataset": "digits"},
        "partition": {"run": PAT50},
        "train": {"run": PAT50, "trial": "original"},
        "unlearn": {"run": PAT50, "trial": "fedosd+lr0.02"},
        "recover": {"run": PAT50, "trial": "fedosd+lr0.02"},
        "evaluate": {"run": PAT50, "trial": "fedosd+lr0.02", "evaluation": "evaluation"},
        "shadow": {"run": PAT50, "trial": "original"},
        "select": {"scenario": "fedosd/mnist-pat50", "method": "fedosd"},
        "publish": {"paper": "fedosd", "artefact": "table1"},
    }
    if stage == "request":  # with an attack there is none
        return request.Spec(seed=0, clients=1, samples=None, requests=1)
    if stage == "predict":  # nothing of this paper is audited
        return predict.Spec(dataset="digits", attack=None, model=Choice(name="mlp"))
    if stage == "relearn":
        return relearn.Spec(
            **{
                "dataset": "digits_shifted",
                "attack": None,
                "model": Choice(name="mlp"),
                "local": made("smoke").job("train", names["train"]).spec.model_dump()["local"],
            },
            **{"rounds": 1, "samples": 1, "clients_per_round": None, "with_replacement": False},
            **{"seeds": (0,), "traced": ("forget_set", "utility")},
        )
    found = made("smoke").job(stage, names[stage]).spec
    return found.model_copy(update={"traced": ("utility",)} if "traced" in type(found).model_fields else {})


def stages() -> dict[str, str]:
    """Return the digest of every stage with plug-ins, as the plan asks for them."""

    def of(stage: str, **changes: Any) -> str:
        return digest(*modules_of(stage, base(stage).model_copy(update=changes)))

    return {
        "data": of("data"),
        **{f"partition {name}": of("partition", partition=Choice(name=name)) for name in available("partitions")},
        "request": of("request"),
        "train fedavg": of("train", history=("last_local_models",)),
        "train server_sgd": of("train", history=("last_local_models",), training=Choice(name="server_sgd")),
        "shadow": of("shadow"),
        "evaluate": of("evaluate", evaluators=("utility", "distance")),
        **{f"unlearn {name}": of("unlearn", method=Choice(name=name)) for name in available("methods")},
        "unlearn again": of("unlearn", method=Choice(name="retrain"), training=Choice(name="server_sgd")),
        "unlearn watched": of("unlearn", method=Choice(name="retrain"), watch="conflicts"),
        "recover free": of("recover", projection=None),
        **{f"recover {name}": of("recover", projection=Choice(name=name)) for name in available("projections")},
        "recover unattacked": of("recover", projection=None, attack=None),
        "relearn": of("relearn"),
        "select": of("select"),
        **{f"publish {name}": of("publish", kind=name) for name in available("artefacts")},
    }


@cache
def unedited() -> dict[str, str]:
    """Return the digests of the stages as the package is; a copy of it has the same."""
    return stages()


def changed_stages() -> set[str]:
    """Return the stages whose digests are others in a copy."""
    return {name for name, found in stages().items() if found != unedited()[name]}


def edit(path: Path) -> None:
    """Add a constant to a file."""
    write(path, f"{path.read_text()}\nADDED = 1\n")


MEASURING = {"train", "unlearn", "recover", "evaluate"}
COMPUTING = {*MEASURING, "shadow", "relearn"}
ALL = {"data", "partition", "request", *COMPUTING, "predict", "select", "publish"}
ATTACKED = {"partition", "train", "unlearn", "evaluate", "recover free", "recover away_from_original"}


@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("methods/fedosd.py", {"unlearn fedosd"}),
        ("projections/away_from_original.py", {"recover away_from_original"}),
        ("training/fedavg.py", {"train fedavg", "shadow"}),
        ("training/server_sgd.py", {"train server_sgd", "unlearn again"}),
        ("models/mlp.py", COMPUTING),
        ("datasets/digits.py", {"data"}),
        ("datasets/digits_shifted.py", {"partition", *COMPUTING}),
        ("partitions/pat.py", {"partition pat"}),
        ("attacks/patch.py", ATTACKED),
        ("histories/last_local_models.py", {"train"}),
        ("evaluation/utility.py", {*MEASURING, "relearn"}),
        ("evaluation/forget_set.py", {"relearn"}),
        ("evaluation/conflicts.py", {"unlearn watched"}),
        ("evaluation/trace.py", {*COMPUTING, "publish"}),
        ("evaluation/selection.py", {"select"}),
        ("data/request.py", {"request", *COMPUTING, "publish"}),
        ("data/sources.py", {"data"}),
        ("data/membership.py", COMPUTING),
        ("data/clients.py", {*COMPUTING, "publish"}),
        ("federation/driver.py", COMPUTING),
        ("federation/recovery.py", {"recover"}),
        ("federation/relearning.py", {"relearn"}),
        ("artefacts/curves.py", {"publish curves"}),
        ("artefacts/table.py", {"publish membership", "publish table"}),
        ("artefacts/result.py", {"publish"}),
        ("plugins.py", ALL),
        ("pipeline/stages/request.py", {"request"}),
        ("pipeline/stages/select.py", {"select"}),
        ("pipeline/stages/shadow.py", {"shadow"}),
        ("pipeline/stages/relearn.py", {"relearn"}),
        ("pipeline/stages/compute.py", COMPUTING),
        ("pipeline/stages/common.py", ALL),
        ("pipeline/frames.py", {"publish"}),
    ],
)
def test_a_changed_constant_touches_exactly_the_stages_that_can_read_it(
    whole: Path, file: str, changed: set[str]
) -> None:
    edit(whole / file)
    assert changed_stages() == {name for name in unedited() if name in changed or name.split()[0] in changed}


def test_what_no_stage_can_read_touches_none(whole: Path) -> None:
    for module in ("digest", "catalogue", "paths", "estimates", "grid", "plan", "specs", "settings/records"):
        edit(whole / f"pipeline/{module}.py")
    unnamed = ("datasets/mnist", "histories/update_sums", "evaluation/backdoor")
    for module in (*unnamed, "errors", "federation/progress", "pipeline/engine/fork_server"):
        edit(whole / f"{module}.py")
    assert changed_stages() == set()


@pytest.mark.parametrize(
    ("libraries", "changed"),
    [
        (["numpy"], ALL - {"select"}),
        (["scikit-learn"], {"data"}),
        (["torch"], {"partition", *COMPUTING, "publish"}),
        (["safetensors"], {*COMPUTING, "publish"}),
        (
            ["scipy"],
            {
                "unlearn fedosd",
                "publish gains",
                "publish matrix",
                "publish membership",
                "publish relearning",
                "publish table",
                "publish verdicts",
            },
        ),
        (["pandas"], {"publish"}),
        (["matplotlib"], {"publish"}),
        (["torchvision", "pydantic", "tqdm", "psutil", "PyYAML", "snakemake", "pytest"], set()),
    ],
    ids=lambda names: " ".join(sorted(names)),
)
def test_another_version_of_a_library_touches_exactly_the_stages_that_import_it(
    whole: Path, libraries: list[str], changed: set[str]
) -> None:
    lock = whole.parent / "envs/lock.txt"
    for library in libraries:
        text = lock.read_text()
        assert text.count(f"\n{library}==") == 1
        write(lock, text.replace(f"\n{library}==", f"\n{library}==99."))
    assert changed_stages() == {name for name in unedited() if name in changed or name.split()[0] in changed}


# ---- closures ------------------------------------------------------------------------------------------------------


def test_a_closure_follows_every_way_to_import(copy: Path) -> None:
    write(
        copy / "methods/new.py",
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
    names = ["plain", "renamed", "named", "within", "above", "starred", "typed", "inside", "method", "deep.in_package"]
    found = [*(f"new.{name}" for name in (*names, "deep.er", "initial")), "methods.beside", "methods.beside_too"]
    for name in (*found, "new.unused"):
        write(copy / f"{name.replace('.', '/')}.py", "")
    write(copy / "new/__init__.py", "from fu.new.initial import x\n")
    write(copy / "new/deep/__init__.py", "from . import in_package\n")
    write(copy / "__init__.py", "")
    packages = ["fu", "fu.methods", "fu.methods.new", "fu.new", "fu.new.deep"]
    assert closure(("fu.methods.new",)) == tuple(sorted([*packages, *(f"fu.{name}" for name in found)]))


def test_a_closure_ends_where_modules_import_each_other(copy: Path) -> None:
    write(copy / "methods" / "one.py", "import fu.methods.two\n")
    write(copy / "methods" / "two.py", "import fu.methods.one\n")
    expected = {"fu", "fu.methods", "fu.methods.one", "fu.methods.two"}
    assert set(closure(("fu.methods.one",))) == set(closure(("fu.methods.two",))) == expected


PLUGINS = ("fu.methods.", "fu.models.", "fu.training.", "fu.projections.", "fu.partitions.", "fu.histories.")


@pytest.mark.parametrize("kind", ["methods", "projections"])
def test_methods_and_projections_are_in_no_closure_but_their_own(kind: str) -> None:
    stage, key = {"methods": ("unlearn", "method"), "projections": ("recover", "projection")}[kind]
    for name in available(kind):
        spec = base(stage).model_copy(update={key: Choice(name=name)})
        found = {module for module in closure(modules_of(stage, spec)) if module.startswith(PLUGINS)}
        assert found == {f"fu.{kind}.{name}", "fu.models.mlp"}


# ---- libraries -----------------------------------------------------------------------------------------------------


def libraries(*modules: str) -> dict[str, str]:
    return {name: version for name, version in digests.parts(*modules).items() if name.split(".")[0] != "fu"}


@pytest.mark.parametrize(
    ("statement", "library", "found"),
    [
        ("import numpy", "numpy", "1.2.3"),
        ("import numpy.linalg as la", "numpy", "1.2.3"),
        ("def late():\n    from numpy import linalg", "numpy", "1.2.3"),
        ("from sklearn.datasets import load_digits", "scikit-learn", "4.5"),
        ("from PIL import Image", "pillow", "6"),
        ("import Zope_Event.x", "zope-event", "7"),
        ("import torch", "torch", "8.0"),
        ("import pytest", "pytest", version("pytest")),  # not pinned, installed
        ("import _pytest", "-pytest", f"pytest {version('pytest')}"),  # of a library of another name
        ("import tensorflwo", "tensorflwo", "absent"),
        ("import pandas", "tabulate", "absent" if find_spec("tabulate") is None else version("tabulate")),
        *((f"import {name}", None, "") for name in ("json", "__future__", "pydantic", "tqdm", "typing_extensions")),
    ],
)
def test_a_library_counts_with_its_pinned_version_else_the_installed(
    copy: Path, statement: str, library: str | None, found: str
) -> None:
    pins = "# pins\nnumpy==1.2.3\nscikit_learn==4.5 ; python_version > '3'\nPillow==6\nZope.Event==7\ntorch==8.0+cpu\n"
    write(copy.parent / "envs/lock.txt", pins)
    write(copy / "methods/new.py", f"{statement}\n")
    expected = {} if library is None else {library: found}
    assert libraries("fu.methods.new").items() >= expected.items()
    assert library is not None or not libraries("fu.methods.new")


def test_parts_are_the_modules_and_libraries_of_a_digest(copy: Path) -> None:
    write(copy / "methods/new.py", "import numpy, fu.seeds, fu.errors\n")
    found = digests.parts("fu.methods.new")
    assert list(found) == ["fu", "fu.methods", "fu.methods.new", "fu.seeds", "numpy"]
    assert all(len(value) == 8 and int(value, 16) >= 0 for name, value in found.items() if name != "numpy")
    write(copy / "seeds.py", f"{(copy / 'seeds.py').read_text()}\nADDED = 1\n")
    changed = digests.parts("fu.methods.new")
    assert {name for name in found if found[name] != changed[name]} == {"fu.seeds"}


def test_another_installed_version_than_the_pinned_one_is_told(copy: Path) -> None:
    write(copy / "methods/new.py", "import pytest, torch, tensorflwo\n")
    lock = copy.parent / "envs/lock.txt"
    pytest_, torch = version("pytest"), version("torch").partition("+")[0]
    for right in (f"pytest=={pytest_}\ntorch=={torch}\n", f"torch=={torch}+cu999\n", ""):
        write(lock, right)
        digests.check_installed("fu.methods.new")
    write(lock, f"pytest=={pytest_}\ntorch==99.0\n")
    with pytest.raises(UserError) as caught:
        digests.check_installed("fu.methods.new")
    assert str(caught.value) == (
        f"torch {torch} is installed, but envs/lock.txt pins 99.0; run `make` to reinstall, or pin the installed "
        "version there."
    )
    write(lock, "tensorflwo==1.0\n")
    with pytest.raises(UserError, match=r"^tensorflwo is not installed, but envs/lock\.txt pins 1\.0; run `make`"):
        digests.check_installed("fu.methods.new")


# ---- what runs is what was read ------------------------------------------------------------------------------------

RUNNING = """
import os, sys
from pathlib import Path
from fu import sources
from fu.pipeline import digest

def again(path):
    text = Path(path).read_text()
    Path(path).write_text("X = 2")
    Path(path).write_text(text)

before = digest.digest("fu.methods.mine")
{while_it_runs}
print(digest.replaced("fu.methods.mine"))
digest.disk.cache_clear(), digest.digest.cache_clear()
print(digest.digest("fu.methods.mine") == before)
"""


@pytest.mark.parametrize(
    ("while_it_runs", "stray"),
    [
        ("import fu.methods.mine", ""),
        ("again('fu/methods/mine.py'); import fu.methods.mine; assert fu.methods.mine.X == 1", ""),
        ("import fu.methods.mine; again('fu/methods/mine.py')", ""),
        ("Path('fu/methods/mine.py').write_text('X = 2'); import fu.methods.mine; assert fu.methods.mine.X == 1", ""),
        ("Path('fu/methods/rate.txt').write_text('2')", "fu/methods/rate.txt"),
        ("again('fu/methods/rate.txt')", "fu/methods/rate.txt"),
        ("again('fu/methods/other.txt')", ""),
        ("again('libraries/used-1.0.dist-info/METADATA')", "used"),
        ("again('libraries/unused-1.0.dist-info/METADATA')", ""),
        ("os.rename('libraries/used-1.0.dist-info', 'libraries/used-2.0.dist-info')", "used"),
        (
            "Path('fu/methods/mine').mkdir(); Path('fu/methods/mine/__init__.py').write_text('X = 2');"
            "import fu.methods.mine; os.rename('fu/methods/mine', 'fu/methods/gone')",
            "fu/methods/mine/__init__.py",
        ),
    ],
)
def test_what_ran_is_what_the_digest_covers_or_is_named(tmp_path: Path, while_it_runs: str, stray: str) -> None:
    shutil.copytree(ROOT / "fu", tmp_path / "fu", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "envs", tmp_path / "envs")
    (tmp_path / "fu/methods/mine.py").write_text('READS = ["rate.txt"]\nX = 1\nif not X:\n    import used\n')
    for name in ("rate", "other"):
        (tmp_path / f"fu/methods/{name}.txt").write_text("1")
    for name in ("used", "unused"):
        (tmp_path / f"libraries/{name}-1.0.dist-info").mkdir(parents=True)
        (tmp_path / f"libraries/{name}-1.0.dist-info/METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
    program = RUNNING.format(while_it_runs=while_it_runs)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{tmp_path}/libraries"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    found, same = done.stdout.split("\n")[:2]
    assert found.removeprefix(f"{tmp_path}/") == stray
    assert (same == "True") == (not stray or "again" in while_it_runs or "rename" in while_it_runs)


# ---- what Python imports is what is read ---------------------------------------------------------------------------

SO = EXTENSION_SUFFIXES[0]
LAYOUTS = [
    ["new.py"],
    ["new.py", "new/__init__.py"],
    ["new.py", "new/inner.py"],  # a folder alone comes last
    ["new/__init__.py", "new/inner.py"],
    ["new/inner.py"],
    ["new.py", "new.pyc"],
    ["new.pyc"],
    ["new.py", f"new{SO}"],
    [f"new{SO}", "new/__init__.py"],
    ["new/__init__.py", f"new/__init__{SO}"],
    ["new/__init__.pyc"],
    ["new.py/inner.py"],
    ["new.py/inner.py", "new.pyc"],
    ["new.py~", ".new.py", "new.txt"],
]


@pytest.mark.parametrize("files", LAYOUTS, ids=" ".join)
@pytest.mark.parametrize("package", ["fu", "fu.methods"])
def test_the_file_that_is_read_is_the_one_that_python_would_import(copy: Path, package: str, files: list[str]) -> None:
    folder = copy.joinpath(*package.split(".")[1:])
    for file in files:
        write(folder / file, "")
    spec = PathFinder.find_spec(f"{package}.new", [str(folder)])
    expected = Path(spec.origin) if spec and spec.origin else None
    assert digests.module_file(f"{package}.new") == expected
    assert ("new" in digests.disk().modules(package)) == (expected is not None)
    inner = (
        PathFinder.find_spec(f"{package}.new.inner", spec.submodule_search_locations)
        if spec and spec.submodule_search_locations
        else None
    )
    assert digests.module_file(f"{package}.new.inner") == (inner and Path(str(inner.origin)))
    if expected and expected.suffix != ".py":
        with pytest.raises(UserError) as caught:
            digest(f"{package}.new")
        assert (
            str(caught.value)
            == f"{expected}: Python would import this compiled file, whose code cannot be digested; remove it."
        )


def test_a_star_counts_all_modules_of_a_package(copy: Path) -> None:
    write(copy / "methods/new.py", "from fu.new import *\n")
    write(copy / "new/__init__.py", "__all__ = ['inner']\n")
    write(copy / "new/inner.py", "X = 1\n")
    assert "fu.new.inner" in closure(("fu.methods.new",))


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ('"""About."""\n\n\ndef f():\n    """More."""\n', False),
        ('"""About."""\n\nTEXT = __doc__\n', True),
        ('"""About."""\n\n\ndef f():\n    return f.__doc__\n', True),
        ('"""About."""\nimport inspect\nTEXT = inspect.getdoc(inspect)\n', True),
        ('"""About."""\nimport sys\nTEXT = getattr(sys, "__doc__")\n', True),
    ],
)
def test_a_docstring_counts_where_its_module_reads_one(copy: Path, text: str, counted: bool) -> None:
    assert counts(copy, text, '"""About."""', '"""Other."""') == counted


@pytest.mark.parametrize(
    ("head", "counted"),
    [
        ("from pydantic import Field", False),
        ("from pydantic import BaseModel, Field", False),
        ("from dataclasses import field as Field", True),
        ("from fu.types import Field", True),
        ("def Field(x, description):\n    return description", True),
        ("class Field:\n    pass", True),
        ("Field = print", True),
        ("from pydantic import Field\nField = print", True),
        ("from pydantic import Field\ndef f(Field):\n    return 1", True),
    ],
)
def test_only_pydantic_s_fields_have_a_text_that_does_not_count(copy: Path, head: str, counted: bool) -> None:
    assert counts(copy, f"{head}\nx = Field(1, description='a text')\n", "'a text'", "'another'") == counted


def test_a_field_of_pydantic_by_another_name_has_one_too(copy: Path) -> None:
    text = "from pydantic import Field as F\nx = F(1, description='a text')\n"
    assert not counts(copy, text, "'a text'", "'another'")


# ---- what a syntax tree does not show ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("import importlib", "importlib"),
        ("import importlib.util as u", "importlib.util"),
        ("from importlib import import_module", "importlib"),
        ("def f():\n    import runpy", "runpy"),
        ("from pkgutil import iter_modules", "pkgutil"),
        ("x = __import__('os')", "__import__"),
        ("exec('import os')", "exec"),
        ("def f(text):\n    return eval(text)", "eval"),
        ("import sys\nsys.path.append('x')", "sys.path"),
        ("import sys as s\ns.path += ['x']", "sys.path"),
        ("from sys import path", "sys.path"),
        ("import importlib.metadata\nimportlib.import_module('os')", "importlib.import_module"),
        ("from fu import plugins\nplugins.load('models', 'mlp')", "fu.plugins.load"),
        ("import fu.plugins\nfu.plugins.load('models', 'mlp')", "fu.plugins.load"),
        ("from fu.plugins import load", "fu.plugins.load"),
        ("from fu.plugins import *", "fu.plugins.*"),
        ("from ..plugins import params", "fu.plugins.params"),
    ],
)
def test_what_hides_an_import_is_refused_with_file_and_line(copy: Path, statement: str, named: str) -> None:
    path = copy / "methods/new.py"
    write(path, f'"""New."""\n{statement}\n')
    with pytest.raises(UserError) as caught:
        digest("fu.methods.new")
    where, line, text = str(caught.value).split(": ")
    assert where == str(path)
    assert line in {f"line {k}" for k in range(2, 4)}
    assert text == f"{named} can import code that no digest covers; use a plain `import`."


@pytest.mark.parametrize(
    "statement",
    [
        "model.eval()",
        "import re\nre.compile('x')",
        "from fu.evaluation import eval\neval(1)",
        "def eval(model):\n    return 1\n\n\neval(2)",
        "from importlib.metadata import version\nversion('numpy')",
        "import importlib.metadata\nimportlib.metadata.version('numpy')",
        "import sys\nsys.stderr.write('x')",
        "from fu.plugins import Kind",
        "import os\nos.path.exists('x')",
        "site = 1\nprint(site)",
    ],
)
def test_what_only_looks_like_it_is_not(copy: Path, statement: str) -> None:
    write(copy / "methods/new.py", f"{statement}\n")
    assert digest("fu.methods.new")


def test_code_that_belongs_to_no_library_is_refused_with_file_and_line(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    path = copy / "methods/new.py"
    write(tmp_path / "elsewhere/my_helper_of_tests.py", "X = 1\n")
    write(path, '"""New."""\n\n\ndef step():\n    from my_helper_of_tests import X\n')
    with pytest.raises(UserError) as caught:
        digest("fu.methods.new")
    assert str(caught.value) == (
        f"{path}: line 5: imports 'my_helper_of_tests' ({tmp_path}/elsewhere/my_helper_of_tests.py), which is neither "
        "in fu nor in an installed library, so edits would go unnoticed; put it next to the plug-in and import "
        "fu.methods.my_helper_of_tests."
    )


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (b"x = 1\ndef f(:\n", "line 2: invalid syntax."),
        (b"x = 1\n  y = 2\n", "line 2: unexpected indent."),
        (b"x = 1\ny = '\0'\n", "line 2: contains a null byte."),
        (
            b"x = 1\ny = '\xff'\n",
            "line 2: (unicode error) 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte.",
        ),
        (b"# coding: nothing\n", "unknown encoding: nothing."),
        (b"x = " + b"-" * 100_000 + b"1\n", "is nested too deeply to be read."),
        (b"x = " + b"1 + " * 5_000 + b"1\n", "is nested too deeply to be read."),
        (b"x = " + b"1 + " * 500 + b"1\n", "is nested too deeply to be read."),
    ],
)
def test_a_source_that_cannot_be_read_is_told_in_one_sentence(copy: Path, source: bytes, text: str) -> None:
    path = copy / "methods/new.py"
    path.write_bytes(source)
    forget_what_was_read()
    with pytest.raises(UserError) as caught:
        digest("fu.methods.new")
    assert str(caught.value) == f"{path}: {text}"


@pytest.mark.parametrize(
    "file",
    ["colorsys.py", "colorsys/__init__.py", "numpy.py", f"colorsys{SO}", "yaml/__init__.py", "sklearn.py", "pytest.py"],
)
def test_a_module_beside_the_snakefile_that_python_would_import_in_place_of_another_is_refused(
    copy: Path, file: str
) -> None:
    write(copy / "methods/new.py", "X = 1\n")
    write(copy.parent / file, "")
    name = file.partition(".")[0].partition("/")[0]
    assert sentence(lambda: digest("fu.methods.new")) == (
        f"{copy.parent}/{file}: this file hides {name!r}, a module of Python or of a library; rename it."
    )


@pytest.mark.parametrize("file", ["colorsys/notes.txt", "my_rates.py", "colorsys.txt", "tests/__init__.py"])
def test_other_files_beside_the_snakefile_are_nobody_s_business(copy: Path, file: str) -> None:
    write(copy / "methods/new.py", "X = 1\n")
    write(copy.parent / file, "")
    assert digest("fu.methods.new")
