"""Several trainings and requests in one paper: which jobs each of them has, and which they share."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fu.pipeline.plan import estimates
from fu.pipeline.plan.plan import Plan
from fu.plugins import Choice
from tests.pipeline.configs import helped, toy
from tests.pipeline.plans import PAPERS, made, rate, spec

Keys = set[str]
ASKED: dict[str, Any] = {"data": {"attack": None, "forget": {"clients": [0]}}}


def table(**about: Any) -> dict[str, Any]:
    """Return a table beside those of the small paper."""
    return {"kind": "table", "title": "T", "caption": "C", "in_paper": False, "metrics": ["r_acc"], **about}


def jobs(planned: Plan, *artefacts: str) -> dict[str, tuple[str, list[str]]]:
    """Return the jobs behind artefacts by what makes them other jobs: spec and input files."""
    (paper,) = planned.papers
    return {
        " ".join([job.stage, *job.names.values()]): (job.json, job.files)
        for job in planned.jobs(*((paper, name) for name in artefacts or [key for _, key in planned.artefacts]))
    }


def changed(before: Plan, after: Plan, *artefacts: str) -> Keys:
    """Return the jobs that are new or have other specs or files."""
    old, new = jobs(before, *artefacts), jobs(after, *artefacts)
    return {key for key, about in new.items() if old.get(key) != about}


def asking(clients: list[int], **parts: Any) -> Plan:
    """Plan two scenarios on one partition that differ in whom they forget."""
    scenarios = {
        "one": {"label": "One", "base": "iid", "settings": ASKED},
        "two": {"label": "Two", "base": "one", "settings": {"data": {"forget": {"clients": clients}}}},
    }
    shown = table(scenarios=["one", "two"], methods=["retraining", "fedosd"])
    return Plan(toy(scenarios=scenarios, artefacts={"mine": shown}, **parts))


def of(planned: Plan, stage: str, *artefacts: str) -> list[str]:
    """Return the names of a stage's jobs."""
    return sorted(key.partition(" ")[2] for key in jobs(planned, *artefacts) if key.startswith(f"{stage} "))


# ---- requests --------------------------------------------------------------------------------------------------------


def test_two_requests_on_one_partition_are_one_training(with_toy: Path) -> None:
    planned = asking([1])
    assert of(planned, "partition", "mine") == ["toy/one/seed0"]
    assert of(planned, "train", "mine") == ["toy/one/seed0 original"]
    assert of(planned, "request", "mine") == ["toy/one/seed0", "toy/two/seed0"]
    measured = [name for name in of(planned, "evaluate", "mine") if "original" in name]  # of whose accuracy counts
    assert measured == ["toy/one/seed0 original evaluation", "toy/two/seed0 original evaluation"]
    home = planned.paths("train", "model", run="toy/one/seed0", trial="original")
    later = planned.job("unlearn", {"run": "toy/two/seed0", "trial": "fedosd+lr0.02"})
    assert later.inputs["original"] == home
    assert later.inputs["partition"] == planned.paths("partition", "partition", run="toy/one/seed0")
    assert later.inputs["request"] == [planned.paths("request", "request", run="toy/two/seed0")]


def test_another_request_runs_no_training(with_toy: Path) -> None:
    """A request's own jobs stay the same files with other inputs' contents; its spec alone is another."""
    assert changed(asking([1]), asking([2]), "mine") == {"request toy/two/seed0"}


@pytest.mark.parametrize(
    ("own", "partitions"),
    [
        ({"training": {"clients_per_round": 2}}, ["one"]),
        ({"training": {"rounds": 5}}, ["one"]),
        ({"training": {"momentum": 0.5}}, ["one"]),
        ({"data": {"clients": 5}}, ["one", "two"]),
    ],
)
def test_what_training_reads_is_trained_apart(with_toy: Path, own: dict[str, Any], partitions: list[str]) -> None:
    training: dict[str, Any] = {"training": {"history": []}}
    scenarios = {
        "one": {"label": "One", "base": "iid", "settings": {**ASKED, **training}},
        "two": {"label": "Two", "base": "one", "settings": own},
    }
    shown = table(scenarios=["one", "two"], methods=["retraining"])
    planned = Plan(toy(scenarios=scenarios, artefacts={"mine": shown}))
    assert of(planned, "train", "mine") == ["toy/one/seed0 original", "toy/two/seed0 original"]
    assert of(planned, "partition", "mine") == [f"toy/{name}/seed0" for name in partitions]


