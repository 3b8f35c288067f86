"""Mistakes in a user's own plug-ins: one sentence with the file and line of the plug-in, before anything is written."""

import json
from pathlib import Path
from typing import Any

import pytest

from fu.pipeline.stages import evaluate, train, unlearn
from tests.mistakes import has
from tests.pipeline.stages.scene import LAYOUT, MODEL, PHASE, Scene, make_scene, model
from tests.pipeline.stages.scene import refused as told

METHOD = '''"""Mine."""

from dataclasses import dataclass

import torch
from pydantic import BaseModel

from fu.federation.task import State

needs = set()


class Params(BaseModel, extra="forbid"):
    """None."""


@dataclass(frozen=True)
class Other(State):
    more: float = 0.0


def start(task, p):
    return State(torch.zeros(task.federation.layout.size))


def step(task, p, state, round):
    return state
'''
EVALUATOR = '''"""Mine."""

METRICS = {"calm": {"label": "C", "unit": "1", "better": "neither", "formula": "1", "source": "me"}}
TRACE = ("calm",)


def evaluate(context):
    return {"calm": 1.0}


def trace(context):
    return {"calm": 1.0}
'''
NETWORK = '''"""Mine."""

from pydantic import BaseModel
from torch import nn


class Params(BaseModel, extra="forbid"):
    """None."""


def build(shape, classes, p):
    return nn.Sequential(nn.Flatten(), nn.Linear(400, classes))
'''


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """The files that stages read, in a folder that nobody writes to."""
    (tmp_path / "scene").mkdir()
    scene = make_scene(tmp_path / "scene")
    scene.save("original", model(0))
    scene("original.csv").write_text("round\n")
    return scene


def refused(stage: Any, scene: Scene, mine: Path, spec: dict[str, Any], **files: Path) -> str:
    """Return the sentence with which a stage ends that meets a mistake in a plug-in."""
    words = ["--spec", json.dumps(spec), "--plugins", str(mine), "--device", "cpu"]
    for name, path in {**scene.shared, **files}.items():
        words += [f"--{name}", str(path)]
    text = told(scene.folder, stage, *words)
    assert text.startswith(f"{mine}/")
    return text.removeprefix(f"{mine}/")


def write(mine: Path, kind: str, text: str) -> None:
    """Write a plug-in, beside nothing that was written before."""
    (mine / kind).mkdir(exist_ok=True)
    (mine / kind / "mine.py").write_text(text)


def line(text: str, what: str) -> int:
    """Return the number of the line with some words."""
    (number,) = [number for number, one in enumerate(text.splitlines(), 1) if what in one]
    return number


def unlearned(scene: Scene, mine: Path, text: str) -> str:
    """Return the sentence with which the unlearning by a method ends."""
    write(mine, "methods", text)
    spec = {**PHASE, "traced": (), "method": {"name": "mine"}, "training": None, "server": None, "watch": None}
    return refused(unlearn, scene, mine, spec, original=scene("original.safetensors"), **scene.outputs("made"))


def trained(scene: Scene, mine: Path, **spec: Any) -> str:
    """Return the sentence with which a training ends."""
    given = {**PHASE, "traced": (), "training": {"name": "fedavg"}, "history": (), "server": None, **spec}
    return refused(train, scene, mine, given, **scene.outputs("made"), history=scene("history"))


SIZE = LAYOUT.size
STATES = {
    "None": "NoneType",
    "Other(state.theta)": "Other",
    "State(1.0)": "'theta' of type float",
    "State(state.theta[:-1])": f"'theta' of torch.float32 [{SIZE - 1}]",
    "State(state.theta.double())": f"'theta' of torch.float64 [{SIZE}]",
}


@pytest.mark.parametrize("returned", STATES)
def test_a_step_that_returns_no_state_is_refused(scene: Scene, mine: Path, returned: str) -> None:
    text = METHOD.replace("return state", f"return {returned}")
    assert unlearned(scene, mine, text) == (
        f"methods/mine.py: line {line(text, 'def step')}: step must return a State, whose 'theta' is the model "
        f"(float32 [{SIZE}]) and all else tensors and numbers; got {STATES[returned]}."
    )


