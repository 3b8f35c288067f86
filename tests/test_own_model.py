"""docs/your-own-model.md, followed word by word in a fresh copy of the project."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from fu.data import partition, sources
from fu.data.dataset import about
from tests.pages import commands, followed, page, run

pytestmark = pytest.mark.whole

PAGE = page("your-own-model")


def table(root: Path) -> dict[tuple[str, str], float]:
    with (root / "results/smoke/artefacts/fedosd/mine.csv").open(newline="") as file:
        return {(row["method"], row["metric"]): float(row["mean"]) for row in csv.DictReader(file)}


def test_methods_start_from_the_model_and_the_split_of_the_page(tmp_path: Path) -> None:
    root = followed(PAGE, tmp_path / "project")
    train, reproduce = commands(PAGE)
    run(root, train)
    run(root, reproduce)

    facts = about("digits")
    arrays = sources.digits(facts)
    images = torch.from_numpy(arrays["x_test"]).permute(0, 3, 1, 2) / 255
    images = (images - facts.mean[0]) / facts.std[0]
    model = nn.Sequential(nn.Flatten(), nn.Linear(400, 50), nn.ReLU(), nn.Linear(50, 50), nn.ReLU(), nn.Linear(50, 10))
    model.load_state_dict(torch.load(root / "model.pt", weights_only=True))
    right = (model(images).argmax(1) == torch.from_numpy(arrays["y_test"])).float().mean().item()
    found = table(root)
    assert found["original", "accuracy"] == pytest.approx(right, abs=1e-6)
    assert found["original", "accuracy"] > 0.8 < found["retraining", "accuracy"]
    assert found["original", "forget_set_accuracy"] == 1 > found["retraining", "forget_set_accuracy"]

    [file] = root.glob("results/smoke/fedosd/mine/**/*partition*.npz")
    dealt = partition.load(file)
    for client, rows in np.load(root / "split.npz").items():
        both = [*dealt.train[int(client)], *dealt.validation[int(client)]]
        assert sorted(both) == sorted(rows.tolist())

    torch.save({**model.state_dict(), "5.bias": 20 * torch.arange(10.0)}, root / "model.pt")
    run(root, reproduce)
    assert table(root)["original", "accuracy"] < 0.5
