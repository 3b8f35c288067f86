"""The guard: every stage really run with every plug-in, as the plan says; what it loads, its digest covers."""

import json
import os
import shlex
import subprocess
import sys
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fu import plugins
from fu.artefacts.entry import Claim
from fu.pipeline.plan import commands
from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance.catalogue import KINDS, audited, available, chooses, declared, reads, traces
from fu.pipeline.provenance.digest import ROOT, UNCOUNTED, closure, modules_of
from fu.pipeline.provenance.paths import OUTPUTS
from tests.factories import default_params

pytestmark = pytest.mark.whole

# Forks for every job, so that the libraries are imported once; prints the modules of fu that each job loaded.
RUNNER = """
import importlib, json, os, runpy, sys
for name in ("torch", "torch.func", "torch._dynamo", "safetensors.torch", "pandas", "seaborn", "matplotlib.figure",
             "matplotlib.backends.backend_pdf", "pydantic", "sklearn.datasets", "tabulate"):
    importlib.import_module(name)
assert not [name for name in sys.modules if name == "fu" or name.startswith("fu.")]
for job in json.loads(sys.stdin.read()):
    child = os.fork()
    if child == 0:
        sys.argv = [job["module"], *job["argv"]]
        try:
            runpy.run_module(job["module"], run_name="__main__")
            loaded = sorted(name for name in sys.modules if name == "fu" or name.startswith("fu."))
            open(job["report"], "w").write(json.dumps(loaded))
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit("failed: " + " ".join(map(str, sys.argv)))
"""
SMALL: dict[str, dict[str, Any]] = {
    "nfresnet18": {"stem": 8, "widths": [8, 16]},
    "cnn": {"channels": 4},
    "mlp": {"hidden": 8},
    "resnet18": {"widths": [8, 8]},
    "vgg16": {"weights": "random", "channels": [4, 4, 4, 4, 4]},
    "lstm": {"hidden": 4},
    "natural": {"minimum": 15},
    "groups": {"alpha": 10.0, "first": 2},
    "listed": {"classes": [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]},
}
PHASE = {"lr": 1e-4, "lr_decay": 1.0, "batch_size": 50, "local_epochs": 1, "local_steps": None, "evaluate_every": 1}
ABOUT = {"label": "A method", "source": "this test", "in_paper": False}
GRID = {"unlearning.lr": [1e-4, 1e-3]}
LONE: dict[str, Any] = {"unlearning.lr": []}
GLOBAL: dict[str, Any] = {"split": "official", "test": "global", "train_share": None}
SAMPLED = "guard-drawn"  # of which nothing is trained
KEPT = "guard-kept"
OWN = "guard-own"
OFFICIAL: dict[str, Any] = {
    "samples": 900,
    "split": "official",
    "train_share": None,
    "server": 20,
    "held_out": 20,
    "absent": 1,
}
AUDIT: dict[str, Any] = {  # every audit, on as few repeats as can decide its tests
    "seeds": [0, 1, 2, 3, 4, 5],
    "settings": {"model": {"params": {"hidden": 8}}, "training": {"rounds": 1}},
    "artefacts": {
        **{
            name: {"methods": ["partly.0", "partly.all"], "against": ["retraining"]}
            for name in ("remains", "controls", "clients", "harm", "settles", "costs", "relearning")
        },
        "exposed": {"methods": ["partly.all"], "against": ["retraining"]},
    },
}
TRAININGS: dict[str, Any] = {
    "guard.fedavg": {**ABOUT, "plugin": "fedavg", "params": {"client_weights": "equal"}},
    "guard.safari": {**ABOUT, "plugin": "safari", "grid": {"params.q": [0.25, 0.75]}},
    **{
        f"kept.{name}": {**ABOUT, "plugin": name, "settings": {"training": {"with_replacement": True}}}
        for name in ("fats", "fats_as_published")
    },
}


def plugin(kind: str, name: str) -> dict[str, Any]:
    given = default_params(plugins.load(kind, name).Params).model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {"name": name, "params": {**given, **SMALL.get(name, {})}}


