"""A model and a split of one's own: what the plan notes of the files, and what it refuses before any job."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fu import plugins
from fu.contents import checksum
from fu.pipeline.plan import specs
from fu.pipeline.plan.plan import Plan
from fu.plugins import Choice
from tests.mistakes import has, sentence

HIDDEN = 20
TABLE = {"kind": "table", "title": "t", "caption": "c", "in_paper": False, "metrics": ["accuracy"]}


def write(folder: Path, hidden: int = HIDDEN, clients: int = 10, samples: int = 1540, seed: int = 0) -> None:
    mlp = plugins.load("models", "mlp")
    torch.manual_seed(seed)
    torch.save(mlp.build((20, 20, 1), 10, mlp.Params(hidden=hidden)).state_dict(), folder / "model.pt")
    parts = np.array_split(np.arange(samples), clients)
    np.savez(folder / "split.npz", **{str(client): rows for client, rows in enumerate(parts)})  # type: ignore[arg-type]


def config(folder: Path, method: str = "finetuning", training: Any = None, **data: Any) -> dict[str, Any]:
    traced = {"traced": ["accuracy"]}
    settings = {
        "data": {"dataset": "digits", "split": "official", "test": "global", "train_share": None, "clients": 10}
        | {"partition": {"name": "given", "params": {"file": str(folder / "split.npz")}}, "attack": None}
        | data,
        "model": {"name": "mlp", "params": {"hidden": HIDDEN}},
        "training": {"method": {"name": "checkpoint", "params": {"file": str(folder / "model.pt")}}, "history": []}
        | traced
        | (training or {}),
        **dict.fromkeys(("unlearning", "recovery"), traced),
        "evaluations": {"evaluation": ["accuracy"]},
    }
    shown = {**TABLE, "scenarios": ["mine"], "methods": ["retraining", method]}
    parts = {"scenarios": {"mine": {"label": "Mine", "settings": settings}}, "artefacts": {"mine": shown}}
    return {"preset": "smoke", "papers": ["fedosd"], "overrides": {"fedosd": parts}}


RUN = {"run": "fedosd/mine/seed0"}


def test_jobs_know_the_content_of_the_files(tmp_path: Path) -> None:
    write(tmp_path)

    def jobs() -> dict[str, str]:
        plan = Plan(config(tmp_path))
        return {
            "partition": plan.job("partition", RUN).json,
            "train": plan.job("train", {**RUN, "trial": "original"}).json,
            "retrain": plan.job("unlearn", {**RUN, "trial": "retraining"}).json,
        }

    before = jobs()
    assert checksum(tmp_path / "split.npz") in before["partition"]
    assert all(checksum(tmp_path / "model.pt") in before[name] for name in ("train", "retrain"))
    assert jobs() == before
    write(tmp_path, seed=1)
    after = jobs()
    assert after["partition"] == before["partition"]
    assert after["train"] != before["train"]


def test_shadow_models_are_trained_and_not_read_from_the_file(tmp_path: Path) -> None:
    write(tmp_path)
    plan = Plan(config(tmp_path))
    assert specs.of_shadows(plan.trials["fedosd/mine", "original"], 0).training == Choice(name="fedavg")


@pytest.mark.parametrize(
    ("written", "changed", "told"),
    [
        ({"hidden": 30}, {}, "model.pt: the weights do not fit the model: '1.bias' is (30,), expected (20,)."),
        ({"clients": 9}, {}, "split.npz: must have one array for each of 10 clients, named 0 to 9; it has 0, 1,"),
        ({"samples": 1539}, {}, "split.npz: 1 of 1540 samples are in no list, the first is 1539."),
        ({}, {"samples": 900}, "data: partition: given lists all samples; set samples: null."),
        ({}, {"held_out": 10}, "data: partition: given lists all samples; set held_out: 0."),
        ({}, {"server": 10}, "data: partition: given lists all samples; set server: 0."),
        ({}, {"test": "clients"}, "given lists training samples alone; set test: global, or split: merged."),
        ({}, {"method": "federaser"}, "federaser needs the history 'update_norms', which checkpoint cannot record."),
        ({}, {"method": "fedau"}, "fedau needs the history 'auxiliary_heads', which checkpoint cannot record."),
        ({}, {"training": {"history": ["update_norms"]}}, "no history of checkpoint can be recorded"),
        ({}, {"training": {"method": {"name": "fedprox"}, "history": ["update_norms"]}}, "no history of fedprox"),
        ({}, {"training": {"method": {"name": "checkpoint", "params": {"file": "absent.pt"}}}},
         "training.method: params.file: there is no file 'absent.pt'."),
        ({}, {"partition": {"name": "given", "params": {"file": "absent.npz"}}},
         "data.partition: params.file: there is no file 'absent.npz'."),
        ({}, {"partition": {"name": "given", "params": {}}}, "partition: params.file: is missing."),
    ],
)  # fmt: skip
def test_what_the_files_do_not_hold_is_refused_before_any_job(
    tmp_path: Path, written: dict[str, int], changed: dict[str, Any], told: str
) -> None:
    write(tmp_path, **written)
    has(sentence(lambda: Plan(config(tmp_path, **changed))), told)
