"""The plan of the fourth paper: which jobs its requests share, and what it refuses in one sentence."""

from types import SimpleNamespace
from typing import Any

import pytest

from fu.pipeline.plan.entry_checks import EntryChecks
from fu.pipeline.plan.plan import Plan
from fu.pipeline.plan.specs import Trial
from tests.mistakes import has, sentence

AGAIN = {"retraining.optimum": {"settings": {"unlearning": {"rounds": 11}}}}

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"artefacts": {"fig5": {"against": ["optimum"]}}},
     "artefacts.fig5: against: kind tradeoffs needs a training of all clients and a method that retrains without the "
     "forgotten clients, got optimum."),
    ({"methods": AGAIN},
     "against: 'retraining.optimum' has 11 rounds in 'mnist-five', fewer than 'retraining' with 12; an optimum needs "
     "at least as many."),
    ({"artefacts": {"table1": {"methods": ["stability"]}}},
     "artefacts.table1: methods: kind speed needs one that retrains from scratch."),
    ({"scenarios": {"mnist": {"settings": {"data": {"test": "global"}}}}},
     "'client_accuracy' needs a test set per client; set data.test: clients."),
]  # fmt: skip


def planned(**overrides: Any) -> Plan:
    return Plan({"preset": "smoke", "papers": ["tradeoffs"], "overrides": {"tradeoffs": overrides}})


@pytest.fixture(scope="module")
def plan() -> Plan:
    return planned()


@pytest.mark.parametrize(("changes", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_makes_no_sense_is_told_in_one_sentence(changes: dict[str, Any], words: str) -> None:
    has(sentence(lambda: planned(**changes)), words)


def test_five_requests_share_their_trainings(plan: Plan) -> None:
    scopes = [f"tradeoffs/mnist-five{end}" for end in ("", "-2", "-3", "-4", "-5")]
    for name in ("original", "optimum"):
        assert {plan.of(scope, name, "train").place for scope in scopes} == {f"mnist-five/{name}"}
    assert len({plan.of(scope, "retraining", "unlearn").place for scope in scopes}) == 5


def test_the_optimum_is_the_original_training_for_longer(plan: Plan) -> None:
    short, long = (plan.of("tradeoffs/mnist", name, "train").spec for name in ("original", "optimum"))
    assert long.model_copy(update={"rounds": short.rounds}) == short  # type: ignore[attr-defined]
    assert long.rounds > short.rounds  # type: ignore[attr-defined]


def test_an_optimum_has_as_many_rounds_as_the_longest_point_of_a_grid() -> None:
    def trials(plugin: str | None, trained: int, *after: int) -> list[Any]:
        method: Any = plugin and SimpleNamespace(plugin=plugin, params={})
        settings: list[Any] = [
            SimpleNamespace(training=SimpleNamespace(rounds=trained), total_rounds=more) for more in after
        ]
        return [Trial(one, method) for one in settings]

    of = {
        "scenario/all": trials(None, 12, 0),
        "scenario/again": trials("retrain", 3, 12),
        "scenario/ours": trials("stability", 3, 8, 9, 7),  # 12 rounds at most
    }
    grid: Any = SimpleNamespace(of=lambda scenario, name: of[f"scenario/{name}"])
    entry: Any = SimpleNamespace(
        scenarios=["mnist"], shown=["all", "again", "ours"], against=["all", "again"], kind="tradeoffs"
    )
    shown = EntryChecks(grid, "paper", entry, "here")
    shown.optima()
    of["scenario/ours"] = trials("stability", 3, 8, 10, 7)
    has(sentence(shown.optima), "'all' has 12 rounds in 'mnist', fewer than 'ours' with 13")
    of["scenario/all"] = trials(None, 13, 0)
    has(sentence(shown.optima), "'again' has 12 rounds in 'mnist', fewer than 'ours' with 13")
