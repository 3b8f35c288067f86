"""What a cluster gets as one submission: packs of short jobs of a scenario and seed, none of which waits for itself."""

from collections import Counter
from functools import cache
from graphlib import TopologicalSorter

import pytest

from fu.pipeline.engine import groups
from fu.pipeline.engine.groups import HERE, LONGEST_S, Place, packs, places
from fu.pipeline.plan.plan import Job, Plan
from tests.pipeline.plans import PAPERS, made

PRESETS = ("smoke", "reduced")


@cache
def planned(preset: str) -> tuple[Plan, list[Job], list[list[Job]]]:
    plan = made(preset, *PAPERS)
    jobs = list(plan.jobs())
    return plan, jobs, packs(plan, jobs)


def waits(plan: Plan, found: list[list[Job]]) -> dict[int, set[int]]:
    """Return for which packs each one waits."""
    pack = {path: k for k, jobs in enumerate(found) for job in jobs for path in job.outputs.values()}
    return {k: {pack[path] for job in jobs for path in job.files if path in pack} - {k} for k, jobs in enumerate(found)}


@pytest.mark.parametrize("preset", PRESETS)
def test_no_pack_waits_for_itself_or_has_a_job_before_what_it_reads(preset: str) -> None:
    plan, jobs, found = planned(preset)
    list(TopologicalSorter(waits(plan, found)).static_order())  # refuses a circle
    assert sorted(job.certificate for pack in found for job in pack) == sorted(job.certificate for job in jobs)
    for pack in found:
        later = {path for job in pack for path in job.outputs.values()}
        for job in pack:
            assert later.isdisjoint(job.files)
            later -= {*job.outputs.values()}


@pytest.mark.parametrize("preset", PRESETS)
def test_a_pack_is_of_one_run_and_short_and_what_is_long_is_alone(preset: str) -> None:
    _, _, found = planned(preset)
    for pack in (pack for pack in found if len(pack) > 1):
        assert sum(job.seconds for job in pack) <= LONGEST_S
        assert len({_of(job) for job in pack}) == 1
        assert len({groups.computes(job.stage) for job in pack}) == 1  # else a GPU would wait for a partition
        assert not {job.stage for job in pack} & set(HERE)


def _of(job: Job) -> str:
    """Return the run of a job, or where it computes with the models of all seeds the scenario; else the paper."""
    return job.names.get("run", job.names.get("scenario", "")) if groups.computes(job.stage) else job.paper


def test_few_submissions() -> None:
    for preset, most in (("smoke", 165), ("reduced", 550)):
        *_, found = planned(preset)
        assert sum(pack[0].stage not in HERE for pack in found) <= most


def of_a_run(plan: Plan, stage: str) -> list[Job]:
    return [job for job in plan.jobs() if (job.names.get("run"), job.stage) == ("fedosd/mnist-iid/seed0", stage)]


def test_a_job_that_need_not_run_again_still_lies_between_two_that_do() -> None:
    plan = made("smoke")
    before, after = of_a_run(plan, "train")[0], of_a_run(plan, "recover")[0]
    assert packs(plan, [before, after]) == [[before], [after]]


def test_a_pack_takes_jobs_until_it_is_full() -> None:
    plan = made("smoke")
    jobs = [job for job in plan.jobs() if job.stage == "partition"][:5]
    each = jobs[0].seconds
    for longest, sizes in ((2.5, [2, 2, 1]), (2, [2, 2, 1]), (0.9, [1] * 5)):
        assert [len(pack) for pack in packs(plan, jobs, longest * each)] == sizes


def test_what_follows_long_jobs_is_submitted_together() -> None:
    plan = made("smoke")
    long = of_a_run(plan, "recover")[:3]
    trials = {job.names["trial"] for job in long}
    after = [job for job in of_a_run(plan, "evaluate") if job.names["trial"] in trials]
    found = packs(plan, [*long, *after], 2.5 * after[0].seconds)
    assert sorted(map(len, found)) == [1, 1, 1, 1, 2]


def test_the_shares_of_a_pack_in_its_minutes_add_up() -> None:
    plan = made("smoke")
    found = places(plan, plan.jobs())
    for whole in (1, 21, 1000):
        shares: Counter[str] = Counter()
        for job in (job for job in plan.jobs() if job.certificate in found):
            shares[found[job.certificate].pack] += found[job.certificate].minutes(job, whole)
        assert {*shares.values()} == {whole}
    job = next(plan.jobs())
    assert Place("p", 4 * job.seconds, 2 * job.seconds).minutes(job, 100) == 25


def test_packs_have_names_of_their_own_and_a_single_job_has_none() -> None:
    plan = made("smoke")
    found = places(plan, plan.jobs())
    several = [pack for pack in packs(plan, plan.jobs()) if len(pack) > 1]
    assert len({place.pack for place in found.values()}) == len(several)
    assert len(found) == sum(map(len, several))
    assert all("/" not in place.pack for place in found.values())
