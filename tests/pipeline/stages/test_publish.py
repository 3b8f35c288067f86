"""The stage that makes an artefact."""

from pathlib import Path

import pytest

from fu.errors import UserError
from fu.pipeline.stages import publish
from fu.pipeline.stages.common import Options
from tests.mistakes import contents
from tests.pipeline.plans import made


def test_published_numbers_that_were_edited_since_the_plan_are_refused(tmp_path: Path) -> None:
    numbers = tmp_path / "table8.csv"
    numbers.write_text("scenario,method,stage,metric,value\n")
    spec = made("smoke").job("publish", {"paper": "fedosd", "artefact": "table8"}).spec
    assert isinstance(spec, publish.Spec)
    outputs = {name: tmp_path / f"table8.{name}" for name in ("md", "html", "tex", "pdf", "png", "json")}
    files = publish.Files(tmp_path, [numbers], csv=tmp_path / "made.csv", **outputs)
    with pytest.raises(UserError, match=r"table8\.csv: the file was edited after this job was planned; run snakemake"):
        publish.main(spec, files, Options())
    assert list(contents(tmp_path)) == ["table8.csv"]
