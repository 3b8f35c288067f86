"""The benchmark of growth: exponents by hand, and points that are measured in processes of their own."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.scale.__main__ import PARTS, draw, exponents, measured
from benchmarks.scale.points import write_data

pytestmark = pytest.mark.whole


def test_an_exponent_is_that_between_the_last_two_points() -> None:
    """10 to 100 clients: 2 s to 20 s; 100 to 1,000: 20 s to 2,000 s. Of one point there is none."""
    rows = [{"rounds": n, "MB on disk": mb} for n, mb in ((1000, 2000.0), (10, 2.0), (100, 20.0))]
    rows[1]["seconds of a restart"] = 1.0
    assert [*exponents(PARTS["kept"], pd.DataFrame(rows))] == ["  MB on disk: rounds^2.00"]


def test_lines_have_their_own_exponents() -> None:
    rows = [{"samples": n, "images": name, "MB": mb} for name, n, mb in (("streamed", 1, 3.0), ("streamed", 2, 3.0),
            ("resident", 1, 1.0), ("resident", 2, 2.0))]  # fmt: skip
    found = [*exponents(PARTS["data"], pd.DataFrame(rows))]
    assert found == ["  MB (streamed): samples^0.00", "  MB (resident): samples^1.00"]


@pytest.mark.parametrize(
    ("part", "given"),
    [
        ("kept", {"rounds": 3}),
        ("results", {"certificates": 3}),
        pytest.param("data", {"samples": 1100, "images": "streamed"}, marks=pytest.mark.whole),
        pytest.param("owners", {"method": "fats", "owners": 40}, marks=pytest.mark.whole),
        pytest.param("plan", {"seeds": 1}, marks=pytest.mark.whole),
    ],
)
def test_a_point_gives_the_numbers_that_are_drawn(part: str, given: dict[str, Any], tmp_path: Path) -> None:
    if part == "data":
        write_data(tmp_path, given["samples"])
    found = measured(part, {**given, "folder": str(tmp_path)})
    assert found.keys() >= {*given, *PARTS[part].numbers}
    assert "folder" not in found
    assert all(found[number] > 0 for number in PARTS[part].numbers)
    draw(PARTS[part], pd.DataFrame([found]), tmp_path / "x.svg")
    assert (tmp_path / "x.svg").stat().st_size > 1000


def test_a_point_that_cannot_be_computed_has_no_numbers_but_a_reason() -> None:
    found = measured("clients", {"clients": 2, "present": 2, "model": "none", "held": "mean"})
    assert found["who"] == "all present, mean held"
    assert "none" in found["problem"]
    assert "seconds a round" not in found