# ---- trainings -------------------------------------------------------------------------------------------------------

MOMENTUM = {
    "label": "FedAvg with momentum",
    "plugin": "fedavg",
    "in_paper": False,
    "source": "a test",
    "settings": {"training": {"momentum": 0.5}},
}


def test_a_new_training_runs_its_own_jobs_alone(with_toy: Path) -> None:
    before = Plan(helped())
    after = Plan(helped(trainings={"momentum": {**MOMENTUM, "shown_in": ["numbers"]}}))
    own = {f"train helped/few-s{s}/seed0 momentum" for s in (0, 1)}
    own |= {f"evaluate helped/few-s{s}/seed0 momentum accuracy" for s in (0, 1)}
    assert changed(before, after) == {*own, "publish helped numbers"}


def test_a_paper_without_unlearning_has_these_jobs(with_toy: Path) -> None:
    trained = [*(f"helped/few-server-s{s}-n5" for s in (0, 1)), "helped/few-s0", "helped/few-s1"]  # these with all 20
    points = [f"{run}/seed0 safari+q{q}" for run in trained for q in (0.2, 0.6)]
    choosing = [f"helped/few-server-s{s}-n{n}" for s in (0, 1) for n in (5, 20)]
    chosen = [f"{run}/seed0 safari+chosen" for run in choosing]
    shared = [f"helped/few-s{s}/seed0 fedavg" for s in (0, 1)]
    assert set(jobs(Plan(helped()))) == {
        "data digits",
        *(f"partition helped/few-s{s}/seed0" for s in (0, 1)),
        *(f"train {name}" for name in [*shared, *points, *chosen]),
        *(f"evaluate {name} accuracy" for name in [*shared, *points, *chosen]),
        *(f"select {run} safari" for run in choosing),
        "publish helped numbers",
        "publish helped rounds",
    }


def test_a_training_is_measured_once_unless_a_scenario_measures_something_else(with_toy: Path) -> None:
    other = {"label": "Other", "base": "few", "settings": {"evaluations": {"accuracy": ["accuracy"]}}}
    other["vary"] = {"n": {"setting": "data.server_used", "values": [5, 20]}}
    shown = table(scenarios=["few-server", "other"], trainings=["fedavg"], metrics=["accuracy"])
    planned = Plan(helped(scenarios={"other": other}, artefacts={"mine": shown}))
    assert {name for name in of(planned, "evaluate", "mine") if "s0" in name} == {
        f"helped/{scenario}/seed0 fedavg accuracy" for scenario in ("few-s0", "other-s0-n5")
    }
    assert of(planned, "train", "mine") == [f"helped/few-s{s}/seed0 fedavg" for s in (0, 1)]


def test_the_server_is_read_by_trainings_that_it_helps(with_toy: Path) -> None:
    """Others are the same training for every number of its samples."""
    planned = Plan(helped())
    for n in (5, 20):
        run = f"helped/few-server-s1-n{n}/seed0"
        assert spec(planned, "train", run, "fedavg")["server"] is None
        assert spec(planned, "train", run, "safari+q0.2")["server"] == n


def test_retraining_and_shadows_have_as_many_of_the_servers_samples_as_their_training(with_toy: Path) -> None:
    again = {"label": "Again", "plugin": "retrain", "trained_by": "safari", "post_training": "none", "source": "s"}
    asked = {"few-server": {"settings": {"data": {"forget": {"clients": 1}}, "unlearning": {}}}}
    shown = table(scenarios=["few-server"], methods=["again"], metrics=["accuracy"])
    planned = Plan(helped(scenarios=asked, methods={"again": again}, artefacts={"mine": shown}))
    for n in (5, 20):
        run = f"helped/few-server-s1-n{n}/seed0"
        for stage, trial in (("unlearn", "again+trained-q0.2"), ("shadow", "safari+q0.2"), ("train", "safari+q0.2")):
            assert spec(planned, stage, run, trial)["server"] == n, stage
        assert spec(planned, "shadow", run, "fedavg")["server"] is None


