"""Published numbers: every row is checked against its paper, and told with its line where it does not fit."""

from pathlib import Path

import pytest

from fu.pipeline.plan import published
from fu.pipeline.plan.plan import Plan
from fu.pipeline.settings.records import Paper
from tests.mistakes import has, sentence
from tests.pipeline.configs import toy

HEADER = "scenario,method,stage,metric,value"
ROW = "iid,fedosd,unlearned,asr,0.001"

FILES: list[tuple[bytes | str, str]] = [
    ("", "line 1: the columns must be scenario, method, stage, metric, value, got ''."),
    (f"{HEADER}\niidd,fedosd,unlearned,asr,0", "line 2: there is no scenario 'iidd'; did you mean"),
    (f"{HEADER}\n{ROW}\niid,fedods,unlearned,asr,0", "line 3: there is no method 'fedods'; did you"),
    (f"{HEADER}\niid,fedosd.rates+lr0.02,unlearned,asr,0", "there is no method 'fedosd.rates+lr0.02'; did you mean"),
    (f"{HEADER}\niid,fupga+,unlearned,asr,0", "line 2: there is no method 'fupga+'; did you mean"),
    (f"{HEADER}\niid,fedosd,original,asr,0",
     "there is no stage 'original' of 'fedosd'; allowed: recovered, unlearned."),
    (f"{HEADER}\niid,fedosd,total,seconds,3", "there is no stage 'total' of 'fedosd'"),
    (f"{HEADER}\niid,fedosd,unlearned,r-acc,0", "line 2: there is no metric 'r-acc'; did you mean"),
    (f"{HEADER}\n{ROW}\n\niid,fedosd,unlearned,asr,0.002", "line 4: duplicates line 2."),
    (f"{HEADER}\niid,fedosd,unlearned,asr", "line 2: must have 5 fields, got 4."),
    (f"{HEADER}\niid,fedosd,unlearned,asr,nan", "line 2: the value must be a number, got 'nan'."),
    (f"{HEADER}\niid,fedosd,unlearned,asr,12.5", "line 2: 'asr' must be a fraction (0 to 1), not a percentage"),
    (f'{HEADER}\n{ROW}\n"iid,fedosd', "is not valid CSV (unexpected end of data)."),
    (b"scenario,method,\xff", "is not valid CSV (not UTF-8)."),
    (f'{HEADER}\n"i\nid",fedosd,unlearned,asr,0', r"there is no scenario 'i\nid'"),
]  # fmt: skip


@pytest.fixture
def paper(with_toy: Path) -> Paper:
    return Plan(toy()).papers["toy"]


@pytest.mark.parametrize(("content", "words"), FILES, ids=[words for _, words in FILES])
def test_a_file_that_does_not_fit_its_paper_is_told_in_one_sentence(
    paper: Paper, tmp_path: Path, content: bytes | str, words: str
) -> None:
    path = tmp_path / "numbers.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    has(sentence(lambda: published.check(path, paper, "table")), "/numbers.csv: ", words)


def test_a_file_is_checked_before_the_first_job(own_toy: Path) -> None:
    path = own_toy / "published/toy/numbers.csv"
    path.write_text(f"{HEADER}\nno")
    has(sentence(lambda: Plan(toy())), "toy/numbers.csv: line 2: must have 5 fields, got 1.")
    path.unlink()
    path.mkdir()
    has(sentence(lambda: Plan(toy())), "published is true, but workflow/published/toy/numbers.csv does not exist")


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("table", f"{ROW}\n\niid,original,original,r_acc_std,0.1\niid,fedosd,recovered,reverts,1\n"),
        ("table", "iid,fedosd.m5,recovered,r_acc_worst,1e-1\r\n"),
        ("runtime", "pat,retraining,total,seconds,63.58\npat,retraining,total,seconds_std,0.44"),
        ("table", "iid,fedosd.rates+lr0.02-lr0.001,recovered,r_acc,1"),  # a point of a grid
    ],
    ids=["table", "other line ends", "runtime", "a point"],
)
def test_what_a_kind_knows_is_taken(paper: Paper, tmp_path: Path, kind: str, rows: str) -> None:
    (tmp_path / "numbers.csv").write_text(f"{HEADER}\n{rows}")
    published.check(tmp_path / "numbers.csv", paper, kind)
