"""`examples/flower` on Flower's simulation engine against `fu.api`: `make test-peers`.

No name of a test, so that `make test` leaves it out: Flower and ray are in an environment of their own (.venv-peers).
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.data import TensorDataset

from fu.api import Federation, Model

ROOT = Path(__file__).resolve().parents[2]
APP, PEERS = ROOT / "examples/flower", ROOT / ".venv-peers/bin"
CLIENTS, FORGOTTEN, ROUNDS, UNLEARNING, RECOVERY, RATE, BATCH, SEED = 5, 1, 4, 3, 2, 0.1, 20, 3
METHODS = ("retrain", "fedosd", "weight_negation", "fine_tuning")


def peer(*command: str | Path) -> str:
    """Run a program of the peers' environment, and return what it prints."""
    return subprocess.run(
        [PEERS / command[0], *command[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
        timeout=300,
        env=os.environ
        | {"PATH": f"{PEERS}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": f"{ROOT}{os.pathsep}{APP}"}
        | {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"},
    ).stdout


def flwr_run(**settings: str | float) -> str:
    """Run the app, and return what it prints; Flower's exit status says nothing."""
    texts = {name: repr(value).replace("'", '"') for name, value in settings.items()}
    return peer("flwr", "run", APP, "--run-config", " ".join(f"{name}={text}" for name, text in texts.items()))


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, np.ndarray], pd.DataFrame]:
    """The models [d] by name and the table of a run of all methods."""
    out = tmp_path_factory.mktemp("flower")
    rounds = {"rounds": ROUNDS, "unlearning-rounds": UNLEARNING, "recovery-rounds": RECOVERY}
    local = {"lr": RATE, "batch-size": BATCH, "seed": SEED}
    said = flwr_run(**rounds, **local, forget=FORGOTTEN, out=str(out))
    assert (out / "models.npz").exists(), said
    with np.load(out / "models.npz") as models:
        return dict(models), pd.read_csv(out / "table.csv")


@pytest.fixture(scope="module")
def reference() -> Iterator[dict[str, Model]]:
    """The same models by `fu.api`, on the same data, with neither Flower nor messages."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    sys.path.insert(0, str(APP))
    data = import_module("fu_flower.data")
    sys.path.remove(str(APP))
    held = [data.samples(client, CLIENTS, "", 0.2) for client in range(CLIENTS)]
    train, test = (
        [TensorDataset(x.permute(0, 3, 1, 2), y) for x, y in (of[split] for of in held)] for split in ("train", "test")
    )
    federation = Federation.from_datasets(
        lambda: data.build((20, 20, 1)), train, test=test, lr=RATE, batch_size=BATCH, seed=SEED, device="cpu"
    )
    original = federation.train(ROUNDS)
    found = {"fedavg.original": original}
    for method in METHODS:
        unlearned = original.unlearn(method, [FORGOTTEN], ROUNDS if method == "retrain" else UNLEARNING)
        found |= {f"{method}.unlearned": unlearned, f"{method}.recovered": unlearned.recover(RECOVERY)}
    yield found
    torch.set_num_threads(threads)


def test_all_weights_are_those_of_fu(
    app: tuple[dict[str, np.ndarray], pd.DataFrame], reference: dict[str, Model]
) -> None:
    models, _ = app
    assert models.keys() == reference.keys()
    apart = {name: float(np.abs(models[name] - of.theta.numpy()).max()) for name, of in reference.items()}
    print(apart)
    assert max(apart.values()) <= 1e-6, apart
    assert len({of.theta.numpy().tobytes() for of in reference.values()}) == len(reference)


def test_all_accuracies_are_those_of_fu(
    app: tuple[dict[str, np.ndarray], pd.DataFrame], reference: dict[str, Model]
) -> None:
    _, table = app
    assert [f"{row.method}.{row.model}" for row in table.itertuples()] == [*reference]
    for row, model in zip(table.itertuples(), reference.values(), strict=True):
        values = model.evaluate([FORGOTTEN], ["utility", "forgotten"]).query("client.isna()").set_index("metric").value
        assert row.retained == pytest.approx(values["r_acc"])
        assert row.forgotten == pytest.approx(values["forgotten_accuracy"])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"method": "fed-osd"}, "run config: method: "),
        ({"class-share": 0.25}, "class_share: 0.25 of 10 classes is not a whole number of classes"),
    ],
)
def test_a_bad_value_gives_one_sentence(settings: dict[str, str | float], sentence: str) -> None:
    said = flwr_run(**settings)
    assert sentence in said
    assert "Traceback" not in said


HOOKED = """
import torch
from fu.errors import UserError
from fu.federation.sgd import LocalTraining
from fu_flower import client, data
from fu_flower.server import RemoteFederation
training = LocalTraining(lr=1, lr_decay=1, batch_size=1, local_epochs=1)
federation = RemoteFederation(None, [], data.build((20, 20, 1)), client.held(0, 5, "", 0.2), training, "training", 0)
for given in ({given}):
    try:
        federation.local_updates(torch.zeros(federation.layout.size), [0], 0, **given)
    except UserError as error:
        print(error)
"""


def test_what_cannot_be_sent_is_refused() -> None:
    function = "lambda *args: None"
    names = ("objective", "rows", "regularise", "project", "relabel")
    given = ", ".join([*(f"{{'{name}': {function}}}" for name in names), "{'factors': {0: 2.0}}"])
    said = peer("python", "-c", HOOKED.format(given=given)).splitlines()
    assert said == ["this method hands clients functions or samples of its own, which cannot be sent to nodes."] * 6
