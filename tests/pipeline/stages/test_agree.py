"""How far a trial's predictions lie from those of repeats of retraining."""

import csv
from pathlib import Path

import pytest
import torch

from fu.evaluation import predictions
from fu.pipeline.stages import agree
from fu.pipeline.stages.common import Options

# Shares of the first of two classes on two samples; which is the likelier one and by how much is all that counts.
REPEATS = {"scratch": {"unlearned": (0.2, 0.4)}, "twin": {"unlearned": (0.9, 0.9), "recovered": (0.4, 0.8)}}
OURS = {"unlearned": (0.6, 0.6), "recovered": (0.2, 0.8)}


def predict(path: Path, roles: dict[str, tuple[float, float]], turned: bool = False) -> Path:
    """Write predictions of the retained as given, and of the forgotten so, too, or with the classes swapped."""
    models = {}
    for role, two in roles.items():
        says = torch.tensor([[share, 1 - share] for share in two]).log()
        models[role] = {"retained": says, "forgotten": says.flip(1).clone() if turned else says.clone()}
    predictions.save(path, {}, models)
    return path


def agreed(folder: Path, *repeats: str, **ours: tuple[float, float]) -> dict[tuple[str, str], float]:
    others = [predict(folder / name, REPEATS.get(name, {}), name == "scratch") for name in repeats]
    last = tuple([*REPEATS.get(name, {"unlearned": ()})][-1] for name in repeats)
    spec = agree.Spec(roles=("unlearned", "recovered"), repeats=last)
    agree.main(spec, agree.Files(predict(folder / "ours", ours), others, folder / "out.csv"), Options())
    with (folder / "out.csv").open() as file:
        return {(row["role"], row["metric"]): float(row["value"]) for row in csv.DictReader(file)}


def test_models_are_compared_with_the_last_one_of_each_repeat_on_average(tmp_path: Path) -> None:
    found = agreed(tmp_path, "scratch", "twin", **OURS)
    # to scratch (.2, .4) and to the recovered twin (.4, .8); of the forgotten, scratch says (.8, .6)
    assert found == pytest.approx(
        {
            ("unlearned", "disagreement_retained"): (1 + 0.5) / 2,
            ("unlearned", "variation_retained"): (0.3 + 0.2) / 2,
            ("unlearned", "disagreement_forgotten"): (0 + 0.5) / 2,
            ("unlearned", "variation_forgotten"): (0.1 + 0.2) / 2,
            ("recovered", "disagreement_retained"): (0.5 + 0) / 2,
            ("recovered", "variation_retained"): (0.2 + 0.1) / 2,
            ("recovered", "disagreement_forgotten"): (0.5 + 0) / 2,
            ("recovered", "variation_forgotten"): (0.4 + 0.1) / 2,
        },
        abs=1e-6,
    )


def test_a_model_that_diverged_is_compared_with_none_and_none_with_it(tmp_path: Path) -> None:
    alone = agreed(tmp_path, "scratch", unlearned=OURS["unlearned"])
    assert {role for role, _ in alone} == {"unlearned"}
    assert agreed(tmp_path, "scratch", "lost", unlearned=OURS["unlearned"]) == alone
    assert agreed(tmp_path, "lost", **OURS) == {}
