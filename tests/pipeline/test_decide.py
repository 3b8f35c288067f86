"""What would decide a claim: seeds and core hours, by hand and as longer plans have them, the cheapest first."""

from pathlib import Path
from typing import Any

import pytest

from fu.errors import UserError
from fu.pipeline.documents import decide, reproduced
from fu.pipeline.documents.decide import Option
from fu.pipeline.documents.kept import kept
from fu.pipeline.plan.plan import Plan
from fu.pipeline.settings import papers
from tests.pipeline.kept_runs import write

HEAD = "claim,scenario,verdict,over,n,needed,needed_90,note,published,text,place,artefact,kind"
CONFIG = {"preset": "reduced", "papers": ["tradeoffs"]}


def runs(below: Path, *rows: str, paper: str = "tradeoffs", **about: Any) -> list[reproduced.Run]:
    """Return a run at `reduced`, of trade-offs with three seeds by default, that judged claims so."""
    write(below, paper, "mine", {reproduced.CSV: "\n".join([HEAD, *rows, ""])}, **{"seeds": [0, 1, 2], **about})
    return read(below, *rows)


def read(below: Path, *rows: str) -> list[reproduced.Run]:
    """Return the runs, where claims have the texts of these rows."""
    claims = {row.split(",")[0]: {"text": row.split(",")[9], "place": row.split(",")[10]} for row in rows}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(papers, "read_paper", lambda _: {"claims": claims})
        return reproduced.runs(kept(below))


def options(below: Path, *rows: str) -> dict[str, Option]:
    claims = Plan(CONFIG).papers["tradeoffs"].claims
    found = decide._options("tradeoffs", claims, runs(below, *rows) if rows else [], "reduced")
    return {one.claim: one for one in found}


def hours(artefact: str, seeds: int, **changes: object) -> float:
    """Return what `make plan` would say of a run with so many seeds."""
    plan = Plan({**CONFIG, "seeds": [*range(seeds)], **changes})
    jobs = plan.asked([f"{plan.config.papers[0]}_{artefact}"])
    return sum(job.seconds for job in plan.behind(jobs)) / 3600


def test_an_undecided_claim_needs_more_seeds_of_the_run_that_left_it_so(tmp_path: Path) -> None:
    found = options(
        tmp_path,
        "penalty-raises-v,,undecided,,3,7,12,,,V.,section 7.2,fig5,trend",
        "penalty-lowers-v-plus-s,,holds,,3,,,,,V + S.,section 7.2,fig5,trend",
        "penalty-speeds-up,,undecided,,3,,,,,S.,section 7.2,table1,trend",
        "faster-than-retraining,,undecided,,3,30,inf,,,F.,section 7.2,table1,limit",
    )
    assert "penalty-lowers-v-plus-s" not in found
    one = found["penalty-raises-v"]
    assert one[:6] == (
        *("tradeoffs", "penalty-raises-v", "undecided, 3 seeds"),
        *('PRESET=reduced TARGETS="tradeoffs_fig5 tradeoffs_verdicts"', "mine", (7, 12)),
    )
    assert one.hours == pytest.approx([hours("fig5", 7), hours("fig5", 12)])
    assert one.rate == pytest.approx(max(0.5 / hours("fig5", 7), 0.9 / hours("fig5", 12)))
    assert found["penalty-speeds-up"].rate == 0
    assert found["penalty-speeds-up"].row[4:] == ["unknown", "–", "–"]
    assert found["faster-than-retraining"].row[4] == "30 to more than 1,000"
    assert found["faster-than-retraining"].rate == pytest.approx(0.5 / hours("table1", 30), rel=1e-3)


def test_a_claim_that_nothing_judged_needs_five_seeds(tmp_path: Path) -> None:
    found = options(tmp_path)
    one = found["heterogeneity-destabilises"]
    assert one[2:6] == ("not judged", 'PRESET=reduced TARGETS="tradeoffs_table2 tradeoffs_verdicts"', "", (5,))
    assert one.hours == pytest.approx([hours("table2", 5)])
    assert one.rate == pytest.approx(0.5 / hours("table2", 5))
    assert found["theorem-on-stability"].seeds == (len(Plan(CONFIG).seeds("tradeoffs")),)


def test_the_table_counts_claims_and_has_the_most_claims_per_hour_first(tmp_path: Path) -> None:
    plan = Plan({**CONFIG, "preset": "smoke"})
    rows = ["penalty-raises-v,,undecided,,3,7,12,,,V.,section 7.2,fig5,trend"]
    rows += ["penalty-lowers-v-plus-s,,holds,,3,,,,,V + S.,section 7.2,fig5,trend"]
    judged = runs(tmp_path, *rows)
    text = decide.table(plan, runs=judged)
    number = len(plan.papers["tradeoffs"].claims)
    assert text.startswith(
        f"On real data 1 of {number} claims are decided, 1 undecided, {number - 2} not judged.\n\nclaim "
    )
    rates = [float(line.split()[-1]) for line in text.split("\n\n")[1].splitlines()[2:]]
    assert len(rates) == number - 1
    assert rates == sorted(rates, reverse=True)
    assert "PRESET=smoke" not in text
    some = decide.table(plan, ["tradeoffs_fig5"], judged)
    assert some.startswith("On real data 1 of 2 claims are decided, 1 undecided, 0 not judged.\n\nclaim ")
    with pytest.raises(UserError, match="there is no target 'tradeoffs_fig55'; did you mean"):
        decide.table(plan, ["tradeoffs_fig55"], judged)


def test_a_run_that_is_refused_with_few_seeds_is_planned_with_its_own(tmp_path: Path) -> None:
    config, own = {"preset": "smoke", "papers": ["audit"]}, 12
    with pytest.raises(UserError, match="5 repeats cannot decide"):
        Plan({**config, "seeds": [*range(5)]})
    row = "all-left-told,,undecided,,12,24,,,,All.,ours,remains,limit"
    judged = runs(tmp_path, row, paper="audit", preset="smoke", seeds=[*range(own)])
    plan = Plan(config)
    claims = {"all-left-told": plan.papers["audit"].claims["all-left-told"]}
    [one] = decide._options("audit", claims, judged, "smoke")
    once, twice = (hours("remains", number, **config) for number in (own, 2 * own))
    assert one.seeds[0] == 2 * own
    assert one.hours[0] == pytest.approx(twice, rel=0.05)
    assert twice > 1.5 * once


@pytest.mark.whole
def test_what_would_decide_is_known_for_all_kept_runs() -> None:
    """As after a rule that refuses settings of a kept run, or a run that needs more seeds than are planned here."""
    text = decide.table(Plan({"preset": "reduced", "papers": ["fats", "fedosd", "safari", "tradeoffs", "audit"]}))
    assert "claims are decided" in text


def test_a_kept_run_whose_settings_are_gone_is_named(tmp_path: Path) -> None:
    row = "penalty-raises-v,,undecided,,3,7,12,,,V.,section 7.2,fig5,trend"
    gone = {"overrides": {"tradeoffs": {"artefacts": {"fig5": {"scenarios": ["gone"]}}}}}
    text = "\n".join([HEAD, row, ""])
    folder = write(tmp_path, "tradeoffs", "old", {reproduced.CSV: text}, config=gone)
    with pytest.raises(UserError, match="scenario 'gone'") as error:
        decide.table(Plan(CONFIG), runs=read(tmp_path, row))
    assert str(error.value).startswith(f"{folder / 'run.yaml'}: these settings can no longer be run: ")
