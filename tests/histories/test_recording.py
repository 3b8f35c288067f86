"""All kinds of histories at once: recording them changes and costs nothing."""

from pathlib import Path
from typing import Any

from fu.federation.checkpoint import Checkpoint
from fu.federation.driver import drive
from fu.pipeline.provenance.catalogue import declared
from fu.training import fedavg
from tests.factories import KINDS, make_federation, make_task, params_of


def test_recording_costs_nothing_and_trains_nobody_again(tmp_path: Path) -> None:
    def trained(recorders: dict[str, Any]) -> tuple[dict[str, int], list[int], list[float]]:
        task, p = make_task(make_federation(stream="training"), trained=False), params_of(fedavg)
        calls: list[int] = []
        task.federation.model.register_forward_pre_hook(lambda _, inputs: calls.append(len(inputs[0])))
        outcome = drive(
            task,
            lambda: fedavg.start(task, p),
            lambda state, round: fedavg.step(task, p, state, round),
            lambda _: {},
            Checkpoint(tmp_path / "job.checkpoint", {}, 1e9),
            "train",
            recorders=recorders,
        )
        assert outcome.histories.keys() == set(recorders)
        return task.federation.cost.record(), calls, outcome.state.theta.tolist()

    alone = trained({})
    free = {kind: record for kind, record in KINDS.items() if not declared("histories", kind).get("TRAINS")}
    assert trained(free) == alone
    cost, _, theta = trained(KINDS)
    assert theta == alone[2]
    assert cost["client_rounds"] == alone[0]["client_rounds"] + 3  # an auxiliary head of one client, in three rounds
    assert free.keys() >= {"last_local_models", "update_norms", "update_sums"}
