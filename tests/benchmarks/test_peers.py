"""The comparison with other frameworks: the same work for all, or no table; what the table says."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.peers import __main__ as driver
from benchmarks.peers import common
from benchmarks.peers.__main__ import Contender, Found
from benchmarks.peers.common import Clients, Report


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two clients of 40 digits in batches of 20."""
    numbers = {"CLIENTS": 2, "SAMPLES": 40, "BATCH": 5}
    for module in (common, driver, *map(import_module, ("benchmarks.peers.fu_round", "benchmarks.peers.plain_round"))):
        for name in numbers.keys() & vars(module).keys():
            monkeypatch.setattr(module, name, numbers[name])
    file = tmp_path / "data.npz"
    assert "digits" in driver.prepare(tmp_path, file)
    return file


def trained(program: str, file: Path, rounds: int = 3) -> Report:
    report = Report()
    import_module(f"benchmarks.peers.{program}_round").train("mlp", file, rounds, 1, report)
    assert len(report.seconds) == len(report.models) == rounds
    return report


def test_fu_and_the_plain_loop_learn_the_same(small: Path) -> None:
    one, other = (torch.stack(trained(program, small).models).numpy() for program in ("fu", "plain"))
    assert driver.distance(one, other) < 1e-6
    assert np.abs(one[2] - one[0]).max() > 1e-3


def test_another_order_of_samples_is_told_from_rounding(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = torch.stack(trained("plain", small).models).numpy()
    in_order = Clients.shuffled
    monkeypatch.setattr(Clients, "shuffled", lambda clients, client, round: in_order(clients, client, round + 1))
    wrong = torch.stack(trained("plain", small).models).numpy()
    assert driver.distance(wrong, right) > driver.TOLERANCE


def test_the_distance_is_the_largest_after_rounds_one_and_three() -> None:
    models = np.array([[1.0, 2.0], [9.0, 9.0], [4.0, 8.0]], dtype=np.float32)
    assert driver.distance(models, np.array([[1.0, 2.5], [0.0, 0.0], [4.0, 8.0]], dtype=np.float32)) == 0.5
    assert driver.distance(models, np.array([[1.0, 2.0], [0.0, 0.0], [4.75, 8.0]], dtype=np.float32)) == 0.75
    assert not driver.distance(models, np.full((3, 2), np.nan, dtype=np.float32)) <= driver.TOLERANCE


def test_a_table_has_medians_and_says_why_a_number_is_missing() -> None:
    columns = [Contender("fu", "fu"), Contender("other 1.0", "other")]
    rows = {"MLP": [Found([3.0, 1.0, 1.5]), Found(problem="no module")]}
    head, _, row, *rest = driver.table(columns, rows).splitlines()
    assert (head, row) == ("| | fu | other 1.0 |", "| MLP | 1.50 (1.00 to 3.00) | – |")
    assert rest == ["", "other 1.0 could not be run: no module"]


def test_two_jobs_of_three_seconds_a_round_make_one_every_one_and_a_half(small: Path, tmp_path: Path) -> None:
    program = tmp_path / "python"
    code = "import sys, numpy; numpy.savez(sys.argv[6], seconds=[9.0, 3.0, 3.0], models=numpy.zeros((3, 1)))"
    program.write_text(f"#!{sys.executable}\n{code}\n")
    program.chmod(0o700)
    found = driver.run(Contender("two", "fu", jobs=2), str(program), "mlp", small, 3, 2)
    assert found.problem == ""
    assert found.seconds == [1.5] * 4


def test_a_contender_that_fails_has_a_reason(small: Path) -> None:
    found = driver.run(Contender("none", "none"), "/bin/false", "mlp", small, 3, 2)
    assert (found.seconds, found.models, found.problem) == ([], None, "exit status 1")


def test_peers_get_the_libraries_that_fu_has() -> None:
    pinned, peers = (
        dict(line.split("==") for line in Path(f"envs/{name}.txt").read_text().splitlines() if "==" in line[:40])
        for name in ("lock", "peers")
    )
    assert {name: peers[name] for name in ("torch", "numpy", "pydantic")}.items() <= pinned.items()
    assert {"pfl", "flwr", "ray"} <= peers.keys()


def test_a_missing_contender_is_an_error_where_all_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(contender: Contender, *given: object) -> Found:
        return Found(problem="no module") if contender.program == "pfl" else Found([1.0], np.zeros((3, 2), np.float32))

    monkeypatch.setattr(driver, "run", run)
    monkeypatch.setattr(driver, "prepare", lambda *given: "digits")
    monkeypatch.setattr(sys, "argv", ["peers", "--passes", "1"])
    driver.main()
    printed = capsys.readouterr().out
    assert "could not be run: no module" in printed
    assert "Not compared: BlazeFL 3.0, which needs Python 3.14" in printed
    monkeypatch.setattr(sys, "argv", ["peers", "--passes", "1", "--all"])
    with pytest.raises(SystemExit, match="not every contender could be run"):
        driver.main()
