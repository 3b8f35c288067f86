"""With the weights: only fresh heads count, and none is no answer."""

import numpy as np
import pytest

from fu.audits import line, weights
from fu.audits.models import FORGOTTEN, FRESH, TEST, TRAIN, WEIGHTS, Models
from tests.audits.synthetic import World, models_of

PROBES = (FORGOTTEN, TRAIN, TEST, *FRESH)


def models(left: float, number: int = 8) -> Models:
    """Return models that keep a share of the client in what fresh heads with the trigger say, and nothing elsewhere."""
    world = World(0)
    world.gap["members"] = world.gap["head_held_out"] = np.zeros(30)
    kinds = [
        {probe: world.margins(number, probe, share if probe in FRESH else 0) for probe in PROBES}
        for share in (left, 0.0, 1.0)
    ]
    return models_of(*kinds, probes=PROBES)


def test_what_fresh_heads_say_is_found_where_the_model_itself_says_nothing() -> None:
    kept, gone = weights.audit(models(1)), weights.audit(models(0))
    assert kept["weights_p"] < 0.01
    assert kept["weights_position"] == pytest.approx(1, abs=0.15)
    assert gone["weights_p"] > 0.05
    assert line.audit(models(1))["line_p"] > 0.05


def test_without_fresh_heads_there_is_no_number() -> None:
    assert weights.audit(World(0).models(4, 1)) == {}


def test_distances_are_those_to_other_repeats_in_units_of_those_among_retrained_models() -> None:
    """Retrained models lie at 0, 1, 2, 3, on average 5/3 apart; unlearned ones at 10, original ones at 12."""
    places = [np.array([[10.0]] * 4), np.arange(4.0)[:, None], np.array([[12.0]] * 4)]
    values = weights.audit(models_of(*places, probes=(FORGOTTEN, WEIGHTS)))
    assert values == pytest.approx({"weights_to_retrained": 8.5 / (5 / 3), "weights_to_original": 2 / (5 / 3)})
    own = weights.audit(models_of(places[1], places[1], places[2], probes=(FORGOTTEN, WEIGHTS)))
    assert own["weights_to_retrained"] == pytest.approx(1)  # one's own repeat does not count


def test_the_statistic_is_that_of_the_line_on_all_fresh_heads() -> None:
    assert weights.audit(models(0.3)) == line.measured(models(0.3), FRESH, "weights")
