"""A run's tables and figures are kept in the repository without its models, as they were made, or not at all."""

import gzip

from tests.workflow.project import Project

FOLDER = "docs/measurements/toy/first"


def keep(project: Project, *targets: str, run: str = "first") -> tuple[int, str]:
    """Return the status of `make keep` and its last line."""
    done = project.make("keep", f"RUN={run}", f"TARGETS={' '.join(targets)}")
    return done.returncode, done.stdout.splitlines()[-2 if done.returncode else -1]


def test_what_was_made_is_kept_and_what_was_not_is_refused(project: Project) -> None:
    targets = ("toy_numbers", "toy_bars")
    assert keep(project, *targets) == (
        0,
        f"{FOLDER}: kept 2 tables and figures with 1 seed; `make docs` lists the run.",
    )
    folder = project.root / FOLDER
    artefacts = project.root / "results/toy/artefacts/toy"
    ends = {"numbers": ("csv", "md"), "bars": ("csv", "md", "png")}
    for name, several in ends.items():
        for end in several:
            assert (folder / f"{name}.{end}").read_bytes() == (artefacts / f"{name}.{end}").read_bytes()
        rows = (folder / f"{name}.rows.csv.gz").read_bytes()
        assert gzip.decompress(rows) == (artefacts / f"{name}.rows.csv").read_bytes()

    before = (folder / "run.yaml").read_bytes()
    project.edit("config.yaml", "papers: [toy]", "papers: [toy]\nseeds: [0, 1, 2]")
    assert keep(project, *targets) == (
        2,
        "error: toy_numbers: made without seeds 1, 2; run `make reproduce PRESET=toy TARGETS=toy_numbers`.",
    )
    assert (folder / "run.yaml").read_bytes() == before
    assert [path.name for path in folder.parent.iterdir()] == ["first"]