def test_the_point_of_a_training_is_chosen_by_what_the_paper_says(with_toy: Path) -> None:
    job = Plan(helped()).job("select", {"scenario": "helped/few-server-s0-n5", "method": "safari"})
    assert job.spec.model_dump(exclude={"rule"}) == {
        "trials": ("safari+q0.2", "safari+q0.6"),
        "terms": (("accuracy_held_out", 1),),
        "roles": ("original",),
    }
    told = "on seed 0: highest Accuracy on validation data, ties to the first"
    assert getattr(job.spec, "rule").startswith(told)  # noqa: B009


TRAINED = {
    "label": "Momentum",
    "plugin": "fedavg",
    "source": "a test",
    "settings": {"training": {"momentum": 0.5}},
    "grid": {"training.lr": [0.1, 0.2]},
}


EVALUATIONS = {"evaluation": ["backdoor", "utility"]}


@pytest.mark.parametrize(
    ("other", "both"),
    [
        ({}, False),
        ({"data": {"forget": {"clients": [1]}}}, True),
        ({"chosen_by": ["r_acc_validation"]}, True),
        ({"evaluations": EVALUATIONS}, True),
    ],
    ids=["nothing", "another request", "another choice", "another evaluation"],
)
def test_the_points_of_a_shared_training_are_compared_once_unless_they_are_judged_otherwise(
    with_toy: Path, other: dict[str, Any], both: bool
) -> None:
    scenarios = {
        "one": {"label": "One", "base": "iid", "settings": ASKED},
        "two": {"label": "Two", "base": "one", "settings": other},
    }
    shown = table(scenarios=["one", "two"], trainings=["tuned"])
    planned = Plan(toy(scenarios=scenarios, trainings={"tuned": TRAINED}, artefacts={"mine": shown}))
    scenarios_that_choose = ["toy/one", "toy/two"][: 1 + both]
    assert of(planned, "select", "mine") == [f"{scenario} tuned" for scenario in scenarios_that_choose]
    assert of(planned, "train", "mine") == sorted(
        [*(f"toy/one/seed0 tuned+lr{lr}" for lr in (0.1, 0.2))]
        + [f"{scenario}/seed0 tuned+chosen" for scenario in scenarios_that_choose]
    )


def unlearning_trained(**about: Any) -> Plan:
    """Plan FedOSD and retraining from every point of a training."""
    methods = {
        "from": {"label": "From", "plugin": "fedosd", "source": "a test", "trained_by": "tuned", **about},
        "again": {
            "label": "Again",
            "plugin": "retrain",
            "source": "a test",
            "trained_by": "tuned",
            "post_training": "own",
            "settings": {"unlearning": {"lr": None}, "grid": {"unlearning.lr": []}},
        },
    }
    shown = table(scenarios=["iid"], methods=["from", "again"])
    return Plan(toy(trainings={"tuned": TRAINED}, methods=methods, artefacts={"mine": shown}))


def test_a_method_runs_from_every_point_of_its_training_and_both_are_chosen_together(with_toy: Path) -> None:
    planned = unlearning_trained(settings={"grid": {"unlearning.lr": [0.02, 0.005]}})
    points = [f"from+trained-lr{lr}-lr{rate}" for lr in (0.1, 0.2) for rate in (0.02, 0.005)]
    assert planned.names["toy/iid", "from"] == points
    assert planned.names["toy/iid", "again"] == ["again+trained-lr0.1", "again+trained-lr0.2"]
    assert planned.job("select", {"scenario": "toy/iid", "method": "from"}).spec.model_dump()["trials"] == tuple(points)
    assert of(planned, "train", "mine") == [
        "toy/iid/seed0 again+chosen",
        "toy/iid/seed0 from+chosen",
        "toy/iid/seed0 tuned+lr0.1",
        "toy/iid/seed0 tuned+lr0.2",
    ]
    for name in points:
        trained = "tuned+lr0.1" if "trained-lr0.1" in name else "tuned+lr0.2"
        job = planned.job("unlearn", {"run": "toy/iid/seed0", "trial": name})
        assert job.inputs["original"] == planned.paths("train", "model", run="toy/iid/seed0", trial=trained)
    assert of(planned, "unlearn", "mine") == sorted(
        f"toy/iid/seed0 {name}"
        for name in [*points, "again+trained-lr0.1", "again+trained-lr0.2", "from+chosen", "again+chosen"]
    )
    again = planned.job("train", {"run": "toy/iid/seed0", "trial": "again+chosen"})
    assert again.listed["chosen"] == [planned.paths("select", "selection", scenario="toy/iid", method="again")]
    ends = ("safetensors", "csv", "cost.json", "history.safetensors")
    assert [path.rpartition("/")[2] for path in again.listed["points"]] == [
        f"tuned+lr{lr}.trained.{end}" for lr in (0.1, 0.2) for end in ends
    ]
    chosen = planned.job("unlearn", {"run": "toy/iid/seed0", "trial": "again+chosen"})
    assert chosen.inputs["original"] == again.outputs["model"]