def scenarios() -> dict[str, Any]:
    """So many scenarios that every model, way to train, partition and attack is in one; the first has LeNet-5.

    Only the first, and what is built on it, has shadows. Another has no attack, so that a request says whom to forget.
    Where a server helps, it has data of its own. Text has owners, and no attack.
    """
    texts = [name for name in available("models") if declared("models", name).get("TEXT")]
    apart = [name for name in available("partitions") if {"NATURAL", "FILE"} & declared("partitions", name).keys()]
    natural = [name for name in apart if declared("partitions", name).get("NATURAL")]
    models = sorted({*available("models")} - {*texts}, key=lambda name: (name != "lenet5", name))
    deals = [name for name in available("partitions") if name not in apart]
    ways = [way for way in available("training") if not {"KEEPS", "FILE"} & declared("training", way).keys()]
    recording = [way for way in ways if declared("training", way).get("RECORDS", True)]
    ways = [*recording, *(way for way in ways if way not in recording)]
    attacks = available("attacks")
    number = max(map(len, (models, ways, deals, attacks)))
    rows = islice(zip(cycle(models), cycle(ways), cycle(deals), cycle(attacks), strict=False), number)
    traced = [name for name in available("evaluation") if traces(name)]
    plain = [name for name in available("evaluation") if not declared("evaluation", name).get("SHADOWS")]
    of_text = [name for name in available("evaluation") if not declared("evaluation", name).get("IMAGES")]
    known = {"history": [name for name in available("histories") if not declared("histories", name).get("ATTACK")]}
    helped = [way for way in ways if declared("training", way).get("SERVER")]
    found: dict[str, Any] = {
        f"guard{k}": {
            "label": f"Guard {k}",
            "at": {"k": k, "half": k % 2},
            "settings": {
                "data": {
                    "dataset": "digits",
                    "samples": 900,
                    "clients": 5,  # who share ten classes in any way
                    "partition": plugin("partitions", deal),
                    "attack": plugin("attacks", attack),
                    **(OFFICIAL if way in helped else {}),
                },
                "model": plugin("models", model),
                "training": {
                    **PHASE,
                    "method": plugin("training", way),
                    "rounds": 1,
                    "history": available("histories") if way in recording else [],
                    "traced": traced,
                },
                "unlearning": {**PHASE, "rounds": 1, "conflicts": True},
                "recovery": PHASE,
                "total_rounds": 2,
                "evaluations": {"evaluation": plain if k else available("evaluation")},
            },
        }
        for k, (model, turn, deal, attack) in enumerate(rows)
        for way in ["fedavg" if declared("models", model).get("STATISTICS") else turn]
    }
    asked = {"label": "Guard, asked", "base": "guard0", "settings": {"data": {"attack": None}, "training": known}}
    owned = {
        f"guard-{text}-{deal}": {
            "label": "Guard, text",
            "base": "guard0",
            "settings": {
                "data": {
                    "attack": None,
                    "dataset": "letters",
                    "samples": 2000,
                    **GLOBAL,
                    "partition": plugin("partitions", deal),
                },
                "model": plugin("models", text),
                "training": known,
                "evaluations": {"evaluation": of_text},
            },
        }
        for text in texts
        for deal in natural
    }
    drawn = {
        "label": "Guard, drawn",
        "base": "guard-asked",
        "at": {"k": 0},
        "settings": {
            "data": {"forget": {"clients": 1}},
            "training": {"clients_per_round": 1, "local_epochs": None, "local_steps": 2, "history": []},
        },
    }
    kept = {
        "label": "Guard, kept",
        "base": SAMPLED,
        "settings": {
            "data": {"forget": {"clients": None, "samples": 2}},
            "unlearning": {"conflicts": False, "local_epochs": None},
        },
    }
    return {**found, "guard-asked": asked, **owned, SAMPLED: drawn, KEPT: kept}


def own(folder: Path) -> dict[str, Any]:
    """Return a scenario whose model and split are files of one's own, which are written."""
    import torch

    lenet = plugins.load("models", "lenet5")
    model, split = folder / "model.pt", folder / "split.npz"
    torch.save(lenet.build((20, 20, 1), 10, lenet.Params()).state_dict(), model)
    parts = np.array_split(np.arange(1540), 5)
    np.savez(split, **{str(client): rows for client, rows in enumerate(parts)})  # type: ignore[arg-type]
    measured = {"traced": ["accuracy"]}
    data = {**GLOBAL, "samples": None, "partition": {"name": "given", "params": {"file": str(split)}}}
    settings = {
        "data": data,
        "training": {"method": {"name": "checkpoint", "params": {"file": str(model)}}, "history": [], **measured},
        "unlearning": {**measured, "conflicts": False},
        "recovery": measured,
        "evaluations": {"evaluation": ["accuracy"]},
    }
    return {OWN: {"label": "Guard, own", "base": "guard-asked", "settings": settings}}


