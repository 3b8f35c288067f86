"""The typed config: what a user sets, what a paper states, what a preset scales. Unknown keys are errors."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from fu import plugins
from fu.artefacts.entry import ORIGINAL, Stage
from fu.data.dataset import about
from fu.errors import UserError, nearest
from fu.pipeline import catalogue
from fu.pipeline.settings.types import (
    Count,
    Different,
    GridKey,
    Name,
    Names,
    Rate,
    Seeds,
    Word,
    typed,
    which_clients,
)
from fu.plugins import Choice
from fu.types import Share


class Strict(BaseModel):
    """A record with no unknown key."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Config(Strict):
    """config.yaml: what a user edits."""

    preset: Name = Field("smoke", description="how papers are scaled: smoke, reduced, paper, or a file of your own")
    papers: Names = Field(min_length=1, description="the papers to reproduce")
    seeds: Annotated[Seeds | None, BeforeValidator(typed)] = Field(
        None, description="replaces the seeds of preset and paper"
    )
    plugins: str | None = Field(
        None, min_length=1, description="folder with plug-ins of one's own: methods/mine.py, evaluation/mine.py, ..."
    )
    data_dir: str = Field("data", min_length=1, description="folder with archives ({dataset}.npz); downloads go there")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="where training runs")
    threads: Count = Field(1, description="CPU threads of one job; two jobs of one beat one of two on small work")
    overrides: Annotated[dict[str, Any], BeforeValidator(typed)] = Field(
        default_factory=dict, description="per paper: anything of its YAML file, laid over paper and preset"
    )

    @field_validator("plugins", "data_dir")
    @classmethod
    def _at_home(cls, folder: str | None) -> str | None:
        try:
            found = folder and str(Path(folder).expanduser())  # a job's command line is quoted: no shell does it there
        except RuntimeError:
            raise ValueError("there is no such user's home") from None
        return f"./{found}" if found and found.startswith("-") else found  # else it would read as an option


class Plugin(Strict):
    """A plug-in by name, with its hyper-parameters."""

    name: Name = Field(description="file name of the plug-in, without .py")
    params: dict[str, Any] = Field(default_factory=dict, description="its hyper-parameters (`Params` in the file)")


class Forget(Strict):
    """Who is to be forgotten."""

    clients: Annotated[int | list[int], BeforeValidator(which_clients)] = Field(
        description="how many clients to draw, or which (counted from 0)"
    )


class Data(Strict):
    """Data set, partition, who is to be forgotten."""

    dataset: str = Field(description="data set (fu/datasets)")
    samples: Count | None = Field(None, description="how many samples are used, drawn at random; null: all")
    clients: Count = Field(description="number of clients m")
    partition: Plugin = Field(description="how clients share the classes (fu/partitions)")
    train_share: Share = Field(gt=0, lt=1, description="share of a client's pool that is training data")
    validation_share: Share = Field(lt=1, description="share of the training data held out for choosing rates")
    forget: Forget = Field(description="who is to be forgotten")
    attack: Plugin | None = Field(None, description="what is planted in the forgotten clients' data (fu/attacks)")

    @model_validator(mode="after")
    def _possible(self) -> "Data":
        try:
            catalogue.check("datasets", self.dataset, "dataset")
        except UserError as error:
            raise ValueError(str(error).removesuffix(".")) from None
        facts = about(self.dataset)
        wanted = self.forget.clients
        number = wanted if isinstance(wanted, int) else len(set(wanted))
        if number >= self.clients:
            raise ValueError(f"forget.clients: {number} of {self.clients} clients cannot be forgotten; one must stay")
        if isinstance(wanted, list) and (max(wanted) >= self.clients or len(set(wanted)) < len(wanted)):
            raise ValueError(f"forget.clients: {wanted} must be different clients from 0 to {self.clients - 1}")
        if self.samples is not None and self.samples > facts.samples:
            raise ValueError(f"samples: {self.samples} of {facts.samples} samples of {self.dataset} cannot be used")
        if self.clients * 2 > (self.samples or facts.samples):
            raise ValueError(f"clients: {self.clients} clients cannot share {self.samples or facts.samples} samples")
        fewest, train, _ = self.fewest
        if not 0 < train < fewest:
            raise ValueError(
                f"train_share: {self.train_share} leaves a client of {fewest} samples {train} to train and "
                f"{fewest - train} to test on; both must be at least 1"
            )
        _check_plugin("partition", "partitions", self.partition, self.clients, facts.classes)
        if self.attack:
            _check_plugin("attack", "attacks", self.attack, facts.shape, facts.classes)
        return self

    @property
    def fewest(self) -> tuple[int, int, int]:
        """The most that the client with the fewest samples can have: in all, for training, of these for validation."""
        pool = (self.samples or about(self.dataset).samples) // self.clients
        train = int(pool * self.train_share)
        return pool, train, int(train * self.validation_share)


