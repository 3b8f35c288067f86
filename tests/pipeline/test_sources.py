"""Which files stand behind a table or figure, and with which labels."""

from typing import Any

import pytest

from fu.pipeline.frames import COSTS
from fu.pipeline.plan import Plan


def labels(paper: str, artefact: str, kind: str) -> set[tuple[str, ...]]:
    """Return scenario, method, trial and role of every source of a kind."""
    spec: Any = Plan({"preset": "smoke", "papers": [paper]}).job("publish", {"paper": paper, "artefact": artefact}).spec
    return {one[2:] for one in spec.sources if one.kind == kind}


@pytest.mark.parametrize("kind", ["traces", COSTS])
def test_curves_that_begin_with_training_read_its_rounds_and_costs(kind: str) -> None:
    spec: Any = Plan({"preset": "smoke", "papers": ["fats"]}).job("publish", {"paper": "fats", "artefact": "fig1"}).spec
    assert spec.from_training
    scenario = spec.scenarios[0].name
    roles = {role for of, method, _, role in labels("fats", "fig1", kind) if (of, method) == (scenario, "fats")}
    assert roles == {"original", "unlearned"}


def test_curves_that_begin_with_the_request_do_not(  # nor do they read what training costs
) -> None:
    roles = {role for _, method, _, role in labels("fedosd", "fig5", "traces") if method == "fedosd"}
    assert roles == {"unlearned", "recovered"}
    assert {role for _, method, _, role in labels("fedosd", "fig5", COSTS) if method == "fedosd"} == roles


def test_all_points_of_a_grid_are_read_where_all_are_shown() -> None:
    spec: Any = Plan({"preset": "smoke", "papers": ["safari"]}).papers["safari"].artefacts
    name = next(name for name, shown in spec.items() if shown.points == "all")
    trials = {trial for _, _, trial, _ in labels("safari", name, COSTS)}
    assert len([trial for trial in trials if "+" in trial]) > 1
    assert not [trial for trial in trials if trial.endswith("+chosen")]
