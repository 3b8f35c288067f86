"""Mistakes of a person: each is told in one sentence that names the place and what is allowed."""

import datetime
import json
import math
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from fu.data import archives, clients, partition
from fu.data.assignment import pathological
from fu.errors import UserError
from fu.federation import model_files
from fu.federation.flat import Layout
from fu.models import lenet5, mlp
from fu.plan import digest
from fu.plan.plan import Plan
from fu.plan.specs import TORCH
from fu.publishing import sweep
from fu.stages import select
from fu.stages.common import arguments, whole

ROOT = digest.ROOT
NAN, INFINITE = math.nan, math.inf


@pytest.fixture(autouse=True)
def _no_trace_in_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fu.plan.inputs.CACHE", tmp_path / "plan.json")


def sentence(action: Callable[[], Any]) -> str:
    with pytest.raises(UserError) as caught:
        action()
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    assert not re.search(r"[.!?] +[A-Z]", text), "more than one sentence"
    assert "Traceback" not in text
    return text


def has(text: str, *words: str) -> None:
    assert [word for word in words if word not in text] == [], text


def config(**changes: Any) -> dict[str, Any]:
    return {"preset": "smoke", "papers": ["fedosd"], **changes}


def laid_over(**parts: Any) -> dict[str, Any]:
    return config(overrides={"fedosd": parts})


def settings(**parts: Any) -> dict[str, Any]:
    return laid_over(settings=parts)


def data(**parts: Any) -> dict[str, Any]:
    return settings(data=parts)


def method(name: str, **parts: Any) -> dict[str, Any]:
    return laid_over(methods={name: parts})


def scenario(name: str, **parts: Any) -> dict[str, Any]:
    return laid_over(scenarios={name: parts})


def artefact(**parts: Any) -> dict[str, Any]:
    return laid_over(artefacts={"table8": parts})


def pat(class_share: float | str) -> dict[str, Any]:
    return data(partition={"kind": "pat", "class_share": class_share})


def grid(name: str, values: Any) -> dict[str, Any]:
    return method(name, settings={"grid": values})


OUTSIDE = {"label": "x", "plugin": "fedosd", "source": "s"}
NAME_RULE = "a name must be letters and digits, with '-', '_' or '.' inside and no '/'"

