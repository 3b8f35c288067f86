"""What `make why` says of a plan: every change once, with all that it makes run."""

import pytest

from fu.pipeline.cli.explain import why
from fu.pipeline.plan.pending import FOLLOWS, Change, Pending, Reason
from tests.pipeline.plans import made

RUN = "fedosd/mnist-iid/seed0"


def test_a_change_is_said_once_however_many_jobs_and_places_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = made("smoke")
    train, unlearn, evaluate = (
        plan.job("train", {"run": RUN, "trial": "original"}),
        plan.job("unlearn", {"run": RUN, "trial": "retraining"}),
        plan.job("evaluate", {"run": RUN, "trial": "original", "evaluation": "evaluation"}),
    )
    rate = "0.1 -> 0.2"
    several = (
        Change(("points", "fedosd+lr0.1", "local", "lr"), rate),
        Change(("points", "fedosd+lr0.2", "local", "lr"), rate),
        Change(("rounds",), "3 -> 4"),
        Change(("local", "batch_size"), rate),
    )
    reasons = [
        (train, Reason("setting", "", (Change(("local", "lr"), rate),))),
        (unlearn, Reason("setting", "", several)),
        (evaluate, FOLLOWS),
    ]
    monkeypatch.setattr(Pending, "to_make", lambda *_: iter(reasons))
    trained, unlearned = "mnist-iid/seed0/original.trained", "mnist-iid/seed0/retraining.unlearned"
    assert list(why(plan, ["fedosd_table8", "fedosd_fig5"])) == [
        "3 jobs to run at preset 'smoke' for fedosd_table8, fedosd_fig5:",
        f"  setting     local.lr: {rate} (and in 2 other places): 1 train, 1 unlearn (fedosd/{trained}, "
        f"fedosd/{unlearned})",
        f"  setting     rounds: 3 -> 4: 1 unlearn (fedosd/{unlearned})",
        f"  setting     local.batch_size: {rate}: 1 unlearn (fedosd/{unlearned})",
        "  follows     because an upstream job runs: 1 evaluate",
    ]
