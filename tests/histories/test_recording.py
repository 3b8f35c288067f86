"""All kinds of histories at once: recording them trains nobody again."""

from pathlib import Path

from fu.pipeline.provenance.catalogue import declared
from tests.factories import KINDS
from tests.federation.runs import count_calls, never, toy, train


def test_recording_trains_nobody_again(tmp_path: Path) -> None:
    def calls(*kinds: str) -> list[int]:
        task = toy(trained=False)
        seen = count_calls(task.federation.model)
        train(task, never(tmp_path), kinds=kinds)
        return seen

    free = [kind for kind in KINDS if not declared("histories", kind).get("TRAINS")]
    assert calls(*free) == calls() != []
