"""Published numbers: every row is checked against its paper, and told with its line where it does not fit."""

from pathlib import Path

import pytest

from fu.pipeline.plan import Plan
from tests.mistakes import has, sentence
from tests.pipeline.configs import toy

HEADER = "scenario,method,stage,metric,value"
ROW = "iid,fedosd,unlearned,asr,0.001"

FILES: dict[str, tuple[bytes | str, str]] = {
    "nothing": ("", "line 1: the columns must be scenario, method, stage, metric, value, got ''."),
    "no header": (ROW, "line 1: the columns must be"),
    "columns in another order": (f"method,scenario,stage,metric,value\n{ROW}", "line 1: the columns must be"),
    "an unknown scenario": (
        f"{HEADER}\niidd,fedosd,unlearned,asr,0",
        "line 2: there is no scenario 'iidd'; did you mean",
    ),
    "an unknown method": (
        f"{HEADER}\n{ROW}\niid,fedods,unlearned,asr,0",
        "line 3: there is no method 'fedods'; did you",
    ),
    "an unknown stage": (
        f"{HEADER}\niid,fedosd,unlearnt,asr,0",
        "there is no stage 'unlearnt' of 'fedosd'; did you mean",
    ),
    "a stage that is the original model's": (
        f"{HEADER}\niid,fedosd,original,asr,0",
        "there is no stage 'original' of 'fedosd'; allowed: recovered, unlearned.",
    ),
    "post-training where none follows": (
        f"{HEADER}\niid,retraining,recovered,asr,0",
        "there is no stage 'recovered' of 'retraining'; allowed: unlearned.",
    ),
    "a total of no running time": (f"{HEADER}\niid,fedosd,total,seconds,3", "there is no stage 'total' of 'fedosd'"),
    "an unknown metric": (
        f"{HEADER}\niid,fedosd,unlearned,r-acc,0",
        "line 2: there is no metric 'r-acc'; did you mean",
    ),
    "a metric of another kind": (
        f"{HEADER}\niid,fedosd,unlearned,seconds,3",
        "there is no metric 'seconds'; did you mean 'steps'?",
    ),
    "a number twice": (f"{HEADER}\n{ROW}\n\n{ROW}", "line 4: is the same number as line 2; give each once."),
    "a number twice with other values": (
        f"{HEADER}\n{ROW}\n{ROW}5",
        "line 3: is the same number as line 2; give each once.",
    ),
    "a field too few": (f"{HEADER}\niid,fedosd,unlearned,asr", "line 2: must have 5 fields, got 4."),
    "a field too many": (f"{HEADER}\n{ROW},1", "line 2: must have 5 fields, got 6."),
    "a word": (f"{HEADER}\niid,fedosd,unlearned,asr,none", "line 2: the value must be a number, got 'none'."),
    "no value": (f"{HEADER}\niid,fedosd,unlearned,asr,", "line 2: the value must be a number, got ''."),
    "not a number": (f"{HEADER}\niid,fedosd,unlearned,asr,nan", "line 2: the value must be a number, got 'nan'."),
    "a percentage": (
        f"{HEADER}\niid,fedosd,unlearned,asr,12.5",
        "line 2: 'asr' must be a fraction (0 to 1), not a percentage",
    ),
    "a quote left open": (f'{HEADER}\n{ROW}\n"iid,fedosd', "is not valid CSV (unexpected end of data)."),
    "not UTF-8": (b"scenario,method,\xff", "is not valid CSV (not UTF-8)."),
    "a name with a line break": (f'{HEADER}\n"i\nid",fedosd,unlearned,asr,0', r"there is no scenario 'i\nid'"),
}


@pytest.mark.parametrize(("content", "words"), FILES.values(), ids=FILES)
def test_a_file_that_does_not_fit_its_paper_is_told_in_one_sentence(
    own_toy: Path, content: bytes | str, words: str
) -> None:
    path = own_toy / "published" / "toy" / "numbers.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    has(sentence(lambda: Plan(toy())), "toy/numbers.csv: ", words)


def test_a_folder_in_the_place_of_a_file_is_told_in_one_sentence(own_toy: Path) -> None:
    path = own_toy / "published" / "toy" / "numbers.csv"
    path.unlink()
    path.mkdir()
    has(sentence(lambda: Plan(toy())), "published is true, but workflow/published/toy/numbers.csv does not exist")


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("table", f"{ROW}\n\niid,original,original,r_acc_std,0.1\niid,fedosd,recovered,reverts,1\n"),
        ("table", "iid,fedosd.m5,recovered,r_acc_worst,1e-1\r\n"),
        ("runtime", "pat,retraining,total,seconds,63.58\npat,retraining,total,seconds_std,0.44"),
    ],
    ids=["table", "other line ends", "runtime"],
)
def test_what_a_kind_knows_is_taken(own_toy: Path, kind: str, rows: str) -> None:
    (own_toy / "published" / "toy" / "numbers.csv").write_text(f"{HEADER}\n{rows}")
    metrics = ["steps"] if kind == "runtime" else ["asr"]
    assert Plan(toy(artefacts={"numbers": {"kind": kind, "metrics": metrics, "methods": ["fupga"]}})).artefacts
