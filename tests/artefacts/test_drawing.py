"""What figures share: looks by method, names of settings, a legend that covers nothing."""

from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from fu.artefacts.drawing import (
    DASHES,
    LOOKS,
    colour,
    handles,
    looks,
    number,
    panels,
    setting_name,
    show_shares,
    styled,
)
from fu.artefacts.entry import Method
from fu.artefacts.style import Figures
from fu.pipeline.catalogue import available
from fu.pipeline.settings.papers import files, read_yaml
from tests.artefacts.factories import made, make_across, make_entry, make_frame, make_scratch

TABLES = ("bounds", "gains", "membership", "runtime", "sampling_table", "table")
DRAWN = [kind for kind in available("artefacts") if kind not in TABLES]


def methods(*names: str) -> list[Method]:
    return [make_scratch().model_copy(update={"name": name}) for name in names]


def texts_of(figure: Figure) -> list[Text]:
    return [artist for artist in figure.findobj(Text) if isinstance(artist, Text)]  # type: ignore[attr-defined]


def test_a_method_has_one_colour_and_one_marker_in_all_papers() -> None:
    assert len(set(LOOKS.values())) == len(LOOKS)
    few, many = looks(methods("mode", "fedosd")), looks(methods("new", "fedosd.rates-free", "mode", "other"))
    for name, same in (("mode", "mode"), ("fedosd", "fedosd.rates-free")):
        assert (few[name].colour, few[name].marker) == (many[same].colour, many[same].marker)
    assert few["mode"].colour == colour(LOOKS["mode"][0])
    [alone] = looks(methods("mode.both")).values()
    assert (alone.colour, alone.marker) == (few["mode"].colour, few["mode"].marker)
    assert len({look.colour for look in many.values()}) == len({look.marker for look in many.values()}) == 4


def test_colours_are_those_of_the_style(tmp_path: Path) -> None:
    (tmp_path / "my.mplstyle").write_text("axes.prop_cycle: cycler('color', ['111111', '222222'])\n")
    with styled(Figures.model_validate({"style": str(tmp_path / "my.mplstyle")})):
        found = looks(methods("fedosd", "mode", "ewcsga"))
    assert [look.colour for look in found.values()] == ["#111111", "#222222", "#111111"]


def test_shades_tell_variants_apart_where_there_are_others() -> None:
    found = looks(methods("fedavg", "safari.a", "safari.b", "safari.c"), shaded=True)
    assert {look.dash for look in found.values()} == {DASHES[0]}
    assert found["fedavg"].colour == colour(LOOKS["fedavg"][0])
    bright = [sum(found[f"safari.{name}"].colour[:3]) for name in "abc"]
    assert bright == sorted(bright, reverse=True)
    assert found["safari.b"].colour == pytest.approx(to_rgb(colour(LOOKS["safari"][0])), abs=0.01)
    assert {look.marker for look in found.values()} == {LOOKS["fedavg"][1], LOOKS["safari"][1]}
    alone = looks(methods("safari.a", "safari.b", "safari.c"), shaded=True)
    assert [look.colour for look in alone.values()] == [found[name].colour for name in alone]
    assert len({look.marker for look in alone.values()}) == 3


def test_variants_of_a_method_differ_by_dashes() -> None:
    found = looks(methods("fedosd", "mode", "fedosd.m5", "fedosd.m1"))
    assert [found[name].dash for name in found] == [DASHES[0], DASHES[0], DASHES[1], DASHES[2]]
    assert found["fedosd"].colour == found["fedosd.m5"].colour == found["fedosd.m1"].colour
    alone = looks(methods("fedosd", "fedosd.m5"))
    assert [look.colour for look in alone.values()] == [colour(0)] * 2
    assert [look.dash for look in alone.values()] == DASHES[:2]


