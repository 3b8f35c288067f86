"""An artefact: made the same twice from a frame, opening no file, whatever diverged."""

import builtins
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fu import plugins
from fu.pipeline.provenance.catalogue import audited, chooses, declared, drawn, reads
from tests.artefacts.factories import ROUNDS, SEEDS, diverge, made, make_entry, make_frame, written
from tests.contract.names import plugins_of

KINDS = plugins_of("artefacts")
MEASURED = plugins_of("artefacts", lambda kind: {"evaluations", "traces"} & {*reads(kind)} and not audited(kind))
CHOOSING = plugins_of("artefacts", lambda kind: chooses(kind))
TRACED = plugins_of("artefacts", lambda kind: "traces" in reads(kind) and not audited(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_an_artefact_that_compares_predictions_says_against_what(kind: str) -> None:
    """A kind whose `INPUTS` name agreement, audits, exposed or relearning has `against` in `NEEDS`."""
    compares = {"agreement", "audits", "exposed", "relearning"}.intersection(reads(kind))
    assert not compares or "against" in declared("artefacts", kind).get("NEEDS", ())


@pytest.mark.parametrize("kind", KINDS)
def test_an_artefact_is_made_the_same_twice_with_preset_and_data_stated(kind: str, tmp_path: Path) -> None:
    """Two calls of `make` give the same files, byte for byte. They state preset and data and show no `nan`.

    `make` returns a figure unless the file says `TABLE = True`.
    """
    entry, files = make_entry(kind), []
    for folder in ("one", "two"):
        result = made(entry)
        assert len(result.frame) > 0
        files.append(written(result, entry, tmp_path / folder))
    for one, two in zip(*files, strict=True):
        assert one.read_bytes() == two.read_bytes()
    _, md, _, _, *pictures = files[0]
    text = md.read_text()
    assert text.startswith("# A thing\n\nWhat it shows.\n\nPreset smoke; ")
    assert ("data: digits; " in text) is bool(reads(kind))
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)
    assert bool(pictures) is drawn(kind, entry.marks)
    for file, begins in zip(pictures, (b"%PDF", b"<?xml", b"\x89PNG"), strict=bool(pictures)):
        assert file.read_bytes().startswith(begins)


@pytest.mark.parametrize("kind", KINDS)
def test_an_artefact_is_made_without_opening_a_file(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make` opens no file. All numbers come from the frame."""
    entry = make_entry(kind)
    frame = make_frame(entry)
    made(entry, frame)  # libraries may read their own files the first time

    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError(f"opens {arguments[0]}")

    for owner, name in ((builtins, "open"), (io, "open"), (Path, "open"), (pd, "read_csv"), (np, "load")):
        monkeypatch.setattr(owner, name, refuse)
    result = plugins.load("artefacts", kind).make(frame, entry)
    monkeypatch.undo()
    assert len(result.frame) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_an_artefact_leaves_its_frame_unchanged(kind: str) -> None:
    """`make` does not change the frame."""
    entry = make_entry(kind)
    frame = make_frame(entry)
    made(entry, frame)
    pd.testing.assert_frame_equal(frame, make_frame(entry))


@pytest.mark.parametrize("kind", MEASURED)
def test_rows_of_methods_that_the_paper_lacks_are_marked(kind: str) -> None:
    """A method that is not in the paper has a * after its label (`method.marked`)."""
    entry = make_entry(kind)
    assert re.search(r"Ours\S* \\?\*", made(entry).body)
    printed = tuple(method.model_copy(update={"in_paper": True}) for method in entry.methods)
    assert not re.search(r"Ours\S* \\?\*", made(entry.model_copy(update={"methods": printed})).body)


@pytest.mark.parametrize("kind", CHOOSING)
def test_only_the_chosen_trial_is_shown(kind: str) -> None:
    """If `points` is chosen, only the chosen point of a method's grid is shown."""
    alone, among = made(make_entry(kind, rates=(0.2,))).frame, made(make_entry(kind)).frame
    pd.testing.assert_frame_equal(among, alone)
    other = made(make_entry(kind, chosen={"small": {"ours": "ours+lr0.4"}})).frame
    pd.testing.assert_frame_equal(other, made(make_entry(kind, rates=(0.4,))).frame)
    assert not other.equals(alone)
    if {"method", "mean"} <= set(alone) and len(other) == len(alone):  # else one has numbers that the other lacks
        ours = alone["method"] == "ours"
        assert ours.any()
        assert (alone[ours]["mean"] != other[ours]["mean"]).all()
        assert (alone[~ours]["mean"] == other[~ours]["mean"]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_diverged_run_does_not_block_an_artefact(kind: str, tmp_path: Path) -> None:
    """A diverged run does not prevent the table or figure; made from evaluations, it says 'diverged'."""
    for seeds in ((0,), (0, 1)):
        entry = make_entry(kind, seeds=seeds)
        result = made(entry, diverge(make_frame(entry)))
        assert len(result.frame) > 0
        if "evaluations" in reads(kind):
            assert "diverged" in result.body
    written(result, entry, tmp_path)  # the pictures, too: one seed of two


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("kind", TRACED)
def test_a_run_that_diverged_early_shows_no_infinite_number(kind: str, rounds: int) -> None:
    """A run that diverged in its first rounds does not make any number infinite."""
    entry = make_entry(kind, metrics=("steps", "client_rounds"))
    frame = diverge(make_frame(entry), seeds=SEEDS)
    frame = frame[(frame["metric"] == "seconds") | (frame["round"] < rounds)]  # without post-training: one trace
    counted = frame["metric"] != "seconds"
    frame = frame.assign(
        value=frame["value"].where(~counted, frame["round"]), round=frame["round"].clip(upper=rounds - 1)
    )
    assert rounds <= len(ROUNDS["unlearned"])
    result = made(entry, frame)
    assert not np.isinf(result.frame.select_dtypes("number")).any(axis=None)
    if "mean" in result.frame:
        assert np.isfinite(result.frame["mean"].astype(float)).all()