def _check_plugin(field: str, kind: str, chosen: Plugin, *facts: Any) -> None:
    """Raise `ValueError` where a plug-in is not there, has other hyper-parameters, or refuses the facts."""
    try:
        catalogue.check(kind, chosen.name, f"{field}.name")
        params = plugins.params(kind, Choice(name=chosen.name, params=chosen.params), f"{field}.params")
    except UserError as error:
        raise ValueError(str(error).removesuffix(".")) from None
    try:
        plugins.load(kind, chosen.name).check(*facts, params)
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None


class Phase(Strict):
    """Local training in one phase. null: as in the phase before (training, unlearning, recovery)."""

    lr: Rate = Field(description="learning rate of local SGD")
    lr_decay: Annotated[float, Field(gt=0, le=1)] = Field(description="factor on the rate per round")
    batch_size: Count = Field(description="samples of one gradient step")
    local_epochs: Count = Field(description="epochs of a client in a round, E")
    evaluate_every: Count = Field(description="rounds between two measurements in the trace")


class Training(Phase):
    """The original training."""

    method: Plugin = Field(description="algorithm that trains the original model (fu/training)")
    rounds: Count = Field(description="rounds of the original training")
    history: Annotated[list[Name], Different] = Field(
        description="what is recorded on the way for methods that need it"
    )


class Unlearning(Phase):
    """The unlearning phase."""

    rounds: Count = Field(description="unlearning rounds")
    conflicts: bool = Field(description="count the conflicts of every round (costs the retained clients' training)")


class Recovery(Phase):
    """Post-training; it fills up to `total_rounds`."""

    client_weights: Literal["samples", "equal"] = Field(description="samples: p_i = N_i / N; equal: 1 / m")
    first_round_keeps_rate: bool = Field(description="the first round still has the unlearning rate (FedOSD's code)")
    projection: Plugin | None = Field(
        None,
        description="what is done to each client's update before they are averaged (fu/projections); null: nothing",
    )


class Settings(Strict):
    """Everything that one scenario computes with, for one method."""

    data: Data = Field(description="data set, partition, forgetting, backdoor")
    model: Plugin = Field(description="architecture (fu/models)")
    training: Training = Field(description="the original training")
    unlearning: Unlearning = Field(description="the unlearning phase")
    recovery: Recovery = Field(description="post-training")
    total_rounds: Count = Field(description="unlearning and post-training rounds together")
    evaluations: dict[Word, list[Name]] = Field(
        min_length=1,
        description="name -> evaluators (fu/evaluation) that share a job and the file {trial}.{name}.csv; one that "
        "stands alone can be added without a rerun of the others",
    )
    grid: dict[GridKey, list[float | int | str]] = Field(
        default_factory=dict,
        description="setting -> values: a method is run with each (`unlearning.lr`, `recovery.lr`, `params.x`, ...); "
        "a table shows the one that is best on validation data; an empty list: the setting as it is",
    )

    @field_validator("evaluations")
    @classmethod
    def _apart(cls, evaluations: dict[str, list[str]]) -> dict[str, list[str]]:
        several = [name for found in evaluations.values() for name in found]
        if len(set(several)) < len(several) or not all(evaluations.values()):
            raise ValueError("every evaluation needs evaluators, and every evaluator may stand in one evaluation only")
        taken = sorted(set(evaluations) & {"unlearned", "recovered"})
        if taken:
            raise ValueError(f"{taken[0]!r} is the name of a model's trace; an evaluation needs another")
        return evaluations

    @model_validator(mode="after")
    def _rounds(self) -> "Settings":
        if self.unlearning.rounds > self.total_rounds:
            raise ValueError(
                f"unlearning.rounds: {self.unlearning.rounds} rounds exceed total_rounds, {self.total_rounds}"
            )
        return self