CONFIGS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "unknown key of the config": (
        config(presett="x"),
        ("config: presett: unknown key", "did you mean 'preset'?", "allowed: data_dir, device, overrides, papers"),
    ),
    "unknown key of a paper": (laid_over(titel="x"), ("fedosd.yaml: titel: unknown key", "did you mean 'title'?")),
    "unknown key of a method": (
        method("fedosd", in_papr=True),
        ("fedosd.yaml: methods.fedosd.in_papr: unknown key", "did you mean 'in_paper'?"),
    ),
    "unknown key deep in the settings": (
        data(backdoor={"sise": 3}),
        ("data.backdoor.sise: unknown key", "did you mean 'size'?", "allowed: label_shift, margin, share, size, value"),
    ),
    "threads as a word": (config(threads="two"), ("config: threads: Input should be a valid integer, got 'two'",)),
    "threads as a truth value": (config(threads=True), ("config: threads: Input should be a valid integer, got True",)),
    "no thread": (config(threads=0), ("config: threads: Input should be greater than 0, got 0",)),
    "unknown device": (config(device="gpu"), ("config: device: Input should be 'auto', 'cpu' or 'cuda', got 'gpu'",)),
    "no paper": (config(papers=[]), ("config: papers: List should have at least 1 item",)),
    "papers as a number": (config(papers=5), ("config: papers: Input should be a valid list, got 5",)),
    "a negative seed": (config(seeds=[-1]), ("config: seeds.0: Input should be greater than or equal to 0, got -1",)),
    "an unknown method in a scenario": (
        laid_over(scenarios={"mnist-iid": {"methods": {"fedosdd": {}}}}),
        ("fedosd.yaml: scenarios.mnist-iid.methods: there is no 'fedosdd'", "did you mean 'fedosd'?"),
    ),
    "a scenario's method that touches what all share": (
        laid_over(scenarios={"mnist-iid": {"methods": {"fedosd": {"data": {}}}}}),
        ("methods.fedosd.settings: 'data' is shared by all methods",),
    ),
    "one seed twice": (config(seeds=[0, 0]), ("config: seeds: must be different numbers, got [0, 0]",)),
    "a label shift that flips nothing": (
        data(backdoor={"label_shift": 0.01}),
        ("data: backdoor.label_shift: 0.01 of 10 classes flips nothing",),
    ),
    "a table without methods": (artefact(methods=[]), ("artefacts.table8: kind table needs methods and metrics",)),
    "curves of no scenario": (
        laid_over(artefacts={"mnist_curves": {"scenarios": []}}),
        ("artefacts.mnist_curves: kind curves needs scenarios; name at least one.",),
    ),
    "curves of what is not measured per round": (
        laid_over(artefacts={"mnist_curves": {"metrics": ["r_acc_validation"]}}),
        ("'r_acc_validation' is not measured per round", "allowed: asr, r_acc"),
    ),
    "no seed": (config(seeds=[]), ("config: seeds: List should have at least 1 item",)),
    "overrides as a list": (config(overrides=[1]), ("config: overrides: Input should be a valid dictionary, got [1]",)),
    "a paper's override as a number": (
        config(overrides={"fedosd": 5}),
        ("fedosd.yaml: must be a mapping of keys to values, got int",),
    ),
    "override of an unknown paper": (
        config(overrides={"fedsod": {}}),
        ("config: overrides: there is no paper 'fedsod'", "did you mean 'fedosd'?", "allowed: fedosd"),
    ),
    "unknown paper": (
        config(papers=["fedsod"]),
        ("config: paper: there is no paper 'fedsod'", "did you mean 'fedosd'?", "allowed: fedosd"),
    ),
    "unknown preset": (
        config(preset="smok"),
        ("config: preset: there is no preset 'smok'", "did you mean 'smoke'?", "allowed: paper, reduced, smoke"),
    ),
    "preset outside its folder": (config(preset="../x"), (f"config: preset: {NAME_RULE}, got '../x'",)),
    "paper outside its folder": (config(papers=["../x"]), (f"config: papers.0: {NAME_RULE}, got '../x'",)),
    "scenario outside results": (
        laid_over(scenarios={"../../x": {"label": "x"}}),
        (f"fedosd.yaml: scenarios: {NAME_RULE}, got '../../x'",),
    ),
    "method outside results": (method("../x", **OUTSIDE), (f"fedosd.yaml: methods: {NAME_RULE}, got '../x'",)),
    "artefact outside results": (
        laid_over(artefacts={"/etc/x": {"kind": "table", "title": "a", "caption": "b"}}),
        (f"fedosd.yaml: artefacts: {NAME_RULE}, got '/etc/x'",),
    ),
    "a method named as the original model": (
        method("original", **OUTSIDE),
        ("fedosd.yaml: methods: 'original' is the name of the original model", "a method needs another"),
    ),
    "unknown data set": (
        data(dataset="mnits"),
        ("unknown data set 'mnits'", "did you mean 'mnist'?", "allowed: cifar10, cifar100, digits"),
    ),
    "data set as a list": (data(dataset=["mnist"]), ("data.dataset: Input should be a valid string, got ['mnist']",)),
    "a client and a half": (data(clients=1.5), ("data.clients: Input should be a valid integer, got 1.5",)),
    "no client": (data(clients=0), ("data.clients: Input should be greater than 0, got 0",)),
    "more clients than samples": (
        data(clients=100_000, samples=None),
        ("clients: 100000 clients cannot share 1797 samples",),
    ),
    "more clients than samples in use": (
        data(clients=300, samples=500),
        ("clients: 300 clients cannot share 500 samples",),
    ),
    "more samples than the data set has": (
        data(samples=5000),
        ("data: samples: 5000 of 1797 samples of digits cannot be used",),
    ),
    "no sample in use": (data(samples=0), ("data.samples: Input should be greater than 0, got 0",)),
    "a sample and a half": (data(samples=1.5), ("data.samples: Input should be a valid integer, got 1.5",)),
    "unknown kind of partition": (
        data(partition={"kind": "patt"}),
        ("data.partition.kind: Input should be 'iid' or 'pat', got 'patt'",),
    ),
    "a share of all classes above 1": (
        pat(1.2),
        ("data.partition.class_share: Input should be less than or equal to 1, got 1.2",),
    ),
    "no class": (pat(0), ("data.partition.class_share: Input should be greater than 0, got 0",)),
    "two and a half classes": (
        pat(0.25),
        ("scenarios.fmnist-iid: data: class_share: 0.25 of 10 classes is no whole number of classes",),
    ),
    "less than one class": (pat("1/100"), ("class_share: 0.01 of 10 classes is no whole number of classes",)),
    "a class share that divides by zero": (
        pat("1/0"),
        ("data.partition.class_share: must be a number or a fraction like 6/7, got '1/0'",),
    ),
    "classes per client, as the share was once given": (
        data(partition={"kind": "pat", "classes_per_client": 2}),
        ("data.partition.classes_per_client: unknown key", "did you mean 'class_share'?"),
    ),
    "a client left empty": (
        laid_over(
            scenarios={"fmnist-pat20": {"settings": {"data": {"partition": {"class_share": 0.5}}}}},
            settings={"data": {"clients": 3}},
        ),
        (
            "scenarios.fmnist-pat20: data: partition: 3 clients with 5 of 10 classes each leave client 2 without data",
            "allowed is",
        ),
    ),
    "a class share of an IID partition": (
        scenario("mnist-iid", settings={"data": {"partition": {"class_share": 0.2}}}),
        ("scenarios.mnist-iid: data.partition: class_share belongs to kind pat, and kind pat needs it",),
    ),
    "a Pat partition without its class share": (
        data(partition={"kind": "pat"}),
        ("scenarios.fmnist-iid: data.partition: class_share belongs to kind pat, and kind pat needs it",),
    ),
    "more forgotten clients than clients": (
        data(forget={"clients": 11}),
        ("data: forget.clients: 11 of 10 clients cannot be forgotten; one must stay",),
    ),
    "a forgotten client that does not exist": (
        data(forget={"clients": [12]}),
        ("data: forget.clients: [12] must be different clients from 0 to 9",),
    ),
    "a client forgotten twice": (
        data(forget={"clients": [1, 1]}),
        ("data: forget.clients: [1, 1] must be different clients from 0 to 9",),
    ),
    "nobody forgotten": (
        data(forget={"clients": 0}),
        ("data.forget.clients: must be how many clients to draw (1 or more), or a list of clients", "got 0"),
    ),
    "forgotten clients as a word": (
        data(forget={"clients": "all"}),
        ("data.forget.clients: must be how many clients to draw (1 or more), or a list of clients", "got 'all'"),
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
    "a share that is no number": (data(train_share=NAN), ("data.train_share: Input should be", "got nan")),
    "a trigger larger than the image": (
        data(backdoor={"size": 40}),
        ("data: backdoor: a patch of 40 does not fit 28 pixels",),
    ),
    "negative rate": (
        settings(training={"lr": -0.1}),
        ("training.lr: Input should be greater than 0, got -0.1",),
    ),
    "NaN rate": (settings(unlearning={"lr": NAN}), ("unlearning.lr: Input should be a finite number, got nan",)),
    "infinite rate": (settings(recovery={"lr": INFINITE}), ("recovery.lr: Input should be a finite number, got inf",)),
    "a rate that YAML reads as text": (
        settings(training={"lr": "1e-3"}),
        ("training.lr: Input should be a valid number, got '1e-3'", "a power of ten needs a point: 1.0e-3"),
    ),
    "a decay that grows": (
        settings(training={"lr_decay": 1.1}),
        ("training.lr_decay: Input should be less than or equal to 1, got 1.1",),
    ),
    "unlearning rounds above total rounds": (
        settings(unlearning={"rounds": 11}, total_rounds=10),
        ("unlearning.rounds: 11 rounds exceed total_rounds, 10",),
    ),
    "a rate that no phase states": (
        settings(training={"lr": None}),
        ("scenarios.fmnist-pat20: training.lr: Input should be a valid number, got None",),
    ),
    "a phase without settings": (
        settings(unlearning=None),
        ("scenarios.fmnist-pat20: unlearning: Input should be a valid dictionary", "got None"),
    ),
    "unknown model": (
        settings(model={"name": "lenet"}),
        ("there is no models plug-in 'lenet'", "did you mean 'lenet5'?", "allowed: cnn, lenet5, mlp"),
    ),
    "wrong hyper-parameter of a model": (
        settings(model={"name": "mlp", "params": {"hidden": 0}}),
        ("fedosd.yaml: model: params: hidden: Input should be greater than 0, got 0",),
    ),
    "unknown training": (
        settings(training={"method": {"name": "fedagv"}}),
        ("there is no training plug-in 'fedagv'", "did you mean 'fedavg'?", "allowed: fedavg"),
    ),
    "unknown evaluator": (
        settings(evaluators=["bckdoor"]),
        ("there is no evaluation plug-in 'bckdoor'", "did you mean 'backdoor'?", "allowed: backdoor, conflicts"),
    ),
    "a file of the evaluation folder that is no evaluator": (
        settings(evaluators=["metrics"]),
        ("there is no evaluation plug-in 'metrics'", "allowed: backdoor, conflicts"),
    ),
    "unknown history": (
        settings(training={"history": ["target_model", "foo"]}),
        ("training.history: there is no histories plug-in 'foo'", "allowed: target_model, update_norms, update_sums"),
    ),
    "a method without its history": (
        settings(training={"history": []}),
        (
            "fedosd.yaml: methods.federaser: needs the history 'update_norms'",
            "add it to settings.training.history",
            "recorded: none",
        ),
    ),
    "a method without its history where others have theirs": (
        settings(training={"history": ["update_norms", "update_sums"]}),
        (
            "fedosd.yaml: methods.fupga+lr",
            ": needs the history 'target_model'",
            "add it to settings.training.history",
            "recorded: update_norms, update_sums",
        ),
    ),
    "unknown method plug-in": (
        method("fedosd", plugin="fedods"),
        ("fedosd.yaml: methods.fedosd: there is no methods plug-in 'fedods'", "did you mean 'fedosd'?"),
    ),
    "unknown hyper-parameter of a method": (
        method("fedosd", params={"los": "uce"}),
        (
            "fedosd.yaml: methods.fedosd+lr",
            ": params: los: unknown key",
            "did you mean 'loss'? allowed: direction, loss",
        ),
    ),
    "wrong hyper-parameter of a method": (
        method("fedosd", params={"loss": "ce"}),
        ("params: loss: Input should be 'uce', 'ascent' or 'uce-undivided', got 'ce'",),
    ),
    "a date as hyper-parameter": (
        method("ewcsga", params={"lambda": datetime.date(2020, 1, 1)}),
        ("fedosd.yaml: methods.ewcsga.params: values must be finite numbers, text",),
    ),
    "an infinite hyper-parameter": (
        method("ewcsga", params={"lambda": INFINITE}),
        ("fedosd.yaml: methods.ewcsga.params: values must be finite numbers, text",),
    ),
    "a method that sets what all methods share": (
        method("fedosd", settings={"data": {"clients": 5}}),
        (
            "fedosd.yaml: methods.fedosd.settings: 'data' is shared by all methods",
            "a method may set unlearning, recovery, total_rounds, grid",
        ),
    ),
    "unknown scenario of an artefact": (
        artefact(scenarios=["mnist-pat2"]),
        ("fedosd.yaml: artefacts.table8: there is no scenario 'mnist-pat2'", "did you mean 'mnist-pat20'?"),
    ),
    "unknown method of an artefact": (
        artefact(methods=["fedods"]),
        ("fedosd.yaml: artefacts.table8: there is no method 'fedods'", "did you mean 'fedosd'?", "allowed: ewcsga"),
    ),
    "unknown metric of an artefact": (
        artefact(metrics=["acc"]),
        ("fedosd.yaml: artefacts.table8: there is no metric 'acc'", "did you mean 'r_acc'?", "allowed: asr"),
    ),
    "unknown kind of artefact": (
        artefact(kind="tabel"),
        ("artefacts.table8: there is no publishing plug-in 'tabel'", "did you mean 'table'?", "allowed: bars, curves"),
    ),
    "an artefact with published numbers but no file": (
        laid_over(artefacts={"fig3": {"published": True}}),
        ("artefacts.fig3: published is true, but workflow/published/fedosd/fig3.csv does not exist",),
    ),
    "an unknown stage of an artefact": (
        artefact(stages=["unlearned", "recoverd"]),
        ("artefacts.table8.stages.1: Input should be 'original', 'unlearned' or 'recovered', got 'recoverd'",),
    ),
    "an artefact of no stage": (artefact(stages=[]), ("artefacts.table8.stages: List should have at least 1 item",)),
    "bars without methods": (
        laid_over(artefacts={"fig6": {"methods": []}}),
        ("artefacts.fig6: kind bars needs methods and metrics; name at least one of each",),
    ),
    "a running time of nothing that is counted": (
        laid_over(artefacts={"table12": {"metrics": []}}),
        ("artefacts.table12: kind runtime needs methods and metrics; name at least one of each",),
    ),
    "a sweep of no scenario": (
        laid_over(artefacts={"recovery_rate": {"scenarios": []}}),
        ("artefacts.recovery_rate: kind sweep needs scenarios; name at least one",),
    ),
    "a scenario on an unknown base": (
        scenario("mnist-pat50", base="mnist-idd"),
        (
            "fedosd.yaml: scenarios.mnist-pat50.base: there is no scenario 'mnist-idd'",
            "did you mean 'mnist-iid'? allowed: cifar10-iid",
        ),
    ),
    "a scenario on an unknown base further up": (
        scenario("fmnist-pat20", base="fmnist"),
        ("fedosd.yaml: scenarios.fmnist-pat20.base: there is no scenario 'fmnist'", "did you mean 'fmnist-iid'?"),
    ),
    "a scenario on itself": (
        scenario("mnist-iid", base="mnist-iid"),
        ("fedosd.yaml: scenarios.mnist-iid.base: 'mnist-iid' is built on itself; name another scenario",),
    ),
    "two scenarios on each other": (
        scenario("mnist-iid", base="mnist-pat50"),
        (".base: 'mnist-", "is built on itself; name another scenario"),
    ),
    "a base that is a number": (
        scenario("mnist-iid", base=5),
        ("scenarios.mnist-iid.base: Input should be a valid string, got 5",),
    ),
    "a method from the unlearned model of an unknown one": (
        method("fedosd.m5", unlearned_from="fedods"),
        (
            "fedosd.yaml: methods.fedosd.m5.unlearned_from: there is no method 'fedods'",
            "did you mean 'fedosd'? allowed: ewcsga, federaser, fedosd",
        ),
    ),
    "a method from the unlearned model of one that has none": (
        method("fedosd.rates-free", unlearned_from="fedosd.m5"),
        ("methods.fedosd.rates-free.unlearned_from: 'fedosd.m5' has no unlearning of its own",),
    ),
    "a method from its own unlearned model": (
        method("fedosd.m5", unlearned_from="fedosd.m5"),
        ("methods.fedosd.m5.unlearned_from: 'fedosd.m5' has no unlearning of its own",),
    ),
    "a method from the model of one that takes all rounds": (
        method("fedosd.m5", unlearned_from="retraining"),
        ("scenarios.fmnist-pat50: a method that begins from 'retraining' must have its unlearning settings",),
    ),
    "a method with a plug-in and another's unlearned model": (
        method("fedosd.m5", plugin="fedosd"),
        ("fedosd.yaml: methods.fedosd.m5: needs either plugin or unlearned_from, and not both",),
    ),
    "a method with neither": (
        method("fedosd.m5", unlearned_from=None),
        ("fedosd.yaml: methods.fedosd.m5: needs either plugin or unlearned_from, and not both",),
    ),
    "hyper-parameters where nothing is unlearned": (
        method("fedosd.m5", params={"loss": "ascent"}),
        ("methods.fedosd.m5: unlearned_from takes another method's unlearning", "params and settings.unlearning"),
    ),
    "unlearning rounds where nothing is unlearned": (
        method("fedosd.m5", settings={"unlearning": {"rounds": 2}}),
        ("methods.fedosd.m5: unlearned_from takes another method's unlearning", "params and settings.unlearning"),
    ),
    "a scenario's unlearning rounds where nothing is unlearned": (
        scenario("fmnist-pat50", methods={"fedosd.m5": {"unlearning": {"rounds": 1}}}),
        (
            "scenarios.fmnist-pat50: a method that begins from 'fedosd+lr",
            "must have its unlearning settings; only recovery, total_rounds and the grid of recovery are its own",
        ),
    ),
    "unknown post-training": (
        method("fedosd", post_training="before"),
        ("methods.fedosd.post_training: Input should be 'after', 'none' or 'own', got 'before'",),
    ),
    "unknown projection": (
        settings(recovery={"projection": {"name": "away_from_orignal"}}),
        (
            "scenarios.fmnist-pat20: there is no projections plug-in 'away_from_orignal'",
            "did you mean 'away_from_original'? allowed: away_from_original",
        ),
    ),
    "a projection by its name alone": (
        settings(recovery={"projection": "away_from_original"}),
        ("recovery.projection: Input should be a valid dictionary", "got 'away_from_original'"),
    ),
    "a hyper-parameter that a projection does not have": (
        method("fedosd", settings={"recovery": {"projection": {"params": {"were": "always"}}}}),
        ("recovery.projection: params: were: unknown key", "did you mean 'where'? allowed: where"),
    ),
    "a wrong hyper-parameter of a projection": (
        method("fedosd", settings={"recovery": {"projection": {"params": {"where": "never"}}}}),
        ("recovery.projection: params: where: Input should be 'conflicting' or 'always', got 'never'",),
    ),
    "a grid of what a grid cannot hold": (
        grid("mode", {"training.lr": [0.1, 0.2]}),
        ("with methods.mode: grid", "'training.lr'", "unlearning", "recovery", "params"),
    ),
    "a grid of a setting without its phase": (grid("mode", {"lr": [0.1]}), ("with methods.mode: grid", "'lr'")),
    "a grid of an unknown setting": (
        grid("mode", {"unlearning.lrr": [0.1]}),
        ("with methods.mode: unlearning.lrr: unknown key", "did you mean 'lr'?"),
    ),
    "a grid of an unknown hyper-parameter": (
        grid("fedosd", {"params.los": ["uce"]}),
        ("methods.fedosd+lr", "-losuce: params: los: unknown key", "did you mean 'loss'?"),
    ),
    "a grid with a wrong hyper-parameter": (
        grid("fedosd", {"params.loss": ["uce", "ce"]}),
        ("params: loss: Input should be 'uce', 'ascent' or 'uce-undivided', got 'ce'",),
    ),
    "a grid with a negative rate": (
        grid("mode", {"unlearning.lr": [0.1, -0.1]}),
        ("fmnist-pat20 with methods.mode: unlearning.lr: Input should be greater than 0, got -0.1",),
    ),
    "a grid with an infinite rate": (
        grid("mode", {"unlearning.lr": [0.1, INFINITE]}),
        ("with methods.mode: unlearning.lr: Input should be a finite number, got inf",),
    ),
    "a grid with a truth value": (
        grid("mode", {"unlearning.lr": [True]}),
        ("with methods.mode: unlearning.lr: Input should be a valid number, got True",),
    ),
    "a grid with a rate that YAML reads as text": (
        grid("mode", {"unlearning.lr": ["1e-3"]}),
        ("with methods.mode: unlearning.lr: Input should be a valid number, got '1e-3'", "needs a point: 1.0e-3"),
    ),
    "a grid with more unlearning rounds than total rounds": (
        laid_over(
            settings={"unlearning": {"rounds": 1}, "total_rounds": 6},
            methods={"mode": {"settings": {"grid": {"unlearning.rounds": [2, 7]}}}},
        ),
        ("with methods.mode: unlearning.rounds: 7 rounds exceed total_rounds, 6",),
    ),
    "a grid with one value twice": (
        grid("mode", {"unlearning.lr": [0.1, 0.1]}),
        ("methods.mode: grid: 'mode+lr0.1' names a file; values must differ in six digits",),
    ),
    "a grid with two values of one name": (
        grid("mode", {"unlearning.lr": [0.1, 0.10000001]}),
        ("methods.mode: grid: 'mode+lr0.1' names a file; values must differ in six digits",),
    ),
    "a grid with a value outside results": (
        grid("fedosd", {"params.loss": ["../x"]}),
        ("methods.fedosd: grid: 'fedosd+lr", "-loss../x' names a file", "words of letters, digits, dots"),
    ),
    "a rate that a grid would replace": (
        method("mode", settings={"unlearning": {"lr": 0.3}, "grid": {"unlearning.lr": [0.1, 0.2]}}),
        (
            "methods.mode.settings: unlearning.lr is set, but its grid [0.1, 0.2] would replace it",
            "write grid: {unlearning.lr: [0.3]} instead",
        ),
    ),
    "a scenario's rate that the common grid would replace": (
        scenario("mnist-iid", methods={"mode": {"unlearning": {"lr": 0.3}}}),
        ("methods.mode.settings: unlearning.lr is set, but its grid", "write grid: {unlearning.lr: [0.3]} instead"),
    ),
    "a grid as a number": (grid("mode", 5), ("grid: Input should be a valid dictionary, got 5",)),
    "a common grid as a number": (settings(grid=5), ("grid: Input should be a valid dictionary, got 5",)),
    "no grid at all": (grid("mode", None), ("grid: Input should be a valid dictionary, got None",)),
    "a grid with a rate outside a list": (
        grid("mode", {"unlearning.lr": 0.1}),
        ("unlearning.lr: Input should be a valid list, got 0.1",),
    ),
    "a grid and nothing held out to choose on": (
        laid_over(
            settings={"data": {"validation_share": 0}},
            methods={"mode": {"settings": {"grid": {"unlearning.lr": [0.1, 0.2]}}}},
        ),
        (
            "scenarios.fmnist-pat20: data.validation_share is 0, but methods.mode has a grid",
            "its best point is chosen on validation data, so hold some out",
        ),
    ),
}


