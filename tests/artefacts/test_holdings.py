"""Who holds what: a matrix of clients and classes."""

from tests.artefacts.factories import cells, made, make_entry


def test_clients_count_from_one_and_hold_what_the_frame_says() -> None:
    result = made(make_entry("holdings"))
    assert cells(result.body) == [["Client", "0", "1", "all"], ["1", "5", "3", "8"], ["2", "0", "4", "4"]]
    [axis] = result.figure.axes
    assert [text.get_text() for text in axis.texts] == ["5", "3", "", "4"]
