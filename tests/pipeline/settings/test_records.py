"""What a setting may be: a value of another kind, an unknown key, an impossible split are told in one sentence."""

import math
from pathlib import Path
from typing import Any

import pytest

from fu.pipeline.plan.plan import Plan
from fu.pipeline.settings.records import Config
from tests.mistakes import has, sentence
from tests.pipeline.configs import at, config

CONFIGS: list[tuple[Any, ...]] = [
    ("config/presett", "x", "config: presett: unknown key", "did you mean 'preset'?"),
    ("settings/data/attack/params/sise", 3, "data: attack: params.sise: unknown key", "did you mean 'size'?"),
    ("config/threads", True, "config: threads: Input should be a valid integer, got True"),
    ("config/device", "gpu", "config: device: Input should be 'auto', 'cpu' or 'cuda', got 'gpu'"),
    ("config/seeds", [0, 0], "config: seeds: must differ from each other, got [0, 0]"),
    ("settings/data/attack/params/label_shift", 0.01, "data: attack: label_shift: 0.01 of 10 classes flips nothing"),
    ("config/preset", "../x", "preset: a name must be letters and digits, with '-', '_' or '.' inside and no '/'"),
    ("scenarios", {"../../x": {"label": "x"}},
     "scenarios: a name must be letters and digits, with '-', '_' or '.' inside and no '/', got '../../x'"),
    ("methods/original", {"label": "x", "plugin": "fedosd", "source": "s"},
     "methods: 'original' is reserved for the original model", "choose another name for the method"),
    ("settings/data/dataset", "mnits", "dataset: there is no datasets plug-in 'mnits'", "did you mean 'mnist'?"),
    ("scenarios/iid/settings/data", {"clients": 100_000, "samples": None}, "100000 clients cannot share 1797 samples"),
    ("settings/data/samples", 5000, "data: samples: 5000 exceeds the 1797 samples of digits"),
    ("settings/data/partition/name", "patt", "data: partition.name: there is no partitions plug-in 'patt'"),
    ("settings/data/partition", {"name": "pat", "params": {"class_share": 0.25}},
     "scenario iid: data: partition: class_share: 0.25 of 10 classes is not a whole number of classes"),
    ("settings/data/partition", {"name": "pat", "params": {"class_share": "1/0"}},
     "data: partition: params.class_share: must be a number or a fraction like 6/7, got '1/0'"),
    ("scenarios/pat/settings/data", {"clients": 3, "partition": {"params": {"class_share": 0.5}}},
     "scenario pat: data: partition: 3 clients with 5 of 10 classes each leave client 2 without data"),
    ("scenarios/iid/settings/data/partition/params/class_share", 0.2,
     "scenario iid: data: partition: params.class_share: unknown key; allowed: none"),
    ("settings/data/partition/name", "pat", "scenario iid: data: partition: params.class_share: is missing"),
    ("settings/data/forget/clients", 4, "data: forget.clients: cannot forget 4 of 4 clients; at least one must remain"),
    ("settings/data/forget/clients", [1, 1], "data: forget.clients: must be different clients from 0 to 3, got [1, 1]"),
    ("settings/data/forget/clients", 0, "must be a number of clients to draw (1 or more) or a list of clients"),
    ("settings/unlearning/lr", math.nan, "unlearning.lr: Input should be a finite number, got nan"),
    ("settings/training/lr", "1e-3",
     "training.lr: Input should be a valid number, got '1e-3'", "notation needs a decimal point: 1.0e-3"),
    ("scenarios/iid/settings", {"unlearning": {"rounds": 11}, "total_rounds": 10}, "11 exceeds total_rounds (10)"),
    ("", {"settings": {"unlearning": None}, "scenarios": {"iid": {"settings": {"unlearning": None}}}},
     "scenario iid: recovery: requires unlearning"),
    ("methods/fedosd.m5/plugin", "fedosd", "methods.fedosd.m5: set either plugin or unlearned_from, not both"),
    ("methods/fedosd.m5/params/loss", "ascent",
     "methods.fedosd.m5: params and settings.unlearning are not allowed with unlearned_from; set them in that method"),
    ("settings/data/attack/name", "pach", "data: attack.name: there is no attacks plug-in 'pach'"),
    ("scenarios/iid/vary", {"client": {"setting": "data.forget.clients", "values": [[0], [0]]}},
     "scenarios.iid.vary.client.values: must differ from each other"),
    ("scenarios/iid/vary", {"client": {"setting": "data.forget.clients", "values": [[0], [-1]]}},
     "vary.client.values.1: must be a number, text, or a list of clients (counted from 0), got [-1]."),
    ("settings/evaluations", {"evaluation": []},
     "at least one evaluator is needed, and no evaluator may be in two evaluations"),
    ("settings/evaluations", {"evaluation": ["utility"], "recovered": ["cost"]},
     "evaluations: 'recovered' is reserved for a model's trace; choose another name"),
    ("settings/grid", {5: [0.1]}, "grid: keys must be text, got 5."),
    ("config/data_dir", "~nobody-of-this-name", "config: data_dir: cannot determine your home folder"),
    ("config/figures", {"fontsize": 7}, "config: figures.fontsize: unknown key", "'font'"),
]  # fmt: skip


