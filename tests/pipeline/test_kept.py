"""A kept run states what it was made from; what was edited since is named, and no run takes another's place."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from fu.contents import checksum
from fu.errors import UserError
from fu.pipeline.documents import kept
from fu.pipeline.plan.pending import Reason
from fu.pipeline.plan.plan import Job, Plan
from tests.artefacts.factories import make_entry
from tests.mistakes import contents
from tests.pipeline.kept_runs import about_of, write
from tests.pipeline.page.folder import EVALUATION, ROOT, put

TEXT = {"numbers.csv": "a\n1\n", "numbers.md": "# A table\n"}


@pytest.mark.parametrize(
    ("edit", "wrong"),
    [
        (lambda folder: (folder / "numbers.csv").write_text("a\n2\n"), ["numbers.csv was edited"]),
        (lambda folder: (folder / "numbers.csv").unlink(), ["numbers.csv is missing"]),
        (lambda folder: (folder / "more.csv").touch(), ["more.csv was added"]),
        (lambda folder: replace(folder, "preset: reduced", "preset: paper"), ["run.yaml was edited"]),
        (lambda folder: replace(folder, "c0ffee", "decade"), ["run.yaml was edited"]),
        (lambda folder: replace(folder, "remark: ''", "remark: On a loaded machine."), []),
    ],
)
def test_what_was_edited_since_is_named(tmp_path: Path, edit: Callable[[Path], Any], wrong: list[str]) -> None:
    edit(write(tmp_path, "toy", "mine", TEXT))
    [one] = kept.kept(tmp_path)
    assert one.wrong == wrong


def test_a_run_in_the_folder_of_another_paper_is_named(tmp_path: Path) -> None:
    write(tmp_path, "toy", "mine", TEXT)
    (tmp_path / "toy").rename(tmp_path / "other")
    assert [one.wrong for one in kept.kept(tmp_path)] == [["it is of toy"]]


def replace(folder: Path, old: str, new: str) -> None:
    path = folder / kept.ABOUT
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def test_a_run_yaml_that_is_none_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "toy", "mine", TEXT) / kept.ABOUT
    path.write_text("preset: smoke\n")
    with pytest.raises(UserError, match=r"run\.yaml: .*seeds"):
        kept.kept(tmp_path)


def test_the_runs_of_this_repository_are_as_they_were_kept() -> None:
    runs = kept.kept()
    assert len(runs) > 5
    assert {f"{one.paper}/{one.name}": one.wrong for one in runs if one.wrong} == {}


@pytest.fixture
def plan(_with_toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """The plan of the toy paper, all of whose jobs are current but those in `late`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(kept, "Pending", lambda plan: SimpleNamespace(reason=reason, remember=lambda: None))
    late.clear()
    return Plan({"preset": "smoke", "papers": ["toy"], "seeds": [0]})


late: dict[str, Reason] = {}  # by certificate


def reason(job: Job) -> Reason | None:
    return late.get(job.certificate)


def sentence(*given: Any) -> str:
    with pytest.raises(UserError) as error:
        [*kept.keep(*given)]
    return str(error.value)


def test_bad_names_and_targets_are_refused(plan: Plan, tmp_path: Path) -> None:
    for name in ("", "A", "a/b", "..", "a_b", "-a"):
        assert sentence(plan, ["toy_numbers"], name, tmp_path) == (
            f"RUN: a run is named by lower-case letters, digits and '-', as in RUN=mnist-pat50; got {name!r}."
        )
    assert "TARGETS: name the tables" in sentence(plan, [], "mine", tmp_path)
    assert "toy_nonsense" in sentence(plan, ["toy_nonsense"], "mine", tmp_path)


