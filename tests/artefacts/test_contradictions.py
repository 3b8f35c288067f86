"""Where the paper prints one number twice and differently, the tables say so."""

from collections import defaultdict

import pandas as pd

from fu.pipeline.provenance.digest import ROOT
from fu.pipeline.settings.papers import read_yaml

CONTRADICTIONS = {
    ("cifar10-pat50", "fedosd", "recovered", "asr"): {
        **dict.fromkeys(("table1", "table4", "table7"), 0.016),
        "table5": 0.024,
    },
    ("cifar100-pat50", "fedosd", "recovered", "asr"): {"table5": 0.056, "table9": 0.025},
    ("mnist-pat20", "fupga", "unlearned", "r_acc"): {"table3": 0.535, "table8": 0.532},
}


def test_contradictions_of_the_paper_are_told_by_every_table_concerned() -> None:
    printed: dict[tuple[str, ...], dict[str, float]] = defaultdict(dict)
    for path in sorted((ROOT / "workflow/published/fedosd").glob("*.csv")):
        for *key, value in pd.read_csv(path).itertuples(index=False, name=None):
            printed[tuple(key)][path.stem] = value
    assert {key: found for key, found in printed.items() if len(set(found.values())) > 1} == CONTRADICTIONS
    artefacts = read_yaml(ROOT / "workflow/papers/fedosd.yaml")["artefacts"]
    told = {name for name, entry in artefacts.items() if "contradicts itself" in entry.get("note", "")}
    assert told == {name for found in CONTRADICTIONS.values() for name in found}
    for found in CONTRADICTIONS.values():
        for name in found:
            assert all(f"{value:.3f}".removeprefix("0") in artefacts[name]["note"] for value in found.values())
