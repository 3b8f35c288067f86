"""A grid is every combination of its values; what a phase leaves open follows from the phase before."""

import json
from typing import Any

import pytest

from fu.pipeline.plan.grid import Grid, completed, trial_name
from fu.pipeline.plan.plan import Plan
from fu.pipeline.settings.papers import Resolved
from tests.pipeline import plans
from tests.pipeline.configs import toy
from tests.pipeline.plans import ALONE, PAT50, RATES, RUN, SETTINGS, files, grid, made, models, plan, rate, spec, trials

PAT = "toy/pat/seed0"


def of(planned: Plan, run: str, name: str) -> list[str]:
    """The files of a run that artefacts rest on and whose names begin so."""
    return [path for path in files(planned) if f"/{run}/{name}" in path]


# ---- what a phase leaves open --------------------------------------------------------------------------------------

PHASE = {"lr": 0.1, "lr_decay": 0.9, "batch_size": 20, "local_epochs": 2, "evaluate_every": 1}
EMPTY: dict[str, Any] = {"lr": None, "lr_decay": None, "batch_size": None, "local_epochs": None}
STEPS = {"local_epochs": None, "local_steps": 9}


def phases(training: Any = None, unlearning: Any = None, recovery: Any = None) -> dict[str, Any]:
    return {
        "training": PHASE | (training or {}),
        "unlearning": {**EMPTY, "rounds": 3, **(unlearning or {})},
        "recovery": {**EMPTY, **(recovery or {})},
        "total_rounds": 8,
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (phases(), {key: (value, value) for key, value in PHASE.items()}),
        # of the phase before, not of training
        (phases({}, {"lr": 0.02, "batch_size": 5}), {"lr": (0.02, 0.02), "batch_size": (5, 5), "lr_decay": (0.9, 0.9)}),
        (phases({}, {}, {"lr": 0.5}), {"lr": (0.1, 0.5)}),
        # how long clients train: where a phase says neither epochs nor steps
        (phases({}, {"local_steps": None}), {"local_epochs": (2, 2), "local_steps": (None, None)}),
        (phases({}, {"local_steps": 7}), {"local_epochs": (None, None), "local_steps": (7, 7)}),
        (phases({}, {"local_epochs": 5}), {"local_epochs": (5, 5), "local_steps": (None, None)}),
        (phases(STEPS, {}, {"local_epochs": 1}), {"local_epochs": (None, 1), "local_steps": (9, None)}),
        *(
            (phases({key: value}, {key: own}), {key: (found, found)})
            for key, value, default in (
                *(("momentum", 0.9, 0.0), ("clients_per_round", 3, 2), ("with_replacement", True, False)),
                *(("evaluate_last", 10, 1), ("traced", ["utility"], [])),
            )
            for own, found in ((None, value), (default, default))
        ),
    ],
)
def test_a_phase_takes_what_it_leaves_open_from_the_phase_before(given: Any, expected: dict[str, Any]) -> None:
    filled = completed(given, "after")
    assert {key: tuple(filled[phase].get(key) for phase in ("unlearning", "recovery")) for key in expected} == expected


def test_what_no_phase_says_is_left_to_the_default_and_what_is_a_phase_s_own_stays() -> None:
    filled = completed(phases({}, {"momentum": None}, {"client_weights": None}), "after")
    assert ["momentum" in filled[phase] for phase in ("training", "unlearning", "recovery")] == [False] * 3
    assert filled["recovery"]["client_weights"] is None


@pytest.mark.parametrize(
    ("post_training", "rounds"), [("after", (3, 8)), ("own", (8, 8)), ("none", (3, 3))], ids=["after", "own", "none"]
)
def test_the_rounds_follow_from_what_comes_after_unlearning(post_training: str, rounds: tuple[int, int]) -> None:
    given = phases()
    filled = completed(given, post_training)
    assert (filled["unlearning"]["rounds"], filled["total_rounds"]) == rounds
    assert given == phases()  # which stays as it is


