"""Artefacts of what trainings draw: planned from settings alone, one job each, and what they lack is refused."""

from typing import Any

import pytest

from fu.artefacts.entry import Asked, Entry, Sampling
from fu.pipeline.plan.plan import Plan
from tests.mistakes import has, sentence
from tests.pipeline.configs import helped, toy
from tests.pipeline.plans import PAPERS, made

pytestmark = pytest.mark.usefixtures("with_toy")

STEPS = {"local_epochs": None, "local_steps": 4}
TRAINING: dict[str, Any] = {**STEPS, "batch_size": 3, "clients_per_round": 2, "history": []}
DATA: dict[str, Any] = {
    "samples": 620,
    "clients": 10,
    "validation_share": 0.1,
    "attack": None,
    "forget": {"clients": None, "samples": 2},
}
SHOWN = {"kind": "unlearning_time", "title": "T", "caption": "C", "x": "K"}


def drawn(
    training: dict[str, Any] = {},  # noqa: B006
    forget: dict[str, Any] | None = None,
    seeds: tuple[int, ...] = (0,),
    **artefact: Any,
) -> Plan:
    settings = {"training": {**TRAINING, **training}, "data": {**DATA, **({"forget": forget} if forget else {})}}
    scenario = {"label": "Drawn", "base": "iid", "settings": settings}
    scenario["vary"] = {"K": {"setting": "training.clients_per_round", "values": [1, 3]}}
    about = {**SHOWN, "scenarios": ["drawn"], **artefact}
    plain = {"label": "Plain", "base": "iid", "settings": settings}
    return Plan(toy(scenarios={"drawn": scenario, "plain": plain}, artefacts={"asked": about}, seeds=[*seeds]))


def entry(planned: Plan, artefact: str = "asked") -> Entry:
    *_, job = planned.jobs(("toy", artefact))
    assert isinstance(job.spec, Entry)
    assert job.stage == "publish"
    return job.spec


def test_where_samples_are_asked_for_the_sizes_of_clients_are_read_from_the_first_seed_s_partition() -> None:
    planned = drawn(seeds=(0, 1))
    *before, job = planned.jobs(("toy", "asked"))
    assert [one.stage for one in before] == ["data", "partition", "holdings"]  # of all K
    assert job.inputs["results"] == ["results/paper/toy/drawn-K1/seed0/holdings.csv"]
    assert before[-1].inputs["partition"] == "results/paper/toy/drawn-K1/seed0/partition.npz"
    for other in (drawn(forget={"clients": 3, "samples": None}), drawn(kind="sampling_table", x=None)):
        assert [one.stage for one in other.jobs(("toy", "asked"))] == ["publish"]


def test_only_where_requests_are_drawn_is_it_known_what_is_asked_for() -> None:
    found = entry(drawn(kind="sampling_table", x=None))  # which needs no axis
    assert (found.reads, [scenario.asked for scenario in found.scenarios]) == ((), [None, None])


def test_an_artefact_of_the_sampling_alone_knows_what_is_drawn() -> None:
    found = entry(drawn(draws=50))
    assert [scenario.at for scenario in found.scenarios] == [{"K": 1}, {"K": 3}]
    rounds = found.scenarios[0].rounds[0]
    train, held_out = 49, 4  # of a client's 62 samples, four fifths; a tenth of them held out
    assert found.scenarios[1].sampling == Sampling(
        clients=10, samples=train - held_out, clients_per_round=3, rounds=rounds, steps=4, batch_size=3
    )
    assert found.scenarios[0].asked == Asked(level="sample", number=2)
    assert (found.scenarios[0].original, found.scenarios[0].model, found.draws) == (None, "MLP", 50)
    assert "from the number of clients and samples alone (digits); 1 seed (0)." in found.setting


def test_who_never_takes_part_is_not_drawn() -> None:
    about = {"kind": "sampling_table", "title": "T", "caption": "C", "scenarios": ["few"]}
    (job,) = Plan(helped(settings={"training": STEPS}, artefacts={"asked": about})).jobs(("helped", "asked"))
    assert isinstance(job.spec, Entry)
    clients = {scenario.at["s"]: scenario.sampling and scenario.sampling.clients for scenario in job.spec.scenarios}
    assert clients == {0: 4, 1: 3}


@pytest.mark.parametrize(
    ("forget", "number"),
    [
        ({"clients": 3, "samples": None}, 3),
        ({"clients": [1, 4], "samples": None}, 2),
        ({"clients": 2, "requests": 2, "samples": None}, 2),
    ],
)
def test_a_request_names_clients_at_once(forget: dict[str, Any], number: int) -> None:
    found = entry(drawn(forget=forget))
    assert {scenario.asked for scenario in found.scenarios} == {Asked(level="client", number=number)}


def test_where_all_take_part_or_take_epochs_nothing_is_drawn() -> None:
    for scenario in entry(Plan(toy()), "numbers").scenarios:
        assert (scenario.sampling, bool(scenario.original)) == (None, True)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a line that no scenario has": ({"lines": ["b"]}, "lines: 'b' is not a coordinate of any scenario; allowed: K."),
    "one scenario without the axis": ({"scenarios": ["drawn", "plain"]}, "x: 'K' is not a coordinate of 'plain'"),
    "epochs": (
        {"training": {"local_epochs": 1, "local_steps": None}},
        "kind unlearning_time needs settings.training.clients_per_round and local_steps of 'drawn-K1'.",
    ),
}


@pytest.mark.parametrize(("changes", "words"), REFUSED.values(), ids=REFUSED)
def test_what_it_lacks_is_refused_before_the_first_job(changes: dict[str, Any], words: str) -> None:
    has(sentence(lambda: drawn(**changes)), words)


def test_a_line_may_be_a_coordinate_of_some_of_the_scenarios() -> None:
    scenario = {"base": "iid", "settings": {"training": TRAINING, "data": DATA}, "at": {"K": 2}}
    varied = {"b": "training.batch_size", "R": "training.rounds"}
    scenarios = {
        short: {**scenario, "label": short, "vary": {short: {"setting": setting, "values": [2, 3]}}}
        for short, setting in varied.items()
    }
    about = {**SHOWN, "scenarios": [*varied], "lines": [*varied]}
    found = entry(Plan(toy(scenarios=scenarios, artefacts={"asked": about})))
    assert [scenario.name for scenario in found.scenarios] == ["b-b2", "b-b3", "R-R2", "R-R3"]


def test_only_where_clients_are_the_data_s_own_they_differ_in_size_and_the_partition_names_the_smallest() -> None:
    planned = made("paper", *PAPERS)
    found = planned.job("publish", {"paper": "fats", "artefact": "table2"}).spec
    assert isinstance(found, Entry)
    fewest = {scenario.name: scenario.sampling.fewest for scenario in found.scenarios if scenario.sampling}
    assert (fewest["mnist"], fewest["femnist"], fewest["shakespeare"]) == (None, 90, 80)