@pytest.mark.parametrize("case", CONFIGS, ids=[case[0] for case in CONFIGS])
@pytest.mark.usefixtures("with_toy")
def test_a_malformed_config_is_told_in_one_sentence(case: tuple[Any, ...]) -> None:
    path, value, *words = case
    has(sentence(lambda: Plan(at(path, value))), *words)


STYLES = {
    "no such file": (None, ("config: figures: style:", "my.mplstyle: cannot be read (No such file or directory)")),
    "no line of a style": ("axes.grid True", ("my.mplstyle: line 1: must be `name: value`, got 'axes.grid True'",)),
    "a setting that matplotlib lacks": (
        "# mine\naxes.girdd: True",
        ("my.mplstyle: line 2: matplotlib has no setting 'axes.girdd'; did you mean 'axes.grid'?",),
    ),
    "a value that is none": ("axes.grid: perhaps", ("my.mplstyle: line 1:", "'perhaps'")),
}


@pytest.mark.parametrize(("text", "words"), STYLES.values(), ids=STYLES)
@pytest.mark.usefixtures("with_toy")
def test_a_malformed_style_is_told_in_one_sentence(text: str | None, words: tuple[str, ...], tmp_path: Path) -> None:
    style = tmp_path / "my.mplstyle"
    if text is not None:
        style.write_text(text)
    has(sentence(lambda: Plan(config(figures={"style": str(style)}))), *words)


@pytest.mark.usefixtures("with_toy")
def test_of_a_style_the_content_counts(tmp_path: Path) -> None:
    style = tmp_path / "my.mplstyle"
    style.write_text('\n# mine\naxes.grid : True # a grid\naxes.facecolor: "#eeeeee"  # light\n')
    planned = Plan(config(figures={"width": "3.25", "style": str(style)}))
    figures = planned.job("publish", {"paper": "toy", "artefact": "bars"}).spec.figures  # type: ignore[attr-defined]
    assert figures == planned.config.figures
    assert (figures.width, figures.font) == (3.25, 8)
    assert figures.style == {"axes.grid": "True", "axes.facecolor": "#eeeeee"}


@pytest.mark.usefixtures("with_toy")
def test_numbers_that_snakemake_passes_as_text_are_numbers() -> None:
    conflicts = {"settings": {"unlearning": {"conflicts": "true"}}}
    changed = {"settings": {"training": {"lr": "0.5"}}, "scenarios": {"pat": conflicts}}
    planned = Plan(config(seeds=["3", "4"], overrides={"toy": changed}))
    trial = planned.trials["toy/pat", "fupga+lr0.02"]
    assert planned.seeds("toy") == [3, 4]
    assert trial.settings.unlearning is not None
    assert (trial.settings.training.lr, trial.settings.unlearning.conflicts) == (0.5, True)


@pytest.mark.parametrize(
    ("preset", "device", "expected"),
    [("smoke", "auto", "cpu"), ("smoke", "cuda", "cuda"), ("reduced", "auto", "auto"), ("paper", "cpu", "cpu")],
)
def test_only_the_brief_jobs_of_smoke_leave_a_gpu_alone(preset: str, device: str, expected: str) -> None:
    assert Config.model_validate({"preset": preset, "papers": ["fats"], "device": device}).device == expected
    assert Config.model_validate({"papers": ["fats"]}).device == "cpu"  # both by default
