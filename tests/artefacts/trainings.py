"""An entry of trainings in memory: FedAvg and `safari`, whose grid has two values of q and two rates of the server.

Scenarios have p = 2 and 1 classes per client and n = 50 and 100 samples at the server. FedAvg has a model for each p.
"""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import pandas as pd

from fu.artefacts.entry import Entry, Method, Scenario, Trial
from tests.artefacts.factories import COLUMNS, make_entry, scenario_of, training_of

ROUNDS = 3
NAMES = {"p": "classes per client, p", "n": "server data, n"}
QS, LRS = (0.9, 0.5), (0.1, 1.0)
# Of scenario, training, trial, seed and round (-1: evaluated).
Value = Callable[[Scenario, str, Trial, int, int], float]


def make_scenario(p: int, n: int) -> Scenario:
    """Return the scenario of so many classes per client and samples at the server."""
    return scenario_of(f"p{p}-n{n}", label=f"P{p} N{n}", rounds=(ROUNDS, None), at={"p": p, "n": n}, original=None)


SCENARIOS = tuple(make_scenario(p, n) for p in (2, 1) for n in (50, 100))


def make_fedavg(scenarios: Iterable[Scenario] = SCENARIOS) -> Method:
    """Return FedAvg, whose model lies in the folder of the scenario without a server."""
    trials = {s.name: (Trial(name="fedavg", rate=0.1, values={}, trained=f"p{s.at['p']}/fedavg"),) for s in scenarios}
    return training_of("fedavg", label="FedAvg", trials=trials)


def make_safari(scenarios: Iterable[Scenario] = SCENARIOS) -> Method:
    """Return the training with a grid."""
    grid = {f"safari+q{q}-lr{lr}": {"params.q": q, "params.server_lr": lr} for q, lr in product(QS, LRS)}
    trials = tuple(Trial(name=name, rate=0.1, values=values, trained=name) for name, values in grid.items())
    return training_of("safari", label="SAFARI", trials={scenario.name: trials for scenario in scenarios})


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
    rows = []
    for scenario, method in product(entry.scenarios, entry.methods):
        for trial, seed, metric, round in product(
            entry.trials(scenario.name, method), entry.seeds, entry.metrics, rounds
        ):
            about: dict[str, Any] = {
                "scenario": scenario.name,
                "method": method.name,
                "trial": trial.name,
                "stage": "original",
            }
            about |= {"model": f"{trial.trained}.trained", "seed": seed, "round": round, "published": False}
            number = value(scenario, method.name, trial, seed, round)
            rows.append({**about, "metric": metric.name, "value": number})
    return pd.DataFrame(rows, columns=COLUMNS).astype({"published": bool})
