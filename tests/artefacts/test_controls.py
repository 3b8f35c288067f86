"""Which audit finds which control, and powers: by hand, on the numbers of `test_auditing`."""

from tests.artefacts.factories import made
from tests.artefacts.test_auditing import make_audit, make_rows


def test_findings_and_powers() -> None:
    entry = make_audit(kind="controls")
    (label, found), (other, power) = made(entry, make_rows({"tenth": 0.3})).panels or []
    assert (label, other) == ("Small: controls", "Small: power, by probe")
    assert [*found.columns.get_level_values(1)] == ["Control", "Against", "U-LiRA", "Line"]
    shown = {row[0]: row[1:] for row in found.itertuples(index=False, name=None)}
    assert [*shown] == ["None", "Tenth", "Half", "All", "Nothing"]
    assert shown["None"] == ("Again", "– (0.750)", "– (0.750)")
    assert shown["Tenth"] == ("Again", "– (0.750)", "– (0.600)")  # .15 is the seventh of ten, .25 the eighth
    assert shown["All"] == ("Again", "**found (0.004)**", "**found (0.003)**")
    assert power.to_numpy().tolist() == [["Tenth", "100%"], ["Half", "100%"], ["All", "100%"]]


def test_what_contradicts_an_audit_is_marked() -> None:
    wrong = {"none": 0.0005, "all": 0.3, "nothing": 0.3, "tenth": 0.0005}
    (_, found), _ = made(make_audit(kind="controls"), make_rows(wrong)).panels or []
    ulira = dict(zip(found.iloc[:, 0], found.iloc[:, 2], strict=True))
    assert {name for name, text in ulira.items() if text.strip("*").endswith("!")} == {"None", "All", "Nothing"}


def test_the_tidy_rows() -> None:
    frame = made(make_audit(kind="controls"), make_rows()).frame
    row = frame[(frame["method"] == "nothing") & (frame["audit"] == "ulira")].iloc[0].to_dict()
    assert (row["reference"], row["p"], row["found"], row["claimed"]) == ("again", 0.0035, True, True)
    assert frame[(frame["method"] == "half") & (frame["audit"] == "power: held_out")]["p"].tolist() == [1.0]
    assert not frame[(frame["method"] == "half") & (frame["audit"] == "ulira")]["claimed"].any()