class Scenario(Strict):
    """One scenario of a paper: its settings differ from the paper's common ones."""

    label: str = Field(description="how tables name it")
    base: Name | None = Field(None, description="a scenario whose settings and methods this one's are laid over")
    settings: dict[str, Any] = Field(default_factory=dict, description="laid over the paper's settings")
    methods: dict[Name, dict[str, Any]] = Field(
        default_factory=dict, description="method -> settings of that method in this scenario alone"
    )


class Method(Strict):
    """One entry of a method: the plug-in, its hyper-parameters, and settings of its own."""

    label: str = Field(description="how tables name it")
    plugin: Name | None = Field(None, description="file of fu/methods")
    unlearned_from: Name | None = Field(
        None, description="instead of a plug-in: another method, whose unlearned model this one only trains on"
    )
    post_training: Literal["after", "none", "own"] = Field(
        "after",
        description="after: it fills up total_rounds; none: nothing follows; own: the method takes all total_rounds",
    )
    source: str = Field(description="who proposed it, and whose variant this is")
    in_paper: bool = Field(True, description="false: rows are marked as not in the paper")
    shown_in: Annotated[list[Name], Different] = Field(
        default_factory=list, description="artefacts that show it besides those that list it"
    )
    params: dict[str, Any] = Field(default_factory=dict, description="its hyper-parameters")
    settings: dict[str, Any] = Field(default_factory=dict, description="laid over the scenario's settings")

    @model_validator(mode="after")
    def _one_start(self) -> "Method":
        if (self.plugin is None) == (self.unlearned_from is None):
            raise ValueError("needs either plugin or unlearned_from, and not both")
        if self.unlearned_from and (self.params or "unlearning" in self.settings):
            raise ValueError("unlearned_from takes another method's unlearning; params and settings.unlearning are its")
        return self


class Artefact(Strict):
    """One table or figure."""

    kind: Name = Field(description="table, curves, bars, sweep, runtime, losses, images (fu/artefacts)")
    title: str = Field(description="heading")
    caption: str = Field(description="what it shows")
    note: str = Field("", description="what to know about the paper's numbers; shown where these are")
    in_paper: bool = Field(True, description="false: an extra artefact of ours")
    published: bool = Field(False, description="workflow/published/<paper>/<artefact>.csv holds the paper's numbers")
    scenarios: Annotated[list[Name], Different] = Field(default_factory=list, description="scenarios, in order")
    methods: Annotated[list[Name], Different] = Field(default_factory=list, description="methods, in order")
    metrics: Annotated[list[Name], Different] = Field(
        default_factory=list, description="metrics, in order (METRICS in fu/evaluation)"
    )
    stages: Annotated[list[Stage], Different] = Field(
        ["original", "unlearned", "recovered"], min_length=1, description="which models of a method are shown"
    )


class Paper(Strict):
    """One paper as data."""

    title: str = Field(description="title of the paper")
    citation: str = Field(description="how artefacts cite it")
    seeds: Seeds = Field(description="one run of everything for each")
    settings: dict[str, Any] = Field(description="common to all scenarios")
    scenarios: dict[Name, Scenario] = Field(description="name -> scenario")
    methods: dict[Name, Method] = Field(description="name -> method")
    artefacts: dict[Name, Artefact] = Field(description="name -> table or figure")

    @field_validator("methods")
    @classmethod
    def _not_reserved(cls, methods: dict[str, Method]) -> dict[str, Method]:
        if ORIGINAL in methods:
            raise ValueError(f"{ORIGINAL!r} is the name of the original model; a method needs another")
        return methods


class Preset(Strict):
    """How a preset scales papers down."""

    description: str = Field(description="what the preset is for")
    seeds: Seeds | None = Field(None, description="replaces the papers' seeds")
    replace_datasets: dict[str, str] = Field(default_factory=dict, description="data set -> the one used instead")
    papers: dict[Name, dict[str, Any]] = Field(default_factory=dict, description="laid over a paper's YAML")

    @field_validator("replace_datasets")
    @classmethod
    def _known(cls, replaced: dict[str, str]) -> dict[str, str]:
        known = catalogue.available("datasets")
        for name in (*replaced, *replaced.values()):
            if name not in known:
                raise ValueError(f"unknown data set {name!r}{nearest(name, known)}")
        return replaced