@pytest.mark.parametrize(("values", "words"), CONFIGS.values(), ids=CONFIGS)
def test_a_malformed_config_is_told_in_one_sentence(values: dict[str, Any], words: tuple[str, ...]) -> None:
    has(sentence(lambda: Plan(values)), *words)


def test_the_config_that_all_these_change_is_right() -> None:
    assert Plan(config()).config.preset == "smoke"


def test_nothing_is_held_out_where_nothing_is_chosen() -> None:
    common = {"data": {"validation_share": 0}, "grid": {"unlearning.lr": [0.005]}}
    made = Plan({**laid_over(settings=common), "preset": "paper"})
    assert made.cell("fedosd/mnist-pat50/seed0").settings.data.validation_share == 0
    assert len(made.points["fedosd/mnist-pat50", "fedosd.rates-free"]) > 1  # a sweep shows them all


def test_numbers_that_snakemake_passes_as_text_are_numbers() -> None:
    planned = Plan(
        config(
            seeds=["3", "4"],
            overrides={"fedosd": {"settings": {"training": {"lr": "0.5"}, "unlearning": {"conflicts": "true"}}}},
        )
    )
    cell = planned.cell("fedosd/mnist-iid/seed3")
    assert planned.seeds("fedosd") == [3, 4]
    assert (cell.settings.training.lr, cell.settings.unlearning.conflicts) == (0.5, True)


