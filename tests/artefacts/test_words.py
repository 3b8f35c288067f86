"""Whether a backdoor took hold, and who forgot it, by the digits that are printed."""

import pytest

from fu.artefacts.words import forgets, took_hold


@pytest.mark.parametrize(("asr", "hold"), [(0.5, True), (0.4996, True), (0.4994, False)])
def test_a_backdoor_took_hold_by_the_printed_digits(asr: float, hold: bool) -> None:
    assert took_hold(asr) is hold


def test_a_method_forgets_by_the_printed_digits() -> None:
    assert forgets(0.0904, 0.0396)  # .090 and .040
    assert not forgets(0.0905001, 0.0404)  # .091 and .040
