"""Training, unlearning, post-training: each stage's files against the same rounds driven by hand.

The task is made from the values of the scene alone (stream, poison, rate, clients, original model), so whatever a stage
hands over differently shows in the model.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from fu import plugins
from fu.contents import checksum
from fu.evaluation import backdoor, conflicts, distance, utility
from fu.evaluation.context import Context
from fu.federation import model_files, plugged
from fu.federation.task import State, Task
from fu.methods import retrain
from fu.pipeline.provenance.catalogue import needs
from fu.pipeline.stages import recover, train, unlearn
from fu.plugins import Choice
from fu.projections import away_from_original
from fu.training import fedavg
from tests.factories import KINDS, default_params
from tests.federation.runs import KilledError
from tests.pipeline.stages.scene import (
    LAYOUT,
    OPTIONS,
    PHASE,
    ROUNDS,
    Scene,
    loop,
    make_scene,
    make_task,
    model,
    noted_tests,
)

ASR, R_ACC = ("asr", "asr_held_out"), ("r_acc", "r_acc_std", "r_acc_worst", "r_acc_best")
COUNTS = (
    *("client_rounds", "forgotten_rounds", "steps", "samples", "time_steps", "replayed"),
    *("bytes_up", "bytes_down", "stored"),
)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return make_scene(tmp_path)


def measured(task: Task, theta: torch.Tensor) -> dict[str, float]:
    """Return what the trace says of a model in a round that is evaluated."""
    context = Context(task.federation.network, task.federation.data, theta, task.original)
    return {**backdoor.trace(context), **utility.trace(context), **distance.trace(context)}


def assert_trace(rows: list[dict[str, str]], first_round: int, models: list[torch.Tensor], task: Task) -> None:
    """The first row is the model that a run begins with; every third round is measured, and the last two."""
    assert [int(row["round"]) for row in rows] == list(range(first_round, first_round + ROUNDS + 1))
    for number, (row, theta) in enumerate(zip(rows, models, strict=True)):
        expected = measured(task, theta) if number in (0, 2, ROUNDS) else {}
        found = {metric: float(row[metric]) for metric in (*ASR, *R_ACC, "distance") if row[metric]}
        assert found == pytest.approx(expected, abs=1e-6), number


def counts(row: dict[str, str]) -> dict[str, int]:
    return {name: int(row[name]) for name in COUNTS}


# ---- the original training -----------------------------------------------------------------------------------------


def trained(scene: Scene, weights: str, history: tuple[str, ...] = ()) -> None:
    chosen = Choice(name="fedavg", params={"client_weights": weights})
    scene.train(train.Spec(**PHASE, training=chosen, history=history, server=None))


@pytest.mark.parametrize("weights", ["samples", "equal"])
def test_the_original_training_is_that_of_all_clients_with_the_share_that_carries_the_trigger(
    scene: Scene, weights: str
) -> None:
    trained(scene, weights)
    task = make_task("training", "share")
    p = fedavg.Params(client_weights=weights)  # type: ignore[arg-type]
    models = loop(
        State(task.new_model("original")), lambda state, round: fedavg.step(task, p, state, round), range(ROUNDS)
    )
    assert torch.equal(scene.theta("original"), models[-1])
    rows = scene.rows("original.csv")
    assert_trace(rows, 0, models, task)
    assert {row["conflicts"] for row in rows} == {""}
    assert scene.cost("original")["inputs"] == [checksum(path) for path in scene.shared.values()]
    steps, samples, sent = 2 * (2 + 3 + 2), 2 * (7 + 12 + 9), 4 * LAYOUT.size  # a round of all three clients
    assert [counts(row) for row in rows] == [
        {
            "client_rounds": 3 * k,
            "forgotten_rounds": k,
            "steps": steps * k,
            "samples": samples * k,
            "time_steps": 2 * 3 * k,
            "replayed": 0,
            "bytes_up": 3 * sent * k,
            "bytes_down": 3 * sent * k,
            "stored": 0,
        }
        for k in range(ROUNDS + 1)
    ]


def test_the_original_training_records_the_histories_that_are_asked_for(scene: Scene) -> None:
    wanted = ("last_local_models", "update_norms")
    trained(scene, "samples", wanted)
    task = make_task("training", "share")
    expected: dict[str, dict[str, torch.Tensor]] = {kind: {} for kind in wanted}

    def step(state: Any, round: int) -> Any:
        following = fedavg.step(task, fedavg.Params(), state, round)
        for kind in wanted:
            expected[kind] = KINDS[kind](task, expected[kind], state.theta, round)
        return following

    loop(State(task.new_model("original")), step, range(ROUNDS))
    tensors, _ = model_files.read(scene("history.safetensors"))
    flat = {f"{kind}.{name}": value for kind, record in expected.items() for name, value in record.items()}
    assert tensors.keys() == flat.keys()
    assert all(torch.equal(tensors[name], flat[name]) for name in flat)


# ---- unlearning ----------------------------------------------------------------------------------------------------


@pytest.fixture
def recorded(scene: Scene) -> dict[str, dict[str, torch.Tensor]]:
    """What the original training has recorded, in its file."""
    task = make_task("training", "share")
    found = {kind: record(task, {}, model(0), 0) for kind, record in KINDS.items()}
    model_files.save_histories(scene("history.safetensors"), found)
    return found


RETRAINED = Choice(name="fedavg", params={"client_weights": "equal"})


def unlearned(scene: Scene, method: str, watch: str | None = "conflicts", **params: Any) -> None:
    params = {**default_params(plugins.load("methods", method).Params).model_dump(by_alias=True), **params}
    training = RETRAINED if method.startswith("retrain") else None
    about = {"method": Choice(name=method, params=params), "training": training, "server": None, "watch": watch}
    scene.save("original", model(0))
    scene.unlearn(unlearn.Spec(**PHASE, **about), history=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["fedosd", "mode", "federaser", "fedrecovery", "retrain"])
def test_a_method_unlearns_from_the_original_model_with_the_trigger_on_all_samples_of_the_target(
    scene: Scene, recorded: dict[str, dict[str, torch.Tensor]], method: str
) -> None:
    unlearned(scene, method)
    module = plugins.load("methods", method)
    p = default_params(module.Params)
    task = make_task("unlearning", "all", original=model(0))
    training = plugged.training_of(RETRAINED)
    task = replace(task, histories={kind: recorded[kind] for kind in needs(method)}, training=training)
    models = loop(module.start(task, p), lambda state, round: module.step(task, p, state, round), range(ROUNDS))
    assert torch.equal(scene.theta("unlearned"), models[-1])
    rows = scene.rows("unlearned.csv")
    assert_trace(rows, 0, models, task)
    stored = sum(tensor.nbytes for kind in needs(method) for tensor in recorded[kind].values())
    assert {int(row["stored"]) for row in rows} == {stored}
    assert counts(rows[-1]) == {**task.federation.cost.record(), "stored": stored}
    read = [*scene.shared.values(), scene("original.safetensors"), scene("history.safetensors")]
    assert scene.cost("unlearned")["inputs"] == [checksum(path) for path in read]
    again = make_task("unlearning", "all", original=model(0))
    conflicting = [conflicts.count(again, models[k], models[k + 1], k)["conflicts"] for k in range(ROUNDS)]
    assert [row["conflicts"] for row in rows] == ["", *map(str, conflicting)]


def test_a_round_of_unlearning_is_watched_only_where_that_is_asked_for(scene: Scene, recorded: object) -> None:
    unlearned(scene, "retrain", watch=None)
    assert {row["conflicts"] for row in scene.rows("unlearned.csv")} == {""}


def test_a_control_trains_on_what_is_left_of_the_target_as_the_original_training_did(
    scene: Scene, recorded: object
) -> None:
    unlearned(scene, "retrain_partly", share=1)
    module, task = plugins.load("methods", "retrain_partly"), make_task("unlearning", "share", original=model(0))
    task = replace(task, training=plugged.training_of(RETRAINED))
    p = module.Params(share=1)
    models = loop(module.start(task, p), lambda state, round: module.step(task, p, state, round), range(ROUNDS))
    assert torch.equal(scene.theta("unlearned"), models[-1])


# ---- post-training -------------------------------------------------------------------------------------------------


FIRST = 4  # the number of the first round of post-training


def recovered(scene: Scene, weights: str, projection: Choice | None, exception: tuple[int, float] | None) -> None:
    local = {**PHASE["local"], "exception": exception}
    scene.save("original", model(0))
    scene.save("unlearned", model(1))
    spec = {**PHASE, "local": local, "projection": projection, "client_weights": weights, "first_round": FIRST}
    scene.recover(recover.Spec(**spec))


@pytest.mark.parametrize("weights", ["samples", "equal"])
@pytest.mark.parametrize("where", [None, "conflicting", "always"])
@pytest.mark.parametrize("exception", [None, (FIRST, 0.7)], ids=["one rate", "the first round keeps its rate"])
def test_post_training_goes_on_from_the_unlearned_model_with_the_retained_clients(
    scene: Scene, weights: str, where: str | None, exception: tuple[int, float] | None
) -> None:
    projection = Choice(name="away_from_original", params={"where": where}) if where else None
    recovered(scene, weights, projection, exception)
    task = make_task("unlearning", "all", exception, original=model(0))
    share = torch.tensor([7 / 16, 9 / 16] if weights == "samples" else [0.5, 0.5])

    def step(state: Any, round: int) -> Any:
        theta = state.theta
        delta = task.federation.local_updates(theta, [0, 2], round).delta
        if where:
            p = away_from_original.Params(where=where)  # type: ignore[arg-type]
            delta = away_from_original.project(task, p, theta, delta)
        return State(theta + share @ delta)

    models = loop(State(model(1)), step, range(FIRST, FIRST + ROUNDS))
    torch.testing.assert_close(scene.theta("recovered"), models[-1], rtol=1e-6, atol=1e-7)
    rows = scene.rows("recovered.csv")
    assert_trace(rows, FIRST, models, task)
    assert counts(rows[0]) == dict.fromkeys(COUNTS, 0)
    assert [counts(row)["client_rounds"] for row in rows] == [0, 2, 4, 6]
    assert counts(rows[-1])["samples"] == ROUNDS * 2 * (7 + 9)
    read = [*scene.shared.values(), scene("original.safetensors"), scene("unlearned.safetensors")]
    assert scene.cost("recovered")["inputs"] == [checksum(path) for path in read]


def test_no_stage_trains_on_data_that_name_a_test_sample_but_for_a_method_that_says_so(
    scene: Scene, recorded: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of its 11 test and held-out samples, three of each client and two of nobody, the published code gets all."""
    found = noted_tests(monkeypatch)
    trained(scene, "samples", ("last_local_models",))
    unlearned(scene, "fedosd")
    unlearned(scene, "fairness")
    recovered(scene, "samples", None, None)
    assert len(found) > 5 * ROUNDS
    assert set(found) == {0}
    found.clear()
    unlearned(scene, "fairness", watch=None, variant="as-published")
    assert set(found) == {11}