def methods() -> dict[str, Any]:
    """Every method, one of them with a grid, and every projection after that one."""
    alone = {
        f"guard.{name}": {
            **ABOUT,
            "plugin": name,
            "params": plugin("methods", name)["params"],
            "post_training": "none",
            "settings": {"grid": LONE},
            **({"trained_by": f"kept.{training}"} if (training := declared("methods", name).get("CONTINUES")) else {}),
        }
        for name in available("methods")
    }
    again = {f"guard.again{k}": {**alone["guard.retrain"], "params": {"repeat": k}} for k in (1, 2, 3)}
    tuned = {**ABOUT, "plugin": "fedosd", "settings": {"grid": GRID}}
    after = {
        f"guard.{name}": {
            **ABOUT,
            "unlearned_from": "guard.tuned",
            "settings": {"recovery": {"projection": plugin("projections", name)}, "grid": GRID},
        }
        for name in available("projections")
    }
    return {name: {**about, "label": name} for name, about in {**alone, **again, "guard.tuned": tuned, **after}.items()}


def artefacts() -> dict[str, Any]:
    """Every kind of artefact, and a table of the scenarios that the others do not show."""
    all_methods, all_scenarios = methods(), scenarios()
    first, *others = [name for name in all_scenarios if name not in (SAMPLED, KEPT)]
    kept = [name for name, about in all_methods.items() if "trained_by" in about]
    found: dict[str, Any] = {}
    for kind in (one for one in available("artefacts") if not (audited(one) or "relearning" in reads(one))):
        tuned = [name for name, about in all_methods.items() if about["settings"]["grid"] is GRID]
        shown = (
            [name for name in all_methods if name not in kept]
            if chooses(kind) or {"holdings", "examples"} & {*reads(kind)}
            else tuned
        )
        about: dict[str, Any] = {
            "scenarios": [first],
            "methods": shown,
            "metrics": ["steps"] if kind == "runtime" else ["asr", "r_acc"],
        }
        if kind in ("across", "gains"):
            about = {"trainings": ["guard.safari"], "against": ["guard.fedavg"], "stages": ["original"]}
            about |= {"scenarios": ["guard1"], "metrics": ["accuracy"], "x": "k", "lines": ["half"]}
        if not reads(kind):
            needs = declared("artefacts", kind).get("NEEDS", ())
            about = {"scenarios": [SAMPLED], "x": "k" if "x" in needs else None} if "scenarios" in needs else {}
        if kind in ("matrix", "overall"):
            about |= {"x": "k"} if kind == "overall" else {}
            about |= {"methods": tuned, "against": [name for name in all_methods if name.startswith("guard.again")]}
        if kind == "tradeoffs":
            about |= {"methods": ["guard.retrain"], "against": ["guard.fedavg", "guard.again1"]}
            about |= {"metrics": ["client_accuracy"]}
        if kind == "speed":
            about |= {"methods": ["guard.retrain"], "metrics": ["retained_accuracy", "steps"]}
        found[f"guard_{kind}"] = {"kind": kind, **about}
    about = {"trainings": ["kept.fats"], "scenarios": [SAMPLED], "metrics": ["accuracy"], "stages": ["original"]}
    found["guard_stability"] |= {"methods": [], **about}
    found["guard_kept"] = {"kind": "table", "scenarios": [KEPT], "methods": kept, "metrics": ["steps"]}
    found["guard_own"] = {"kind": "table", "scenarios": [OWN], "methods": ["guard.retrain"], "metrics": ["accuracy"]}
    metrics = ["r_acc", "steps"]
    found["guard_rest"] = {"kind": "table", "scenarios": others, "methods": ["guard.retrain"], "metrics": metrics}
    del found["guard_verdicts"]["methods"], found["guard_verdicts"]["metrics"], found["guard_verdicts"]["scenarios"]
    return {name: {"title": "T", "caption": "C", "in_paper": False, **about} for name, about in found.items()}


