"""What differs from a frozen list."""

from tests.frozen import differences


def test_what_is_gone_changed_or_new_is_named_and_what_has_another_name_is_not() -> None:
    before = {"a.csv": "1", "b.csv": "2", "c.csv": "3", "d.csv": "4"}
    now = {"a.csv": "1", "renamed.csv": "2", "c.csv": "5", "e.csv": "6"}
    assert differences(before, now) == ["changed: c.csv", "gone: d.csv", "new: e.csv"]
    assert differences(before, before) == []