@pytest.mark.parametrize("paper", files("papers"))
def test_no_picture_of_a_paper_shows_two_methods_alike(paper: str) -> None:
    content = read_yaml(files("papers")[paper])
    for name, artefact in content["artefacts"].items():
        shown = [*artefact.get("trainings", ()), *artefact.get("methods", ())]
        styles = looks(methods(*dict.fromkeys(shown)))
        of = {key.partition(".")[0]: (look.colour, look.marker) for key, look in styles.items()}
        assert len(set(of.values())) == len(of), name
        coloured = [look for key, look in of.items() if not isinstance(LOOKS.get(key, (0,))[0], str)]
        assert len({colour for colour, _ in coloured}) == len(coloured), name


def test_later_lines_are_thinner_and_markers_take_turns() -> None:
    found = [*looks(methods(*"abcde")).values()]
    assert all(one.width > two.width for one, two in pairwise(found))
    assert len({look.marker for look in found}) == 5
    assert all(one.line(1)["zorder"] < two.line(1)["zorder"] for one, two in pairwise(found))
    marked = [set(look.line(60)["markevery"]) for look in found]
    assert all(not one & two for one, two in pairwise(marked))
    assert [len(marks) for marks in marked] == [6] * 5
    assert found[0].line(3)["markevery"] == [0, 1, 2]
    assert found[0].line(3, first=1)["markevery"] == [1, 2]


def test_the_widest_lines_are_those_of_the_method_that_the_paper_proposes() -> None:
    found = looks(methods("mode", "fupga", "fedosd", "fedosd.m1"), own="fedosd")
    assert [found[name].width for name in ("fedosd", "fedosd.m1", "mode", "fupga")] == pytest.approx([2.2, 1.8, 1.4, 1])
    widths = [line.get_linewidth() for line in handles(methods("mode", "fedosd"), own="fedosd")]  # type: ignore[attr-defined]
    assert widths == pytest.approx([1, 2.2])


@pytest.mark.parametrize(
    ("values", "limits"),
    [
        (([0.85, 0.9], [0.95, 0.9]), (0.844, 0.956)),
        (([0.85, 0.9], [0.8, 0.9]), (-0.03, 1.03)),
        (([0.9, 0.9], []), (0.844, 0.956)),
        (([0.81, 0.82], []), (0.794, 0.906)),
        (([], []), (-0.03, 1.03)),
    ],
)
def test_shares_above_four_fifths_have_an_axis_that_fits_them_in_all_panels(
    values: tuple[list[float], list[float]], limits: tuple[float, float]
) -> None:
    axes = Figure().subplots(1, 2)
    for axis, shown in zip(axes, values, strict=True):
        if shown:
            axis.plot(range(len(shown)), shown)
    show_shares(axes)
    assert [axis.get_ylim() for axis in axes] == [pytest.approx(limits)] * 2


@pytest.mark.parametrize(
    ("count", "metrics", "width", "columns"),
    [
        (1, 1, 7, 1),
        (3, 1, 7, 3),
        (4, 1, 7, 2),
        (6, 1, 7, 3),
        (6, 1, 3.25, 2),
        (2, 3, 7, 3),
        (2, 3, 3.25, 2),
        (2, 3, 2, 1),
    ],
)
def test_panels_stand_side_by_side_as_far_as_there_is_room(
    count: int, metrics: int, width: float, columns: int
) -> None:
    with styled(Figures(width=float(width))):  # type: ignore[call-arg]
        figure, axes = panels(count, metrics, 2)
    assert [len(row) for row in axes] == [metrics] * count
    assert len(figure.axes) == count * metrics
    grid = figure.axes[0].get_gridspec()
    assert grid is not None
    assert grid.ncols == columns
    rows = count * -(-metrics // columns) if metrics > 1 else -(-count // columns)
    assert [*figure.get_size_inches()] == [width, 2 * rows]


def test_more_methods_than_colours_have_one_each() -> None:
    assert len(looks(methods(*"abcdefghijklmnop"))) == 16


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e-6, "1e-6"), (0.0005, "0.0005"), (0.025, "0.025"), (0.9983, "0.9983"), (3556, "3556"), ("uce", "uce")],
)
def test_a_value_of_a_setting_is_short(value: float | str, text: str) -> None:
    assert number(value) == text


