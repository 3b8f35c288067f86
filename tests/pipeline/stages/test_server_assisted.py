"""Server-assisted training through its stages, on embedded digits: what absent clients and the server's data do."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fu.data import sources
from fu.data.dataset import about
from fu.federation.sgd import LocalTraining
from fu.pipeline.stages import evaluate, train
from fu.plugins import Choice
from tests.pipeline.stages.scene import Scene

TRAININGS: dict[str, dict[str, Any]] = {
    "fedavg": {"training": Choice(name="fedavg", params={"client_weights": "equal"}), "server": None},
    "safari": {"training": Choice(name="safari", params={"q": 0.3, "server_lr": 0.5}), "server": 100},
}
MODEL: dict[str, Any] = {"dataset": "digits", "attack": None, "model": Choice(name="logistic"), "seed": 0}
PHASE: dict[str, Any] = {
    **{"rounds": 40, "evaluate_every": 10, "evaluate_last": 10, "traced": ("accuracy",), "history": ()},
    **{"clients_per_round": 5, "with_replacement": False},
    "local": LocalTraining(lr=0.1, lr_decay=1.0, batch_size=10, local_epochs=1),
}
DEALT: dict[str, Any] = {
    **{"split": "official", "test": "global", "clients": 10, "train_share": None, "attacked": ()},
    **{"server": 100, "held_out": 100, "absent": 4},
    "partition": {"name": "balanced_classes", "params": {"classes": 1}},
}


def run(folder: Path, training: str, **arrays: Any) -> pd.DataFrame:
    """Deal, train and evaluate; `arrays` replace those of the archive. Return the trace; metrics in `.attrs`."""
    scene = Scene(folder)
    np.savez(scene("digits.npz"), allow_pickle=False, **{**sources.digits(about("digits")), **arrays})
    scene.deal(**DEALT)
    scene.train(train.Spec(**MODEL, **PHASE, **TRAININGS[training]))
    rows = scene.evaluate(evaluate.Spec(**MODEL, roles=("original",), evaluators=("accuracy",)))
    found = pd.read_csv(scene("original.csv"))
    found.attrs = {row["metric"]: float(row["value"]) for row in rows}
    return found


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pd.DataFrame]:
    """Runs that several tests compare."""
    return {name: run(tmp_path_factory.mktemp(name), name) for name in TRAININGS}


def test_nobody_learns_the_classes_that_only_absent_clients_hold(found: dict[str, pd.DataFrame]) -> None:
    alone = found["fedavg"]
    share = alone.attrs["share_present"]
    assert alone.attrs["accuracy_absent"] < 0.01
    assert alone["accuracy"].max() <= share < 0.7
    assert found["safari"].attrs["accuracy_absent"] > 0.2
    assert found["safari"].attrs["accuracy_of_ten"] > alone.attrs["accuracy_of_ten"] + 0.1


def test_what_a_choice_rests_on_does_not_hang_on_test_data(found: dict[str, pd.DataFrame], tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    archive = sources.digits(about("digits"))
    noise = {"x_test": random.integers(0, 256, archive["x_test"].shape, np.uint8)}
    noise["y_test"] = random.permutation(archive["y_test"])
    other = run(tmp_path, "safari", **noise)
    assert other["accuracy_held_out"].equals(found["safari"]["accuracy_held_out"])
    assert not other["accuracy"].equals(found["safari"]["accuracy"])
    of_ten = "accuracy_held_out_of_ten"
    assert other.attrs[of_ten] == found["safari"].attrs[of_ten] > 0.4
