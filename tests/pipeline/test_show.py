"""What `make show` and the end of `make reproduce` print: one sentence for every mistake, on every terminal."""

import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fu.errors import UserError, worded
from fu.pipeline.cli import show
from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance import cached, digest
from fu.pipeline.provenance.digest import ROOT
from fu.pipeline.settings.papers import read_paper, read_yaml
from tests.mistakes import sentence
from tests.test_gpus import put_tool

PAT50 = "fedosd/mnist-pat50/seed0"
LAST = [
    "All results so far on one page: results/smoke/index.html",
    "Next: python -m fu reproduce PRESET=smoke PAPERS=fedosd  (makes the remaining 28)",
]
POINTS = ("fedosd+lr0.02", "fedosd+lr0.005")  # of FedOSD in this scenario


def printed(command: str, **given: str) -> list[str]:
    """Return the lines that a command prints."""
    lines, wrong = show.lines_of(command, given)
    assert not wrong
    return [worded(line) for line in lines]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a config.yaml of one paper, in which it runs."""
    text = (ROOT / "config.yaml").read_text()
    every = "papers: [fedosd, safari, fats, tradeoffs, audit]"
    (tmp_path / "config.yaml").write_text(text.replace(every, "papers: [fedosd]"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "given", "sentence"),
    [
        ("show", {"CELL": "table8"}, "CELL: there is no result 'table8'; did you mean 'fedosd_table8'? (`make "),
        ("results", {"TARGETS": "fedosd_table7b"}, "there is no target 'fedosd_table7b'; did you mean 'fedosd_table7'"),
        ("results", {"PRESET": "smok"}, "config: preset: there is no preset 'smok'; did you mean 'smoke'? "),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("folder")
def test_a_mistake_is_one_sentence(command: str, given: dict[str, str], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        printed(command, **given)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


@pytest.fixture
def two_points(folder: Path) -> Path:
    """A config in which FedOSD has these two points in one scenario, and one in another."""
    grids = {"mnist-pat50": [0.02, 0.005], "mnist-pat20": [0.02]}
    scenarios = {name: {"methods": {"fedosd": {"grid": {"unlearning.lr": rates}}}} for name, rates in grids.items()}
    config = read_yaml(folder / "config.yaml")
    config["overrides"] = {"fedosd": {"scenarios": scenarios}}
    (folder / "config.yaml").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(
    ("name", "stage", "made"),
    [
        (f"results/smoke/{PAT50}/{POINTS[0]}.unlearned.csv", "unlearn", f"{PAT50}/{POINTS[0]}.unlearned.safetensors"),
        (
            *("fedosd/mnist-pat20/seed0/fedosd.evaluation", "evaluate"),
            "fedosd/mnist-pat20/seed0/fedosd+lr0.02.evaluation.csv",
        ),
        ("artefacts/fedosd/table8", "publish", "artefacts/fedosd/table8.csv"),
    ],
)
@pytest.mark.usefixtures("two_points")
def test_a_name_with_or_without_a_grid_is_one_command(
    name: str, stage: str, made: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = printed("show", CELL=name)
    assert f"results/smoke/{made}" in line.split()
    assert line.split()[1:3] == ["-m", f"fu.pipeline.stages.{stage}"]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (f"{PAT50}/fedosd.unlearned", [f"{PAT50}/{point}.unlearned" for point in (*POINTS, "fedosd+chosen")]),
        ("data", [f"data/{name}" for name in ("digits_shifted", "digits_rgb", "digits", "digits_rgb_20")]),
    ],
)
@pytest.mark.usefixtures("two_points")
def test_a_name_of_several_results_lists_them(name: str, lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert printed("show", CELL=name) == lines


@pytest.mark.usefixtures("folder")
def test_a_target_lists_what_it_is_made_of_and_its_own_name(capsys: pytest.CaptureFixture[str]) -> None:
    *read, own = printed("show", CELL="fedosd_fig7")
    pictures = [f"fedosd/{data}-pat50/seed0/examples" for data in ("cifar10", "cifar100", "fmnist", "mnist")]
    assert (sorted(read), own) == (pictures, "artefacts/fedosd/fig7")


@pytest.mark.parametrize(("selection", "mark"), [(json.dumps({"selected": POINTS[1]}), "  (chosen)"), ("[]", "")])
def test_the_chosen_point_is_marked(
    two_points: Path, selection: str, mark: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = two_points / "results/smoke/fedosd/mnist-pat50/fedosd.selected.json"
    path.parent.mkdir(parents=True)
    path.write_text(selection)
    first, second, chosen = printed("show", CELL=f"{PAT50}/fedosd.unlearned")
    assert (first, chosen) == (f"{PAT50}/{POINTS[0]}.unlearned", f"{PAT50}/fedosd+chosen.unlearned")
    assert second == f"{PAT50}/{POINTS[1]}.unlearned{mark}"


@pytest.mark.usefixtures("folder")
def test_without_a_name_all_artefacts_scenarios_and_methods_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    found = "\n".join(printed("show", PAPERS="fedosd")).splitlines()
    lines = [line.split(maxsplit=1) for line in found if line.startswith("  ")]
    paper = read_paper("fedosd")
    planned = Plan({**read_yaml(Path("config.yaml")), "papers": ["fedosd"]}).papers["fedosd"]
    assert lines == [
        *([f"fedosd_{name}", entry["title"]] for name, entry in paper["artefacts"].items()),
        *([f"fedosd/{name}", scenario.label] for name, scenario in planned.scenarios.items()),
        *([name, entry["label"]] for group in ("trainings", "methods") for name, entry in paper[group].items()),
    ]


def test_the_version_is_that_of_the_project_with_libraries_and_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(show, "git", lambda *words: "abc1234")
    monkeypatch.setattr(show, "edited", lambda: " M README.md")
    monkeypatch.setenv("PATH", str(tmp_path))
    number = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    own, libraries, device = show.version()
    assert (own, device) == (f"fu {number}, commit abc1234, edited", "no GPU")
    assert re.fullmatch(r"Python 3\.\d+\.\d+, torch 2\.13\.0\S*, snakemake 9\.\S+", libraries)
    put_tool(tmp_path, "GPU 0: NVIDIA L4 (UUID: GPU-a)\n", "23034\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert [*show.version()][2:] == ["GPU: NVIDIA L4, 23 GB", "GPU driver 550.54"]


def test_without_a_version_that_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show, "ROOT", tmp_path)
    monkeypatch.setattr(show, "PACKAGES", tmp_path)
    (path := tmp_path / "pyproject.toml").write_text("project = 1")
    words = f"{path}: the file is missing or damaged; restore it with `git checkout pyproject.toml`."
    assert sentence(lambda: printed("version")) == words


@pytest.mark.parametrize("command", ["keep", "decide"])
def test_what_needs_the_kept_runs_is_refused_outside_a_clone(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show, "PACKAGES", ROOT / "elsewhere")
    assert sentence(lambda: printed(command)) == f"{command}: needs a clone, which has the kept runs."


@pytest.mark.parametrize("stream", [io.TextIOWrapper(io.BytesIO(), "ascii"), None])
def test_a_terminal_may_lack_characters_and_a_reader_may_have_seen_enough(
    stream: io.TextIOWrapper | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(show, "version", lambda: ["| 0.1 ± 0.2 – |"])
    monkeypatch.setattr(sys, "stdout", stream)
    before = signal.getsignal(signal.SIGPIPE)
    try:
        assert show.run("version", {}) == 0
        assert signal.getsignal(signal.SIGPIPE) is signal.SIG_DFL  # ends where nobody reads, without an error
    finally:
        signal.signal(signal.SIGPIPE, before)
    if stream:
        stream.flush()
        assert stream.buffer.getvalue() == b"| 0.1 ? 0.2 ? |\n"  # type: ignore[attr-defined]


def test_a_plan_imports_no_torch_once_it_has_seen_the_models(folder: Path) -> None:
    cached._size.cache_clear()
    Plan({"preset": "smoke", "papers": ["safari"]})
    digest.remember()
    shutil.copytree(cached.CACHE.parent, folder / "results/.cache")
    given = {"PRESET": "smoke", "PAPERS": "safari"}
    program = f"import sys; from fu.pipeline.cli import show; show.run('plan', {given}); print('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert "safari_table1" in done.stdout
    assert done.stdout.splitlines()[-1] == "False"


def test_a_run_for_targets_ends_with_these_and_their_tables(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("table8", "table9", "fig8"):
        path = folder / f"results/smoke/artefacts/fedosd/{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\n\nAbout.\n\n## Panel\n\n| {name} |\n")
    model = folder / f"results/smoke/{PAT50}/original.trained.csv"
    model.parent.mkdir(parents=True)
    model.touch()
    heading = "Tables and figures (results/smoke/artefacts):"
    formats = {"fig8": "{md,csv,html,tex,pdf,svg,png}"}
    lines = {
        name: f"  results/smoke/artefacts/fedosd/{name}.{formats.get(name, '{md,csv,html,tex}')}   {entry['title']}"
        for name, entry in read_paper("fedosd")["artefacts"].items()
    }
    looks = {name: [f"# {name}", "About.", "## Panel", f"| {name} |"] for name in lines}
    for targets, expected in (
        (["fedosd_table9"], [lines["table9"], *looks["table9"]]),
        (["fedosd_fig8", "fedosd_table8"], [lines["fig8"], lines["table8"], *looks["fig8"], *looks["table8"]]),
        ([f"results/smoke/{PAT50}/original.trained.csv"], [f"  results/smoke/{PAT50}/original.trained.csv"]),
        (["fedosd_table1"], []),
        ([], [lines["table8"], lines["table9"], lines["fig8"], *looks["table8"]]),
    ):
        found = "\n".join(printed("results", TARGETS=" ".join(targets), PAPERS="fedosd")).splitlines()
        assert list(filter(None, found)) == [heading, *expected, *LAST]
    text = (folder / "results/smoke/index.html").read_text()
    assert "<li>fedosd_table8: table8.made.json is missing or damaged.</li>" in text


@pytest.mark.usefixtures("folder")
def test_what_is_next_follows_from_what_is_made_and_the_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    config = read_yaml(ROOT / "config.yaml")
    some = {**config, "papers": ["safari"]}
    assert show.next_step(Plan(some)) == "make reproduce PRESET=smoke PAPERS=safari  (makes the remaining 8)"
    monkeypatch.setattr(Path, "exists", lambda _: True)
    larger = "(estimates the cost of the next preset)"
    assert show.next_step(Plan(config)) == f"make plan PRESET=reduced  {larger}"
    assert show.next_step(Plan({**some, "preset": "reduced"})) == f"make plan PRESET=paper PAPERS=safari  {larger}"
    assert show.next_step(Plan({**some, "preset": "paper"})).startswith("make verify PRESET=paper PAPERS=safari  ")


def test_the_first_look_is_the_first_panel_of_the_first_table(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"# One\n\nAbout.\n\n## A\n\n|\xff|\n\n## B\n\n|b|\n")
    assert show.first_look(tmp_path / "a.md").startswith("# One\n\nAbout.\n\n## A\n\n|\ufffd|\n\n(all 2 panels, ")
    (tmp_path / "a.md").write_text("# One\n\nAbout.\n")
    assert show.first_look(tmp_path / "a.md") == "# One\n\nAbout.\n"


@pytest.mark.usefixtures("folder")
def test_a_command_finds_published_numbers_from_any_folder(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = printed("show", CELL="artefacts/fedosd/table8")
    words = shlex.split(line)
    assert Path(words[words.index("--published") + 1]).is_file()
