"""Choosing a trial: what was chosen, by which rule and with which scores; without validation data there is none."""

import json
from pathlib import Path
from typing import Any

import pytest

from fu.pipeline.stages import select
from fu.pipeline.stages.common import Options, canonical
from tests.mistakes import has, sentence


def evaluation(path: Path, *, recovered: dict[str, float] | None = None, **values: float) -> Path:
    """Write an evaluation of an unlearned model, and of a recovered one where there is one."""
    models = {"unlearned": values, "recovered": recovered or {}}
    lines = [f"{role},{metric},,{value}" for role, found in models.items() for metric, value in found.items()]
    path.write_text("\n".join(["role,metric,client,value", *lines, ""]))
    return path


FEDOSD: dict[str, Any] = {
    "terms": (("r_acc_validation", 1), ("asr_validation", -1)),
    "roles": ("unlearned", "recovered"),
    "rule": "the rule",
}
TRAINING: dict[str, Any] = {"terms": (("accuracy", 1),), "roles": ("original",), "rule": "another rule"}


def chosen(output: Path, trials: tuple[str, ...], *evaluations: Path, by: Any = None) -> dict[str, object]:
    spec = select.Spec(trials=trials, **(by or FEDOSD))
    spec = select.Spec.model_validate_json(canonical(spec))  # as a job is handed it
    select.main(spec, select.Files(list(evaluations), output), Options())
    found: dict[str, object] = json.loads(output.read_text())
    return found


def test_the_files_of_a_trial_are_one_per_seed_and_the_best_mean_is_chosen(tmp_path: Path) -> None:
    values = [(0.9, 0.2), (0.7, 0.2), (0.8, 0.1), (0.8, 0.1)]  # one, one, other, other
    files = [
        evaluation(tmp_path / f"{k}.csv", r_acc_validation=r_acc, asr_validation=asr)
        for k, (r_acc, asr) in enumerate(values)
    ]
    found = chosen(tmp_path / "mode.selected.json", ("one", "other"), *files)
    scores = found.pop("scores")
    assert found == {"selected": "other", "rule": "the rule"}
    assert scores == {
        "one": {"unlearned": pytest.approx(0.6), "recovered": None},
        "other": {"unlearned": pytest.approx(0.7), "recovered": None},
    }


def test_models_beyond_those_compared_decide_nothing(tmp_path: Path) -> None:
    """Where another artefact shows all points, their evaluations have post-trained models, too."""
    better = {"r_acc_validation": 0.9, "asr_validation": 0.1}
    files = [
        evaluation(tmp_path / "0.csv", recovered={"diverged_round": 3}, **better),
        evaluation(tmp_path / "1.csv", recovered=better, r_acc_validation=0.8, asr_validation=0.1),
    ]
    by = {**FEDOSD, "roles": ("unlearned",)}
    found = chosen(tmp_path / "mode.json", ("one", "other"), *files, by=by)
    assert found["selected"] == "one"
    assert found["scores"] == {"one": {"unlearned": pytest.approx(0.8)}, "other": {"unlearned": pytest.approx(0.7)}}
    both = chosen(tmp_path / "mode.json", ("other",), files[1])["scores"]
    assert both == {"other": {"unlearned": pytest.approx(0.7), "recovered": pytest.approx(0.8)}}


def test_a_choice_without_validation_data_is_told_in_one_sentence(tmp_path: Path) -> None:
    path, output = evaluation(tmp_path / "one.evaluation.csv", asr_validation=0.1), tmp_path / "made" / "mode.json"
    text = sentence(lambda: chosen(output, ("one",), path))
    has(
        text,
        f"{path}: the unlearned model has no 'r_acc_validation', which chooses the best point",
        "data.validation_share",
    )
    assert not output.parent.exists()


def test_the_points_of_a_training_are_compared_by_its_own_terms_of_the_trained_model(tmp_path: Path) -> None:
    files = [tmp_path / "0.csv", tmp_path / "1.csv"]
    for file, value in zip(files, (0.2, 0.7), strict=True):
        rows = f"original,accuracy,,{value}\noriginal,r_acc_validation,,{1 - value}\n"
        file.write_text(f"role,metric,client,value\n{rows}")
    assert chosen(tmp_path / "safari.json", ("one", "other"), *files, by=TRAINING) == {
        "selected": "other",
        "rule": "another rule",
        "scores": {"one": {"original": pytest.approx(0.2)}, "other": {"original": pytest.approx(0.7)}},
    }


def test_a_diverged_trial_needs_no_validation_data(tmp_path: Path) -> None:
    files = [evaluation(tmp_path / "0.csv", diverged_round=3), evaluation(tmp_path / "1.csv", r_acc_validation=0.1)]
    assert chosen(tmp_path / "mode.json", ("one", "other"), *files)["selected"] == "other"


def test_what_each_client_has_is_not_chosen_by(tmp_path: Path) -> None:
    files = [evaluation(tmp_path / f"{value}.csv", r_acc_validation=value) for value in (0.7, 0.6)]
    with files[0].open("a") as file:
        file.write("unlearned,r_acc_validation,1,0.1\nunlearned,r_acc_validation,4,0.2\n")
    assert chosen(tmp_path / "fedosd.json", ("one", "other"), *files)["selected"] == "one"
