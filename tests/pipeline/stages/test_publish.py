"""The stage that makes an artefact: of the choice, of what its provenance states."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fu.artefacts import table
from fu.contents import checksum
from fu.errors import UserError
from fu.pipeline.stages import publish
from fu.pipeline.stages.common import Options
from tests.artefacts.factories import CHOSEN
from tests.mistakes import contents
from tests.pipeline.results_folder import entry_of, make_results, sources_of


def outputs_in(folder: Path) -> dict[str, Path]:
    """Return the files written for every artefact."""
    return {name: folder / f"thing.{name}" for name in ("csv", "rows", "md", "html", "tex", "json")}


def test_published_numbers_that_were_edited_since_the_plan_are_refused(tmp_path: Path) -> None:
    numbers = tmp_path / "table8.csv"
    numbers.write_text("scenario,method,stage,metric,value\n")
    spec = publish.Spec(**dict(entry_of("table", published="0" * 64)))
    files = publish.Files(tmp_path, [numbers], **outputs_in(tmp_path / "made"), pdf=[], svg=[], png=[])
    with pytest.raises(UserError, match=r"table8\.csv: the file was edited after this job was planned; start the run"):
        publish.main(spec, files, Options())
    assert list(contents(tmp_path)) == ["table8.csv"]


def test_an_artefact_is_made_of_the_chosen_trial_and_states_each_file_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, numbers = make_results(tmp_path / "results"), tmp_path / "table8.csv"
    numbers.write_text("scenario,method,stage,metric,value\nsmall,ours,recovered,asr,0.25\n")
    make, given = table.make, list[Any]()

    def spied(frame: Any, entry: Any) -> Any:
        given.append((frame, entry))
        return make(frame, entry)

    monkeypatch.setattr(table, "make", spied)
    entry = entry_of("table", chosen={}, published=checksum(numbers))
    outputs = outputs_in(tmp_path)
    files = publish.Files(root, [numbers], **outputs, pdf=[], svg=[], png=[])
    old = [tmp_path / f"{name}.png" for name in ("thing", "other")]
    for file in old:  # of a version that drew tables, too
        file.touch()
    spec = publish.Spec(**dict(entry), sources=sources_of(entry))
    behind = publish.reads(spec, files)
    publish.main(spec, files, Options(code="the code"))
    assert [file.exists() for file in old] == [False, True]
    ((frame, shown),) = given
    assert shown.chosen == {"small": {"ours": CHOSEN}}
    assert set(frame["trial"].dropna()) == {"original", "scratch", CHOSEN}
    assert frame[frame["published"]]["value"].tolist() == [0.25]
    assert all(path.stat().st_size for path in outputs.values())
    rows = pd.read_csv(outputs["rows"])
    assert set(rows[rows["published"] == 0]["point"]) == {"original", "scratch", CHOSEN}
    assert rows[rows["published"] == 1]["value"].tolist() == [0.25]
    about = json.loads(outputs["json"].read_text())
    assert about["inputs"] == {str(path): checksum(path) for path in behind["results"]}
    assert list(about["costs"]) == [*map(str, behind["costs"])]
    assert about["code"] == "the code"
    assert about["seconds"] == round(sum(json.loads(Path(path).read_text())["seconds"] for path in about["costs"]), 3)


@pytest.mark.parametrize(
    ("kind", "pictures", "why"),
    [("curves", False, "a figure, which TABLE excludes"), ("table", True, "no figure; add TABLE = True")],
)
def test_a_kind_that_draws_what_it_did_not_say_is_refused_and_nothing_is_left(
    kind: str, pictures: bool, why: str, tmp_path: Path
) -> None:
    root, entry = make_results(tmp_path / "results"), entry_of(kind)
    pdf, svg, png = ([tmp_path / f"made/thing.{name}"] * pictures for name in ("pdf", "svg", "png"))
    spec = publish.Spec(**dict(entry), sources=sources_of(entry))
    with pytest.raises(UserError, match=rf"^{kind}\.py \(artefacts\): `make` returns {why} \(docs/adding-a-figure"):
        publish.main(
            spec, publish.Files(root, [], **outputs_in(tmp_path / "made"), pdf=pdf, svg=svg, png=png), Options()
        )
    assert not contents(tmp_path / "made")
