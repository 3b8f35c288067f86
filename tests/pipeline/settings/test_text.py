"""Text and owners in settings: what does not go together is told in one sentence."""

from typing import Any

import pytest

from fu.pipeline.plan import estimates
from fu.pipeline.plan.plan import Plan
from tests.mistakes import has, sentence
from tests.pipeline.configs import helped

NATURAL: dict[str, Any] = {"partition": {"name": "natural", "params": {"minimum": 10}}}
LETTERS: dict[str, Any] = {
    "data": {"dataset": "letters", **NATURAL},
    "model": {"name": "lstm", "params": {"hidden": 8}},
}
ATTACK = {"attack": {"name": "patch"}, "forget": {"clients": 1}}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"data": NATURAL},
            "data: partition: natural requires a data set whose samples have owners; those of digits have none.",
        ),
        (
            {**LETTERS, "data": {**LETTERS["data"], "test": "clients"}},
            "data: partition: natural requires test: global.",
        ),
        (
            {**LETTERS, "data": {**LETTERS["data"], "clients": 41}},
            "data: partition: 41 clients cannot be drawn from 40 owners of data.",
        ),
        ({**LETTERS, "data": {**LETTERS["data"], **ATTACK}}, "data: attack: needs images, but letters has text."),
        ({"data": LETTERS["data"]}, "model: logistic needs images, but letters has text."),
        ({"model": LETTERS["model"]}, "model: lstm needs text, but digits has images."),
        ({**LETTERS, "data": {**LETTERS["data"], "samples": 3_129}}, "samples: 3129 exceeds the 3128 samples"),
    ],
)
@pytest.mark.usefixtures("with_toy")
def test_what_does_not_go_together_is_told_in_one_sentence(settings: dict[str, Any], words: str) -> None:
    has(sentence(lambda: Plan(helped(settings=settings))), words)


@pytest.mark.usefixtures("with_toy")
def test_text_and_its_owners_are_planned_and_counted_as_bytes() -> None:
    planned = Plan(helped(settings=LETTERS))
    trial = next(iter(planned.trials.values()))
    assert trial.settings.data.partition.name == "natural"
    assert estimates.size(trial.settings).parameters == 26 * 8 + 2 * (4 * 8 * 16 + 64) + 9 * 26
    without = estimates.BASE_MB + round(80 * 3_910 * 2 / 1e6)
    assert estimates.mem_mb(trial.settings) - without == pytest.approx(80 * 3_910 * 9 / 4 / 1e6, abs=1)
