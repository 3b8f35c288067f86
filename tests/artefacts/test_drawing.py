"""What figures share: looks by method, names of settings, a legend that covers nothing."""

from pathlib import Path

import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from fu.artefacts.drawing import (
    DASHES,
    LOOKS,
    colour,
    looks,
    number,
    setting_name,
    show_shares,
)
from fu.artefacts.entry import Method
from fu.pipeline.settings.papers import files, read_yaml
from tests.artefacts.factories import make_scratch
from tests.mistakes import python


def methods(*names: str) -> list[Method]:
    return [make_scratch().model_copy(update={"name": name}) for name in names]


def test_a_method_has_one_colour_and_one_marker_in_all_papers() -> None:
    assert len(set(LOOKS.values())) == len(LOOKS)
    few, many = looks(methods("mode", "fedosd")), looks(methods("new", "fedosd.rates-free", "mode", "other"))
    for name, same in (("mode", "mode"), ("fedosd", "fedosd.rates-free")):
        assert (few[name].colour, few[name].marker) == (many[same].colour, many[same].marker)
    assert few["mode"].colour == colour(LOOKS["mode"][0])
    [alone] = looks(methods("mode.both")).values()
    assert (alone.colour, alone.marker) == (few["mode"].colour, few["mode"].marker)
    assert len({look.colour for look in many.values()}) == len({look.marker for look in many.values()}) == 4


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


def test_a_matplotlibrc_of_one_s_own_changes_no_figure(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text("lines.linewidth: 9\nbackend: svg\nsavefig.dpi: 30\n")
    program = (
        "from matplotlib import rcParams as found, rcParamsDefault\n"
        "assert found['lines.linewidth'] == 9\n"
        "from fu.artefacts.drawing import Figures, parameters\n"
        "ours = rcParamsDefault.copy()\n"
        "ours.update({'backend': 'agg', **parameters(Figures())})\n"
        "assert {n for n in ours if n != 'backend' and found[n] != ours[n]} == set()\n"
        "assert found['backend'].lower() == 'agg'\n"
    )
    status, output = python(tmp_path, "-c", program, MATPLOTLIBRC=str(tmp_path))
    assert status == 0, output


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
    ("value", "text"),
    [(1e-6, "1e-6"), (0.0005, "0.0005"), (0.025, "0.025"), (0.9983, "0.9983"), (3556, "3556"), ("uce", "uce")],
)
def test_a_value_of_a_setting_is_short(value: float | str, text: str) -> None:
    assert number(value) == text


def test_a_setting_has_a_name_or_is_shown_as_it_is() -> None:
    assert setting_name("recovery.lr") == "post-training rate"
    assert setting_name("unlearning.lr") == "unlearning rate"
    assert setting_name("params.other") == "params.other"
