"""Documents that are made from the code, or must hold for it."""

import re
import subprocess
import sys
from pathlib import Path

import yaml

from fu.plan import reference
from fu.plan.digest import ROOT


def test_the_reference_of_settings_is_current() -> None:
    assert (ROOT / "docs/config.md").read_text() == reference.text()


def test_every_setting_is_described() -> None:
    for model in reference.MODELS.values():
        assert [name for name, field in model.model_fields.items() if not field.description] == []


def test_the_method_of_the_readme_runs(tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert code
    path = tmp_path / "mine.py"
    path.write_text(code[1])
    program = (
        "import importlib.util, torch; from tests.toys import make_task; "
        f"spec = importlib.util.spec_from_file_location('mine', {str(path)!r}); "
        "m = importlib.util.module_from_spec(spec); spec.loader.exec_module(m); t = make_task(); p = m.Params(); "
        "s = m.start(t, p); s = m.step(t, p, s, 0); assert torch.isfinite(s['theta']).all(); "
        "assert not torch.equal(s['theta'], t.original_model)"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_the_conda_environment_pins_what_the_lock_pins() -> None:
    pip = yaml.safe_load((ROOT / "envs/environment.yaml").read_text())["dependencies"][-1]["pip"]
    lock = [line for line in (ROOT / "envs/lock.txt").read_text().splitlines() if not line.startswith("#")]
    assert pip == lock


def test_the_citation_file_names_four_papers() -> None:
    content = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert len(content["references"]) == 4
    assert all(reference["title"] and reference["authors"] for reference in content["references"])


def test_the_published_table_8_holds_every_cell_of_the_paper() -> None:
    # 13 rows of 3 x 5 numbers; SUMS are the columns' sums in the paper's other text (the HTML), read separately. Both
    # print EWCSGA's R-Acc in Pat-50 as "441": .441.
    rows = [line.split(",") for line in (ROOT / "workflow/published/fedosd/table8.csv").read_text().splitlines()[1:]]
    assert len(rows) == 13 * 3 * 5
    assert len({tuple(row[:4]) for row in rows}) == len(rows)
    sums = {
        (scenario, metric): round(sum(float(r[4]) for r in rows if r[0] == scenario and r[3] == metric), 3)
        for scenario in ("mnist-pat20", "mnist-pat50", "mnist-iid")
        for metric in ("asr", "r_acc", "r_acc_std", "r_acc_worst", "r_acc_best")
    }
    assert sums == SUMS


SUMS = {
    ("mnist-pat20", "asr"): 3.492,
    ("mnist-pat20", "r_acc"): 10.787,
    ("mnist-pat20", "r_acc_std"): 1.579,
    ("mnist-pat20", "r_acc_worst"): 8.043,
    ("mnist-pat20", "r_acc_best"): 12.645,
    ("mnist-pat50", "asr"): 4.846,
    ("mnist-pat50", "r_acc"): 11.374,
    ("mnist-pat50", "r_acc_std"): 1.183,
    ("mnist-pat50", "r_acc_worst"): 10.204,
    ("mnist-pat50", "r_acc_best"): 12.747,
    ("mnist-iid", "asr"): 1.932,
    ("mnist-iid", "r_acc"): 12.636,
    ("mnist-iid", "r_acc_std"): 0.071,
    ("mnist-iid", "r_acc_worst"): 12.509,
    ("mnist-iid", "r_acc_best"): 12.753,
}
