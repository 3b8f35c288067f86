"""An entry of trainings in memory: FedAvg and `safari`, whose grid has two values of q and two rates of the server.

Scenarios have p = 2 and 1 classes per client and n = 50 and 100 samples at the server. FedAvg has a model for each p.
"""

from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd

from fu.artefacts.entry import Entry, Method, Scenario, Trial
from tests.artefacts.factories import COLUMNS, make_entry

ROUNDS = 3
NAMES = {"p": "classes per client, p", "n": "server data, n"}
QS, LRS = (0.9, 0.5), (0.1, 1.0)
Value = Callable[
    [Scenario, str, Trial, int, int], float
]  # of scenario, training, trial, seed and round (-1: evaluated)


def make_scenario(p: int, n: int, **changes: Any) -> Scenario:
    """Return the scenario of so many classes per client and samples at the server."""
    about: dict[str, Any] = {"name": f"p{p}-n{n}", "label": f"P{p} N{n}", "dataset": "digits", "data": "digits"}
    return Scenario(**{**about, "rounds": (ROUNDS, None), "at": {"p": p, "n": n}, "original": None, **changes})


SCENARIOS = tuple(make_scenario(p, n) for p in (2, 1) for n in (50, 100))


def make_fedavg(scenarios: Iterable[Scenario] = SCENARIOS) -> Method:
    """Return FedAvg, whose model lies in the folder of the scenario without a server."""
    trials = {s.name: (Trial(name="fedavg", rate=0.1, values={}, trained=f"p{s.at['p']}/fedavg"),) for s in scenarios}
    return Method(name="fedavg", label="FedAvg", in_paper=True, post_training="none", trains=True, trials=trials)


def make_safari(scenarios: Iterable[Scenario] = SCENARIOS, name: str = "safari") -> Method:
    """Return the training with a grid."""
    trials = tuple(
        Trial(
            name=f"{name}+q{q}-lr{lr}",
            rate=0.1,
            values={"params.q": q, "params.server_lr": lr},
            trained=f"{name}+q{q}-lr{lr}",
        )
        for q in QS
        for lr in LRS
    )
    about: dict[str, Any] = {"label": name.upper(), "in_paper": True, "post_training": "none", "trains": True}
    return Method(name=name, **about, trials={scenario.name: trials for scenario in scenarios})


def make_trained(kind: str, **changes: Any) -> Entry:
    """Return the entry of a kind with both trainings; FedAvg is what is compared with."""
    values: dict[str, Any] = {
        "metrics": ("accuracy",),
        "stages": ("original",),
        "scenarios": SCENARIOS,
        "methods": (make_fedavg(), make_safari()),
        "against": ("fedavg",),
        "names": NAMES,
        "rule": "the highest",
        "chosen": {},
    }
    return make_entry(kind, **{**values, **changes})


def frame_of(entry: Entry, value: Value, rounds: Iterable[int] = (-1,)) -> pd.DataFrame:
    """Return the frame of an entry of trainings with these values in these rounds."""
    rows = [
        {
            **{
                "scenario": scenario.name,
                "method": method.name,
                "trial": trial.name,
                "model": f"{trial.trained}.trained",
            },
            **{"seed": seed, "stage": "original", "round": round, "metric": metric.name, "published": False},
            "value": value(scenario, method.name, trial, seed, round),
        }
        for scenario in entry.scenarios
        for method in entry.methods
        for trial in ((entry.trial(scenario.name, method),) if entry.chooses else method.trials[scenario.name])
        for seed in entry.seeds
        for metric in entry.metrics
        for round in rounds
    ]
    return pd.DataFrame(rows, columns=COLUMNS).astype({"published": bool})