def test_a_start_that_returns_no_state_is_refused(scene: Scene, mine: Path) -> None:
    text = METHOD.replace("def start(task, p):", "def start(task, p) -> Other:")
    text = text.replace("return State(", "return Other(").replace(".layout.size))", ".layout.size), [1])")
    told = f"methods/mine.py: line {line(text, 'def start')}: start must return a Other, whose 'theta' is the model "
    has(unlearned(scene, mine, text), told, "got 'more' of type list.")


@pytest.mark.parametrize(("returned", "got"), [("int", "<class 'int'>"), ("Nowhere", "name 'Nowhere' is not defined")])
def test_a_start_that_is_annotated_otherwise_is_refused(scene: Scene, mine: Path, returned: str, got: str) -> None:
    text = METHOD.replace("def start(task, p):", f"def start(task, p) -> '{returned}':")
    place = f"methods/mine.py: line {line(text, 'def start')}: "
    assert unlearned(scene, mine, text) == f"{place}start must be annotated to return a State, got {got}."


def test_a_training_that_returns_no_state_is_refused(scene: Scene, mine: Path) -> None:
    write(mine, "training", text := METHOD.replace("return state", "return None"))
    told = f"training/mine.py: line {line(text, 'def step')}: step must return a State, "
    has(trained(scene, mine, training={"name": "mine"}), told)


@pytest.mark.parametrize(
    ("bug", "told"),
    [
        ("return state.thetta", "AttributeError: 'State' object has no attribute 'thetta'."),
        ("raise ValueError('too\\nmany.')", "ValueError: too many."),
        (
            "task.federation.local_updates(state.theta, [0], round, 'cros_entropy')",
            "ValueError: local_updates: there is no loss 'cros_entropy'; did you mean 'cross_entropy'? allowed: "
            "cross_entropy, negative_cross_entropy, unlearning_cross_entropy.",
        ),
        ("return helped(state)", ""),
    ],
)
def test_a_bug_is_told_with_its_line_after_the_whole_traceback(
    scene: Scene, mine: Path, bug: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(mine, "methods", "")
    (mine / "methods/helper.py").write_text("def step(state):\n    return state.thetta\n")
    text = METHOD.replace("    return state", f"    {bug}").replace(
        "import torch", "import torch\nfrom fu.methods.helper import step as helped"
    )
    place = f"methods/mine.py: line {line(text, bug)}: "
    if not told:
        place, told = "methods/helper.py: line 2: ", "AttributeError: 'State' object has no attribute 'thetta'."
    assert unlearned(scene, mine, text) == place + told
    log = capsys.readouterr().err
    assert log.count("Traceback (most recent call last):") == 1
    has(log, "fu/federation/driver.py", f'{mine}/methods/mine.py", line {line(text, bug)}, in step')


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ("{'calm': context.theta.mean()}", "'calm' of type Tensor"),
        ("{'calm': True}", "'calm' of type bool"),
        ("None", "NoneType"),
    ],
)
def test_an_evaluator_that_returns_no_numbers_is_refused_at_its_first_evaluation(
    scene: Scene, mine: Path, returned: str, told: str
) -> None:
    text = EVALUATOR.replace("{'calm': 1.0}", returned).replace('{"calm": 1.0}', returned)
    write(mine, "evaluation", text)
    place = {name: f"evaluation/mine.py: line {line(text, f'def {name}')}: {name} " for name in ("trace", "evaluate")}
    expected = f"must return one number per metric, got {told}."
    assert trained(scene, mine, traced=("mine",)) == place["trace"] + expected
    original = scene("original.safetensors")
    files = {"original": original, "models": original, "traces": scene("original.csv")}
    files |= {"evaluation": scene("made.csv"), "predictions": scene("made.st")}
    spec = {**MODEL, "roles": ["original"], "evaluators": ["mine"]}
    assert refused(evaluate, scene, mine, spec, **files) == place["evaluate"] + expected


def test_a_model_that_cannot_be_trained_is_refused(scene: Scene, mine: Path) -> None:
    write(mine, "models", text := NETWORK.replace("nn.Linear(", "nn.BatchNorm1d(400), nn.Linear("))
    place = f"models/mine.py: line {line(text, 'def build')}: "
    assert trained(scene, mine, model={"name": "mine"}) == (
        f"{place}build returns a model with buffers (1.running_mean), which few methods here average; declare "
        "STATISTICS = True, or use nn.GroupNorm or no normalisation (nfresnet18)."
    )
