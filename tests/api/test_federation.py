"""`fu.api`: one's own model and data, from data sets to an audit; checked against loops by hand."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from fu.api import Federation, Model
from fu.api.data import merged
from fu.api.given import names
from fu.errors import UserError
from fu.evaluation import predictions
from fu.federation.progress import hidden
from fu.federation.task import Task, initial_parameters
from fu.methods import fedosd
from tests.mistakes import python

torch.set_num_threads(1)
CLIENTS, CLASSES = 4, 4
HYPER: dict[str, dict[str, Any]] = {
    "cheat": {"steps": 2},
    "lottery": {"period": 4},
    "noise": {"std": 0.1},
    "retrain_mixed": {"weight": 0.5},
    "retrain_partly": {"share": 0.5},
}


class Net(nn.Sequential):
    """Two fully connected layers, after a convolution."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 4 * 4, 8), nn.ReLU(), nn.Linear(8, CLASSES)
        )


def blobs(client: int, number: int = 24) -> TensorDataset:
    """Return images [n, 1, 6, 6], bright in one corner by class; a client has two of four classes."""
    random = torch.Generator().manual_seed(client)
    y = (torch.arange(number) % 2 + client) % CLASSES
    x = 0.3 * torch.randn(number, 1, 6, 6, generator=random)
    for k, label in enumerate(y.tolist()):
        x[k, 0, 3 * (label // 2) : 3 * (label // 2) + 3, 3 * (label % 2) : 3 * (label % 2) + 3] += 1
    return TensorDataset(x, y)


def federation(**changes: Any) -> Federation:
    """Return a small federation."""
    given = {"batch_size": 6, "lr": 0.1, "device": "cpu", **changes}
    return Federation.from_datasets(Net, [blobs(client) for client in range(CLIENTS)], **given)


HERE = [name for name in names("methods") if name != "federaser_as_published"]  # which runs in the workflow alone


@pytest.fixture(scope="module")
def trained() -> Model:
    """Return a model with every history."""
    return federation().train(4, record_for=HERE)


def by_fats(name: str = "fats", rounds: int = 4) -> Model:
    """Return a model whose training FATS continues."""
    return federation(local_steps=2).train(rounds, name, clients_per_round=2, with_replacement=True)


# ---- data ----------------------------------------------------------------------------------------------------------


class Pairs(Dataset[tuple[Tensor, int]]):
    """Ordinary pairs."""

    def __init__(self, pairs: list[Any]) -> None:
        self.pairs = pairs

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> Any:
        return self.pairs[index]


def test_samples_of_all_clients_stand_one_after_another_with_those_of_tests_behind() -> None:
    sets = [Pairs([(torch.full((2, 3, 5), float(n)), n) for n in numbers]) for numbers in ([0, 1], [2], [3, 4, 5])]
    x, y, part = merged(sets[:2], sets[2], 0.5, 0)
    assert y.tolist() == [0, 1, 2, 3, 4, 5]
    assert x.shape == (6, 3, 5, 2)  # channels last
    assert x[:, 2, 4, 1].tolist() == [0, 1, 2, 3, 4, 5]
    assert [rows.tolist() for rows in part.train] == [[0, 1], [2]]
    assert [rows.tolist() for rows in part.test] == [[], []]
    assert part.global_test.tolist() == [3, 4, 5]
    _, _, part = merged(sets[:2], [sets[2], sets[1]], 0.5, 0)
    assert [rows.tolist() for rows in part.test] == [[3, 4, 5], [6]]
    assert not len(part.global_test)


def test_items_of_a_subclass_are_read_as_it_gives_them() -> None:
    x, _, _ = merged([Brighter(X, torch.zeros(2).long())], None, 0.5, 0)
    assert x.equal(X + 1)


def test_without_test_sets_a_share_of_each_client_is_held_out() -> None:
    sets = [TensorDataset(torch.zeros(n, 3), torch.zeros(n).long()) for n in (10, 2)]
    x, _, part = merged(sets, None, 0.3, 0)
    assert x.shape == (12, 3)
    assert [(len(train), len(test)) for train, test in zip(part.train, part.test, strict=True)] == [(7, 3), (1, 1)]
    assert sorted([*part.train[0], *part.test[0]]) == [*range(10)]
    assert sorted([*part.train[1], *part.test[1]]) == [10, 11]
    other = merged(sets, None, 0.3, 1)[2]
    assert sorted(other.test[0].tolist()) != sorted(part.test[0].tolist())


# ---- training, unlearning, evaluation ------------------------------------------------------------------------------


def test_training_and_fedosd_are_the_loops_by_hand(trained: Model) -> None:
    fed = federation()
    by_hand, theta = (
        fed.task(fed.data(()), "training", 0, 4, {}).federation,
        initial_parameters(Net, 0, "model", "original"),
    )
    for round in range(4):
        theta = theta + by_hand.mean_update(theta, range(CLIENTS), round)
    assert torch.equal(trained.theta, theta)
    unlearned = trained.unlearn("fedosd", [2], rounds=2, lr=0.05)
    task: Task = replace(fed.task(fed.data([2]), "unlearning", 0, 2, {"lr": 0.05}), original=theta)
    assert (task.forgotten, task.retained) == ([2], [0, 1, 3])
    state = fedosd.start(task, fedosd.Params())
    for round in range(2):
        state = fedosd.step(task, fedosd.Params(), state, round)
    assert torch.equal(unlearned.theta, state.theta)
    after, retained = state.theta, fed.task(fed.data([2]), "unlearning", 0, 3, {}).federation
    for round in (2, 3, 4):  # whose numbers continue those of unlearning
        after = after + retained.mean_update(after, [0, 1, 3], round)
    recovered = unlearned.recover(3)
    assert torch.equal(recovered.theta, after)
    assert (recovered.role, recovered.method, recovered.clients, recovered.rounds) == ("recovered", "fedosd", (2,), 5)


@pytest.mark.parametrize("method", HERE)
def test_every_method_runs_on_a_model_of_ones_own(trained: Model, method: str) -> None:
    continues = method.startswith("fats")
    start, changes = (by_fats(method), {}) if continues else (trained, {"lr": 0.01})
    found = start.unlearn(method, [1], None, HYPER.get(method), **changes)
    assert found.diverged is None
    assert found.theta.isfinite().all()
    assert found.rounds == (4 if method.startswith(("retrain", "cheat", "lottery", "stego", "fats")) else 1)
    assert torch.equal(found.theta, start.theta) == (not moved(method, start))
    assert 0 <= value(found, "forgotten_accuracy") <= 1


def moved(method: str, start: Model) -> bool:
    """Return whether a method must have changed the model: FATS's only where the client took part."""
    if method.startswith("fats"):
        fed = start.federation
        task = fed.task(fed.data(()), "training", 0, 4, {}, **start.run.participation)
        return any(1 in task.participants(round) for round in range(4))
    return method not in ("untouched", "lottery")


def test_a_request_leaves_what_the_training_stored() -> None:
    original = by_fats(rounds=6)
    assert original.run.kept
    before = original.run.kept.path.read_bytes()
    found = original.unlearn("fats", [1])
    assert original.run.kept.path.read_bytes() == before
    assert found.rows[-1]["stored"] == 6 * original.theta.nbytes


def test_what_a_method_reads_is_counted_as_stored(trained: Model) -> None:
    norms = trained.run.histories["update_norms"]["norms"]
    assert trained.unlearn("federaser", [0]).rows[-1]["stored"] == norms.nbytes
    assert trained.unlearn("fine_tuning", [0]).rows[-1]["stored"] == 0


def test_integers_of_numpy_count_and_name_clients(trained: Model) -> None:
    number: Callable[[int], Any] = np.int64
    found = trained.unlearn("puf", number(1), number(2))
    assert (found.clients, found.rounds) == ((1,), 2)
    assert type(found.clients[0]) is type(found.rounds) is int
    assert trained.unlearn("puf", [*map(number, (2, 1))]).clients == (1, 2)


def test_the_random_state_of_the_caller_stays() -> None:
    before = torch.get_rng_state()
    sets = [blobs(client) for client in range(CLIENTS)]
    for model in (Net, Net()):
        torch.set_rng_state(before)
        fed = Federation.from_datasets(model, sets, batch_size=6, lr=0.1, device="cpu")
        found = fed.train(1).unlearn("retrain", [0])
        found.recover(1).module()
        fed.trained(found.module(), 1)
        assert torch.equal(torch.get_rng_state(), before)


def value(model: Model, metric: str, client: int | None = None, **about: Any) -> float:
    """Return one number of an evaluation."""
    frame = model.evaluate(**about)
    rows = frame[
        (frame["metric"] == metric) & (frame["client"].isna() if client is None else frame["client"] == client)
    ]
    return float(rows["value"].item())


def test_an_evaluation_is_of_the_model_as_a_module(trained: Model) -> None:
    fed, module = trained.federation, trained.module()
    assert not module.training
    accuracies = []
    for client in range(CLIENTS):
        x, y = fed.data(()).held_out(client, "test")
        accuracies.append((module(x).argmax(1) == y).double().mean().item())
        assert value(trained, "client_accuracy", client) == accuracies[-1]
    assert value(trained, "r_acc", clients=[0]) == pytest.approx(np.mean(accuracies[1:]))
    assert value(trained, "forgotten_accuracy", clients=[0]) == accuracies[0]
    again = fed.trained(module, rounds=4)
    assert torch.equal(again.theta, trained.theta)
    assert torch.equal(fed.trained(module.state_dict(), rounds=4).theta, trained.theta)
    assert trained.evaluate(2).equals(trained.evaluate([2]))
    assert torch.equal(again.unlearn("puf", [0]).theta, trained.unlearn("puf", [0]).theta)


def test_local_steps_replace_local_epochs_in_a_phase(trained: Model) -> None:
    epochs, steps = trained.unlearn("fine_tuning", 1, 1), trained.unlearn("fine_tuning", 1, 1, local_steps=1)
    assert [model.rows[-1]["steps"] for model in (epochs, steps)] == [3 * 4, 3]  # 19 samples in batches of 6


def test_a_module_is_initialised_anew_by_seed() -> None:
    module = Net()
    sets = [blobs(client) for client in range(CLIENTS)]
    fed = Federation.from_datasets(module, sets, batch_size=6, lr=1e-9, device="cpu")
    one, same, other = (fed.train(1, seed=seed).theta for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.allclose(one, other)
    assert not torch.allclose(one, fed.trained(module, 1).theta)


# ---- audits --------------------------------------------------------------------------------------------------------


def test_an_audit_finds_a_client_that_is_still_there_and_not_one_that_never_was() -> None:
    sets = [TensorDataset(blobs(client).tensors[0], torch.full((24,), client)) for client in range(CLIENTS)]
    fed = Federation.from_datasets(Net, sets, batch_size=6, lr=0.2, device="cpu")  # only client 1 has class 1
    nothing = fed.audit("untouched", [1], rounds=6, repeats=8)
    again = fed.audit("retrain", [1], rounds=6, repeats=8)
    assert {"ulira", "klom", "line", "runs"} <= {*nothing["audit"]}
    assert [*nothing.columns] == ["audit", "metric", "value", "found", "control_found"]
    assert again[again["audit"] == "line"]["control_found"].all()
    assert nothing["found"].dropna().any()
    assert not again["found"].dropna().any()


@pytest.mark.parametrize(("method", "rounds"), [("federaser", [2, 2, 1]), ("fedosd", [2, 6, 3])])
def test_a_method_that_trains_from_scratch_is_compared_with_retraining_for_as_many_rounds(
    method: str, rounds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    unlearn, recover, seen = Model.unlearn, Model.recover, list[int]()

    def unlearning(model: Model, *given: Any, **further: Any) -> Model:
        found = unlearn(model, *given, **further)
        seen.append(found.rounds)
        return found

    def recovering(model: Model, rounds: int, **further: Any) -> Model:
        if model.method == "retrain":
            seen.append(rounds)
        return recover(model, rounds, **further)

    monkeypatch.setattr(Model, "unlearn", unlearning)
    monkeypatch.setattr(Model, "recover", recovering)
    federation().audit(method, [1], rounds=6, repeats=8, unlearning_rounds=2, recovery_rounds=1)
    assert seen == rounds * 8


def test_runs_of_a_method_that_diverge_are_counted_and_found() -> None:
    frame = federation().audit("gradient_ascent", [1], rounds=1, repeats=8, recovery_rounds=1, lr=1e20)
    assert frame.drop(columns="control_found").to_numpy().tolist() == [["diverged", "diverged_runs", 8, True]]


def test_a_retrained_federation_continues_as_long_as_a_method_and_its_post_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []
    recover = Model.recover

    def noted(self: Model, rounds: int, **training: Any) -> Model:
        calls.append((self.method, self.clients, self.run.seed, rounds, training))
        return recover(self, rounds, **training)

    monkeypatch.setattr(Model, "recover", noted)
    monkeypatch.setattr("fu.api.audits.LEAST", 1)
    about: dict[str, Any] = {"rounds": 2, "repeats": 1, "unlearning_rounds": 2, "recovery_rounds": 3, "lr": 0.05}
    federation(seed=7).audit("fedosd", [3], **about)
    on = {"lr": 0.05}
    assert calls == [("", (3,), 7, 5, on), ("fedosd", (3,), 7, 3, on), ("retrain", (3,), 8, 5, on)]
    calls.clear()
    federation(seed=7).audit("retrain", [3], **about)
    assert [(seed, rounds) for _, _, seed, rounds, _ in calls] == [(7, 3), (7, 3), (8, 3)]
    calls.clear()
    drawn: dict[str, Any] = {"training": "fats", "clients_per_round": 2, "with_replacement": True}
    federation(seed=7, local_steps=2).audit("fats", [3], **{**about, "unlearning_rounds": None}, **drawn)
    assert [(method, rounds, training) for method, _, _, rounds, training in calls] == [
        ("", 3, on),
        ("fats", 3, on),
        ("retrain", 3, on),
    ]


def test_a_method_with_noise_is_compared_with_models_that_have_as_much_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fu.api.audits.LEAST", 1)
    seen, sketch = list[Tensor](), predictions.sketch

    def noted(theta: Tensor) -> Tensor:
        seen.append(theta)
        return sketch(theta)

    monkeypatch.setattr(predictions, "sketch", noted)
    for noise in (1e-9, 5.0):
        about: dict[str, Any] = {"rounds": 2, "repeats": 1, "unlearning_rounds": 3, "params": {"noise_std": noise}}
        federation().audit("fedrecovery", [3], **about)
    added = [one - plain for one, plain in zip(seen[3:], seen[:3], strict=True)]  # original, unlearned, retrained
    assert all(4.5 < float(one.std()) < 5.5 for one in added)
    assert (torch.corrcoef(torch.stack(added)) - torch.eye(3)).abs().max() < 0.3


def test_what_is_compared_continues_at_the_same_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = {}
    recover = Model.recover

    def noted(self: Model, rounds: int, **training: Any) -> Model:
        rates[self.method] = [training["lr"] * 0.5 ** (self.rounds + k) for k in range(rounds)]
        return recover(self, rounds, **training)

    monkeypatch.setattr(Model, "recover", noted)
    monkeypatch.setattr("fu.api.audits.LEAST", 1)
    about: dict[str, Any] = {"rounds": 3, "repeats": 1, "unlearning_rounds": 2, "recovery_rounds": 2}
    halved = [0.1 * 0.5**k for k in range(4)]
    federation(lr_decay=0.5).audit("fedosd", [3], **about)
    assert rates == {"": halved, "fedosd": halved[2:], "retrain": halved}
    rates.clear()
    federation(lr_decay=0.5).audit("cheat", [3], **about, params=HYPER["cheat"])
    assert rates == {"": halved[2:], "cheat": halved[2:], "retrain": halved[2:]}
    rates.clear()
    federation(lr_decay=0.5).audit("fedrecovery", [3], **about)
    assert rates == {"noise": halved[2:], "fedrecovery": halved[2:], "retrain": halved[2:]}


def test_an_audit_says_nothing_where_nothing_is_to_be_shown(capfd: pytest.CaptureFixture[str]) -> None:
    with hidden():
        federation().audit("untouched", [1], rounds=1, repeats=8)
    assert capfd.readouterr().err == ""


# ---- bad input -----------------------------------------------------------------------------------------------------

FLAT = TensorDataset(torch.zeros(4, 3), torch.zeros(4).long())
X, NONE = torch.zeros(2, 3), [0, 0]


def of(x: Tensor, labels: Sequence[float]) -> list[TensorDataset]:
    """Return the data set of one client."""
    return [TensorDataset(x, torch.tensor(labels))]


class Brighter(TensorDataset):
    """Tensors whose items differ from what they hold."""

    def __getitem__(self, index: int) -> Any:
        x, y = super().__getitem__(index)
        return x + 1, y


def refused(sentence: str, call: Callable[[], Any]) -> None:
    """Assert that a call raises `UserError` with one sentence that begins so."""
    with pytest.raises(UserError) as caught:
        call()
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("datasets", "changes", "sentence"),
    [
        ([], {}, "datasets: there is none; give one for each client."),
        ([FLAT, Subset(FLAT, [])], {}, "datasets[1]: has no samples."),
        (iter([FLAT]), {}, "datasets: must be a list, one data set for each client, got list_iterator."),
        ([FLAT], {"test_share": "half"}, "test_share: must be between 0 and 1, got 'half'."),
        ([FLAT, blobs(0)], {}, "datasets[1]: its samples are torch.float32 [1, 6, 6], but "),
        ([DataLoader(FLAT)], {}, "datasets[0]: must be a data set with a length, got "),
        ([Pairs(["ab"])], {}, "datasets[0]: its items must be pairs of a tensor, "),
        ([Subset(FLAT, [0])], {}, "datasets[0]: has 1 sample; give two at least, "),
        (
            of(torch.zeros(2, 1, 3, 3).byte(), NONE),
            {},
            "datasets[0]: samples must be floats, or text as whole numbers ",
        ),
        (of(torch.full((2, 3), torch.nan), NONE), {}, "datasets[0]: has a sample that is not finite."),
        (of(torch.full((2, 3), 1e300, dtype=torch.double), NONE), {}, "datasets[0]: has a sample that is not finite."),
        ([FLAT], {"seed": None}, "seed: must be a whole number from 0, got None."),
        ([FLAT], {"seed": 1.0}, "seed: must be a whole number from 0, got 1.0."),
        ([FLAT], {"seed": 2**63}, "seed: must be a whole number from 0, got 9223372036854775808."),
        ([FLAT], {"batch_size": True}, "local SGD: batch_size: must be a number, got True."),
        ([FLAT], {"lr": "0.1"}, "local SGD: lr: must be a number, got '0.1'."),
        (of(X, [0.0, 0.0]), {}, "datasets[0]: labels must be whole numbers from 0, one a sample, got torch.float32 "),
        (of(X, [0, -1]), {}, "datasets[0]: has label -1; labels must be whole numbers from 0."),
        (of(X, [0, 2]), {}, "model: has 2 outputs, for labels 0 to 1, but there is label 2; number labels from 0, "),
        ([FLAT, FLAT], {"test": [FLAT]}, "test: there are 1 data sets for 2 clients; "),
        ([FLAT], {"test_share": 1.0}, "test_share: must be between 0 and 1, got 1.0."),
        ([FLAT], {"device": "gpu"}, "device: there is no 'gpu'; allowed here: auto, cpu"),
        ([FLAT], {"model": nn.Linear(4, 2)}, "model: fails on a sample [1, 3]: RuntimeError: "),
        ([FLAT], {"model": nn.Flatten(0)}, "model: must return one output per class for each sample, "),
        ([FLAT], {"model": nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))}, "model() returns a model with buffers "),
        ([FLAT], {"model": nn.ParameterList([X])}, "model: the module has parameters, but no reset_parameters() "),
        ([FLAT], {"model": nn.Linear}, "model: cannot be built: TypeError: "),
        ([FLAT], {"model": [nn.Linear(3, 2)]}, "model: must be an nn.Module, its class or a function, got list."),
        ([FLAT], {"model": lambda: 3}, "model: must build an nn.Module, got int."),
        ([FLAT], {"model": lambda: nn.LazyLinear(2)}, "model: has lazy layers, whose shape is unknown; "),
    ],
)
def test_what_makes_no_federation_gets_one_sentence(datasets: Any, changes: dict[str, Any], sentence: str) -> None:
    given = {"model": nn.Linear(3, 2), "batch_size": 2, "lr": 0.1, "device": "cpu", **changes}
    refused(sentence, lambda: Federation.from_datasets(datasets=datasets, **given))


SPOILT = {**Net().state_dict(), "0.weight": torch.full((2, 1, 3, 3), torch.nan)}
CALLS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda model: model.unlearn("fedosd", [4]), "clients: there is no client 4; allowed: 0 to 3."),
    (lambda model: model.unlearn("fedosd", [0, 1, 2, 3]), "clients: all 4 would be forgotten; at least one must be "),
    (lambda model: model.unlearn("fedosd", []), "clients: name at least one."),
    (lambda model: model.unlearn("fedosd", [1.0]), "clients: there is no client 1.0; allowed: 0 to 3."),
    (lambda model: model.unlearn("fedosd", np.array(4)), "clients: there is no client array(4); allowed: 0 to 3."),
    (lambda model: model.federation.train(1, seed=-1), "seed: must be a whole number from 0, got -1."),
    (lambda model: model.federation.train(1, with_replacement=True), "with_replacement: requires clients_per_round."),
    (lambda model: model.federation.trained(SPOILT, 1), "model: '0.weight' is not finite."),
    (lambda model: model.unlearn("fedosd", [[3]]), "clients: there is no client [3]; allowed: 0 to 3."),
    (lambda model: model.unlearn(nn, [0]), "method: must be a name, got <module "),
    (lambda model: model.unlearn("puf", [0], params=[5]), "params: must be a dictionary of puf's hyper-parameters "),
    (lambda model: model.federation.train(1, params={1: 2}), "params: must be a dictionary of fedavg's hyper-"),
    (lambda model: model.federation.train(1, record_for=3), "record_for: must be a name or a list of names, got 3."),
    (lambda model: model.federation.trained("model.pt", 1), "model: must be an nn.Module or its state_dict, got str."),
    (lambda model: model.federation.trained({"epoch": 3}, 1), "model: 'epoch' is not a tensor; give the state_dict "),
    (lambda model: model.unlearn("fedsod", [0]), "there is no method 'fedsod'; did you mean 'fedosd'?"),
    (lambda model: model.unlearn("fedosd", [0], rounds=0), "rounds: must be a whole number from 1, got 0."),
    (lambda model: model.unlearn("puf", [0]).unlearn("puf", [1]), "model: this one is unlearned; start from the "),
    (lambda model: model.recover(1).unlearn("puf", [1]), "model: this one is recovered; start from the original, "),
    (lambda model: model.unlearn("fedosd", [True]), "clients: there is no client True; allowed: 0 to 3."),
    (lambda model: model.recover(True), "rounds: must be a whole number from 1, got True."),
    (lambda model: model.unlearn("fr2", [0], momentum=0.5), "momentum: fr2 has its own; allowed: 0."),
    (
        lambda model: by_fats().unlearn("fats", [0], 3),
        "rounds: fats completes the training; allowed: 4, as in training.",
    ),
    (lambda model: by_fats().unlearn("fats", [0], lr=0.01), "lr: fats continues the training; allowed: 0.1, as "),
    (
        lambda model: model.federation.train(1, record_for="federaser_as_published"),
        "federaser_as_published: needs 'retained_means', for which training must know ",
    ),
    (
        lambda model: model.federation.train(1, "fedprox", record_for="federaser"),
        "record_for: fedprox records no history, but ",
    ),
    (
        lambda model: model.federation.train(1, record_for="federaser", clients_per_round=2),
        "record_for: 'update_norms' is of all clients in every round; ",
    ),
    (lambda model: model.federation.train(1, "server_sgd"), "server_sgd: trains on data of the server, which has "),
    (lambda model: model.federation.train(1, "checkpoint", {"file": "a"}), "checkpoint: reads a model from a file; "),
    (
        lambda model: model.federation.train(1, clients_per_round=4).unlearn("fedosd", [0]),
        "clients_per_round: must be 1 to 3, as many as take part, got 4; or set with_replacement.",
    ),
    (lambda model: model.federation.audit("fedosd", [0], 1, seed=1), "audit: there is no argument 'seed'; allowed: "),
    (lambda model: model.federation.trained(Net(), 1).evaluate(evaluators="cost"), "cost: has nothing to measure "),
    (lambda model: model.unlearn("gradient_ascent", [0], lr=1e20).recover(1), "<unlearned model by gradient_ascent, c"),
    (lambda model: model.federation.train(1).unlearn("federaser", [0]), "federaser: the training has not recorded "),
    (lambda model: model.unlearn("fats", [0]), "fats: continues the training 'fats'; train with training='fats'."),
    (lambda model: model.federation.train(1, "fats"), "fats: needs clients_per_round, local_steps"),
    (lambda model: model.federation.trained(nn.Linear(3, 2), 1), "model: the weights do not fit the model: "),
    (lambda model: model.federation.audit("fedosd", [0], 1, repeats=7), "repeats: must be 8 at least, as fewer "),
    (lambda model: model.evaluate(evaluators=["measure"]), "there is no evaluator 'measure'"),  # a helper
    (lambda model: model.evaluate(evaluators="backdoor"), "backdoor: has nothing to measure here; "),
]


