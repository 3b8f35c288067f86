"""Attacks on models that memorised and on models that did not; LiRA's and RMIA's scores by hand."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fu.data.clients import ClientData
from fu.data.membership import Shadows
from fu.data.partition import Partition
from fu.data.request import Request
from fu.evaluation import membership
from fu.evaluation.context import Context
from fu.evaluation.membership import ATTACKS, evaluate, lira, rmia, scaled, shokri, told
from fu.federation.local import LocalTraining
from fu.federation.network import Network
from fu.federation.task import initial_parameters
from tests.evaluation.shadows import drawn, trained
from tests.factories import CLASSES, SMALL, builder

BUILD = builder(shape=SMALL, hidden=64)
LOCAL = LocalTraining(lr=0.5, lr_decay=1.0, batch_size=20, local_epochs=10)


# ---- Shokri's attack -------------------------------------------------------------------------------------------------


def test_what_attacks_tell_by_hand() -> None:
    """Two attacks: three of four members called, one of four others; nobody called."""
    members = torch.tensor([[1.0, 2.0, 3.0, -1.0], [-1.0, -2.0, -3.0, -4.0]])
    others = torch.tensor([[0.5, -1.5, -2.0, -3.0], [-5.0, -6.0, -7.0, -8.0]])
    found = told(members, others)
    assert found["mia_accuracy"] == pytest.approx((6 / 8 + 1 / 2) / 2)
    assert found["mia_accuracy_std"] == pytest.approx(np.std([6 / 8, 1 / 2], ddof=1))
    assert found["mia_precision"] == pytest.approx(3 / 4)
    assert found["mia_undefined"] == 1.0
    assert "mia_precision_std" not in found  # of one number there is none
    assert found["mia_auc"] == pytest.approx((15 / 16 + 1) / 2)
    assert found["mia_tpr_1"] == pytest.approx((3 / 4 + 1) / 2)


def test_a_precision_that_nobody_has_is_left_out_and_not_zero() -> None:
    found = told(torch.tensor([[-1.0, -2.0]]), torch.tensor([[-3.0, -4.0]]))
    assert "mia_precision" not in found
    assert found["mia_undefined"] == 1.0


@pytest.mark.parametrize("classes", [10, 30])
@torch.no_grad()
def test_a_model_that_leaks_as_its_shadows_do_is_told_from_one_that_does_not(classes: int) -> None:
    record, logits = drawn(classes, leak=3.0)
    found = shokri(record, logits(True), logits(False))
    assert found["mia_auc"] > 0.85
    assert found["mia_accuracy"] > 0.75
    assert found["mia_precision"] > 0.75
    assert 0 < found["mia_auc_std"] < 0.05
    same = shokri(record, logits(False), logits(False))
    assert abs(same["mia_auc"] - 0.5) < 3 * math.sqrt(1 / (6 * 1000))  # of two samples of 1000
    turned = shokri(record, logits(False), logits(True))
    assert turned["mia_auc"] < 0.15


@torch.no_grad()
def test_shadows_whose_labels_are_permuted_teach_nothing() -> None:
    record, logits = drawn(leak=3.0)
    blind = replace(record, inside=np.random.default_rng(1).permuted(record.inside, axis=1))
    assert abs(shokri(blind, logits(True), logits(False))["mia_auc"] - 0.5) < 0.15


@pytest.mark.whole
@torch.no_grad()
def test_attacks_depend_on_the_seed_of_the_scenario_alone_and_differ_from_each_other() -> None:
    record, logits = drawn(rows=400, pairs=100)
    one, two = logits(True), logits(False)
    first = shokri(record, one, two)
    membership.attackers.cache_clear()
    assert shokri(record, one, two) == first
    assert shokri(replace(record, seed=np.array(1)), one, two) != first
    assert all(first[f"mia_{name}_std"] > 0 for name in ("accuracy", "precision", "auc", "tpr_1"))


@torch.no_grad()
def test_a_class_that_shadows_never_or_always_trained_on_is_left_out() -> None:
    record, logits = drawn(rows=400, pairs=100)
    inside = record.inside.copy()
    inside[:, record.labels == 3] = True
    models = membership.attackers(replace(record, inside=inside), torch.device("cpu"))
    assert models.classes.tolist() == [label for label in range(10) if label != 3]
    assert models.weights[0].shape[0] == 9 * ATTACKS
    assert shokri(replace(record, inside=np.ones_like(inside)), logits(True), logits(False)) == {}


def test_each_attack_takes_half_of_the_pairs_rounded_up_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    record, logits = drawn(rows=40, pairs=5)
    scored = iter([torch.arange(5.0).expand(ATTACKS, -1), 10 + torch.arange(5.0).expand(ATTACKS, -1)])
    taken: list[tuple[Tensor, Tensor]] = []

    def told(members: Tensor, others: Tensor) -> dict[str, float]:
        taken.append((members, others))
        return {}

    monkeypatch.setattr(membership, "judged", lambda *_: next(scored))
    monkeypatch.setattr(membership, "told", told)
    assert shokri(record, logits(True), logits(False)) == {"mia_members": 5.0}
    ((members, others),) = taken
    assert torch.equal(others, members + 10)  # a member and its own non-member
    sets = {tuple(sorted(each)) for each in members.tolist()}
    assert sets == set(combinations(range(5), 3))  # all ten in a hundred draws


def test_what_an_attack_model_is_given_is_scaled_by_its_own_class() -> None:
    record, _ = drawn(classes=3, rows=30, pairs=6, shadows=2)
    models = membership.attackers(record, torch.device("cpu"))
    for number, label in enumerate(models.classes.tolist()):
        rows = record.labels == label
        given = membership.features(torch.from_numpy(record.pool_logits[:, rows]), torch.full((rows.sum(),), label))
        torch.testing.assert_close(models.centre[number, 0], given.flatten(0, 1).mean(0))
        torch.testing.assert_close(models.scale[number, 0], given.flatten(0, 1).std(0, correction=0) + 1e-6)
    by_hand = membership.Models(
        torch.tensor([0, 1]),
        torch.tensor([[[1.0, 2.0]], [[5.0, 6.0]]]),
        torch.tensor([[[1.0, 1.0]], [[2.0, 4.0]]]),
        [f(2 * ATTACKS, n, 1) for f, n in ((torch.ones, 2), (torch.zeros, 1), (torch.ones, 1), (torch.zeros, 1))],
    )
    x, labels = torch.tensor([[7.0, 14.0], [3.0, 5.0]]), torch.tensor([1, 0])
    expected = [(3 - 1) + (5 - 2), (7 - 5) / 2 + (14 - 6) / 4]  # by classes
    assert (membership.judged(by_hand, x, labels) == torch.tensor(expected)).all()


def test_an_attack_model_is_given_the_own_class_first_and_then_the_highest() -> None:
    logits = torch.tensor([[0.0, 3.0, 1.0, 2.0]])
    found = membership.features(logits, torch.tensor([2]))
    assert torch.allclose(found, logits.log_softmax(-1)[:, [2, 1, 3, 0]])
    many = membership.features(torch.randn(2, 5, 30), torch.arange(5))
    assert many.shape == (2, 5, membership.NUMBERS)
    assert (many[..., 1:].diff(dim=-1) <= 0).all()


# ---- LiRA and RMIA ---------------------------------------------------------------------------------------------------


def test_lira_compares_the_scaled_confidence_with_that_of_models_that_never_saw_the_sample() -> None:
    def of(p: float) -> list[float]:
        return [math.log(p), math.log(1 - p)]

    labels = torch.tensor([0, 1])
    said = torch.tensor([[of(0.5), of(0.2)], [of(0.9), of(0.4)]])
    model = torch.tensor([of(0.95), of(0.1)])

    def phi(p: float) -> float:
        return math.log(p / (1 - p))

    assert scaled(model, labels).tolist() == pytest.approx([phi(0.95), phi(0.9)], rel=1e-5)
    own = [(phi(0.5), phi(0.9)), (phi(0.8), phi(0.6))]
    sigma = math.sqrt(np.mean([np.var(pair, ddof=1) for pair in own]))
    expected = [(phi(p) - np.mean(pair)) / sigma for p, pair in zip((0.95, 0.9), own, strict=True)]
    assert lira(model, said, labels).tolist() == pytest.approx(expected, rel=1e-4)


def test_with_many_shadows_lira_has_a_spread_for_each_sample() -> None:
    random = torch.Generator().manual_seed(0)
    said = torch.randn(membership.OWN_SPREAD, 3, 4, generator=random) * torch.tensor([1.0, 2.0, 3.0])[:, None]
    model, labels = torch.randn(3, 4, generator=random), torch.tensor([0, 1, 2])
    phi = scaled(said, labels)
    expected = (scaled(model, labels) - phi.mean(0)) / phi.std(0, correction=1)
    assert torch.allclose(lira(model, said, labels), expected)
    assert not torch.allclose(lira(model, said[1:], labels), (scaled(model, labels) - phi[1:].mean(0)) / phi[1:].std(0))


def test_rmia_counts_the_pool_that_a_sample_beats() -> None:
    """Pr = (1.3 p_out + .7) / 2; r of the pool: .5 / .675, .9 / .675, .3 / .48; of samples: .8 / .61, .4 / .87, and two
    that would beat one more or one less if the pool's p_out were a mean over all shadows (.5 / .762, .9 / .588).
    """

    def of(*several: float) -> Tensor:
        return torch.tensor([[math.log(p), math.log(1 - p)] for p in several])

    zero = torch.zeros(4, dtype=torch.long)
    known = torch.stack([of(0.5, 0.1, 0.3), of(0.9, 0.5, 0.1), of(0.5, 0.5, 0.5)])
    inside = torch.tensor([[False, True, False], [True, False, False], [False, False, True]])
    pool, model = of(0.5, 0.9, 0.3), of(0.8, 0.4, 0.5, 0.9)
    said = torch.stack([of(0.2, 0.9, 0.5, 0.4), of(0.6, 0.7, 0.6, 0.6), of(0.4, 0.8, 0.58, 0.35)])
    ratios = [0.5 / 0.675, 0.9 / 0.675, 0.3 / ((1.3 * 0.2 + 0.7) / 2)]
    mine = [p / ((1.3 * out + 0.7) / 2) for p, out in ((0.8, 0.4), (0.4, 0.8), (0.5, 0.56), (0.9, 0.45))]
    expected = [np.mean([one >= other for other in ratios]) for one in mine]
    found = rmia(model, said, zero, pool, known, zero[:3], inside)
    assert found.tolist() == pytest.approx(expected)
    assert expected == pytest.approx([2 / 3, 0.0, 1 / 3, 1.0])


def test_rmia_counts_a_tie_as_beaten_and_shifts_the_expected_probability() -> None:
    """Of p = .5 and p_out = .5 r is that of z. Of p = .2 and p_out = .05: .2 / .3825, below .6 / .675 of z; unshifted
    .2 / .0325 would be above .6 / .325.
    """

    def scored(p: float, out: float, *pool: tuple[float, float]) -> list[float]:
        one, said = torch.tensor([[math.log(p), math.log(1 - p)]]), torch.tensor([[[math.log(out), math.log(1 - out)]]])
        rows, known = (torch.tensor([[math.log(z[k]), math.log(1 - z[k])] for z in pool]) for k in (0, 1))
        zero = torch.zeros(len(pool), dtype=torch.long)
        found = rmia(one, said, zero[:1], rows, known[None], zero, torch.zeros(1, len(pool), dtype=torch.bool))
        return [float(score) for score in found]

    assert scored(0.5, 0.5, (0.5, 0.5), (0.9, 0.5)) == [0.5]
    assert scored(0.2, 0.05, (0.6, 0.5)) == [0.0]


# ---- models ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data() -> ClientData:
    """Images without meaning, which can only be learned by heart: 400 of five clients, 200 of nobody."""
    random = torch.Generator().manual_seed(1)
    x, y = torch.randn(600, *SMALL, generator=random), torch.randint(CLASSES, (600,), generator=random)
    nobody = [np.empty(0, np.int64)] * 5
    part = Partition(np.split(np.arange(400), 5), nobody, nobody, global_test=np.arange(400, 600))
    return ClientData(x, y, part, CLASSES, "share", request=Request(np.array([0, 1])))


@pytest.fixture(scope="module")
def shadows(data: ClientData) -> Shadows:
    return trained(data, BUILD, LOCAL, 5, 4)


def memorised(data: ClientData, *rows: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> Tensor:
    """Return a model that has memorised some samples."""
    network = Network(BUILD(), data.device)
    network.weights.copy_(initial_parameters(BUILD, 7))
    x, y = data.clean(np.concatenate(rows))
    for _ in range(400):
        network.descend(cross_entropy(network.model(x), y), 0.5)
    assert (network.model(x).argmax(1) == y).all()
    return network.weights.clone()


def attacked(data: ClientData, shadows: Shadows, theta: Tensor) -> dict[str, float]:
    with torch.no_grad():
        return evaluate(Context(Network(BUILD(), data.device), data, theta, shadows=shadows))


def test_a_model_that_memorised_is_found_out_by_every_attack(data: ClientData, shadows: Shadows) -> None:
    """So is the original model that somebody hands in as unlearned."""
    found = attacked(data, shadows, memorised(data, *data.partition.train))
    assert min(found[f"{attack}_auc"] for attack in ("mia", "lira", "rmia")) > 0.8
    assert found["lira_advantage"] == pytest.approx(2 * found["lira_auc"] - 1)
    assert min(found["lira_tpr_1"], found["rmia_tpr_1"]) > 0.1
    assert found["mia_accuracy"] > 0.7


def test_an_advantage_is_never_below_zero(data: ClientData, shadows: Shadows) -> None:
    """A model that knows the non-members by heart."""
    found = attacked(data, shadows, memorised(data, shadows.non_members))
    assert found["lira_auc"] < 0.2
    assert found["lira_advantage"] == 0.0


def test_members_that_trained_are_told_from_those_that_were_merely_held(data: ClientData, shadows: Shadows) -> None:
    """Of clients 0 and 1 only 0 trained: its rows are found out, and those of both less."""
    one, _, *others = data.partition.train
    theta = memorised(data, one, *others)
    trained = np.isin(shadows.members, one)
    found = attacked(data, replace(shadows, trained=trained), theta)
    assert (found["mia_members"], found["mia_members_trained"]) == (len(trained), trained.sum())
    assert 0 < trained.sum() < len(trained)
    for attack in ("mia", "lira", "rmia"):
        assert found[f"{attack}_auc_trained"] > 0.8 > found[f"{attack}_auc"] + 0.05, attack
    kept = {name: getattr(shadows, name)[trained] for name in ("members", "non_members", "classes")}
    kept |= {name: getattr(shadows, name)[:, trained] for name in ("member_logits", "non_member_logits")}
    alone = attacked(data, replace(shadows, **kept), theta)
    for name in ("mia_auc", "mia_auc_std", "lira_auc", "rmia_auc"):
        assert found[f"{name}_trained"] == pytest.approx(alone[name]), name
    unknown = attacked(data, replace(shadows, trained=trained[:0]), theta)
    assert {name for name in unknown if name.endswith("_trained")} == set()
    nobody = attacked(data, replace(shadows, trained=np.zeros_like(trained)), theta)
    assert {name: nobody[name] for name in nobody if name.endswith("_trained")} == {"mia_members_trained": 0.0}


@pytest.mark.parametrize("untrained", [True, False], ids=["untrained", "retrained"])
def test_a_model_that_never_saw_the_members_is_a_coin(data: ClientData, shadows: Shadows, untrained: bool) -> None:
    theta = initial_parameters(BUILD, 8) if untrained else memorised(data, *data.partition.train[2:])
    found = attacked(data, shadows, theta)
    error = math.sqrt(1 / (6 * len(shadows.members)))
    for attack in ("mia", "lira", "rmia"):
        assert abs(found[f"{attack}_auc"] - 0.5) < 3 * error, attack


def test_without_shadows_or_members_nothing_is_measured(data: ClientData, shadows: Shadows) -> None:
    theta = initial_parameters(BUILD, 8)
    with torch.no_grad():
        assert evaluate(Context(Network(BUILD(), data.device), data, theta)) == {}
    names = ("members", "non_members", "classes")
    bare = {name: getattr(shadows, name)[:0] for name in names}
    bare |= {name: getattr(shadows, name)[:, :0] for name in ("member_logits", "non_member_logits")}
    assert attacked(data, replace(shadows, **bare), theta) == {}
    fields = ("inside", "pool_logits", "member_logits", "non_member_logits")
    assert attacked(data, replace(shadows, **{name: getattr(shadows, name)[:0] for name in fields}), theta) == {}
    everything = replace(shadows, inside=np.ones_like(shadows.inside))  # no shadow lacks a sample of the pool
    assert {name.partition("_")[0] for name in attacked(data, everything, theta)} == {"lira"}
    single = attacked(data, replace(shadows, **{name: getattr(shadows, name)[:1] for name in fields}), theta)
    assert {"mia_auc", "rmia_auc"} <= set(single)
    assert not {name for name in single if name.startswith("lira")}