def swept(**points: list[dict[str, Any]]) -> dict[str, Any]:
    """The spec of a sweep: per method the coordinates of its points."""
    about = {
        name: {"points": {"small": [[f"{name}{k}", {"coordinates": each}] for k, each in enumerate(coordinates)]}}
        for name, coordinates in points.items()
    }
    return {"artefact": "rates", "scenarios": {"small": {}}, "methods": about}


VARIED = [{"recovery.lr": 0.1}, {"recovery.lr": 0.2}]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (swept(a=[{}]), "rates: a sweep needs methods whose grids vary one setting, got none"),
        (swept(a=VARIED[:1]), "rates: a sweep needs methods whose grids vary one setting, got none"),
        (
            swept(a=VARIED, b=[{"unlearning.lr": 0.1}, {"unlearning.lr": 0.2}]),
            "a sweep needs methods whose grids vary one setting, got ['recovery.lr', 'unlearning.lr']",
        ),
        (swept(a=VARIED, b=[{}]), "rates: a sweep needs recovery.lr in the grid of every method; 'b' has none"),
    ],
    ids=["no grid", "one value", "two settings", "a method without a grid"],
)
def test_a_sweep_of_no_common_setting_is_told_in_one_sentence(tmp_path: Path, spec: dict[str, Any], words: str) -> None:
    has(sentence(lambda: sweep.make(spec, tmp_path)), words)


