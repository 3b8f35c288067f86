"""A run's tables and figures are kept in the repository without its models, as they were made, or not at all."""

import gzip
from pathlib import Path

import yaml

from fu.pipeline.documents import kept
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
    [one] = kept.kept(folder.parents[1])
    assert (one.paper, one.name, one.wrong) == ("toy", "first", [])
    assert (one.about.preset, one.about.seeds) == ("toy", [0])
    assert one.about.config == {"preset": "toy", "papers": ["toy"]}
    assert one.about.scenarios["iid"] == kept.Label(label="IID", data="digits")
    artefacts = project.root / "results/toy/artefacts/toy"
    ends = {"numbers": ("csv", "md"), "bars": ("csv", "md", "png")}
    for name, several in ends.items():
        for end in several:
            assert (folder / f"{name}.{end}").read_bytes() == (artefacts / f"{name}.{end}").read_bytes()
        rows = (folder / f"{name}.rows.csv.gz").read_bytes()
        assert gzip.decompress(rows) == (artefacts / f"{name}.rows.csv").read_bytes()
    assert len([*folder.iterdir()]) == 1 + 7
    costs = {path: cost["seconds"] for name in ends for path, cost in provenance(artefacts, name).items()}
    assert one.about.hours == round(sum(costs.values()) / 3600, 3)

    before = (folder / "run.yaml").read_bytes()
    project.edit("config.yaml", "papers: [toy]", "papers: [toy]\nseeds: [0, 1, 2]")
    assert keep(project, *targets) == (
        2,
        "error: toy_numbers: made without seeds 1, 2; run `make reproduce PRESET=toy TARGETS=toy_numbers`.",
    )
    assert (folder / "run.yaml").read_bytes() == before
    assert [path.name for path in folder.parent.iterdir()] == ["first"]


def provenance(artefacts: Path, name: str) -> dict[str, dict[str, float]]:
    return dict(yaml.safe_load((artefacts / f"{name}.json").read_text())["costs"])