def test_retraining_trains_as_its_model_was_trained(with_toy: Path) -> None:
    planned = unlearning_trained()
    for lr in (0.1, 0.2):
        train = spec(planned, "train", "toy/iid/seed0", f"tuned+lr{lr}")
        again = spec(planned, "unlearn", "toy/iid/seed0", f"again+trained-lr{lr}")
        assert again["training"] == train["training"]
        assert again["local"] == train["local"]
        assert (train["local"]["lr"], train["local"]["momentum"]) == (lr, 0.5)


def test_a_method_takes_the_learning_rate_of_its_training_where_it_says_nothing(with_toy: Path) -> None:
    planned = unlearning_trained(settings={"unlearning": {"lr": None}, "grid": {"unlearning.lr": []}})
    rates = {name: rate(planned, "toy/iid/seed0", name) for name in planned.names["toy/iid", "from"]}
    assert rates == {"from+trained-lr0.1": 0.1, "from+trained-lr0.2": 0.2}


# ---- what it takes ---------------------------------------------------------------------------------------------------


def test_memory_counts_who_takes_part_and_no_other_client(with_toy: Path) -> None:
    """As of LEAF: 3,556 clients share a data set, of whom five train a model of 6.6 million parameters."""
    given = made().trials["fedosd/mnist-pat50", "original"].settings
    data = given.data.model_copy(update={"clients": 3556})

    def needed(drawn: int | None, history: Sequence[str] = ()) -> int:
        training = given.training.model_copy(update={"clients_per_round": drawn, "history": [*history]})
        model = Choice(name="mlp", params={"hidden": 2000})
        few = given.model_copy(
            update={"data": data, "model": model, "training": training, "unlearning": None, "recovery": None}
        )
        assert 5_500_000 < estimates.size(few).parameters < 7_000_000
        return estimates.mem_mb(few)

    assert needed(5) < 10_000
    assert needed(10) - needed(5) == pytest.approx(5 * 28 * 5.6, rel=0.1)
    assert needed(None) == needed(64)  # of whom the mean is enough
    assert needed(None, ["update_sums"]) > 100_000


def test_memory_counts_the_phase_in_which_most_take_part() -> None:
    given = made().trials["fedosd/mnist-pat50", "original"].settings
    few = given.training.model_copy(update={"clients_per_round": 1})
    assert given.unlearning is not None
    assert given.recovery is not None
    update = {"training": few, "unlearning": given.unlearning.model_copy(update={"clients_per_round": 1})}
    less = given.model_copy(update=update)
    assert estimates.mem_mb(less) < estimates.mem_mb(less, "fedosd") == estimates.mem_mb(given)
    update["recovery"] = given.recovery.model_copy(update={"clients_per_round": 1})
    assert estimates.mem_mb(given.model_copy(update=update), "fedosd") < estimates.mem_mb(given)