# ---- what they share -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("original", "unlearned", "expected"), [(None, 3, 3), (2, 2, 2)], ids=["in unlearning", "in the original training"]
)
def test_post_training_of_a_diverged_model_has_its_round_and_no_rows(
    scene: Scene, original: int | None, unlearned: int, expected: int
) -> None:
    scene.save("original", model(0), original)
    scene.save("unlearned", model(1), unlearned)
    scene.recover(recover.Spec(**PHASE, projection=None, client_weights="equal", first_round=FIRST))
    assert model_files.read(scene("recovered.safetensors")) == ({}, {"diverged": expected})
    assert scene.rows("recovered.csv") == []
    assert scene.cost("recovered")["seconds"] == 0


RETRAINING: dict[str, Any] = {"method": Choice(name="retrain"), "training": RETRAINED, "server": None, "watch": None}


def test_a_run_that_diverges_says_in_which_round_and_keeps_the_rows_before(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverge(task: Task, p: object, state: Any, round: int) -> Any:
        return State(state.theta * (torch.nan if round == 1 else 1))

    monkeypatch.setattr(retrain, "step", diverge)
    scene.save("original", model(0))
    scene.unlearn(unlearn.Spec(**PHASE, **RETRAINING))
    assert model_files.read(scene("unlearned.safetensors")) == ({}, {"diverged": 2})
    assert [row["round"] for row in scene.rows("unlearned.csv")] == ["0", "1"]


def test_the_cost_file_says_how_long_the_rounds_took_and_on_what(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(100))
    monkeypatch.setattr("fu.federation.driver.time.perf_counter", lambda: float(next(ticks)))
    scene.save("original", model(0))
    spec = unlearn.Spec(**PHASE, **RETRAINING)
    scene.unlearn(spec)
    found = scene.cost("unlearned")
    assert found["seconds"] == 1 + ROUNDS  # the start and every step, a second each
    assert (found["threads"], found["strategy"], found["peak_gpu_memory_mib"]) == (1, "sequential", 0)
    assert found["peak_memory_mib"] > 50
    assert found["spec"] == json.loads(spec.model_dump_json())
    assert found["code"] == "the code"


@pytest.mark.parametrize("change", [None, "code", "threads", "processor", "portable", "rate", "original", "partition"])
def test_a_killed_stage_goes_on_where_nothing_has_changed_and_else_begins_anew(
    scene: Scene, change: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, seen = retrain.step, list[int]()

    def killed(task: Task, p: Any, state: Any, round: int) -> Any:
        seen.append(round)
        if len(seen) == ROUNDS:
            raise KilledError
        return step(task, p, state, round)

    def run(change: str | None) -> None:
        scene.save("original", model(1 if change == "original" else 0))
        phase = {**PHASE, "local": {**PHASE["local"], "lr": 0.2 if change == "rate" else 0.1}}
        threads, code = 2 if change == "threads" else 1, "other" if change == "code" else "the code"
        options = replace(OPTIONS, checkpoint_seconds=0.0, threads=threads, code=code)
        scene.unlearn(unlearn.Spec(**phase, **RETRAINING), options)

    monkeypatch.setattr(retrain, "step", killed)
    with pytest.raises(KilledError):
        run(None)
    checkpoint = scene(".unlearned.checkpoint")
    assert checkpoint.is_file()
    assert not scene("unlearned.safetensors").exists()
    if change == "portable":
        monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    if change == "processor":
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "another")
    if change == "partition":
        scene("partition.npz").write_bytes(scene("partition.npz").read_bytes() + b"\0")
    run(change)
    torch.set_num_threads(1)
    assert seen[ROUNDS:] == ([0, 1, 2] if change else [2])
    assert not checkpoint.exists()
