"""The plan of the fourth paper: which jobs its requests share, and what it refuses in one sentence."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fu.errors import UserError
from fu.pipeline.plan.checks import optima
from fu.pipeline.plan.plan import Plan
from fu.pipeline.plan.published import check
from fu.pipeline.settings.papers import configured, resolve
from tests.mistakes import has, sentence

Refused = tuple[dict[str, Any], str]
FEW = {
    "trainings": {"optimum": {"settings": {"training": {"rounds": 12}}}},
    "methods": {"retraining.optimum": {"settings": {"unlearning": {"rounds": 12}}}},
}
AGAIN = {"methods": {"retraining.optimum": {"settings": {"unlearning": {"rounds": 11}}}}}

CASES: dict[str, Refused] = {
    "no optimum of those who stay": (
        {"artefacts": {"fig5": {"against": ["optimum"]}}},
        "artefacts.fig5: against: kind tradeoffs needs a training of all clients and a method that retrains without "
        "the forgotten clients, got optimum.",
    ),
    "too short for all": (
        FEW,
        "against: 'optimum' has 12 rounds in 'mnist', fewer than 'stability' with 13; an optimum needs at least as "
        "many.",
    ),
    "too short for those who stay": (
        AGAIN,
        "against: 'retraining.optimum' has 11 rounds in 'mnist-five', fewer than 'retraining' with 12; an optimum "
        "needs at least as many.",
    ),
    "nothing to be faster than": (
        {"artefacts": {"table1": {"methods": ["stability"]}}},
        "artefacts.table1: methods: kind speed needs one that retrains from scratch.",
    ),
    "no test sets of clients": (
        {"scenarios": {"mnist": {"settings": {"data": {"test": "global"}}}}},
        "'client_accuracy' needs a test set per client; set data.test: clients.",
    ),
    "samples": (
        {"scenarios": {"mnist": {"settings": {"data": {"forget": {"clients": None, "samples": 5}}}}}},
        "data.forget.samples: stability forgets only whole clients",
    ),
    "another number of clients": (
        {"scenarios": {"mnist": {"settings": {"data": {"clients": 9}}}}},
        "classes: lists for 10 clients, but there are 9",
    ),
    "less than nothing": (
        {"methods": {"stability": {"settings": {"grid": {"params.lambda": [-1]}}}}},
        "params.lambda: Input should be greater than or equal to 0, got -1",
    ),
    "running statistics": (
        {"artefacts": {"table1": {"scenarios": ["cifar10"], "methods": ["retraining", "fedosd"]}},
         "scenarios": {"cifar10": {"settings": {"model": {"name": "resnet18"}}}},
         "methods": {"fedosd": {"label": "F", "source": "x", "plugin": "fedosd"}}},
        "fedosd does not average the running statistics (batch normalisation) of resnet18",
    ),
}  # fmt: skip


def planned(**overrides: Any) -> Plan:
    return Plan({"preset": "smoke", "papers": ["tradeoffs"], "overrides": {"tradeoffs": overrides}})


@pytest.fixture(scope="module")
def plan() -> Plan:
    return planned()


@pytest.mark.parametrize("name", CASES)
def test_what_makes_no_sense_is_told_in_one_sentence(name: str) -> None:
    changes, wanted = CASES[name]
    has(sentence(lambda: planned(**changes)), wanted)


def test_five_requests_share_their_trainings(plan: Plan) -> None:
    scopes = [f"tradeoffs/mnist-five{end}" for end in ("", "-2", "-3", "-4", "-5")]
    for name in ("original", "optimum"):
        assert {plan.of(scope, name, "train").place for scope in scopes} == {f"mnist-five/{name}"}
    assert len({plan.of(scope, "retraining", "unlearn").place for scope in scopes}) == 5


def test_the_optimum_is_the_original_training_for_longer(plan: Plan) -> None:
    short, long = (plan.of("tradeoffs/mnist", name, "train").spec for name in ("original", "optimum"))
    assert long.model_copy(update={"rounds": short.rounds}) == short  # type: ignore[attr-defined]
    assert long.rounds > short.rounds  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("point", "said"),
    [("lambda1", ""), ("lamda1", "there is no method 'stability+lamda1'"), ("lambda", "there is no method"),
     ("params.lambda1", "there is no method")],
)  # fmt: skip
def test_the_papers_number_may_be_one_of_a_point_of_a_grid(point: str, said: str, tmp_path: Path) -> None:
    paper = resolve(configured({"preset": "smoke", "papers": ["tradeoffs"]})).papers["tradeoffs"]
    file = tmp_path / "table1.csv"
    file.write_text(f"scenario,method,stage,metric,value\nmnist,stability+{point},unlearned,faster,1.4\n")
    if not said:
        check(file, paper, "speed")
        return
    with pytest.raises(UserError, match=said.replace("+", r"\+")):
        check(file, paper, "speed")


def test_an_optimum_has_as_many_rounds_as_the_longest_point_of_a_grid() -> None:
    def trials(plugin: str | None, trained: int, *after: int) -> list[Any]:
        method = plugin and SimpleNamespace(plugin=plugin, params={})
        settings = [SimpleNamespace(training=SimpleNamespace(rounds=trained), total_rounds=more) for more in after]
        return [SimpleNamespace(method=method, settings=one) for one in settings]

    of = {
        "scenario/all": trials(None, 12, 0),
        "scenario/again": trials("retrain", 3, 12),
        "scenario/ours": trials("stability", 3, 8, 9, 7),  # 12 rounds at most
    }
    grid: Any = SimpleNamespace(of=lambda scenario, name: of[f"scenario/{name}"])
    entry: Any = SimpleNamespace(
        scenarios=["mnist"], shown=["all", "again", "ours"], against=["all", "again"], kind="tradeoffs"
    )
    optima(grid, "paper", entry, "here")
    of["scenario/ours"] = trials("stability", 3, 8, 10, 7)
    with pytest.raises(UserError, match="'all' has 12 rounds in 'mnist', fewer than 'ours' with 13"):
        optima(grid, "paper", entry, "here")
    of["scenario/all"] = trials(None, 13, 0)
    with pytest.raises(UserError, match="'again' has 12 rounds in 'mnist', fewer than 'ours' with 13"):
        optima(grid, "paper", entry, "here")
