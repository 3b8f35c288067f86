"""A finished run, handed over as a bundle: checked, compared, unpacked where it was never computed."""

import re
from pathlib import Path
from zipfile import ZipFile

from fu import results
from fu.pipeline.provenance.paths import OUTPUTS, PICTURES
from tests.workflow.project import Project, with_toy

FILES = 8 * (len(OUTPUTS["publish"]) + 1) - 3 * len(PICTURES)  # eight artefacts with certificates, three of them tables


def test_a_bundle_of_a_run_is_right_equals_the_run_and_is_unpacked_as_what_the_run_has_left(
    project: Project, tmp_path: Path
) -> None:
    [said] = project.show("bundle").splitlines()  # nothing is left out, and all of it is what today's code would make
    bundled = project.root / said.partition(": ")[0]
    done = project.make("verify", f"BUNDLE={bundled}")
    assert done.returncode == 0, done.stdout
    assert ": 8 tables and figures at preset 'toy'; no file was changed" in done.stdout
    with ZipFile(bundled) as file:
        names = file.namelist()
        there = with_toy(tmp_path / "there")
        file.extractall(there.root)
    assert not [name for name in names if name.endswith((".safetensors", ".npz"))]
    assert len([name for name in names if "/artefacts/" in name]) == FILES
    there.expect(set())
    table = results.artefact("toy", "numbers", root=there.root / "results")
    assert len(table) == len(results.artefact("toy", "numbers", root=project.root / "results"))

    page = there.root / "results/toy/index.html"
    linked = [name for name in names if f'href="{name.removeprefix("results/toy/")}"' in page.read_text()]
    assert len(linked) == FILES

    same = project.make("compare", f"A={bundled}", f"B={there.root}/results/toy")
    assert same.returncode == 0, same.stdout
    assert re.search(r"^Numbers: all \d\d+ are equal$", same.stdout, re.M)