def test_a_run_of_other_settings_is_not_replaced_and_an_outdated_one_is_not_kept(plan: Plan, tmp_path: Path) -> None:
    put(make_entry("table", artefact="numbers", seeds=(0,)))
    costs = {EVALUATION: {"seconds": 7200.0}, "another": {"seconds": 3600.0}}
    put(make_entry("table", artefact="utility", seeds=(0,)), costs=costs)
    [line] = kept.keep(plan, ["toy_numbers"], "mine", tmp_path / "kept")
    folder = tmp_path / "kept/toy/mine"
    assert line == "kept/toy/mine: kept 1 table or figure with 1 seed; `make docs` lists the run."
    about = yaml.safe_load((folder / kept.ABOUT).read_text())
    assert (about["commits"], about["edited"], about["hours"]) == (["abcdef" * 6], False, 2.0)
    assert about["files"] == {name: checksum(folder / name) for name in about["files"]}
    assert {*about["files"]} == {"numbers.csv", "numbers.rows.csv.gz", "numbers.md"}
    assert (about["preset"], about["seeds"]) == ("smoke", [0])
    assert about["scenarios"] == {"small": {"label": "Small", "data": "digits"}}
    assert [one.wrong for one in kept.kept(tmp_path / "kept")] == [[]]
    [line] = kept.keep(plan, ["toy_numbers", "toy_utility"], "mine", tmp_path / "kept")  # more of the same
    assert "kept 2 tables and figures" in line
    assert yaml.safe_load((folder / kept.ABOUT).read_text())["hours"] == 3.0  # of what both are made from, once
    assert sentence(plan, ["toy_numbers"], "mine", tmp_path / "kept") == (
        "kept/toy/mine: also keeps utility.csv, utility.md, utility.rows.csv.gz; "
        "name their tables and figures in TARGETS, too."
    )
    job = plan.job("publish", {"paper": "toy", "artefact": "numbers"})
    late[job.certificate] = Reason("code", "fu.methods.fedosd")
    assert sentence(plan, ["toy_numbers"], "mine", tmp_path / "kept") == (
        "toy_numbers: out of date (fu.methods.fedosd); run `make reproduce PRESET=smoke TARGETS=toy_numbers`."
    )
    late.clear()
    other = Plan(
        {"preset": "smoke", "papers": ["toy"], "seeds": [0], "overrides": {"toy": {"settings": {"total_rounds": 9}}}}
    )
    assert sentence(other, ["toy_numbers", "toy_utility"], "mine", tmp_path / "kept") == (
        "kept/toy/mine: keeps a run with another config; choose another name (RUN)."
    )
    stem = ROOT / "artefacts/toy/utility"
    stem.with_suffix(".md").write_text("edited\n")
    both = ["toy_numbers", "toy_utility"]
    assert sentence(plan, both, "mine", tmp_path / "kept") == (
        "toy_utility: utility.md is not as its job wrote it; run `make reproduce PRESET=smoke TARGETS=toy_utility`."
    )
    for file in stem.parent.glob("utility.*"):
        file.unlink()
    assert sentence(plan, both, "mine", tmp_path / "kept") == (
        "toy_utility: not made yet; run `make reproduce PRESET=smoke TARGETS=toy_utility`."
    )
    assert [path.name for path in folder.parent.iterdir()] == ["mine"]
    assert cast(Any, about_of(folder)).config == {"preset": "smoke", "papers": ["toy"], "seeds": [0]}


def test_a_run_that_is_kept_again_keeps_its_remark_and_an_interrupt_keeps_the_run(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(make_entry("table", artefact="numbers", seeds=(0,)))
    again = partial(kept.keep, plan, ["toy_numbers"], "mine", tmp_path / "kept")
    [*again()]
    folder = tmp_path / "kept/toy/mine"
    replace(folder, "remark: ''", "remark: On a loaded machine.")
    [*again()]
    assert about_of(folder).remark == "On a loaded machine."
    before, rename = contents(folder), Path.rename

    def interrupted(path: Path, target: Path) -> Path:
        if target == folder and path.name == "mine":
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        [*again()]
    assert contents(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == ["mine"]