@pytest.mark.parametrize(
    ("method", "projection", "conflicts", "held"),
    [
        ("retrain", None, False, 64),  # its mean and that of post-training are enough
        ("fedosd", None, False, 900),
        ("retrain", {"name": "away_from_original"}, False, 900),
        ("retrain", None, True, 900),
    ],
)
def test_memory_counts_updates_where_more_than_their_mean_is_needed(
    method: str, projection: Any, conflicts: bool, held: int
) -> None:
    given = made().trials["fedosd/mnist-pat50", "original"].settings
    assert given.unlearning is not None
    assert given.recovery is not None
    many = given.model_copy(
        update={
            "data": given.data.model_copy(update={"clients": 900, "absent": 0}),
            "training": given.training.model_copy(update={"history": []}),
            "unlearning": given.unlearning.model_copy(update={"conflicts": conflicts}),
            "recovery": given.recovery.model_copy(update={"projection": projection}),
        }
    )
    few = many.model_copy(update={"data": many.data.model_copy(update={"clients": 64})})
    more = (held - 64) * estimates.size(many).parameters * 28 / 1e6
    assert estimates.mem_mb(many, method) - estimates.mem_mb(few, method) == pytest.approx(more, abs=10)


def test_the_overview_says_what_each_paper_takes(with_toy: Path) -> None:
    both = Plan({"preset": "paper", "papers": ["toy", "helped"]})
    found = {paper: [job for job in both.jobs() if job.paper == paper] for paper in ("toy", "helped", "")}
    _, line = both.overview(both.jobs(), cores=2).split("\n")
    told = dict(part.split(": ") for part in line.removesuffix(".").split("; "))
    for name, each in found.items():
        work = estimates.working(sum(job.seconds for job in each))
        assert told.pop(name or "data sets") == f"{estimates.counted(len(each), 'job')}, {work}"
    assert told == {}
    assert "\n" not in Plan(helped()).overview(Plan(helped()).jobs(), cores=2)


# A grid that explodes is seen here, before anybody waits for it.
BUDGETS = {
    "smoke": {"fedosd": 1170, "safari": 110, "fats": 315, "tradeoffs": 200},
    "reduced": {"fedosd": 5650, "safari": 610, "fats": 430, "tradeoffs": 700},
    "paper": {"fedosd": 16300, "safari": 2000, "fats": 1860, "tradeoffs": 800},
}


@pytest.mark.parametrize("preset", BUDGETS)
def test_no_paper_has_more_jobs_than_its_budget(preset: str) -> None:
    found = Counter(job.paper for job in made(preset, *PAPERS).jobs())
    assert [paper for paper, most in BUDGETS[preset].items() if not 0 < found[paper] <= most] == []


# ---- agreement with repeats ------------------------------------------------------------------------------------------


def test_predictions_are_compared_with_those_of_the_other_repeats_of_the_same_training() -> None:
    planned = made("smoke")
    run, again = "fedosd/mnist-pat50/seed0", [f"retraining.repeat{k}" for k in (1, 2, 3, 4, 5)]
    fats = ["retraining.fats", "retraining.fats.repeat1", "retraining.fats.repeat2"]

    def compared(trial: str) -> tuple[str, list[str], tuple[str, ...]]:
        job: Any = planned.job("agree", {"run": run, "artefact": "matrix", "trial": trial})
        own, *others = (
            Path(path).name.partition(".evaluation")[0] for path in (job.inputs["own"], *job.inputs["others"])
        )
        assert job.spec.repeats == ("unlearned",) * len(others)
        return own, others, job.spec.roles

    assert compared("original") == ("original", again, ("original",))
    assert compared("fedosd+chosen") == ("fedosd+chosen", again, ("unlearned", "recovered"))
    assert compared("fats") == ("fats", fats, ("unlearned",))
    assert compared("retraining.repeat2") == (
        "retraining.repeat2",
        [one for one in again if "2" not in one],
        ("unlearned",),
    )


def test_of_a_repeat_with_post_training_the_last_model_is_compared() -> None:
    recovery = {"lr": 0.1, "lr_decay": 1.0, "evaluate_every": 1, "client_weights": "equal", "projection": None}
    recovery |= {"batch_size": None, "local_epochs": None, "local_steps": None, "first_round_keeps_rate": False}
    again = {"post_training": "after", "settings": {"total_rounds": 70, "recovery": recovery}}
    changed = {"fedosd": {"methods": {"retraining.repeat2": again}}}
    plan = Plan({"preset": "smoke", "papers": ["fedosd"], "overrides": changed})
    names = {"run": "fedosd/mnist-pat50/seed0", "artefact": "matrix", "trial": "original"}
    spec: Any = plan.job("agree", names).spec
    assert spec.repeats == ("unlearned", "recovered", "unlearned", "unlearned", "unlearned")
