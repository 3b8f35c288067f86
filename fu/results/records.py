"""What each file of a run is, from its name, its certificate and those of tables and figures."""

import json
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from fu.artefacts.entry import ORIGINAL
from fu.errors import UserError, nearest
from fu.pipeline.provenance import certificate
from fu.pipeline.provenance.certificate import Certificate
from fu.pipeline.provenance.paths import CERTIFIED, CHOSEN, certificate_of
from fu.pipeline.stages.publish import Spec

ROLES = {"trained": ORIGINAL, "unlearned": "unlearned", "recovered": "recovered"}  # by the end of a model's name
ORDER = ("", *ROLES.values())
OTHERS = ("artefacts", "data", "logs", "oracles")  # folders of a preset that are none of a paper


class Record(NamedTuple):
    """What a file is of; of an evaluation the role is "", as each row says it."""

    path: Path
    paper: str
    scenario: str
    training: str
    method: str
    point: str
    chosen: bool
    seed: int
    role: str


class Shown(NamedTuple):
    """What artefacts say of a paper's files.

    `sharing`: "scenario/name" of a file -> the other (scenario, trial) that it is of, too. `points`: (scenario, trial)
    of the chosen one of several -> the trial that it is, by the selected one.
    """

    sharing: dict[str, set[tuple[str, str]]]
    points: dict[tuple[str, str], dict[str, str]]


def shown(entries: Iterable[Spec]) -> Shown:
    """Return what the entries of a paper's artefacts say of its files."""
    found = Shown(defaultdict(set), {})
    for entry in entries:
        for scenario in entry.scenarios:
            trials = [scenario.original] if scenario.original else []
            for method in entry.methods:
                trials += method.trials[scenario.name]
                trials += [method.chosen[scenario.name]] if scenario.name in method.chosen else []
            for trial in trials:
                found.points[scenario.name, trial.name] = trial.points
                found.sharing[f"{trial.trained}.trained"].add((scenario.name, trial.trained.rpartition("/")[2]))
                own = [model for role, model in trial.models.items() if role != ORIGINAL]
                for model in own:
                    found.sharing[model].add((scenario.name, trial.name))
        for source in entry.sources:
            if source.kind == "evaluations":
                *_, folder, _, name = Path(source.path).parts
                found.sharing[f"{folder}/{Path(name).stem}"].add((source.scenario, source.trial))
    return found


