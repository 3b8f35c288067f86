"""Several forgotten clients: verdicts counted, positions by hand, and one probe for all."""

import numpy as np
import pandas as pd
import pytest

from fu.artefacts import clients
from fu.artefacts.entry import Entry
from tests.artefacts.factories import scenario_of
from tests.artefacts.test_auditing import make_audit, make_rows

NAMES = ("a", "b")


def make_entry(names: tuple[str, ...] = NAMES, clients: int = 2) -> Entry:
    entry = make_audit(scenarios=(scenario_of(attacked=True),))
    laid = tuple(
        entry.scenarios[0].model_copy(update={"name": name, "at": {"client": number % clients, "share": 0.5}})
        for number, name in enumerate(names)
    )
    trials = [{"trials": dict.fromkeys(names, one.trials["small"])} for one in entry.methods]
    methods = tuple(one.model_copy(update=new) for one, new in zip(entry.methods, trials, strict=True))
    return entry.model_copy(update={"scenarios": laid, "methods": methods, "x": "client"})


def rows(p: dict[str, float] | None = None, **at: dict[str, float]) -> pd.DataFrame:
    """Return the frame of both scenarios; `at`: where a method's models lie there (0 to 100); `p`: in the second."""
    parts = [make_rows(p if name == "b" else None, at.get(name)).assign(scenario=name) for name in NAMES]
    frame = pd.concat(parts, ignore_index=True)
    return frame.assign(metric=frame["metric"].str.replace("line: held_out", "line: triggered"))


def test_positions_are_shares_of_the_way_from_retrained_to_original_models() -> None:
    entry, frame = make_entry(), rows(a={"good": 10}, b={"good": 30})
    cells = clients.cells_of(frame, entry)
    unlearned, retrained = cells["b", "good"]
    assert unlearned.mean() == pytest.approx(0.3)
    assert retrained.std() == pytest.approx(np.std([-1.5, -0.5, 0, 0, 0, 0, 0.5, 1.5]) / 100)
    good = next(one for one in entry.methods if one.name == "good")
    found = clients.over_clients(entry, good, cells)
    assert found is not None
    assert found.mean == pytest.approx(0.2)
    assert found.between == pytest.approx(0.2 / np.sqrt(2))


def test_the_probe_that_no_method_got_counts() -> None:
    entry, frame = make_entry(), rows(a={"good": 10})
    forgotten = frame[frame["metric"].str.startswith("line: triggered")].assign(
        metric=lambda rows: rows["metric"].str.replace("triggered", "forgotten"), value=lambda rows: rows["value"] + 50
    )
    cells = clients.cells_of(pd.concat([forgotten, frame], ignore_index=True), entry)
    assert cells["a", "good"][0].mean() == pytest.approx(0.1)


def test_partitions_of_one_client_are_no_further_clients() -> None:
    entry, frame = make_entry(clients=1), rows(a={"good": 10}, b={"good": 30})
    good = next(one for one in entry.methods if one.name == "good")
    found = clients.over_clients(entry, good, clients.cells_of(frame, entry))
    assert found is not None
    assert found.mean == pytest.approx(0.2)
    assert np.isnan(found.between)


def test_where_original_models_lie_among_retrained_ones_there_is_no_position() -> None:
    entry, frame = make_entry(), rows()
    original = (frame["metric"] == "line: triggered, original") & (frame["scenario"] == "b")
    frame.loc[original, "value"] = frame.loc[original, "value"] - 99
    cells = clients.cells_of(frame, entry)
    assert {scenario for scenario, _ in cells} == {"a"}
    good = next(one for one in entry.methods if one.name == "good")
    assert clients.over_clients(entry, good, cells) is None


def test_verdicts_of_all_scenarios_are_one_family_and_are_counted() -> None:
    result = clients.make(rows(b={"good": 9.8, "bad": 0}), make_entry())
    assert "the 8 tests of methods" in result.notes  # two scenarios, two audits, two methods
    assert result.panels
    table = result.panels[0][1].set_index(("", "Method")).to_dict("index")
    said = {str(name).rstrip("¹"): row["", "Verdicts"] for name, row in table.items()}
    assert said["Bad"] == "**found in 2**"
    assert said["Good"] == "bounded below 10% in 1, undecided in 1"
    frame = result.frame.drop_duplicates(["scenario", "method"]).set_index(["scenario", "method"])
    assert frame.loc[("b", "good"), "position"] == pytest.approx(0.098)
    assert frame.loc[("b", "good"), "client"] == 1
    few = clients.make(rows({"bad": 0.5}), make_entry()).panels
    assert few
    assert "found in 1, undecided in 1" in [*few[0][1]["", "Verdicts"]]  # bold where it is found in all
    assert frame.loc[("a", "bad"), "deviation"] == pytest.approx(
        np.std([-1.5, -0.5, 0, 0, 0, 0, 0.5, 1.5], ddof=1) / 100
    )


def test_how_many_models_did_not_diverge_stands_beside_their_position() -> None:
    frame = rows()
    gone = (frame["run"] == 7) & (frame["scenario"] == "b") & (frame["method"] == "good")
    of = (frame["metric"] == "repeats") & (frame["scenario"] == "b") & (frame["method"] == "good")
    frame.loc[of, "value"] = 7
    panels = clients.make(frame[~gone], make_entry().model_copy(update={"seeds": tuple(range(8))})).panels
    assert panels
    (good,) = (row for row in panels[1][1].to_dict("records") if str(row["", "Method"]).startswith("Good"))
    assert good["", "Small (a)"] == "bounded below 10%, 0.00"  # scenarios of one label are told by their names
    assert good["", "Small (b)"].endswith("(7 models)")
    assert good["", "Small (b)"].startswith("found")  # by its divergence


def test_one_client_gives_no_interval_over_clients() -> None:
    frame = rows()
    result = clients.make(frame[frame["scenario"] == "a"], make_entry(("a",)))
    assert "Over clients: no interval, as one client gives none." in result.notes


def test_the_heading_stays_within_the_picture_however_long_the_labels_are() -> None:
    entry = make_entry(tuple(f"scenario {number}" for number in range(8)), clients=8)
    long = [one.model_copy(update={"label": f"{one.label}, trained for longer than others"}) for one in entry.methods]
    frame = pd.concat([make_rows().assign(scenario=one.name) for one in entry.scenarios], ignore_index=True)
    frame = frame.assign(metric=frame["metric"].str.replace("line: held_out", "line: triggered"))
    figure = clients.make(frame, entry.model_copy(update={"methods": tuple(long)})).figure
    assert figure is not None
    figure.draw_without_rendering()
    [axis] = figure.axes
    # The heading's artist is the left one of three; its right end counts.
    assert axis._left_title.get_window_extent().x1 <= figure.bbox.x1  # type: ignore[attr-defined]