def claims() -> dict[str, Claim]:
    """A claim of every kind, about one table."""
    of = {"method": "guard.tuned", "metric": "asr"}
    side = {"of": of, "side": "above"}
    params: dict[str, dict[str, Any]] = {
        "order": {**side, "than": of},
        "limit": {**side, "limit": 0.0},
        "equal": {"of": of, "than": of, "margin": 1.0},
        "at_least": {**side, "than": of, "margin": 1.0},
        "best": {**side, "among": ["guard.away_from_original"]},
        "trend": {"of": of, "along": "k", "way": "rising"},
        "exact": {"of": of, "value": 0.0},
        "interval": {**side, "limit": 0.0},
    }
    about = {"text": "T", "place": "P", "artefact": "guard_table", "scenarios": ["guard0"]}
    return {kind: Claim(kind=kind, params=params[kind], **about) for kind in available("claims")}


@pytest.fixture
def planned(mine: Path) -> Plan:
    """A plan of everything that there is, and of a method of one's own."""
    (mine / "methods").mkdir()
    (mine / "methods/mine.py").write_text((ROOT / "fu/methods/retrain.py").read_text())
    config = {"preset": "smoke", "papers": ["fedosd", "audit"], "plugins": str(mine), "device": "cpu"}
    Plan(config)  # knows the folder now
    laid = {"scenarios": {**scenarios(), **own(mine)}, "methods": methods(), "artefacts": artefacts()}
    plan = Plan({**config, "overrides": {"fedosd": {**laid, "trainings": TRAININGS}, "audit": AUDIT}})
    plan.papers["fedosd"] = plan.papers["fedosd"].model_copy(
        update={"claims": claims()}
    )  # the paper's own need it whole
    return plan


def test_every_stage_loads_only_what_its_digest_covers(planned: Plan, tmp_path: Path) -> None:
    jobs = list(planned.jobs(*[key for key in planned.artefacts if key[0] == "audit" or key[1].startswith("guard_")]))
    jobs.append(planned.job("oracles", {"scenario": "audit/mnist-backdoor"}))  # no artefact shows them
    orders: list[dict[str, Any]] = []
    for k, job in enumerate(jobs):
        _, _, module, *argv = shlex.split(commands.complete(planned, job, "python"))
        report = str(tmp_path / f"{k}.loaded")
        orders.append({"module": module, "argv": [*argv, "--code", job.code], "report": report})
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps(orders),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=3600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    stray, unused, named = {}, {}, set()
    for order, job in zip(orders, jobs, strict=True):
        loaded = set(json.loads(Path(order["report"]).read_text()))
        start = modules_of(job.stage, job.spec)
        name = f"{job.stage} {job.names}"
        stray[name] = loaded - set(closure(start)) - UNCOUNTED
        unused[name] = set() if job.inputs.get("points") else set(start[1:]) - loaded  # a copy loads none
        named |= set(start[1:])
        assert {path for path in job.outputs.values() if not (tmp_path / path).exists()} == set()
    assert {name: found for name, found in stray.items() if found} == {}
    assert {name: found for name, found in unused.items() if found} == {}  # the jobs did load their plug-ins
    # Every stage was run, with every plug-in but other data sets.
    assert {job.stage for job in jobs} == set(OUTPUTS)
    kinds = [kind for kind in KINDS if kind != "datasets"]
    every = {f"fu.{kind}.{name}" for kind in kinds for name in available(kind)}
    assert named == {*every, "fu.datasets.digits", "fu.datasets.letters"}
    # Nothing diverged, so that all was really computed; neither checkpoints nor half-written files are left.
    chosen = json.loads((tmp_path / "results/smoke/fedosd/guard0/guard.tuned.selected.json").read_text())
    assert chosen["selected"] in planned.names["fedosd/guard0", "guard.tuned"]
    evaluations = [job.outputs["evaluation"] for job in jobs if job.stage == "evaluate"]
    assert [path for path in evaluations if "diverged_round" in (tmp_path / path).read_text()] == []
    assert [path.name for path in (tmp_path / "results").rglob(".*")] == []