def test_a_setting_has_a_name_or_is_shown_as_it_is() -> None:
    assert setting_name("recovery.lr") == "post-training rate"
    assert setting_name("unlearning.lr") == "unlearning rate"
    assert setting_name("params.other") == "params.other"


@pytest.mark.parametrize("kind", [kind for kind in DRAWN if made(make_entry(kind)).figure.legends])
def test_a_legend_covers_no_panel_and_fits_a_page(kind: str) -> None:
    figure: Figure = made(make_entry(kind)).figure
    figure.draw_without_rendering()
    [legend] = figure.legends
    below = legend.get_window_extent()
    assert figure.get_size_inches()[0] <= 7
    assert below.x0 >= 0
    assert below.x1 <= figure.bbox.x1
    for axis in figure.axes:
        assert axis.get_legend() is None
        tight = axis.get_tightbbox()
        assert tight is not None
        assert tight.y0 >= below.y1 - 1


@pytest.mark.parametrize("kind", DRAWN)
def test_no_text_is_smaller_than_seven_points(kind: str) -> None:
    figure = made(make_entry(kind)).figure
    figure.draw_without_rendering()
    texts = [text for text in texts_of(figure) if text.get_text()]
    assert len(texts) > 4
    assert min(float(text.get_fontsize()) for text in texts) >= 7


@pytest.mark.parametrize("kind", [kind for kind in DRAWN if kind != "losses"])
def test_every_scenario_is_named(kind: str) -> None:
    plain = make_entry(kind)
    (small,) = plain.scenarios
    entry = plain.model_copy(update={"scenarios": (small.model_copy(update={"label": "Other data"}),)})
    figure = made(entry).figure
    assert any("Other data" in text.get_text() for text in texts_of(figure))
    if kind != "images":
        assert "Other data" in made(entry).body


@pytest.mark.parametrize("columns", [1, 2, 3, 4])
def test_headings_of_neighbours_never_touch(columns: int) -> None:
    plain = make_entry("classes", metrics=("asr",))
    scenarios = (plain.scenarios[0].model_copy(update={"label": "CIFAR-100, Pat-50, CNN WITH DROPOUT * [on digits]"}),)
    names = [f"scratch.{k}" for k in range(columns)]
    entry = plain.model_copy(update={"scenarios": scenarios, "methods": tuple(methods(*names))})
    frame = make_frame(plain)
    frame = pd.concat([frame[frame["method"] == "scratch"].assign(method=name) for name in names])
    figure = made(entry, frame).figure
    figure.draw_without_rendering()
    titles = [text for text in texts_of(figure) if text.get_text().startswith("CIFAR-100")]
    assert len(titles) == columns
    boxes = sorted((text.get_window_extent() for text in titles), key=lambda box: box.x0)
    assert all(left.x1 + 2 < right.x0 for left, right in pairwise(boxes))
    assert boxes[-1].x1 <= figure.bbox.x1
    assert all("[on digits]" in text.get_text() for text in titles)


@pytest.mark.parametrize("metrics", [("asr",), ("asr", "r_acc", "r_acc_best")])
def test_a_heading_over_several_metrics_has_their_room(metrics: tuple[str, ...]) -> None:
    plain = make_across(metrics=metrics)
    label = "CIFAR-100, Pat-50, CNN WITH DROPOUT, FOUR LAYERS *"
    replaced = plain.scenarios[0].model_copy(update={"label": f"{label} [on digits]", "replaces": "CIFAR-100"})
    figure = made(plain.model_copy(update={"scenarios": (replaced,)})).figure
    figure.draw_without_rendering()
    assert figure.get_figwidth() == min(7, 3.4 * len(metrics))
    [title] = [text for text in texts_of(figure) if text.get_text().startswith("CIFAR-100")]
    assert " ".join(title.get_text().split()) == label  # the tag says which data these are
    assert ("\n" in title.get_text()) is (len(metrics) == 1)
    assert title.get_window_extent().x1 <= figure.bbox.x1