def test_what_replaces_a_data_set_is_not_replaced_again() -> None:
    swapped = made().preset.model_copy(
        update={"replace_datasets": {"mnist": "fashion_mnist", "fashion_mnist": "mnist"}}
    )
    planned = Grid(Resolved(swapped, made().papers, made().where, {}, {}, {"fedosd": {}}, {"fedosd": set()}))
    assert planned.trials["fedosd/mnist-pat50", "original"].settings.data.dataset == "fashion_mnist"
    assert planned.trials["fedosd/fmnist-pat50", "original"].settings.data.dataset == "mnist"


# ---- names and combinations ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, "fedosd"),
        ({"unlearning.lr": 0.00005}, "fedosd+lr5e-05"),
        ({"unlearning.lr": 0.005, "recovery.lr": 0.000001}, "fedosd+lr0.005-recovery-lr1e-06"),
        ({"params.loss": "uce", "unlearning.rounds": 20}, "fedosd+lossuce-rounds20"),
    ],
)
def test_a_trial_is_named_after_its_values(values: dict[str, Any], name: str) -> None:
    assert trial_name("fedosd", values) == name


@pytest.mark.usefixtures("with_toy")
def test_a_grid_is_every_combination_in_the_order_of_its_values() -> None:
    values = {"unlearning.lr": [0.1, 0.02], "params.clip": [2, 1], "unlearning.rounds": [1]}
    planned = Plan(toy(methods=grid("fupga", values)))
    found = trials(planned, PAT, "fupga")
    points = [(0.1, 2), (0.1, 1), (0.02, 2), (0.02, 1)]
    assert found == [f"fupga+lr{lr}-clip{clip}-rounds1" for lr, clip in points]
    specs = [spec(planned, "unlearn", PAT, trial) for trial in found]
    assert [(each["local"]["lr"], each["method"]["params"]["clip"]) for each in specs] == points
    assert {each["rounds"] for each in specs} == {1}
    assert {spec(planned, "recover", PAT, trial)["rounds"] for trial in found} == {4 - 1}


@pytest.mark.usefixtures("with_toy")
def test_an_empty_list_is_no_grid() -> None:
    planned = Plan(toy(methods=grid("fupga", {"unlearning.lr": []})))
    assert trials(planned, PAT, "fupga") == ["fupga"]
    assert rate(planned, PAT, "fupga") == 0.1  # of training
    assert models(planned, PAT, "fupga") == ["fupga.unlearned", "fupga.recovered"]
    assert not [path for path in planned.producers if "/fupga+" in path or "/fupga.selected" in path]


# ---- one unlearned model, many ways to train on --------------------------------------------------------------------


def test_a_grid_over_the_rate_of_post_training_shares_its_unlearned_model() -> None:
    recovery = {"unlearning.lr": [0.02], "recovery.lr": [0.01, 0.03]}
    planned = plan("smoke", methods=grid("fedosd", recovery))
    found = trials(planned, PAT50, "fedosd")
    assert found == ["fedosd+lr0.02-recovery-lr0.01", "fedosd+lr0.02-recovery-lr0.03"]
    for trial, lr in zip(found, (0.01, 0.03), strict=True):
        assert models(planned, PAT50, trial) == ["fedosd+lr0.02.unlearned", f"{trial}.recovered"]
        assert spec(planned, "recover", PAT50, trial)["local"]["lr"] == lr
        begins = planned.job("recover", {"run": PAT50, "trial": trial}).inputs["unlearned"]
        assert begins == f"results/smoke/{PAT50}/fedosd+lr0.02.unlearned.safetensors"
    assert rate(planned, PAT50, "fedosd+lr0.02") == 0.02


