"""Images: each row says which data it shows, and whether they have the trigger."""

import numpy as np
import pandas as pd

from tests.artefacts.factories import made, make_entry, make_frame


def test_rows_name_their_data_and_pictures_their_labels() -> None:
    entry = make_entry("images")
    (small,) = entry.scenarios
    large = small.model_copy(update={"name": "large", "label": "Large", "dataset": "digits_rgb"})
    one = make_frame(entry)
    grey, coloured = np.linspace(0.25, 0.75, 64).reshape(8, 8), np.zeros((8, 8, 3))
    trigger = np.zeros((8, 8), bool)
    trigger[1, 2] = True
    one["changed"] = pd.Series([trigger] * 2)
    one["clean"] = pd.Series([grey[..., None]] * 2)
    other = one[:1].assign(scenario="large", clean=pd.Series([coloured]), marked=pd.Series([coloured + 1]))
    result = made(entry.model_copy(update={"scenarios": (small, large)}), pd.concat([one, other]))
    assert result.frame["dataset"].tolist() == ["digits", "digits", "digits_rgb"]
    axes = np.array(result.figure.axes).reshape(4, 2)
    labels = ["Small\nwithout trigger", "Small\nwith trigger", "Large\nwithout trigger", "Large\nwith trigger"]
    assert [axis.get_ylabel() for axis in axes[:, 0]] == labels
    titles = [[axis.get_title() for axis in line] for line in axes]
    assert titles == [["label 0", "label 1"], ["label 5", "label 6"], ["label 0", ""], ["label 5", ""]]
    assert np.array_equal(axes[0, 0].images[0].get_array(), grey)
    assert np.array_equal(axes[1, 0].images[0].get_array(), 1 - np.linspace(0, 1, 64).reshape(8, 8))
    assert axes[2, 0].images[0].get_array().shape == (8, 8, 3)
    assert axes[0, 0].images[0].get_clim() == (0, 1)
    assert [len(axis.patches) for axis in axes[:2, 0]] == [0, 1]  # what the trigger changes is outlined
    assert axes[1, 0].patches[0].get_xy() == (1.5, 0.5)
