"""The sets of an attack: no index in two, as many of each class, halves that differ from shadow to shadow."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from fu.data import membership
from fu.data.membership import Sets
from fu.data.partition import Indices, Partition
from fu.errors import UserError

NONE = np.empty(0, np.int64)
LABELS = np.arange(400) % 4
LABELS[300:] = np.arange(100) % 3  # class 3 is in no test set


def part(**changes: object) -> Partition:
    """Ten clients of 30 training samples, of whom the last is absent; 100 test samples of nobody."""
    order = np.random.default_rng(0).permutation(300)
    about: dict[str, object] = {"train": np.split(order, 10), "validation": [NONE] * 10, "test": [NONE] * 10}
    about |= {"global_test": np.arange(300, 400), "absent": np.array([9])}
    return Partition(**{**about, **changes})  # type: ignore[arg-type]


def rows(one: Partition, clients: list[int]) -> set[int]:
    return {int(row) for client in clients for row in one.train[client]}


@pytest.mark.parametrize(("clients", "samples"), [([2, 5], 0), ([], 6), ([4], 3)])
@pytest.mark.parametrize("most", [None, 8])
def test_no_index_is_in_two_sets_and_each_has_what_it_is_called(
    clients: list[int], samples: int, most: int | None
) -> None:
    one = part()
    asked = np.sort(one.train[7][:samples])
    sets = membership.draw(one, LABELS, clients, asked, 3, most)
    found = [set(rows.tolist()) for rows in (sets.members, sets.non_members, sets.pool)]
    assert all(not first & second for first, second in combinations(found, 2))
    for several, kept in zip(found, (sets.members, sets.non_members, sets.pool), strict=True):
        assert 0 < len(several) == len(kept) <= (most or 400)
    assert found[0] <= rows(one, clients) | set(asked.tolist())
    assert found[1] <= set(range(300, 400))
    assert found[2] <= rows(one, sorted({*range(9)} - {*clients})) - set(asked.tolist())
    assert (LABELS[sets.members] == LABELS[sets.non_members]).all()
    for shadow in range(4):
        inside = np.concatenate(membership.half(one, clients, asked, 3, shadow).train)
        assert not (found[0] | found[1]) & set(inside.tolist())


def test_a_class_with_too_few_on_one_side_limits_the_other() -> None:
    one = part()
    sets = membership.draw(one, LABELS, [2, 5], NONE, 3)
    wanted = [min((LABELS[list(rows(one, [2, 5]))] == c).sum(), (LABELS[300:] == c).sum()) for c in range(4)]
    assert np.bincount(LABELS[sets.members], minlength=4).tolist() == wanted
    assert wanted[3] == 0 < min(wanted[:3])
    few = membership.draw(part(global_test=np.arange(300, 306)), LABELS, [2, 5], NONE, 3)
    assert np.bincount(LABELS[few.members]).tolist() == [2, 2, 2]


def test_where_clients_have_test_sets_these_are_the_non_members() -> None:
    own = part(global_test=NONE, test=np.split(np.arange(300, 400), 10))
    assert set(membership.draw(own, LABELS, [2, 5], NONE, 3).non_members.tolist()) <= set(range(300, 400))


def test_what_an_attack_marks_is_no_member() -> None:
    marked = np.sort(part().train[2][:20])
    sets = membership.draw(part(backdoored=marked, attacked=np.array([2])), LABELS, [2], NONE, 3)
    assert 0 < len(sets.members) <= 10
    assert not set(sets.members.tolist()) & set(marked.tolist())


def test_each_set_is_drawn_from_all_that_it_may_hold() -> None:
    """Non-members where they are plenty, members where non-members are few, pairs and pool where there is a limit."""
    few = part(global_test=np.arange(300, 306))
    asked = [membership.draw(part(), LABELS, [2, 5], NONE, seed) for seed in range(100)]
    others = [membership.draw(few, LABELS, [2, 5], NONE, seed) for seed in range(100)]
    limited = [membership.draw(part(), LABELS, [2, 5], NONE, seed, 8) for seed in range(300)]
    again = membership.draw(part(), LABELS, [2, 5], NONE, 0, 8)
    assert all(np.array_equal(getattr(again, name), getattr(limited[0], name)) for name in vars(again))
    able = {row for row in rows(part(), [2, 5]) if LABELS[row] < 3}
    assert {row for sets in asked for row in sets.non_members.tolist()} == {*range(300, 400)}
    assert {row for sets in others for row in sets.members.tolist()} == able
    assert {row for sets in limited for row in sets.members.tolist()} == able
    assert {row for sets in limited for row in sets.pool.tolist()} == rows(part(), [0, 1, 3, 4, 6, 7, 8])


@pytest.mark.parametrize(("clients", "sample", "owned"), [([2, 5], None, {2, 5}), ([], 7, {7}), ([2], 7, {2, 7})])
@pytest.mark.parametrize("test", ["global", "clients"])
def test_where_rows_have_owners_non_members_are_the_held_out_rows_of_members_owners(
    clients: list[int], sample: int | None, owned: set[int], test: str
) -> None:
    """Each client is an owner, who also has ten of the test rows; owner 10 has rows to test alone."""
    changes = {"global_test": NONE, "test": np.split(np.arange(300, 400), 10)} if test == "clients" else {}
    one, owners = part(**changes), np.arange(400) % 11
    for client in range(10):
        owners[one.train[client]] = client
    asked = NONE if sample is None else one.train[sample][:6]
    found = [membership.draw(one, LABELS, clients, asked, seed, None, owners).non_members for seed in range(20)]
    assert {int(owners[row]) for several in found for row in several} == owned
    assert {row for several in found for row in several.tolist()} <= {*range(300, 400)}


def halves(one: Partition, clients: list[int], samples: Indices, shadow: int, seed: int = 3) -> list[set[int]]:
    return [set(rows.tolist()) for rows in membership.half(one, clients, samples, seed, shadow).train]


def test_a_shadow_trains_on_half_of_what_each_retained_client_holds() -> None:
    one = part()
    gone = np.sort(one.train[7][:5])
    found = membership.half(one, [2, 5], gone, 3, 0)
    sizes = [len(rows) for rows in found.train]
    assert [sizes[client] for client in (2, 5, 9)] == [0, 0, 0]
    assert sizes[7] in (12, 13)
    assert {sizes[client] for client in (0, 1, 3, 4, 6, 8)} == {15}
    assert all(set(half.tolist()) <= set(whole.tolist()) for half, whole in zip(found.train, one.train, strict=True))
    assert found.present == [0, 1, 3, 4, 6, 7, 8]
    assert not len(found.attacked) + len(found.backdoored) + len(found.attack)


def test_every_shadow_has_a_split_of_its_own_and_a_row_is_in_half_of_them() -> None:
    splits = [halves(part(), [2], NONE, shadow) for shadow in range(200)]
    assert len({tuple(sorted(split[0])) for split in splits}) > 190
    share = np.mean([[row in split[0] for row in part().train[0]] for split in splits], 0)
    assert share.min() > 0.3
    assert share.max() < 0.7
    assert halves(part(), [2], NONE, 0, seed=4) != splits[0]


def test_a_client_with_one_row_trains_on_it_and_of_three_on_one_or_two() -> None:
    small = part(train=[np.array([7]), np.array([1, 2, 3]), np.array([4, 5])], absent=NONE)
    found = [membership.half(small, [2], NONE, 0, shadow).train for shadow in range(40)]
    assert {len(train[0]) for train in found} == {1}
    assert {len(train[1]) for train in found} == {1, 2}


def record(sets: Sets, trained_on: Indices | None = None) -> membership.Shadows:
    inside = [np.isin(sets.pool, [1]), np.isin(sets.pool, [2])]
    said = [[np.full((len(rows), 4), k + n, np.float32) for n, rows in enumerate(vars(sets).values())] for k in (0, 9)]
    order = [[one[2], one[0], one[1]] for one in said]
    return membership.shadows(sets, LABELS, inside, order, 4, 3, 5, trained_on)


def test_the_file_holds_what_shadows_were_trained_on_and_say(tmp_path: Path) -> None:
    sets = Sets(np.array([4, 5]), np.array([300, 301]), np.array([1, 2, 6]))
    membership.save(tmp_path / "shadows.npz", record(sets, np.array([2, 5, 300])))
    found = membership.load(tmp_path / "shadows.npz")
    assert found.number == 2
    assert int(found.asked) == 5
    assert int(found.seed) == 3
    assert found.inside.tolist() == [[True, False, False], [False, True, False]]
    assert found.trained.tolist() == [False, True]
    assert not len(record(sets).trained)
    assert (found.members.tolist(), found.non_members.tolist(), found.pool.tolist()) == ([4, 5], [300, 301], [1, 2, 6])
    assert (found.labels.tolist(), found.classes.tolist()) == (LABELS[[1, 2, 6]].tolist(), LABELS[[4, 5]].tolist())
    for name, value, several in (("member_logits", 0, 2), ("non_member_logits", 1, 2), ("pool_logits", 2, 3)):
        logits = getattr(found, name)
        assert logits.shape == (2, several, 4)
        assert logits.dtype == np.float32
        assert [set(one.ravel().tolist()) for one in logits] == [{value}, {value + 9}]


def test_a_record_without_any_shadow_keeps_its_shape(tmp_path: Path) -> None:
    sets = Sets(np.array([4, 5]), np.array([300, 301]), np.array([1, 2, 6]))
    membership.save(tmp_path / "shadows.npz", membership.shadows(sets, LABELS, [], [], 4, 3, 5))
    assert membership.load(tmp_path / "shadows.npz").pool_logits.shape == (0, 3, 4)


@pytest.mark.parametrize("damage", ["lacks", "shape"])
def test_another_file_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "shadows.npz"
    membership.save(path, record(Sets(np.array([4, 5]), np.array([300, 301]), np.array([1, 2, 6]))))
    arrays = dict(np.load(path))
    if damage == "lacks":
        del arrays["inside"]
    else:
        arrays["member_logits"] = arrays["member_logits"][:1]
    np.savez(path, allow_pickle=False, **arrays)
    with pytest.raises(UserError, match="not a file of shadow models; delete it"):
        membership.load(path)
