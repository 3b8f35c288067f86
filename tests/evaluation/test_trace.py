"""The columns of a trace: what is traced and counted, in order, whether or not a round has it."""

from fu import plugins
from fu.evaluation.trace import columns

COUNTS = (
    *("client_rounds", "forgotten_rounds", "steps", "samples", "time_steps", "replayed"),
    *("bytes_up", "bytes_down", "stored"),
)


def columns_of(*traced: str, rows: list[dict[str, float]] | None = None) -> tuple[str, ...]:
    return columns([plugins.load("evaluation", name).TRACE for name in traced], rows or [])


def test_the_columns_of_a_trace_of_fedosd_are_those_of_every_trace_so_far() -> None:
    known = ("round", "asr", "r_acc", "r_acc_std", "r_acc_worst", "r_acc_best", "distance", "conflicts", *COUNTS)
    assert columns_of("backdoor", "utility", "distance", "conflicts") == known
    shares: list[dict[str, float]] = [{}, {"round": 1, "predicted_0": 0.5, "conflicts": 1.0, "predicted_1": 0.5}]
    traced = ("backdoor", "utility", "distance", "conflicts", "predicted_classes")
    assert columns_of(*traced, rows=shares) == (*known, "predicted_0", "predicted_1")


def test_the_columns_follow_the_order_of_the_traced_evaluators() -> None:
    assert columns_of("accuracy") == ("round", "accuracy", "accuracy_held_out", *COUNTS)
    assert columns_of("distance", "backdoor") == ("round", "distance", "asr", *COUNTS)
    assert columns_of() == ("round", *COUNTS)
