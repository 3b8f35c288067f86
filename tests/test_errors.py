"""What a sentence says of a name that is not allowed."""

from fu.errors import nearest


def test_all_names_are_listed_unless_they_are_many() -> None:
    assert nearest("fig11", ["fig2", "fig1"]) == "; did you mean 'fig1'? allowed: fig1, fig2"
    assert nearest("x", []) == "; allowed: none"
    assert nearest("table", [f"figure{k}" for k in range(40)]).count("figure") == 40
    many = [f"table{k}" for k in range(10, 51)]
    assert nearest("tabel12", many) == (
        "; did you mean 'table12'? allowed: table12, table42, table41, table32, table31 and 36 more"
    )
