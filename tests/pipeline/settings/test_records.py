"""What a setting may be: a value of another kind, an unknown key, an impossible split are told in one sentence."""

import math
from pathlib import Path
from typing import Any

import pytest

from fu.pipeline.plan import estimates
from fu.pipeline.plan.plan import Plan
from fu.pipeline.settings.records import Config
from tests.mistakes import has, sentence
from tests.pipeline.configs import at, config, helped

pytestmark = pytest.mark.usefixtures("with_toy")
NATURAL: dict[str, Any] = {"partition": {"name": "natural", "params": {"minimum": 10}}}


def letters(**data: Any) -> dict[str, Any]:
    """Return settings of naturally federated text."""
    return {"data": {"dataset": "letters", **NATURAL, **data}, "model": {"name": "lstm", "params": {"hidden": 8}}}


REFUSED: list[tuple[Any, ...]] = [
    ("config/presett", "x", "config: presett: unknown key", "did you mean 'preset'?"),
    ("config/threads", True, "config: threads: Input should be a valid integer, got True"),
    ("config/seeds", [0, 0], "config: seeds: must differ from each other, got [0, 0]"),
    ("config/data_dir", "~nobody-of-this-name", "config: data_dir: cannot determine your home folder"),
    ("config/figures", {"style": "gone.mplstyle"},
     "config: figures: style:", "gone.mplstyle: cannot be read (No such file or directory)"),
    ("config/figures", {"fontsize": 7}, "config: figures.fontsize: unknown key", "'font'"),
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
    ("settings/data/attack/params/sise", 3, "data: attack: params.sise: unknown key", "did you mean 'size'?"),
    ("settings/data/attack/params/label_shift", 0.01, "data: attack: label_shift: 0.01 of 10 classes flips nothing"),
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
     "methods.fedosd.m5: params, trained_by and settings.unlearning are not allowed with unlearned_from; set them in"),
    ("methods/fedosd.m5/trained_by", "other", "methods.fedosd.m5: params, trained_by and settings.unlearning are not"),
    ("methods/fupga/params/clip", math.inf, "methods.fupga.params: numbers must be finite, got inf"),
    ("settings/data/partition/params/class_share", [0.5, math.nan], "params: numbers must be finite, got nan"),
    ("methods/fupga/params/random_models", True, "params.random_models: must not be true or false."),
    ("config/seeds", [2**63], "config: seeds.0: Input should be less than 9223372036854775808"),
    ("settings/training/with_replacement", True, "training.with_replacement: requires clients_per_round"),
    ("scenarios/iid/vary", {"client": {"setting": "data.forget.clients", "values": [[0], [-1]]}},
     "vary.client.values.1: must be a number, text, or a list of clients (counted from 0), got [-1]."),
    ("settings/evaluations", {"evaluation": []},
     "at least one evaluator is needed, and no evaluator may be in two evaluations"),
    ("settings/evaluations", {"evaluation": ["utility"], "recovered": ["cost"]},
     "evaluations: 'recovered' is reserved for a model's trace; choose another name"),
    ("settings/grid", {5: [0.1]}, "config: overrides: keys must be text, got 5."),
]  # fmt: skip
HELPED: list[tuple[Any, ...]] = [
    ("settings/training/clients_per_round", 4, "cannot draw 4 of the 3 clients that take part"),
    ("settings/training/local_steps", 3, "local_epochs, local_steps: set exactly one of them"),
    ("settings/training/history", ["update_norms"],
     "history: requires clients_per_round: null, as every client is recorded in every round"),
    ("settings/data/train_share", 0.8, "not allowed with split: official, which uses the data set's own test set"),
    ("settings/data", {"split": "merged", "test": "clients", "train_share": 0.8}, "server: requires split: official"),
    ("settings/data/forget", {"clients": [0]}, "forget.clients: must be a number, as seeds differ in who is absent"),
    ("scenarios/few/vary/s/values", [0, 4], "absent: cannot leave out 4 of 4 clients"),
    ("scenarios/few-server/vary/n/values", [5, 21], "server_used: 21 exceeds the 20 samples of the server"),
    ("settings", {"data": NATURAL},
     "data: partition: natural requires a data set whose samples have owners; those of digits have none."),
    ("settings", letters(test="clients"), "data: partition: natural requires test: global."),
    ("settings", letters(clients=41), "data: partition: 41 clients cannot be drawn from 40 owners of data."),
    ("settings", letters(attack={"name": "patch"}, forget={"clients": 1}),
     "data: attack: needs images, but letters has text."),
    ("settings", {"data": letters()["data"]}, "model: logistic needs images, but letters has text."),
    ("settings", {"model": letters()["model"]}, "model: lstm needs text, but digits has images."),
    ("settings", letters(samples=3_129), "samples: 3129 exceeds the 3128 samples"),
]  # fmt: skip