@pytest.mark.parametrize(("call", "sentence"), CALLS, ids=[sentence[:40] for _, sentence in CALLS])
def test_what_cannot_be_asked_of_a_model_gets_one_sentence(
    trained: Model, call: Callable[[Model], Any], sentence: str
) -> None:
    refused(sentence, lambda: call(trained))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"clients_per_round": 4}, "clients_per_round: must be 1 to 3, as many as "),
        ({"lr": 0}, "local SGD: lr: "),
        ({"recovery_rounds": -1}, "recovery_rounds: must be a whole number from 1, got -1."),
        ({"unlearning_rounds": "2"}, "unlearning_rounds: must be a whole number from 1, got '2'."),
        ({"params": {"rate": 1}}, "fedosd: params.rate: unknown key"),
        ({"method": "fr2"}, "audit: fr2 has its own optimiser, "),
    ],
)
def test_what_cannot_be_audited_is_not_even_trained(
    given: dict[str, Any], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Federation, "train", None)
    refused(sentence, lambda: federation().audit(**{"method": "fedosd", "clients": [0], "rounds": 1, **given}))


def test_a_method_that_needs_images_refuses_text() -> None:
    words = [TensorDataset(torch.arange(24).reshape(8, 3) % 5, torch.arange(8) % 2) for _ in range(2)]
    model = nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(12, 2))
    fed = Federation.from_datasets(lambda: model, words, batch_size=4, lr=0.1, device="cpu")
    refused("stego: needs images, but these data sets have text.", lambda: fed.train(1).unlearn("stego", [0]))


def test_the_core_needs_neither_the_workflow_nor_its_libraries(tmp_path: Path) -> None:
    code = (
        "import sys, fu.api; "
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'snakemake', 'matplotlib', 'yaml', 'pandas'}), "
        "[name for name in sys.modules if name.startswith('fu.pipeline')])"
    )
    assert python(tmp_path, "-c", code)[1].startswith("[] []\n")


def test_results_are_read_without_the_workflow_s_libraries(tmp_path: Path) -> None:
    libraries = {"jinja2", "matplotlib", "PIL", "rocrate", "seaborn", "snakemake", "tabulate", "torchvision", "yaml"}
    code = f"import sys, fu.results; print(sorted({{name.split('.')[0] for name in sys.modules}} & {libraries}))"
    assert python(tmp_path, "-c", code)[1].startswith("[]\n")