def test_a_grid_over_post_training_alone_begins_at_the_model_of_the_method_s_own_name() -> None:
    planned = plan("smoke", methods=grid("mode", {"unlearning.lr": [], "recovery.lr": [0.01, 0.03]}))
    assert trials(planned, PAT50, "mode") == ["mode+recovery-lr0.01", "mode+recovery-lr0.03"]
    assert models(planned, PAT50, "mode+recovery-lr0.01") == ["mode.unlearned", "mode+recovery-lr0.01.recovered"]
    unlearned = [path for path in of(planned, PAT50, "mode") if path.endswith(".unlearned.safetensors")]
    assert [path.rpartition("/")[2] for path in unlearned] == ["mode.unlearned.safetensors"]


@pytest.mark.usefixtures("with_toy")
def test_a_method_may_set_what_another_one_that_begins_at_its_model_has_a_grid_over() -> None:
    before, planned = Plan(toy()), Plan(toy(methods={"fedosd": {"settings": {"recovery": {"lr": 0.07}}}}))
    assert spec(planned, "recover", PAT, "fedosd+lr0.02")["local"]["lr"] == 0.07
    swept = trials(planned, "toy/iid/seed0", "fedosd.rates")
    assert swept == [f"fedosd.rates+lr0.02-recovery-lr{lr}" for lr in (0.001, 0.02)]
    for name in swept:
        assert spec(planned, "recover", "toy/iid/seed0", name) == spec(before, "recover", "toy/iid/seed0", name)


def test_m5_begins_at_the_chosen_unlearned_model_of_fedosd_and_unlearns_and_chooses_nothing_itself() -> None:
    planned = made()
    assert trials(planned, PAT50, "fedosd.m5") == [f"fedosd.m5+lr{value:g}" for value in RATES]
    assert models(planned, PAT50, "fedosd.m5+chosen") == ["fedosd+chosen.unlearned", "fedosd.m5+chosen.recovered"]
    made_here = {tuple(path.rpartition("/")[2].split(".")[1:3]) for path in of(planned, PAT50, "fedosd.m5")}
    assert made_here == {("m5+chosen", "recovered"), ("m5+chosen", "evaluation")}
    assert not [path for path in files(planned) if path.endswith("fedosd.m5.selected.json")]
    here, there = (
        planned.job("recover", {"run": PAT50, "trial": f"{name}+chosen"}) for name in ("fedosd.m5", "fedosd")
    )
    assert here.inputs == there.inputs
    for value in RATES:
        mine, theirs = (json.loads(job.json)["points"][f"fedosd+lr{value:g}"] for job in (here, there))
        assert {key for key in mine if mine[key] != theirs[key]} == {"projection"}
        assert (mine["projection"], theirs["projection"]["name"]) == (None, "away_from_original")


# ---- the chosen point ----------------------------------------------------------------------------------------------

FEDOSD = {"unlearning.lr": [0.02, 0.01]}
SEEDS = ("seed0", "seed1")


def with_choice(**changes: Any) -> Plan:
    methods = {"fedosd": {"settings": {"grid": FEDOSD, **changes.pop("settings", {})}}}
    config: dict[str, Any] = {"preset": "smoke", "papers": ["fedosd"], "seeds": [0, 1], **changes.pop("config", {})}
    return Plan({**config, "overrides": {"fedosd": {"methods": methods, "artefacts": ALONE, **changes}}})


def of_fedosd(planned: Plan) -> dict[str, set[str]]:
    """Return the jobs of FedOSD in a scenario, by seed: trial and stage."""
    found: dict[str, set[str]] = {seed: set() for seed in SEEDS}
    for job in planned.jobs():
        scenario, _, seed = job.names.get("run", "").rpartition("/")
        if scenario == "fedosd/fmnist-pat50" and job.names.get("trial", "").startswith("fedosd+"):
            found[seed].add(f"{job.names['trial']} {job.stage}")
    return found


CHOSEN = {"fedosd+chosen unlearn", "fedosd+chosen recover", "fedosd+chosen evaluate"}
COMPARED = {f"fedosd+lr{rate} {stage}" for rate in (0.02, 0.01) for stage in ("unlearn", "evaluate")}


