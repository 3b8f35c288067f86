"""What a setting may be: a value of another kind, an unknown key, an impossible split are told in one sentence."""

import datetime
import math
from pathlib import Path
from typing import Any

import pytest

from fu.pipeline.plan import Plan
from tests.mistakes import has, sentence
from tests.pipeline.configs import (
    NAME_RULE,
    artefact,
    attack,
    config,
    data,
    iid,
    method,
    pat,
    scenario,
    settings,
    toy,
)

NAN, INFINITE = math.nan, math.inf
LOOP: list[Any] = []
LOOP.append(LOOP)
TOY = "config.yaml: overrides.toy"
OUTSIDE = {"label": "x", "plugin": "fedosd", "source": "s"}

CONFIGS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "unknown key of the config": (
        config(presett="x"),
        (
            "config: presett: unknown key",
            "did you mean 'preset'?",
            "allowed: choose_on, data_dir, device, figures, overrides",
        ),
    ),
    "unknown key of a paper": (
        toy(titel="x"),
        (f"{TOY}: titel: unknown key", "did you mean 'title'?"),
    ),
    "unknown key of a method": (
        method("fedosd", in_papr=True),
        (f"{TOY}: methods.fedosd.in_papr: unknown key", "did you mean 'in_paper'?"),
    ),
    "unknown key deep in the settings": (
        attack(sise=3),
        (
            "data: attack: params.sise: unknown key",
            "did you mean 'size'?",
            "allowed: label_shift, margin, share, size, value",
        ),
    ),
    "threads as a word": (config(threads="two"), ("config: threads: Input should be a valid integer, got 'two'",)),
    "threads as a truth value": (config(threads=True), ("config: threads: Input should be a valid integer, got True",)),
    "no thread": (config(threads=0), ("config: threads: Input should be greater than 0, got 0",)),
    "unknown device": (config(device="gpu"), ("config: device: Input should be 'auto', 'cpu' or 'cuda', got 'gpu'",)),
    "no paper": (config(papers=[]), ("config: papers: List should have at least 1 item",)),
    "papers as a number": (config(papers=5), ("config: papers: Input should be a valid list, got 5",)),
    "a negative seed": (config(seeds=[-1]), ("config: seeds.0: Input should be greater than or equal to 0, got -1",)),
    "one seed twice": (config(seeds=[0, 0]), ("config: seeds: must differ from each other, got [0, 0]",)),
    "a label shift that flips nothing": (
        attack(label_shift=0.01),
        ("data: attack: label_shift: 0.01 of 10 classes flips nothing",),
    ),
    "no seed": (config(seeds=[]), ("config: seeds: List should have at least 1 item",)),
    "overrides as a list": (config(overrides=[1]), ("config: overrides: Input should be a valid dictionary, got [1]",)),
    "preset outside its folder": (config(preset="../x"), (f"config: preset: {NAME_RULE}, got '../x'",)),
    "paper outside its folder": (config(papers=["../x"]), (f"config: papers.0: {NAME_RULE}, got '../x'",)),
    "scenario outside results": (
        toy(scenarios={"../../x": {"label": "x"}}),
        (f"{TOY}: scenarios: {NAME_RULE}, got '../../x'",),
    ),
    "method outside results": (
        method("../x", **OUTSIDE),
        (f"{TOY}: methods: {NAME_RULE}, got '../x'",),
    ),
    "artefact outside results": (
        toy(artefacts={"/etc/x": {"kind": "table", "title": "a", "caption": "b"}}),
        (f"{TOY}: artefacts: {NAME_RULE}, got '/etc/x'",),
    ),
    "a method named as the original model": (
        method("original", **OUTSIDE),
        (f"{TOY}: methods: 'original' is the name of the original model", "a method needs another"),
    ),
    "unknown data set": (
        data(dataset="mnits"),
        (
            "dataset: there is no datasets plug-in 'mnits'",
            "did you mean 'mnist'?",
            "allowed: cifar10, cifar100, digits",
        ),
    ),
    "data set as a list": (data(dataset=["mnist"]), ("data.dataset: Input should be a valid string, got ['mnist']",)),
    "a client and a half": (iid(data={"clients": 1.5}), ("data.clients: Input should be a valid integer, got 1.5",)),
    "no client": (iid(data={"clients": 0}), ("data.clients: Input should be greater than 0, got 0",)),
    "more clients than samples": (
        iid(data={"clients": 100_000, "samples": None}),
        ("clients: 100000 clients cannot share 1797 samples",),
    ),
    "more clients than samples in use": (
        iid(data={"clients": 300, "samples": 500}),
        ("clients: 300 clients cannot share 500 samples",),
    ),
    "more samples than the data set has": (
        data(samples=5000),
        ("data: samples: 5000 are more than the 1797 samples of digits",),
    ),
    "no sample in use": (data(samples=0), ("data.samples: Input should be greater than 0, got 0",)),
    "a sample and a half": (data(samples=1.5), ("data.samples: Input should be a valid integer, got 1.5",)),
    "unknown partition": (
        data(partition={"name": "patt"}),
        (
            "data: partition.name: there is no partitions plug-in 'patt'",
            "did you mean 'pat'? allowed: balanced_classes, dirichlet, iid, listed, natural, pat.",
        ),
    ),
    "a share of all classes above 1": (
        pat(1.2),
        ("data: partition: params.class_share: Input should be less than or equal to 1, got 1.2",),
    ),
    "no class": (pat(0), ("data: partition: params.class_share: Input should be greater than 0, got 0",)),
    "two and a half classes": (
        pat(0.25),
        ("scenario iid: data: partition: class_share: 0.25 of 10 classes is not a whole number of classes",),
    ),
    "less than one class": (pat("1/100"), ("class_share: 0.01 of 10 classes is not a whole number of classes",)),
    "a class share that divides by zero": (
        pat("1/0"),
        ("data: partition: params.class_share: must be a number or a fraction like 6/7, got '1/0'",),
    ),
    "classes per client, as the share was once given": (
        scenario("pat", settings={"data": {"partition": {"params": {"classes_per_client": 2}}}}),
        ("data: partition: params.classes_per_client: unknown key", "did you mean 'class_share'?"),
    ),
    "a client left empty": (
        toy(scenarios={"pat": {"settings": {"data": {"clients": 3, "partition": {"params": {"class_share": 0.5}}}}}}),
        (
            "scenario pat: data: partition: 3 clients with 5 of 10 classes each leave client 2 without data",
            "allowed is",
        ),
    ),
    "a class share of an IID partition": (
        scenario("iid", settings={"data": {"partition": {"params": {"class_share": 0.2}}}}),
        ("scenario iid: data: partition: params.class_share: unknown key; allowed: none",),
    ),
    "a Pat partition without its class share": (
        data(partition={"name": "pat"}),
        ("scenario iid: data: partition: params.class_share: is missing",),
    ),
    "more forgotten clients than clients": (
        data(forget={"clients": 5}),
        ("data: forget.clients: 5 of 4 clients cannot be forgotten; one must remain",),
    ),
    "all clients forgotten": (
        data(forget={"clients": 4}),
        ("data: forget.clients: 4 of 4 clients cannot be forgotten; one must remain",),
    ),
    "a forgotten client that does not exist": (
        data(forget={"clients": [12]}),
        ("data: forget.clients: [12] must be different clients from 0 to 3",),
    ),
    "a client forgotten twice": (
        data(forget={"clients": [1, 1]}),
        ("data: forget.clients: [1, 1] must be different clients from 0 to 3",),
    ),
    "nobody forgotten": (
        data(forget={"clients": 0}),
        ("data.forget.clients: must be the number of clients to draw (1 or more), or a list of clients", "got 0"),
    ),
    "forgotten clients as a word": (
        data(forget={"clients": "all"}),
        ("data.forget.clients: must be the number of clients to draw (1 or more), or a list of clients", "got 'all'"),
    ),
    "a share that divides by zero": (
        data(train_share="6/0"),
        ("data.train_share: must be a number or a fraction like 6/7, got '6/0'",),
    ),
    "all data for training": (data(train_share=1), ("data.train_share: Input should be less than 1, got 1",)),
    "all training data for validation": (
        data(validation_share=1),
        ("data.validation_share: Input should be less than 1, got 1",),
    ),
    "a share that is no number": (
        data(train_share=NAN),
        ("config: overrides.toy.settings.data.train_share: must be a finite number, got nan",),
    ),
    "a trigger larger than the image": (
        attack(size=40),
        ("data: attack: a patch of 40 does not fit 20 pixels",),
    ),
    "negative rate": (
        settings(training={"lr": -0.1}),
        ("training.lr: Input should be greater than 0, got -0.1",),
    ),
    "NaN rate": (settings(unlearning={"lr": NAN}), ("unlearning.lr: must be a finite number, got nan",)),
    "infinite rate": (settings(recovery={"lr": INFINITE}), ("recovery.lr: must be a finite number, got inf",)),
    "a rate that YAML reads as text": (
        settings(training={"lr": "1e-3"}),
        ("training.lr: Input should be a valid number, got '1e-3'", "notation needs a decimal point: 1.0e-3"),
    ),
    "a decay that grows": (
        settings(training={"lr_decay": 1.1}),
        ("training.lr_decay: Input should be less than or equal to 1, got 1.1",),
    ),
    "unlearning rounds above total rounds": (
        iid(unlearning={"rounds": 11}, total_rounds=10),
        ("unlearning.rounds: 11 rounds exceed total_rounds, 10",),
    ),
    "a rate that no phase states": (
        settings(training={"lr": None}),
        ("scenario iid: training.lr: Input should be a valid number, got None",),
    ),
    "a phase without settings": (
        toy(settings={"unlearning": None}, scenarios={"iid": {"settings": {"unlearning": None}}}),
        ("scenario iid: recovery: needs unlearning before it.",),
    ),
    "a date as hyper-parameter": (
        method("ewcsga", params={"lambda": datetime.date(2020, 1, 1)}),
        ("methods.ewcsga.params.lambda: must be a number, text, true, false, null, a list or a mapping, got date",),
    ),
    "an infinite hyper-parameter": (
        method("ewcsga", params={"lambda": INFINITE}),
        ("config: overrides.toy.methods.ewcsga.params.lambda: must be a finite number, got inf",),
    ),
    "an unknown stage of an artefact": (
        artefact("numbers", stages=["unlearned", "recoverd"]),
        ("artefacts.numbers.stages.1: Input should be 'original', 'unlearned' or 'recovered', got 'recoverd'",),
    ),
    "an artefact of no stage": (
        artefact("numbers", stages=[]),
        ("artefacts.numbers.stages: List should have at least 1 item",),
    ),
    "a base that is a number": (
        scenario("iid", base=5),
        ("scenarios.iid.base: Input should be a valid string, got 5",),
    ),
    "a method with a plug-in and another's unlearned model": (
        method("fedosd.m5", plugin="fedosd"),
        (f"{TOY}: methods.fedosd.m5: needs either plugin or unlearned_from, not both",),
    ),
    "a method with neither": (
        method("fedosd.m5", unlearned_from=None),
        (f"{TOY}: methods.fedosd.m5: needs either plugin or unlearned_from, not both",),
    ),
    "hyper-parameters where nothing is unlearned": (
        method("fedosd.m5", params={"loss": "ascent"}),
        ("methods.fedosd.m5: with unlearned_from, params and settings.unlearning must be set in the other method",),
    ),
    "unlearning rounds where nothing is unlearned": (
        method("fedosd.m5", settings={"unlearning": {"rounds": 2}}),
        ("methods.fedosd.m5: with unlearned_from, params and settings.unlearning must be set in the other method",),
    ),
    "unknown post-training": (
        method("fedosd", post_training="before"),
        ("methods.fedosd.post_training: Input should be 'after', 'none' or 'own', got 'before'",),
    ),
    "a projection by its name alone": (
        settings(recovery={"projection": "away_from_original"}),
        ("recovery.projection: Input should be a valid dictionary", "got 'away_from_original'"),
    ),
    "a name of more than 80 letters": (
        scenario("x" * 81, label="x"),
        (f"{TOY}: scenarios: String should have at most 80 characters",),
    ),
    "a partition by its name alone": (
        data(partition="iid"),
        ("data.partition: Input should be a valid dictionary", "got 'iid'"),
    ),
    "unknown attack": (
        data(attack={"name": "pach"}),
        ("data: attack.name: there is no attacks plug-in 'pach'", "did you mean 'patch'? allowed: patch"),
    ),
    "an evaluation without evaluators": (
        settings(evaluations={"more": []}),
        ("evaluations: every evaluation needs evaluators, and every evaluator may be in one evaluation only",),
    ),
    "an evaluator in two evaluations": (
        settings(evaluations={"more": ["utility"]}),
        ("evaluations: every evaluation needs evaluators, and every evaluator may be in one evaluation only",),
    ),
    "an evaluation with the name of a trace": (
        settings(evaluations={"evaluation": ["utility"], "recovered": ["cost"]}),
        ("evaluations: 'recovered' is the name of a model's trace; an evaluation needs another",),
    ),
    "a seed of 21 digits": (config(seeds=[10**20]), ("config: seeds.0: an integer must fit in 64 bits",)),
    "a number of 401 digits": (data(clients=10**400), ("data.clients: an integer must fit in 64 bits",)),
    "a number of too many digits to be shown": (
        data(clients=16**5000),
        ("data.clients: an integer must fit in 64 bits",),
    ),
    "a share of 1e400": (
        data(train_share="1e400"),
        ("data.train_share: Input should be less than or equal to 1, got '1e400'",),
    ),
    "a share that takes a power of ten for ever": (
        data(train_share="1e99999999"),
        ("data.train_share: Input should be less than or equal to 1, got '1e99999999'",),
    ),
    "a whole number as key of a grid": (
        settings(grid={5: [0.1]}),
        ("config: overrides.toy.settings.grid: a key must be one line of text, got int",),
    ),
    "a key of two lines": (config(**{"a\nb": 1}), (r"config: a key must be one line of text, got 'a\nb'",)),
    "overrides in themselves": (config(overrides={"toy": LOOP}), ("config: is nested deeper than 40 levels",)),
    "a text that looks like a day": (
        iid(training={"rounds": "2024-13-45"}),
        ("training.rounds: Input should be a valid integer, got '2024-13-45'",),
    ),
    "a letter that no file can hold": (
        toy(title="\ud800"),
        ("config: overrides.toy.title: text must have at most 10000 characters and no control codes",),
    ),
    "the home of nobody": (
        config(data_dir="~nobody-of-this-name"),
        ("config: data_dir: the user's home folder is unknown, got '~nobody-of-this-name'",),
    ),
    "a paper twice": (config(papers=["toy", "toy"]), ("config: papers: must differ from each other",)),
    "a history twice": (
        settings(training={"history": ["update_sums", "update_sums"]}),
        ("training.history: must differ from each other, got ['update_sums', 'update_sums']",),
    ),
    "a metric twice": (artefact("numbers", metrics=["asr", "asr"]), ("numbers.metrics: must differ from each other",)),
    "a method twice": (artefact("numbers", methods=["sfu", "sfu"]), ("numbers.methods: must differ from each other",)),
    "a stage twice": (
        artefact("numbers", stages=["unlearned", "unlearned"]),
        ("numbers.stages: must differ from each other",),
    ),
    "an evaluator twice": (
        settings(evaluations={"evaluation": ["utility", "utility"]}),
        ("evaluations: every evaluation needs evaluators, and every evaluator may be in one evaluation only",),
    ),
    "an evaluation whose name ends another trial's": (
        settings(evaluations={"a.b": ["utility"]}),
        ("evaluations", "got 'a.b'"),
    ),
    "a picture of no width": (config(figures={"width": 0}), ("config: figures.width: ", "greater than or equal to 2")),
    "a style of no known key": (config(figures={"fontsize": 7}), ("config: figures.fontsize: unknown key", "'font'")),
    "no folder of plug-ins": (
        config(plugins=""),
        ("config: plugins: String should have at least 1 character, got ''",),
    ),
}


@pytest.mark.parametrize(("values", "words"), CONFIGS.values(), ids=CONFIGS)
@pytest.mark.usefixtures("with_toy")
def test_a_malformed_config_is_told_in_one_sentence(values: dict[str, Any], words: tuple[str, ...]) -> None:
    has(sentence(lambda: Plan(values)), *words)


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
    figures = planned.job("publish", {"paper": "toy", "artefact": "numbers"}).spec.figures  # type: ignore[attr-defined]
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
