"""Text and owners in settings: what does not go together is told in one sentence."""

from typing import Any

import pytest

from fu.pipeline import estimates
from fu.pipeline.plan import Plan
from tests.mistakes import has, sentence
from tests.pipeline.configs import helped

NATURAL: dict[str, Any] = {"partition": {"name": "natural", "params": {"minimum": 10}}}
TOPICS: dict[str, Any] = {"data": {"dataset": "topics", **NATURAL}, "model": {"name": "lstm", "params": {"hidden": 8}}}
ATTACK = {"attack": {"name": "patch"}, "forget": {"clients": 1}}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"data": NATURAL}, "data: partition: natural needs a data set whose samples have owners; digits has none."),
        ({**TOPICS, "data": {**TOPICS["data"], "test": "clients"}}, "data: partition: natural needs test: global."),
        (
            {**TOPICS, "data": {**TOPICS["data"], "clients": 80}},
            "data: partition: 80 clients cannot be drawn from 79 owners of data.",
        ),
        ({**TOPICS, "data": {**TOPICS["data"], **ATTACK}}, "data: attack: marks images, but topics is text."),
        ({"data": TOPICS["data"]}, "model: logistic reads images, but topics holds text."),
        ({"model": TOPICS["model"]}, "model: lstm reads text, but digits holds images."),
        ({**TOPICS, "data": {**TOPICS["data"], "samples": 11_901}}, "samples: 11901 are more than the 11900 samples"),
    ],
)
@pytest.mark.usefixtures("with_toy")
def test_what_does_not_go_together_is_told_in_one_sentence(settings: dict[str, Any], words: str) -> None:
    has(sentence(lambda: Plan(helped(settings=settings))), words)


@pytest.mark.usefixtures("with_toy")
def test_text_and_its_owners_are_planned_and_counted_as_bytes() -> None:
    planned = Plan(helped(settings=TOPICS))
    trial = next(iter(planned.trials.values()))
    assert trial.settings.data.partition.name == "natural"
    assert estimates.size(trial.settings).parameters == 104 * 8 + 2 * (4 * 8 * 16 + 64) + 9 * 104
    without = estimates.BASE_MB + round(80 * 14_100 * 2 / 1e6)
    assert estimates.mem_mb(trial.settings) - without == pytest.approx(80 * 14_100 * 9 / 4 / 1e6, abs=1)