@pytest.mark.parametrize("number", [1, 2])
def test_points_are_compared_on_the_first_seeds_and_the_chosen_one_alone_goes_on(number: int) -> None:
    planned = with_choice(config={"choose_on": number})
    assert of_fedosd(planned) == {"seed0": COMPARED | CHOSEN, "seed1": (COMPARED if number == 2 else set()) | CHOSEN}
    job = planned.job("select", {"scenario": "fedosd/fmnist-pat50", "method": "fedosd"})
    assert [path.split("/")[-2:] for path in job.files] == [
        [seed, f"fedosd+lr{rate}.evaluation.csv"] for rate in (0.02, 0.01) for seed in SEEDS[:number]
    ]
    assert job.spec.model_dump()["terms"] == (("r_acc_validation", 1), ("asr_validation", -1))
    assert ("on seed 0:", "on seeds 0, 1:")[number - 1] in job.json


def test_where_post_training_has_a_grid_all_points_are_post_trained_to_choose_one() -> None:
    recovery = {"unlearning.lr": [0.02], "recovery.lr": [0.01, 0.03]}
    planned = with_choice(settings={"grid": recovery})
    points = [f"fedosd+lr0.02-recovery-lr{lr}" for lr in (0.01, 0.03)]
    compared = {f"{point} {stage}" for point in points for stage in ("recover", "evaluate")}
    own = {"fedosd+chosen recover", "fedosd+chosen evaluate", "fedosd+lr0.02 unlearn"}  # all points unlearn alike
    assert of_fedosd(planned) == {"seed0": compared | own, "seed1": own}
    spec = planned.job("select", {"scenario": "fedosd/fmnist-pat50", "method": "fedosd"}).spec.model_dump()
    assert spec["roles"] == ("unlearned", "recovered")


def test_a_grid_of_post_training_at_the_model_of_another_method_is_chosen_by_itself() -> None:
    planned = plan("smoke", artefacts={**ALONE, "table5": {"methods": ["fedosd.rates-free"]}})
    chosen = planned.trials["fedosd/fmnist-pat50", "fedosd.rates-free+chosen"]
    assert chosen.selection == ("fedosd/fmnist-pat50", "fedosd.rates-free")
    assert set(chosen.points) == set(planned.names["fedosd/fmnist-pat50", "fedosd.rates-free"])


def test_where_nobody_trains_while_unlearning_points_are_compared_after_post_training_too() -> None:
    """FedRecovery's rate is that of its post-training: after unlearning all its points tie."""
    planned = made()
    roles = {
        method: planned.job("select", {"scenario": "fedosd/mnist-pat50", "method": method}).spec.model_dump()["roles"]
        for method in ("fedrecovery", "mode", "fedosd")
    }
    both = ("unlearned", "recovered")
    assert roles == {"fedrecovery": both, "mode": ("unlearned",), "fedosd": ("unlearned",)}
    wanted = {job.names["trial"] for job in planned.jobs() if job.stage == "recover"}
    assert {f"fedrecovery+lr{rate:g}" for rate in RATES} | {"fedrecovery+chosen", "mode+chosen"} <= wanted
    assert not {f"mode+lr{rate:g}" for rate in RATES} & wanted
    told = planned.job("publish", {"paper": "fedosd", "artefact": "table8"}).spec.model_dump()["rule"]
    usual, _, other = told.partition("; FedRecovery: ")
    assert (usual.count("post-training"), other.count("then the same after post-training")) == (0, 1)


def test_an_artefact_of_all_points_needs_them_whole_on_all_seeds() -> None:
    about = {
        **ALONE,
        "table5": {"kind": "across", "x": "unlearning.lr", "methods": ["fedosd"], "points": "all", "published": False},
    }
    whole = {f"fedosd+lr{rate} {stage}" for rate in (0.02, 0.01) for stage in ("unlearn", "recover", "evaluate")}
    found = of_fedosd(with_choice(artefacts=about))
    assert found == {"seed0": whole | CHOSEN, "seed1": whole | CHOSEN}  # which other artefacts show
    beside = with_choice(artefacts=about, config={"papers": ["fedosd", "safari"]})
    assert of_fedosd(beside) == found