class Run:
    """The files of one preset."""

    def __init__(self, folder: Path) -> None:
        """`folder`: results/{preset}."""
        self.folder = folder
        self.certificate = cache(lambda file: certificate.read(certificate_of(file)))

    def papers(self, paper: str | None = None) -> list[str]:
        """Return the papers that have files, or the one that is named; `UserError` where it has none."""
        places = [*self.folder.iterdir(), *self.folder.glob("artefacts/*")]
        papers = sorted({path.name for path in places if path.is_dir() and path.name not in OTHERS})
        if paper is not None and paper not in papers:
            raise UserError(f"{self.folder}: there is no paper {paper!r}{nearest(paper, papers)}.")
        return papers if paper is None else [paper]

    def verify(self, file: Path) -> Certificate:
        """Return the certificate of a file; `UserError` where the file is not as its job wrote it."""
        made = self.certificate(file)
        certificate.verified(file, made)
        assert made is not None
        return made

    def artefacts(self, paper: str) -> list[Path]:
        """Return the CSV files of a paper's tables and figures, by their own names and those of certificates."""
        return [path for path in self._files(f"artefacts/{paper}", ".csv") if not path.stem.endswith(".rows")]

    def entries(self, paper: str) -> list[Spec]:
        """Return what a paper's artefacts were told of scenarios, methods and metrics."""
        entries = []
        for path in self.artefacts(paper):
            spec = json.dumps(self._required(path).spec)
            try:
                entries.append(Spec.model_validate_json(spec, extra="ignore"))
            except ValidationError:
                raise UserError(f"{path}: made by another version of fu; start the run again.") from None
        return entries

    def tables(self, paper: str, entries: Iterable[Spec], *, traces: bool) -> list[Record]:
        """Return what a paper's evaluations are, or its traces; `UserError` where one is not as its job wrote it."""
        tables = [path for path in self._files(f"{paper}/*/seed*", ".csv", False) if "." in path.stem]  # of trials
        files = [path for path in tables if (_end(path) in ROLES) == traces]
        for path in files:
            self.verify(path)
        return self._records(paper, files, entries)

    def models(self, paper: str) -> list[Record]:
        """Return what the models of a paper are, also those that were deleted or have no certificate."""
        files = [path for path in self._files(f"{paper}/*/seed*", ".safetensors") if _end(path) in ROLES]
        return self._records(paper, files, self.entries(paper))

    def _files(self, folders: str, suffix: str, deleted: bool = True) -> list[Path]:
        """Return the files in folders that end so, sorted; `deleted`: also those of which a certificate is left.

        Hidden ones are of jobs at work.
        """
        ends = (suffix, CERTIFIED) if deleted else (suffix,)
        found = [(path, end) for end in ends for path in self.folder.glob(f"{folders}/[!.]*{end}")]
        return sorted({path.with_name(f"{path.name.removesuffix(end)}{suffix}") for path, end in found})

    def _records(self, paper: str, files: Iterable[Path], entries: Iterable[Spec]) -> list[Record]:
        """Return what files are, once for each scenario that shares one; of equals those of a chosen point first."""
        known = shown(entries)
        records = []
        for path in files:
            own = path.parts[-3], path.stem.rpartition(".")[0]
            shared = sorted(known.sharing[f"{own[0]}/{path.stem}"] - {own})
            records += [self._record(path, paper, *owner, known) for owner in (own, *shared)]
        points, chosen = defaultdict(set), defaultdict(set)
        for record in records:
            points[record.scenario, record.method].add(record.point)
            if record.chosen:
                chosen[record.scenario, record.method].add(record.point)
        for place in points.keys() - chosen.keys():
            chosen[place] = points[place] if len(points[place]) == 1 else set()
        records.sort(key=lambda one: (*one[2:6], one.seed, ORDER.index(one.role), not one.chosen))
        return [record._replace(chosen=record.point in chosen[record.scenario, record.method]) for record in records]

    def _record(self, path: Path, paper: str, scenario: str, trial: str, known: Shown) -> Record:
        """Return what a file is in a scenario; `chosen` where its own name says that it is of a chosen point."""
        made = self.certificate(path)
        role = ROLES.get(_end(path), "")
        training = self._training(path, made) if made else ""
        method, _, point = trial.partition("+")
        chosen = trial.endswith(CHOSEN)
        if made and (role or made.spec["roles"][0]) == ORIGINAL:
            own = method
            method, _, point = training.partition("+")
            chosen = chosen and own == method
        elif made and chosen:
            selected = self._selected(path)[0]
            point = known.points.get((scenario, trial), {}).get(selected, selected).partition("+")[2]
        seed = int(path.parts[-2].removeprefix("seed"))
        return Record(path, paper, scenario, training.partition("+")[0], method, point, chosen, seed, role)

    def _training(self, path: Path, made: Certificate) -> str:
        """Return the trial of the training that a model, or what was evaluated, starts from."""
        original = path if made.stage == "train" else self._here(made.inputs["original"][0][0])
        trial = original.stem.removesuffix(".trained")
        if not trial.endswith(CHOSEN):
            return trial
        _, evaluation = self._selected(original)
        return self._training(evaluation, self._required(evaluation))

    def _selected(self, file: Path) -> tuple[str, Path]:
        """Return which point was selected for a file of the chosen one, and an evaluation of that point."""
        selection, content = self._selection(file)
        made = self.verify(selection)
        if made.outputs[selection.name][1] != content:
            raise UserError(f"{file}: is older than {selection.name}; start the run again.")
        selected = json.loads(selection.read_text())["selected"]
        trials, evaluated = made.spec["trials"], made.inputs["evaluations"]
        return selected, self._here(evaluated[trials.index(selected) * len(evaluated) // len(trials)][0])

    def _selection(self, file: Path) -> tuple[Path, str]:
        """Return the selection that a file of a chosen point rests on, and its digest then."""
        inputs = self._required(file).inputs
        for path, content in inputs.get("chosen", ()):
            return self._here(path), content
        behind = [path for role in ("models", "unlearned", "original") for path, _ in inputs.get(role, ())]
        return self._selection(self._here(next(path for path in behind if CHOSEN in path)))

    def _required(self, file: Path) -> Certificate:
        """Return the certificate of a file that may have been deleted; `UserError` where there is none."""
        made = self.certificate(file)
        if made is None:
            raise UserError(f"{file}: its certificate is missing or damaged; start the run again.")
        return made

    def _here(self, path: str) -> Path:
        """Return a file that a certificate names, `results/{preset}/...`, wherever results are now."""
        return self.folder.joinpath(*Path(path).parts[2:])


def _end(path: Path) -> str:
    """Return the last part of a file's name before its suffix: that of a model or the name of an evaluation."""
    return path.stem.rpartition(".")[2]
