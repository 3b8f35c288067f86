"""Exposed samples: pictures with labels in their order, margins below them, and what is said of the most exposed."""

from typing import Any

import numpy as np
import pandas as pd

from tests.artefacts.factories import made, make_entry

MARGINS = {1: (4.2, 0.0, 1.9), 2: (4.0, 0.0, 2.1), 3: (4.0, 0.0, -8.6), 99: (1.0, 1.0, 1.0)}


def rows() -> pd.DataFrame:
    found: list[dict[str, Any]] = []
    for place, (original, retrained, unlearned) in MARGINS.items():
        about = {"scenario": "small", "method": "ours", "exposed": "least" if place == 99 else "most", "place": place}
        margins = {"original": original, "retrained": retrained, "unlearned": unlearned}
        pixels = np.full((2, 2, 1), place / 100)
        found.append({**about, "of": 100, "sample": 7 * place, "label": place % 10, **margins, "pixels": pixels})
    return pd.DataFrame(found)


def test_pictures_stand_with_their_labels_above_their_margins_on_one_axis() -> None:
    result = made(make_entry("exposed"), rows())
    axes = np.array(result.figure.axes).reshape(4, 3)
    assert [[float(axis.images[0].get_array()[0, 0]) for axis in line if axis.images] for line in axes[::2]] == [
        *([0.01, 0.02, 0.03], [0.99])
    ]
    assert [axis.get_title() for axis in axes[0]] == ["label 1", "label 2", "label 3"]
    heads = [" ".join(axes[k][0].get_ylabel().split()) for k in (0, 2)]
    assert [head.partition(" exposed ")[0] for head in heads] == ["Most", "Least"]
    drawn = [float(line.get_xdata()[0]) for line in axes[1][1].lines if line.get_marker() in "soD"]
    assert drawn == [4.0, 0.0, 2.1]
    assert {axis.get_xlim() for axis in axes[1]} | {axes[3][0].get_xlim()} == {(-9.0, 5.0)}


def test_without_models_it_is_said() -> None:
    assert made(make_entry("exposed"), pd.DataFrame()).words == [["Too few models are left that did not diverge."]]
