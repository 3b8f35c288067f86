"""The columns of every trace: what is measured after a round, and the counts of `Cost`. Imports no torch."""

COLUMNS = (
    "round",
    *("asr", "r_acc", "r_acc_std", "r_acc_worst", "r_acc_best", "distance", "conflicts"),
    *("client_rounds", "steps", "samples", "bytes_up", "bytes_down"),
)
