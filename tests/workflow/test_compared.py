"""What the tests of faults and of Slurm compare of two runs: everything but times."""

import re

import pytest

from tests.faults.kills import PAGE, RESULTS, comparable, without_times
from tests.workflow.project import Project


def test_a_run_that_took_longer_has_an_equal_page(toy: Project) -> None:
    page = (toy.root / RESULTS / PAGE).read_text()
    later, changed = re.subn(r"(<dt>Computation</dt><dd>).*? s(?=<| on )", r"\g<1>12 min", page)
    assert changed > 5
    later, changed = re.subn(r'(json</a> <span class="faint">)[^<]*', r"\g<1>7 B", later)
    assert changed > 5
    assert later != page
    assert without_times(later) == without_times(page)


@pytest.mark.parametrize(
    "pattern",
    [
        r"<td>(0\.\d+)",  # a number in a table
        r"job <code>([0-9a-f]+)<",
        r"<dt>Seeds</dt><dd>(0)<",
        r"threads: (1)<",
    ],
)
def test_a_page_with_another_result_is_another(toy: Project, pattern: str) -> None:
    page = (toy.root / RESULTS / PAGE).read_text()
    found = re.search(pattern, page)
    assert found, pattern
    digit = "8" if found[1][0] == "9" else "9"
    other = f"{page[: found.start(1)]}{digit}{page[found.start(1) + 1 :]}"
    assert without_times(other) != without_times(page)


def test_models_tables_and_the_page_are_compared_and_files_of_times_are_not(toy: Project) -> None:
    compared = comparable(toy)
    for name in (PAGE, "artefacts/toy/numbers.csv", "toy/iid/seed0/original.trained.safetensors"):
        assert compared[name]
    assert not [name for name in compared if name.endswith((".cost.json", ".made.json")) or "/times." in name]
