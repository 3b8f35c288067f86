"""CE and UCE: values and slopes worked out by hand."""

from math import log

import numpy as np
import pytest

from tests.artefacts.factories import made, make_entry


@pytest.mark.parametrize(
    ("loss", "p", "value", "slope"),
    [
        ("CE", 0.5, log(2), -2.0),
        ("CE", 0.1, log(10), -10.0),
        ("UCE", 0.5, -log(0.75), 2 / 3),  # -log(1 - p / 2), slope 1 / (2 - p)
        ("UCE", 0.9, -log(0.55), 1 / 1.1),
    ],
)
def test_a_loss_and_its_slope(loss: str, p: float, value: float, slope: float) -> None:
    found = made(make_entry("losses")).frame
    row = found[(found["loss"] == loss) & np.isclose(found["p"], p)].iloc[0]
    assert (row["value"], row["derivative"]) == pytest.approx((value, slope))


def test_a_panel_shows_one_loss_and_its_derivative() -> None:
    result = made(make_entry("losses"))
    for axis, loss in zip(result.figure.axes, ("CE", "UCE"), strict=True):
        rows = result.frame[result.frame["loss"] == loss]
        for line, column in zip(axis.lines, ("value", "derivative"), strict=True):
            assert np.array_equal(line.get_ydata(), rows[column])
            assert line.get_label() == {"value": "loss L", "derivative": "derivative dL/dp"}[column]
        assert axis.get_ylabel() == "L, dL/dp"
    assert [text.get_text() for text in result.figure.legends[0].get_texts()] == ["loss L", "derivative dL/dp"]
