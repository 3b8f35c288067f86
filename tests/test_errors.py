"""What a sentence says of a name that is not allowed."""

import pytest
from pydantic import BaseModel, ValidationError

from fu.errors import first_problem, nearest


def test_all_names_are_listed_unless_they_are_many() -> None:
    assert nearest("fig11", ["fig2", "fig1"]) == "; did you mean 'fig1'? allowed: fig1, fig2"
    assert nearest("x", []) == "; allowed: none"
    assert nearest("table", [f"figure{k}" for k in range(40)]).count("figure") == 40
    many = [f"table{k}" for k in range(10, 51)]
    assert nearest("tabel12", many) == (
        "; did you mean 'table12'? allowed: table12, table42, table41, table32, table31 and 36 more"
    )


class Settings(BaseModel, extra="forbid"):
    rounds: int = 1


@pytest.mark.parametrize(
    ("values", "words"),
    [({"rounds": "a\x1b[2J\u2028é"}, "got 'a\\x1b[2J\\u2028é'."), ({"\x07": 1}, "config: \\x07: unknown key")],
)
def test_control_characters_are_escaped(values: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError) as error:
        Settings.model_validate(values)
    assert words in first_problem(error.value, Settings, "config")
