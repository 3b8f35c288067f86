"""What a person writes is drawn as it is written."""

from pathlib import Path

import pytest
from matplotlib.text import Text

from fu import plugins
from tests.artefacts.factories import make_entry, make_frame, written
from tests.contract.names import plugins_of

DOLLARS = r"$5, $x_{ and \frac{1$"


@pytest.mark.parametrize("kind", plugins_of("artefacts"))
def test_a_dollar_is_no_formula(kind: str, tmp_path: Path) -> None:
    plain = make_entry(kind)
    scenarios = tuple(found.model_copy(update={"label": DOLLARS}) for found in plain.scenarios)
    methods = tuple(found.model_copy(update={"label": f"{DOLLARS} {found.name}"}) for found in plain.methods)
    changed = {"title": DOLLARS, "caption": DOLLARS, "scenarios": scenarios, "methods": methods}
    entry = plain.model_copy(update=changed)
    result = plugins.load("artefacts", kind).make(make_frame(entry), entry)
    written(result, entry, tmp_path)
    texts = [text for text in result.figure.findobj(Text) if DOLLARS in text.get_text()]  # type: ignore[attr-defined]
    assert len(texts) > 1
    assert not any(text.get_parse_math() for text in texts)
