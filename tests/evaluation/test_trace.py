"""The columns of a trace: what is traced and counted, in order, whether or not a round has it."""

from fu import plugins
from fu.evaluation.trace import columns

COUNTS = (
    *("client_rounds", "forgotten_rounds", "steps", "samples", "time_steps", "replayed"),
    *("bytes_up", "bytes_down", "stored"),
)


def test_the_columns_are_the_round_what_is_traced_the_counts_and_what_only_rows_have() -> None:
    traced = [plugins.load("evaluation", name).TRACE for name in ("distance", "backdoor", "predicted_classes")]
    rows: list[dict[str, float]] = [{}, {"round": 1, "predicted_0": 0.5, "asr": 1.0, "predicted_1": 0.5}]
    assert columns(traced, rows) == ("round", "distance", "asr", "asr_held_out", *COUNTS, "predicted_0", "predicted_1")
    assert columns([], []) == ("round", *COUNTS)