def outputs(planned: Plan, run: str, *trials: str) -> list[str]:
    """Return what unlearning makes of these trials, in order."""
    jobs = [planned.job("unlearn", {"run": run, "trial": trial}) for trial in trials]
    return [job.outputs[name] for job in jobs for name in ("model", "trace", "cost")]


def test_a_job_of_the_chosen_point_has_the_specs_of_all_and_copies_where_they_were_compared() -> None:
    planned = with_choice()
    names = {"run": "fedosd/fmnist-pat50/seed1", "trial": "fedosd+chosen"}
    job = planned.job("unlearn", names)
    points = [f"fedosd+lr{rate}" for rate in (0.02, 0.01)]
    own = {point: planned.job("unlearn", {**names, "trial": point}) for point in points}
    assert json.loads(job.json)["points"] == {point: json.loads(found.json) for point, found in own.items()}
    assert job.listed["chosen"] == ["results/smoke/fedosd/fmnist-pat50/fedosd.selected.json"]
    assert (own[points[0]].listed["chosen"], own[points[0]].listed["points"]) == ([], [])
    assert job.code == own[points[0]].code
    assert job.keys == [own[point].keys[0] for point in sorted(points)]
    assert job.listed["points"] == []
    there = planned.job("unlearn", {**names, "run": "fedosd/fmnist-pat50/seed0"})
    assert there.listed["points"] == outputs(planned, there.names["run"], *sorted(points))
    assert there.estimate < job.estimate
    later = planned.job("recover", {**names, "run": "fedosd/fmnist-pat50/seed0"})
    assert later.listed["points"] == []  # points are compared before


def test_points_that_share_their_unlearning_share_the_job_that_is_copied() -> None:
    rates = {"unlearning.lr": [0.02, 0.01], "recovery.lr": [0.1, 0.2]}
    planned = with_choice(methods=grid("fedosd", rates))
    run = "fedosd/fmnist-pat50/seed0"
    job = planned.job("unlearn", {"run": run, "trial": "fedosd+chosen"})
    assert [*job.spec.model_dump()["points"]] == [
        f"fedosd+lr{a}-recovery-lr{b}" for a in (0.01, 0.02) for b in (0.1, 0.2)
    ]
    shared = [f"fedosd+lr{rate}" for rate in (0.01, 0.01, 0.02, 0.02)]
    assert job.listed["points"] == outputs(planned, run, *shared)
    assert {*job.listed["points"]} < {path for found in planned.jobs() for path in found.outputs.values()}
    after = planned.job("recover", {"run": run, "trial": "fedosd+chosen"})
    assert len(after.listed["points"]) == 4 * 3


@pytest.mark.usefixtures("with_toy")
def test_a_rate_that_only_a_method_built_on_the_unlearned_model_asks_for_is_unlearned_with_too() -> None:
    planned = Plan(toy(methods=grid("fedosd.m5", {"unlearning.lr": [0.3], "recovery.lr": [0.1, 0.2]})))
    assert trials(planned, PAT, "fedosd") == ["fedosd+lr0.02", "fedosd+lr0.005"]  # no table of FedOSD shows it
    found = trials(planned, PAT, "fedosd.m5")
    assert found == ["fedosd.m5+lr0.3-recovery-lr0.1", "fedosd.m5+lr0.3-recovery-lr0.2"]
    for trial in found:
        assert models(planned, PAT, trial) == ["fedosd+lr0.3.unlearned", f"{trial}.recovered"]
    assert rate(planned, PAT, "fedosd+lr0.3") == 0.3
    asked = [path for job in planned.jobs() for path in job.outputs.values() if "/fedosd+lr0.3" in path]
    assert [path.rpartition("/")[2] for path in asked if path.endswith(".safetensors")] == [
        "fedosd+lr0.3.unlearned.safetensors"
    ]


