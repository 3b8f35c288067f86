"""Plug-ins are found in folders of one's own, and one that cannot be imported is told with file and line."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from fu import plugins
from fu.data.dataset import about
from fu.errors import UserError
from fu.pipeline.provenance import catalogue
from fu.plugins import CALLED
from tests.mistakes import python, sentence


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[Path]:
    """A folder for plug-ins of one's own, which nothing knows any more afterwards."""
    before, found = list(plugins.FOLDERS), list(sys.meta_path)
    plugins.add_folder(tmp_path)
    (tmp_path / "methods").mkdir()
    yield tmp_path
    plugins.FOLDERS[:], sys.meta_path[:] = before, found
    for name, module in list(sys.modules.items()):
        if str(tmp_path) in str(getattr(module, "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("text", "place", "told"),
    [
        ("import tensorflwo", "mine.py: line 2", "No module named 'tensorflwo'"),
        ("from fu.seeds import nothing", "mine.py: line 2", "cannot import name 'nothing' from 'fu.seeds'"),
        ("raise RuntimeError('no.\\nmore')", "mine.py: line 2", "RuntimeError: no. more"),
        ("raise SystemExit(3)", "mine.py: line 2", "SystemExit: 3"),
        ("def f(:", "mine.py: line 2", "invalid syntax"),
        ("from fu.methods import below", "below.py: line 1", "ZeroDivisionError: division by zero"),
        ("import json\njson.loads('{')", "mine.py: line 3", "JSONDecodeError: Expecting property name"),
    ],
)
def test_a_plugin_that_cannot_be_imported_is_told_with_file_and_line(
    mine: Path, text: str, place: str, told: str
) -> None:
    (mine / "methods/mine.py").write_text(f'"""Mine."""\n{text}\n')
    (mine / "methods/below.py").write_text("1 / 0\n")
    told_in_all = sentence(lambda: plugins.load("methods", "mine"))
    assert told_in_all.startswith(f"{mine}/methods/{place}: the methods plug-in 'mine' failed to import: {told}")


HEAD = "from pydantic import BaseModel, field_validator\n\n\n"


@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        ("methods", "step = 5", "mine.py: step must be a function of (task, p, state, round), got int."),
        (
            "methods",
            "def step(task, p, state):\n    return state",
            "mine.py: line 4: step is called with (task, p, state, round): too many positional arguments.",
        ),
        (
            "training",
            "def start(task, p, seed):\n    return {}",
            "mine.py: line 4: start is called with (task, p): missing a required argument: 'seed'.",
        ),
        (
            "partitions",
            "def deal(labels, classes, clients, p):\n    return []",
            "mine.py: line 4: deal is called with (labels, *, classes, clients, p, rng): got an unexpected keyword arg",
        ),
    ],
)
def test_a_function_that_cannot_be_called_is_told(mine: Path, kind: str, text: str, told: str) -> None:
    (mine / kind).mkdir(exist_ok=True)
    (mine / f"{kind}/mine.py").write_text(f"{HEAD}{text}\n")
    assert sentence(lambda: plugins.load(kind, "mine")).startswith(f"{mine}/{kind}/{told}")


@pytest.mark.parametrize("text", ["def step(*given):\n    pass", "step = print", "step = max"])
def test_a_function_may_take_its_arguments_in_any_way(mine: Path, text: str) -> None:
    (mine / "methods/mine.py").write_text(f"{HEAD}{text}\n")
    assert plugins.load("methods", "mine").step


def test_every_plugin_is_called_as_it_is_written() -> None:
    assert {kind: {name for name in names if name in catalogue.NEEDED[kind]} for kind, names in CALLED.items()} == {
        kind: {name for name in names if name.islower() and name != "needs"} for kind, names in catalogue.NEEDED.items()
    }
    for kind in catalogue.KINDS:
        for name in catalogue.available(kind):
            plugins.load(kind, name)


def test_a_bug_in_a_validator_is_told_with_file_and_line(mine: Path) -> None:
    validator = "    @field_validator('x')\n    def _odd(cls, x):\n        return x + ''\n"
    (mine / "methods/mine.py").write_text(f"{HEAD}class Params(BaseModel):\n    x: int\n\n{validator}")
    found = sentence(lambda: plugins.params("methods", plugins.Choice(name="mine", params={"x": 1}), "here"))
    assert found == (
        f"{mine}/methods/mine.py: line 9: TypeError: unsupported operand type(s) for +: 'int' and 'str', in Params of "
        "methods/mine.py (here)."
    )


def test_a_mistake_that_a_plugin_tells_itself_is_left_as_it_is(mine: Path) -> None:
    (mine / "methods/mine.py").write_text("from fu.errors import UserError\n\nraise UserError('so')\n")
    with pytest.raises(UserError, match=r"^so$"):
        plugins.load("methods", "mine")


@pytest.mark.parametrize("name", ["nothing", "", "../fedosd", "fedosd.x", "os"])
def test_a_plugin_that_is_not_there_is_told(name: str) -> None:
    assert not plugins.exists("methods", name)
    assert sentence(lambda: plugins.load("methods", name)) == f"there is no methods plug-in {name!r}."


@pytest.mark.parametrize("text", ["", "Params = 5", "class Params:\n    pass"])
def test_hyper_parameters_that_are_no_record_are_told(mine: Path, text: str) -> None:
    (mine / "methods/mine.py").write_text(text)
    told = sentence(lambda: plugins.params("methods", plugins.Choice(name="mine"), "here"))
    assert told == "mine.py (methods): Params must be a subclass of pydantic's BaseModel."


def test_a_data_set_that_says_nothing_of_itself_is_told(mine: Path) -> None:
    (mine / "datasets").mkdir()
    (mine / "datasets/mine.py").write_text("ABOUT = 5")
    told = "mine.py (datasets): ABOUT must be a fu.data.dataset.Dataset."
    assert sentence(lambda: about("mine")) == told


def test_plugins_of_the_package_and_of_one_s_own_import_each_other(mine: Path) -> None:
    (mine / "methods/mine.py").write_text("from fu.methods import fupga\nfrom . import beside\n")
    (mine / "methods/beside.py").write_text("from fu.evaluation.mine import X\n")
    (mine / "evaluation").mkdir()
    (mine / "evaluation/mine.py").write_text("X = 1\n")
    assert plugins.load("methods", "mine").beside.X == 1


def test_a_package_of_one_s_own_holds_its_own_modules_alone(mine: Path) -> None:
    (mine / "methods/mine").mkdir()
    (mine / "methods/mine/__init__.py").write_text("from fu.methods.mine import inside\n")
    (mine / "methods/mine/inside.py").write_text("")
    (mine / "methods/beside.py").write_text("")
    assert plugins.load("methods", "mine").inside
    with pytest.raises(ModuleNotFoundError):
        import_module("fu.methods.mine.beside")


def test_looking_into_a_folder_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods/mine.py").write_text("1 / 0\n")
    code = (
        "import sys; from pathlib import Path; from fu import plugins; before = set(sys.modules);"
        f"plugins.add_folder(Path({str(tmp_path)!r})); plugins.add_folder({str(tmp_path)!r});"
        "assert set(sys.modules) == before"
    )
    assert python(tmp_path, "-c", code)[0] == 0


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^.*/never: there is no such folder\.$"):
        plugins.add_folder(tmp_path / "never")
