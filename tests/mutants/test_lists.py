"""The lists of mutants fit the code, and what runs them tells a killed one from a survivor."""

from pathlib import Path

import pytest
import yaml

from tests.mistakes import has, sentence
from tests.mutants import Mutant, parts, read
from tests.mutants.__main__ import Verdict, check_unbroken, judge, report
from tests.mutants.child import log_of

GOOD = {"file": "fu/sums.py", "line": "a + b", "broken": "a - b", "tests": "test_sums.py"}


def test_every_mutant_breaks_a_line_that_stands_once_in_its_file_and_there_are_sixty() -> None:
    assert sum(len(read(part)) for part in parts()) >= 60


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A program of one file, its tests, and a list of one mutant."""
    (tmp_path / "fu").mkdir()
    (tmp_path / "fu/__init__.py").touch()
    source = "def add(a, b):\n    return a + b\n\n\ndef twice(a):\n    return a + a  # two\n"
    (tmp_path / "fu/sums.py").write_text(source)
    (tmp_path / "test_sums.py").write_text("from fu.sums import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n")
    (tmp_path / "part.yaml").write_text(yaml.safe_dump([GOOD]))
    return tmp_path


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[", "part.yaml: this is not YAML"),
        ("[]", "part.yaml: must be a list of mutants, each with file, line, broken and tests."),
        ([{**GOOD, "brocken": ""}], "part.yaml: mutant 1: brocken: unknown key; did you mean 'broken'?"),
        ([{**GOOD, "file": "cod.py"}], "part.yaml: mutant 1: there is no file cod.py."),
        ([{**GOOD, "tests": ["test_sums.py", "tests/x"]}], "mutant 1: there are no tests tests/x."),
        ([{**GOOD, "line": "a * b"}], "'a * b' must occur exactly once in fu/sums.py, but occurs 0 times."),
        ([{**GOOD, "broken": "a +"}], "'a +' leaves fu/sums.py invalid: invalid syntax in line 2."),
    ],
)
def test_a_list_that_does_not_fit_is_told_in_one_sentence(content: object, words: str, root: Path) -> None:
    (root / "part.yaml").write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    has(sentence(lambda: read("part", root, root)), words)


def test_an_unknown_list_gets_the_nearest_name() -> None:
    has(sentence(lambda: read("evaluations")), "there is no list of mutants 'evaluations'; did you mean 'evaluation'?")


@pytest.mark.whole
def test_a_mutant_that_tests_notice_is_killed_another_survives_and_the_file_is_restored(root: Path) -> None:
    before = (root / "fu/sums.py").read_bytes()
    lines = [("a + b", "a - b"), ("a + a", "a - a"), ("a + b", "a * b")]
    mutants = [Mutant.model_validate({**GOOD, "line": line, "broken": broken}) for line, broken in lines]
    assert judge(mutants, [root]) == ["killed", "survived", "killed"]
    assert (root / "fu/sums.py").read_bytes() == before


@pytest.mark.whole
def test_the_quickest_test_that_was_measured_runs_first(root: Path) -> None:
    slow = "import time\nfrom fu.sums import add\n\n\ndef test_slow():\n    time.sleep(1)\n    assert add(1, 2) == 3\n"
    quick = "\n\ndef test_quick():\n    assert add(1, 2) == 3\n"
    (root / "test_sums.py").write_text(slow + quick)
    check_unbroken([root], ["test_sums.py"])
    assert judge([Mutant.model_validate(GOOD)], [root]) == ["killed"]
    log = log_of(root).read_text()
    assert "test_quick" in log
    assert "test_slow" not in log  # which would have failed, too


@pytest.mark.whole
def test_tests_that_pass_only_after_others_are_told(root: Path) -> None:
    (root / "test_first.py").write_text("import fu\nfu.seen = 1\n\n\ndef test_it():\n    pass\n")
    (root / "test_second.py").write_text("import fu\n\n\ndef test_it():\n    assert fu.seen\n")
    check_unbroken([root], ["test_first.py", "test_sums.py"])
    words = "test_second.py fails before anything is broken (see above); mend that first."
    has(sentence(lambda: check_unbroken([root], ["test_first.py", "test_second.py"])), words)


@pytest.mark.parametrize(
    ("verdict", "defended", "status", "words"),
    [
        ("killed", None, 0, ("1         1         0         0",)),
        ("survived", None, 1, ("SURVIVED: fu/sums.py: a + b  ->  a - b\n", "1         0         0         1")),
        ("survived", "nobody asks", 0, ("defended: fu/sums.py: a + b", "1         0         1         0")),
        ("killed", "nobody asks", 0, ("killed although defended", "1         1         0         0")),
    ],
)
def test_a_survivor_that_is_not_defended_is_a_failure(
    verdict: Verdict, defended: str | None, status: int, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert report([("part", Mutant.model_validate({**GOOD, "defended": defended}), verdict)]) == status
    has(capsys.readouterr().out, *words)