@pytest.mark.parametrize("lacking", ["r_acc_validation", "asr_validation"])
def test_a_choice_without_validation_data_is_told_in_one_sentence(tmp_path: Path, lacking: str) -> None:
    evaluation, output = tmp_path / "one.evaluation.csv", tmp_path / "made" / "mode.selected.json"
    rows = {"r_acc_validation": 0.9, "asr_validation": 0.1}
    lines = [f"unlearned,{metric},{value}" for metric, value in rows.items() if metric != lacking]
    evaluation.write_text("\n".join(["role,metric,value", *lines, ""]))
    argv = ["--spec", '{"points": ["one"]}', "--evaluations", str(evaluation), "--output", str(output)]
    if lacking == "r_acc_validation":
        text = sentence(lambda: select.main(argv))
        has(text, f"{evaluation}: the unlearned model has no R-Acc on validation data", "data.validation_share")
        assert not output.exists()
    else:  # a scenario without a backdoor
        select.main(argv)
        assert json.loads(output.read_text())["selected"] == "one"


@pytest.fixture
def workflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of `workflow/` that the plan reads instead."""
    copy = tmp_path / "root" / "workflow"
    shutil.copytree(ROOT / "workflow", copy)
    monkeypatch.setattr("fu.plan.papers.ROOT", copy.parent)
    monkeypatch.setattr("fu.plan.plan.ROOT", copy.parent)
    return copy


def replaced(path: Path, pattern: str, new: str) -> None:
    text, number = re.subn(pattern, lambda _: new, path.read_text(), count=1, flags=re.M)
    assert number == 1, f"{pattern} is not in {path.name}"
    path.write_text(text)


PAPERS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "two scenarios of one name": (
        r"^  mnist-iid:$",
        "  mnist-pat20:",
        ("fedosd.yaml: line", "'mnist-pat20' is named twice; names must differ"),
    ),
    "a value without a source": (
        r"^    rounds: \{value: 2000, source: [^}]*\}$",
        "    rounds: 2000",
        ("fedosd.yaml: settings.training.rounds: has no source", "write {value: ..., source: ...}"),
    ),
    "a value whose source says nothing": (
        r"^    rounds: \{value: 2000, source: [^}]*\}$",
        '    rounds: {value: 2000, source: " "}',
        ("fedosd.yaml: settings.training.rounds: has no source", "write {value: ..., source: ...}"),
    ),
    "a method's value without a source": (
        r"^    params: \{direction: \{value: as-published-code, source: [^}]*\}\}$",
        "    params: {direction: {value: as-published-code}}",
        ("fedosd.yaml: methods.fedosd.as-published-code.params.direction", "has no source"),
    ),
    "a grid without a source": (
        r"^  grid: \{unlearning.lr: .*$",
        "  grid: {unlearning.lr: [0.005, 0.025]}",
        ("fedosd.yaml: settings.grid.unlearning.lr: has no source", "write {value: ..., source: ...}"),
    ),
    "a scenario's value without a source": (
        r"^      data: \{clients: \{value: 20, source: [^}]*\}\}$",
        "      data: {clients: 20}",
        ("fedosd.yaml: scenarios.cifar10-pat50-m20.settings.data.clients: has no source",),
    ),
    "a bracket left open": (
        r"^title: .*$",
        "title: [x",
        ("fedosd.yaml: line", "is no valid YAML"),
    ),
    "a Python object": (
        r"^title: .*$",
        "title: !!python/object:os.system {}",
        ("fedosd.yaml: line 2: is no valid YAML", "python/object"),
    ),
    "scenarios as a list": (
        r"^scenarios:$",
        "scenarios: [a]\nlabels:",
        ("fedosd.yaml: scenarios: Input should be a valid dictionary, got ['a']",),
    ),
    "a number as key": (r"^title: .*$", "title: x\n5: y", ("fedosd.yaml: 5: unknown key", "allowed: artefacts")),
}


@pytest.mark.parametrize(("pattern", "new", "words"), PAPERS.values(), ids=PAPERS)
def test_a_malformed_paper_is_told_in_one_sentence(
    workflow: Path, pattern: str, new: str, words: tuple[str, ...]
) -> None:
    replaced(workflow / "papers" / "fedosd.yaml", pattern, new)
    has(sentence(lambda: Plan(config(preset="paper"))), *words)  # nothing is laid over it


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ("fedosd.yaml: must be a mapping of keys to values",)),
        (b"[1]", ("fedosd.yaml: must be a mapping of keys to values",)),
        (b"title: \xff", ("fedosd.yaml: is no valid YAML (not UTF-8)",)),
    ],
    ids=["empty", "a list", "not UTF-8"],
)
def test_a_file_that_is_no_paper_is_told_in_one_sentence(
    workflow: Path, content: bytes, words: tuple[str, ...]
) -> None:
    (workflow / "papers" / "fedosd.yaml").write_bytes(content)
    has(sentence(lambda: Plan(config())), *words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[1]", ("mine.yaml: must be a mapping of keys to values, got list",)),
        ("seeds: [0]", ("mine.yaml: description: is missing",)),
        ("descripton: x\ndescription: y", ("mine.yaml: descripton: unknown key", "did you mean 'description'?")),
        (
            "description: x\npapers: {fedods: {}}",
            ("mine.yaml: papers: there is no paper 'fedods'", "did you mean 'fedosd'?", "allowed: fedosd"),
        ),
        (
            "description: x\nreplace_datasets: {mnits: digits}",
            ("mine.yaml: replace_datasets: unknown data set 'mnits'", "did you mean 'mnist'?"),
        ),
        (
            "description: x\nreplace_datasets: {mnist: digit}",
            ("mine.yaml: replace_datasets: unknown data set 'digit'", "did you mean 'digits'?"),
        ),
    ],
    ids=["a list", "no description", "unknown key", "unknown paper", "unknown data set", "unknown replacement"],
)
def test_a_malformed_preset_is_told_in_one_sentence(workflow: Path, content: str, words: tuple[str, ...]) -> None:
    (workflow / "presets" / "mine.yaml").write_text(content)
    has(sentence(lambda: Plan(config(preset="mine"))), *words)


def test_a_published_table_without_its_file_is_told_in_one_sentence(workflow: Path) -> None:
    (workflow / "published" / "fedosd" / "table8.csv").unlink()
    text = sentence(lambda: Plan(config()))
    has(text, "artefacts.table8: published is true, but workflow/published/fedosd/table8.csv does not exist")


Arrays = dict[str, np.ndarray[Any, Any]]


def digits_like() -> Arrays:
    return {
        "x_train": np.zeros((6, 28, 28, 1), np.uint8),
        "y_train": np.arange(6, dtype=np.uint8),
        "x_test": np.zeros((4, 28, 28, 1), np.uint8),
        "y_test": np.arange(6, 10, dtype=np.uint8),
    }


ARCHIVES: dict[str, tuple[Arrays, tuple[str, ...], tuple[str, ...]]] = {
    "missing keys": (
        {},
        ("x_test", "y_test"),
        ("the archive lacks x_test, y_test", "it must hold x_train, y_train, x_test, y_test"),
    ),
    "images of another data set": (
        {"x_train": np.zeros((6, 32, 32, 3), np.uint8)},
        (),
        ("x_train must be [n, 28, 28, 1] for digits, but is [6, 32, 32, 3]",),
    ),
    "images as one number": ({"x_test": np.array(1, np.uint8)}, (), ("x_test must be [n, 28, 28, 1]", "but is []")),
    "more labels than images": (
        {"y_train": np.zeros(7, np.uint8)},
        (),
        ("y_train must be [6] like x_train and not empty, but is [7]",),
    ),
    "no sample": (
        {"x_test": np.zeros((0, 28, 28, 1), np.uint8), "y_test": np.zeros(0, np.uint8)},
        (),
        ("y_test must be [0] like x_test and not empty",),
    ),
    "images as NaN": (
        {"x_train": np.full((6, 28, 28, 1), NAN, np.float32)},
        (),
        ("x_train must be uint8, but is float32",),
    ),
    "labels as int64": ({"y_test": np.arange(4)}, (), ("y_test must be uint8, but is int64",)),
    "labels as Python objects": (
        {"y_train": np.array([None] * 6)},
        (),
        ("the file holds Python objects or is no npz archive; plain numeric arrays are allowed",),
    ),
    "a label out of range": (
        {"y_train": np.full(6, 10, np.uint8)},
        (),
        ("y_train holds class 10, but digits has classes 0 to 9",),
    ),
}


@pytest.mark.parametrize(("changes", "without", "words"), ARCHIVES.values(), ids=ARCHIVES)
def test_a_malformed_archive_is_told_in_one_sentence(
    tmp_path: Path, changes: Arrays, without: tuple[str, ...], words: tuple[str, ...]
) -> None:
    path = tmp_path / "digits.npz"
    arrays = {key: array for key, array in {**digits_like(), **changes}.items() if key not in without}
    np.savez(path, allow_pickle=True, **arrays)
    has(sentence(lambda: archives.read(path, "digits")), f"{path}: ", *words)


def halve(path: Path) -> None:
    np.savez(path, allow_pickle=False, **digits_like())
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def save_one_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


def zip_texts(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for key in archives.KEYS:
            archive.writestr(f"{key}.npy", "no array")


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (halve, "the file is truncated or is no npz archive; make or copy it again"),
        (Path.touch, "the file is truncated or is no npz archive; make or copy it again"),
        (lambda path: path.write_text("hello"), "the file holds Python objects or is no npz archive; plain"),
        (save_one_array, "the file is truncated or is no npz archive; make or copy it again"),
        (zip_texts, "x_train is no array; plain numeric arrays are allowed"),
    ],
    ids=["truncated", "empty", "text", "one array", "a zip of texts"],
)
def test_a_file_that_is_no_archive_is_told_in_one_sentence(
    tmp_path: Path, write: Callable[[Path], None], words: str
) -> None:
    path = tmp_path / "digits.npz"
    write(path)
    has(sentence(lambda: archives.read(path, "digits")), f"{path}: {words}")


def test_a_missing_archive_is_told_in_one_sentence(tmp_path: Path) -> None:
    text = sentence(lambda: archives.read(tmp_path / "none.npz", "digits"))
    has(text, f"{tmp_path / 'none.npz'}: there is no such file")


def lenet() -> Layout:
    return Layout(lenet5.build((28, 28, 1), 10, lenet5.Params()))


def mlp_weights(path: Path) -> None:
    model = mlp.build((28, 28, 1), 10, mlp.Params(hidden=4))
    save_file({name: tensor.detach().clone() for name, tensor in model.named_parameters()}, path)


@pytest.mark.parametrize("length", [0, 3, 200, -4])
def test_truncated_weights_are_told_in_one_sentence(tmp_path: Path, length: int) -> None:
    path = tmp_path / "original.safetensors"
    mlp_weights(path)
    path.write_bytes(path.read_bytes()[:length])
    text = sentence(lambda: weights.load(path, lenet()))
    has(text, f"{path}: the weights file is truncated", "delete it and run snakemake again")


def test_weights_with_foreign_notes_are_told_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "original.safetensors"
    save_file({}, path, metadata={"fu": "no JSON"})
    has(sentence(lambda: weights.load(path, lenet())), f"{path}: the weights file is truncated or broken")


def test_weights_of_another_model_are_told_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "original.safetensors"
    mlp_weights(path)
    text = sentence(lambda: weights.load(path, lenet()))
    has(text, f"{path}: the weights do not fit the model", "'0.bias' is absent, expected (6,)")


def test_missing_weights_are_told_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "none.safetensors"
    has(sentence(lambda: weights.load(path, lenet())), f"{path}: there is no such weights file")


SPEC = {
    "seed": 0,
    "dataset": "digits",
    "samples": None,
    "clients": 2,
    "partition": {"kind": "iid", "classes_per_client": None},
    "train_share": 0.75,
    "validation_share": 0.0,
    "forget": {"clients": 1},
    "backdoor": None,
}


def drawn(path: Path, samples: int = 40) -> None:
    labels = np.repeat(np.arange(10, dtype=np.uint8), samples // 10)
    np.savez(path, allow_pickle=False, **partition.draw(labels, 10, SPEC).arrays())


def test_a_truncated_partition_is_told_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "partition.npz"
    drawn(path)
    path.write_bytes(path.read_bytes()[:500])
    has(sentence(lambda: partition.load(path)), f"{path}: the file is truncated", "make or copy it again")


def test_an_archive_in_place_of_a_partition_is_told_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "partition.npz"
    np.savez(path, allow_pickle=False, **digits_like())
    has(sentence(lambda: partition.load(path)), f"{path}: this is no partition file", "run snakemake again")


def test_a_partition_of_another_data_set_is_told_in_one_sentence(tmp_path: Path) -> None:
    archive, path = tmp_path / "digits.npz", tmp_path / "partition.npz"
    np.savez(archive, allow_pickle=False, **digits_like())
    drawn(path, samples=40)
    text = sentence(lambda: clients.load(archive, path, "digits", torch.device("cpu"), "share"))
    has(text, f"{path}: the partition belongs to another data set", "sample 39", f"{archive} has samples 0 to 9")


def test_clients_that_share_too_few_of_the_samples_are_told_in_one_sentence() -> None:
    text = sentence(lambda: partition.draw(np.arange(40) % 2, 2, {**SPEC, "samples": 2}))
    has(text, "client 0 gets 0 training", "both must be at least 1: use fewer clients or another train_share")


def test_a_client_without_test_samples_is_told_in_one_sentence() -> None:
    text = sentence(lambda: partition.draw(np.arange(4) % 2, 2, {**SPEC, "train_share": 1.0}))
    has(text, "client 0 gets 2 training and 0 test samples of 2", "use fewer clients or another train_share")


def test_seven_classes_of_five_are_told_with_what_is_allowed() -> None:
    with pytest.raises(UserError, match=r"^a client cannot hold 7 classes of 5; 1 to 5 are allowed$"):
        pathological(4, 5, 7)


@pytest.mark.parametrize("spec", ["{", "[1]", "5", "null", ""])
def test_a_spec_that_is_no_json_object_is_told_in_one_sentence(spec: str) -> None:
    text = sentence(lambda: arguments("", [], ["output"], ["--spec", spec, "--output", "x"], compute=False))
    has(text, "--spec is no JSON object", "`make show CELL=...` prints a complete command")


def test_a_spec_that_lacks_a_value_is_told_in_one_sentence() -> None:
    args = arguments("", [], ["output"], ["--spec", "{}", "--output", "x"], compute=False)
    has(sentence(lambda: args.spec["dataset"]), "--spec: 'dataset' is missing", "prints a complete command")


def process(folder: Path, *command: str) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def contents(folder: Path) -> dict[str, bytes | None]:
    found = [path for path in folder.rglob("*") if ".snakemake" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in found}


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("presett=smoke", ("config: presett: unknown key; did you mean 'preset'?",)),
        ("preset=smok", ("config: preset: there is no preset 'smok'; did you mean 'smoke'?",)),
        ("preset=../x", (NAME_RULE, "got '../x'")),
        (
            "overrides={fedosd: {settings: {data: {clients: 3}}}}",
            ("data: partition: 3 clients with 2 of 10 classes each leave client 0 without data",),
        ),
    ],
    ids=["unknown key", "unknown preset", "preset outside its folder", "bad partition"],
)
def test_snakemake_ends_with_the_sentence_and_makes_nothing(
    tmp_path: Path, option: str, words: tuple[str, ...]
) -> None:
    folder = tmp_path / "work"
    older = folder / "results" / "smoke" / "data" / "digits.npz"
    older.parent.mkdir(parents=True)
    older.write_bytes(b"an older result")
    shutil.copy(ROOT / "config.yaml", folder)
    before = contents(tmp_path)
    status, output = process(folder, "snakemake", "-n", "--snakefile", str(ROOT / "Snakefile"), "--config", option)
    assert status == 1
    assert "Traceback" not in output
    assert sum(all(word in line for word in words) for line in output.splitlines()) == 1
    assert contents(tmp_path) == before


def ends_with_one_sentence(folder: Path, words: str, *command: str) -> None:
    before = contents(folder)
    status, output = process(folder, *command)
    assert status == 1
    assert "Traceback" not in output
    lines = output.splitlines()
    assert len(lines) == 1, output
    assert lines[0].startswith("error: ")
    assert lines[0].endswith(".")
    assert words in lines[0]
    assert contents(folder) == before


def test_the_partition_stage_leaves_everything_as_it_is_after_a_truncated_archive(tmp_path: Path) -> None:
    archive, output = tmp_path / "digits.npz", tmp_path / "partition.npz"
    halve(archive)
    output.write_bytes(b"an older result")
    files = ("--data", str(archive), "--output", str(output))
    words = f"{archive}: the file is truncated"
    ends_with_one_sentence(tmp_path, words, "fu.stages.partition", "--spec", json.dumps(SPEC), *files)


def test_the_data_stage_leaves_everything_as_it_is_after_a_malformed_archive(tmp_path: Path) -> None:
    folder, output = tmp_path / "data", tmp_path / "made" / "mnist.npz"
    folder.mkdir()
    np.savez(folder / "mnist.npz", allow_pickle=False, **{**digits_like(), "y_train": np.full(6, 11, np.uint8)})
    spec = json.dumps({"dataset": "mnist", "archive": archives.checksum(folder / "mnist.npz")})
    words = "y_train holds class 11, but mnist has classes 0 to 9"
    files = ("--data-dir", str(folder), "--output", str(output))
    ends_with_one_sentence(tmp_path, words, "fu.stages.data", "--spec", spec, *files)


def test_the_partition_stage_tells_an_impossible_split_and_makes_nothing(tmp_path: Path) -> None:
    archive = tmp_path / "digits.npz"
    np.savez(archive, allow_pickle=False, **digits_like())
    spec = json.dumps({**SPEC, "partition": {"kind": "pat", "classes_per_client": 7}, "train_share": 0.0})
    files = ("--data", str(archive), "--output", str(tmp_path / "made" / "partition.npz"))
    ends_with_one_sentence(tmp_path, "client 0 gets 0 training", "fu.stages.partition", "--spec", spec, *files)


def test_the_evaluate_stage_leaves_everything_as_it_is_after_truncated_weights(tmp_path: Path) -> None:
    archive, part, model = tmp_path / "digits.npz", tmp_path / "partition.npz", tmp_path / "original.safetensors"
    arrays = {**digits_like(), "x_train": np.zeros((36, 28, 28, 1), np.uint8), "y_train": np.zeros(36, np.uint8)}
    np.savez(archive, allow_pickle=False, **arrays)
    drawn(part, samples=40)
    mlp_weights(model)
    model.write_bytes(model.read_bytes()[:1000])
    trace, output = tmp_path / "original.csv", tmp_path / "original.evaluation.csv"
    trace.write_text("round\n")
    output.write_text("an older result\n")
    named = {"data": archive, "partition": part, "original": model, "models": model, "traces": trace, "output": output}
    files = [text for name, path in named.items() for text in (f"--{name}", str(path))]
    model_spec = {"name": "mlp", "params": {"hidden": 4}}
    spec = json.dumps({"dataset": "digits", "model": model_spec, "evaluators": ["utility"], "seed": 0, "torch": TORCH})
    words = f"{model}: the weights file is truncated"
    ends_with_one_sentence(tmp_path, words, "fu.stages.evaluate", "--spec", spec, "--device", "cpu", *files)


def test_the_stage_refuses_a_spec_that_is_no_json(tmp_path: Path) -> None:
    files = ("--data", str(tmp_path / "x.npz"), "--output", str(tmp_path / "y.npz"))
    ends_with_one_sentence(tmp_path, "--spec is no JSON object", "fu.stages.partition", "--spec", "{", *files)


def test_an_error_while_writing_keeps_the_older_result_and_leaves_no_part(tmp_path: Path) -> None:
    older, other = tmp_path / "a.csv", tmp_path / "b.csv"
    older.write_text("an older result\n")

    def write() -> None:
        with whole(older, other) as parts:
            parts[0].write_text("half")
            raise UserError("the disk is full.")

    sentence(write)
    assert contents(tmp_path) == {"a.csv": b"an older result\n"}