@pytest.mark.parametrize(("paper", "case"), [("toy", case) for case in REFUSED] + [("helped", case) for case in HELPED])
def test_a_wrong_setting_is_told_in_one_sentence(paper: str, case: tuple[Any, ...]) -> None:
    path, value, *words = case
    has(sentence(lambda: Plan(at(path, value, paper))), *words)


def test_text_and_its_owners_are_planned_and_counted_as_bytes() -> None:
    planned = Plan(helped(settings=letters()))
    trial = next(iter(planned.trials.values()))
    assert trial.settings.data.partition.name == "natural"
    assert estimates.size(trial.settings).parameters == 26 * 8 + 2 * (4 * 8 * 16 + 64) + 9 * 26
    without = estimates.BASE_MB + round(80 * 3_910 * 2 / 1e6)
    assert estimates.mem_mb(trial.settings) - without == pytest.approx(80 * 3_910 * 9 / 4 / 1e6, abs=1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("axes.grid True", "line 1: must be `name: value`, got 'axes.grid True'"),
        ("# mine\naxes.girdd: True", "line 2: matplotlib has no setting 'axes.girdd'; did you mean 'axes.grid'?"),
        ("axes.grid: perhaps", "'perhaps'"),
    ],
)
def test_a_malformed_style_is_told_in_one_sentence(text: str, words: str, tmp_path: Path) -> None:
    (style := tmp_path / "my.mplstyle").write_text(text)
    has(sentence(lambda: Plan(config(figures={"style": str(style)}))), "my.mplstyle: ", words)


def test_of_a_style_the_content_counts(tmp_path: Path) -> None:
    style = tmp_path / "my.mplstyle"
    style.write_text('\n# mine\naxes.grid : True # a grid\naxes.facecolor: "#eeeeee"  # light\n')
    planned = Plan(config(figures={"width": "3.25", "style": str(style)}))
    figures = planned.job("publish", {"paper": "toy", "artefact": "bars"}).spec.figures  # type: ignore[attr-defined]
    assert figures == planned.config.figures
    assert (figures.width, figures.font) == (3.25, 8)
    assert figures.style == {"axes.grid": "True", "axes.facecolor": "#eeeeee"}


def test_numbers_that_snakemake_passes_as_text_are_numbers() -> None:
    conflicts = {"settings": {"unlearning": {"conflicts": "true"}}}
    changed = {"settings": {"training": {"lr": "0.5"}}, "scenarios": {"pat": conflicts}}
    planned = Plan(config(seeds=["3", "4"], overrides={"toy": changed}))
    trial = planned.trials["toy/pat", "fupga+lr0.02"]
    assert planned.seeds("toy") == [3, 4]
    assert trial.settings.unlearning is not None
    assert (trial.settings.training.lr, trial.settings.unlearning.conflicts) == (0.5, True)


@pytest.mark.parametrize(
    ("given", "device"), [({}, "cpu"), ({"device": "cuda"}, "cuda"), ({"preset": "reduced"}, "auto")]
)
def test_only_the_brief_jobs_of_smoke_leave_a_gpu_alone(given: dict[str, str], device: str) -> None:
    assert Config.model_validate({"papers": ["fats"], **given}).device == device


@pytest.mark.parametrize(
    ("given", "cpu"), [({}, "portable"), ({"cpu": "native"}, "native"), ({"preset": "reduced"}, "native")]
)
def test_the_numbers_of_smoke_are_those_of_any_cpu(given: dict[str, str], cpu: str) -> None:
    assert Config.model_validate({"papers": ["fats"], **given}).cpu == cpu
