"""What clients hold, as counts and as pictures."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fu.artefacts.entry import HELD
from fu.pipeline.stages import examples, holdings
from fu.pipeline.stages.common import Options
from tests.factories import CLASSES, MARK, make_partition
from tests.pipeline.results_folder import IMAGES, LABELS, PART, make_results


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return make_results(tmp_path)


def test_the_samples_of_each_client_are_counted_in_all_and_by_class(results: Path) -> None:
    part = make_partition((7, 12, 9), trigger=False, absent=[1])
    held, out = results / "toy/small/seed0/partition.npz", results / "out.csv"
    np.savez(held, **part.arrays())  # type: ignore[arg-type]
    holdings.main(holdings.Spec(dataset="digits"), holdings.Files(results / "data/digits.npz", held, out), Options())
    rows = [*csv.DictReader(out.open())]
    assert {row["client"] for row in rows} == {"0", "2"}
    assert {row["metric"] for row in rows} == {HELD}
    for client in (0, 2):
        counts = {row["label"]: int(row["value"]) for row in rows if int(row["client"]) == client}
        assert counts.pop("") == (7, 12, 9)[client]
        found = np.bincount(LABELS[part.train[client]], minlength=CLASSES)
        assert counts == {str(label): number for label, number in enumerate(found) if number}


def pictured(results: Path, dataset: str = "digits") -> dict[str, Any]:
    out = results / "out.npz"
    files = examples.Files(results / f"data/{dataset}.npz", results / "toy/small/seed0/partition.npz", out)
    examples.main(examples.Spec(dataset=dataset, attack="patch"), files, Options())
    with np.load(out) as arrays:
        return dict(arrays)


def test_examples_are_the_first_samples_of_the_first_forgotten_client_without_and_with_the_trigger(
    results: Path,
) -> None:
    found = pictured(results)
    assert found["sample"].tolist() == PART.train[1][: examples.NUMBER].tolist()
    assert set(found["client"]) == {1}
    for k, sample in enumerate(found["sample"]):
        label = int(LABELS[sample])
        assert (found["label"][k], found["label_with_trigger"][k]) == (label, (label + CLASSES // 2) % CLASSES)
        clean, marked = found["clean"][k], found["marked"][k]
        np.testing.assert_allclose(clean, IMAGES[sample] / 255, atol=1e-6)
        changed = np.argwhere((clean != marked).any(-1)).tolist()
        assert changed == [[17, 17], [18, 17], [18, 18]]  # the pattern, one pixel from the lower right corner
        assert np.argwhere(found["changed"][k]).tolist() == changed
        assert found["changed_pixels"][k] == 3
        np.testing.assert_allclose(marked[clean != marked], MARK * 0.334 + 0.195, rtol=1e-6)


def test_examples_have_the_pixels_of_the_archive_where_the_data_set_is_normalised(results: Path) -> None:
    images = np.random.default_rng(2).integers(0, 256, (43, 20, 20, 3), dtype=np.uint8)
    split = {"x_train": images[:40], "y_train": LABELS[:40], "x_test": images[40:], "y_test": LABELS[40:]}
    np.savez(results / "data/digits_rgb.npz", **split)  # type: ignore[arg-type]
    found = pictured(results, "digits_rgb")
    for sample, clean in zip(found["sample"], found["clean"], strict=True):
        np.testing.assert_allclose(clean, images[sample] / 255, atol=1e-6)
