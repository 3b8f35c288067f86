"""Server-assisted training through its stages, on embedded digits: what absent clients and the server's data do."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fu.data import sources
from fu.data.dataset import about
from fu.federation.sgd import LocalTraining
from fu.pipeline.stages import evaluate, train
from fu.pipeline.stages import partition as partition_stage
from fu.pipeline.stages.common import Options
from fu.plugins import Choice

SAFARI = Choice(name="safari", params={"q": 0.3, "server_lr": 0.5})
FEDAVG = Choice(name="fedavg", params={"client_weights": "equal"})


@dataclass(frozen=True)
class Run:
    """The files of one run on digits."""

    folder: Path
    absent: int

    def __call__(self, training: Choice, **arrays: Any) -> pd.DataFrame:
        """Deal, train and evaluate; `arrays` replace those of the archive. Return the trace; metrics in `.attrs`."""
        self.folder.mkdir(parents=True)
        names = ("digits.npz", "partition.npz", "model", "trace", "cost", "history", "evaluation")
        data, dealt, model, trace, cost, history, evaluation = (self.folder / name for name in names)
        np.savez(data, allow_pickle=False, **{**sources.digits(about("digits")), **arrays})
        partition_stage.main(
            SPEC.model_copy(update={"absent": self.absent}), partition_stage.Files(data, dealt), Options()
        )
        helps = 100 if training.name != "fedavg" else None
        spec = TRAINING.model_copy(update={"training": training, "server": helps})
        train.main(spec, train.Files(data, dealt, [], model, trace, cost, history), Options())
        shared = spec.model_dump(include={"dataset", "attack", "seed"})
        asked = evaluate.Spec(**shared, model=spec.model, roles=("original",), evaluators=("accuracy",))
        evaluate.main(
            asked,
            evaluate.Files(data, dealt, [], model, [model], [trace], evaluation, self.folder / "predictions"),
            Options(),
        )
        found = pd.read_csv(trace)
        found.attrs = pd.read_csv(evaluation).set_index("metric")["value"].to_dict()
        return found


SPEC = partition_stage.Spec(
    dataset="digits", seed=0, samples=None, split="official", test="global", clients=10, train_share=None,
    partition=Choice(name="balanced_classes", params={"classes": 1}), validation_share=0.0, server=100, held_out=100,
    absent=4, attacked=(), attack=None,
)  # fmt: skip
TRAINING = train.Spec(
    dataset="digits", attack=None, model=Choice(name="logistic"), seed=0,
    rounds=40, evaluate_every=10, evaluate_last=10,
    local=LocalTraining(lr=0.1, lr_decay=1.0, batch_size=10, local_epochs=1),
    clients_per_round=5, with_replacement=False, traced=("accuracy",), training=FEDAVG, history=(), server=None,
)  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pd.DataFrame]:
    """Runs that several tests compare."""
    folder = tmp_path_factory.mktemp("runs")
    return {
        "fedavg": Run(folder / "fedavg", 4)(FEDAVG),
        "safari": Run(folder / "safari", 4)(SAFARI),
    }


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
    other = Run(tmp_path / "noise", 4)(SAFARI, **noise)
    same = ["accuracy_held_out", "accuracy_held_out_of_ten"]
    assert other["accuracy_held_out"].equals(found["safari"]["accuracy_held_out"])
    assert not other["accuracy"].equals(found["safari"]["accuracy"])
    assert other.attrs[same[1]] == found["safari"].attrs[same[1]] > 0.4