@pytest.mark.usefixtures("with_toy")
def test_what_is_unlearned_by_another_method_follows_its_settings() -> None:
    planned = Plan(toy(methods={"fedosd": {"settings": {"unlearning": {"rounds": 1}, "total_rounds": 7}}}))
    m5 = spec(planned, "recover", PAT, "fedosd.m5+lr0.02")
    assert (m5["first_round"], m5["rounds"]) == (1, 6)
    planned = Plan(toy(scenarios={"pat": {"methods": {"fedosd": {"unlearning": {"rounds": 3}}}}}))
    assert spec(planned, "recover", PAT, "fedosd.m5+lr0.02")["first_round"] == 3


# ---- equal budgets of tuning ---------------------------------------------------------------------------------------

# What has one setting in its paper, or none.
FIXED = {"federaser", "fr2", "stability.1", "fairness.1", "fats", "untouched", "random"}


@pytest.mark.parametrize(
    ("preset", "scenario", "number", "fixed"),
    [
        ("paper", "mnist-pat50-each-client0", 4, FIXED),
        ("reduced", "mnist-pat50-each-client0", 6, FIXED | {"fedrecovery"}),  # its post-training has one rate there
        ("reduced", "mnist-pat20-each-client0", 6, FIXED | {"fedrecovery"}),
        ("smoke", "mnist-pat50", 2, FIXED | {"fedrecovery"}),
        ("smoke", "mnist-pat50-each-client0", 2, {"untouched"}),
    ],
)
def test_methods_that_are_compared_over_clients_are_tuned_on_as_many_points(
    preset: str, scenario: str, number: int, fixed: set[str]
) -> None:
    names = {method: points for (scope, method), points in made(preset).names.items() if scope == f"fedosd/{scenario}"}
    compared = [method for method in plans.WRITTEN["artefacts"]["overall"]["methods"] if method in names]
    points = {method: len(names[method]) for method in compared}
    assert points == dict.fromkeys(compared, number) | dict.fromkeys(fixed, 1)
    assert {*compared} > fixed


def test_clients_forgotten_in_turn_share_partition_and_original_model_where_none_has_a_backdoor() -> None:
    planned = made("reduced")
    stages = {
        artefact: [job.stage for job in planned.behind(planned.asked([f"fedosd_{artefact}"]))]
        for artefact in ("overall", "overall_pat20")
    }
    counts = {artefact: [of.count(stage) for stage in ("partition", "train")] for artefact, of in stages.items()}
    assert counts == {"overall": [5, 10], "overall_pat20": [1, 2]}  # ω⁰ and FATS's, of five clients or for all of them


# ---- methods that lack a phase -------------------------------------------------------------------------------------


FIRST, TOTAL = SETTINGS["unlearning"]["rounds"], SETTINGS["total_rounds"]


@pytest.mark.parametrize(
    ("method", "run", "rounds", "after"),
    [
        ("retraining", RUN, TOTAL, 0),
        ("federaser", RUN, TOTAL, 0),
        *((f"fedosd.m{number}", PAT50, FIRST, 0) for number in (1, 2, 3, 4, 6)),
        ("fedrecovery", RUN, 1, TOTAL - 1),
    ],
)
def test_a_method_has_a_recovered_model_where_it_leaves_rounds(method: str, run: str, rounds: int, after: int) -> None:
    for trial in trials(made(), run, method):
        assert spec(made(), "unlearn", run, trial)["rounds"] == rounds
        assert models(made(), run, trial)[1:] == ([f"{trial}.recovered"] if after else [])
        if after:
            recover = spec(made(), "recover", run, trial)
            assert (recover["first_round"], recover["rounds"]) == (rounds, after)


def test_the_plan_holds_what_artefacts_show_and_nothing_else() -> None:
    shown = {scenario for entry in made().artefacts.values() for scenario in entry.scenarios}
    assert {scope for scope, _ in made().trials} == {f"fedosd/{name}" for name in shown}
