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
    """A record that forbids unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Config(Strict):
    """config.yaml: what a user edits."""

    preset: Name = Field(
        "smoke", description="how papers are scaled down: smoke, reduced, paper (not at all), or a file of your own"
    )
    papers: Names = Field(min_length=1, description="the papers to reproduce")
    seeds: Annotated[Seeds | None, BeforeValidator(typed)] = Field(
        None, description="replaces the seeds of the preset and the paper"
    )
    plugins: str | None = Field(
        None, min_length=1, description="folder with your own plug-ins: methods/mine.py, evaluation/mine.py, ..."
    )
    data_dir: str = Field("data", min_length=1, description="folder for archives ({dataset}.npz) and downloads")
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="where models are trained and evaluated; auto: on a GPU if there is one"
    )
    threads: Count = Field(
        1, description="CPU threads per job; for small models, two one-thread jobs beat one two-thread job"
    )
    overrides: Annotated[dict[str, Any], BeforeValidator(typed)] = Field(
        default_factory=dict, description="paper -> anything in its YAML file; wins over the paper and the preset"
    )

    @field_validator("plugins", "data_dir")
    @classmethod
    def _at_home(cls, folder: str | None) -> str | None:
        try:
            found = folder and str(Path(folder).expanduser())  # a job's command line is quoted, so no shell expands it
        except RuntimeError:
            raise ValueError("the user's home folder is unknown") from None
        return f"./{found}" if found and found.startswith("-") else found  # else it would read as an option


class Plugin(Strict):
    """A plug-in, chosen by name, and its hyper-parameters."""

    name: Name = Field(description="the plug-in's file name without .py")
    params: dict[str, Any] = Field(default_factory=dict, description="its hyper-parameters (`Params` in the file)")


class Forget(Strict):
    """Which clients are to be forgotten."""

    clients: Annotated[int | list[int], BeforeValidator(which_clients)] = Field(
        description="how many to draw at random, or which ones (counted from 0)"
    )


class Data(Strict):
    """The data set, how clients share it, which of them are to be forgotten, and their backdoor."""

    dataset: str = Field(description="data set (fu/datasets)")
    samples: Count | None = Field(None, description="how many samples to use, drawn at random; null: all")
    clients: Count = Field(description="number of clients, m")
    partition: Plugin = Field(description="how samples are dealt to clients (fu/partitions)")
    train_share: Share = Field(
        gt=0, lt=1, description="share of a client's samples used for training; the rest is its test set"
    )
    validation_share: Share = Field(
        lt=1, description="share of the training samples held out to choose learning rates on"
    )
    forget: Forget = Field(description="which clients are to be forgotten")
    attack: Plugin | None = Field(
        None, description="the backdoor planted in the forgotten clients' data (fu/attacks); null: none"
    )

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
            raise ValueError(f"forget.clients: {number} of {self.clients} clients cannot be forgotten; one must remain")
        if isinstance(wanted, list) and (max(wanted) >= self.clients or len(set(wanted)) < len(wanted)):
            raise ValueError(f"forget.clients: {wanted} must be different clients from 0 to {self.clients - 1}")
        if self.samples is not None and self.samples > facts.samples:
            raise ValueError(f"samples: {self.samples} are more than the {facts.samples} samples of {self.dataset}")
        if self.clients * 2 > (self.samples or facts.samples):
            raise ValueError(f"clients: {self.clients} clients cannot share {self.samples or facts.samples} samples")
        fewest, train, _ = self.fewest
        if not 0 < train < fewest:
            raise ValueError(
                f"train_share: {self.train_share} leaves a client of {fewest} samples {train} for training and "
                f"{fewest - train} for testing; both must be at least 1"
            )
        _check_plugin("partition", "partitions", self.partition, self.clients, facts.classes)
        if self.attack:
            _check_plugin("attack", "attacks", self.attack, facts.shape, facts.classes)
        return self

    @property
    def fewest(self) -> tuple[int, int, int]:
        """Upper bounds on the samples of the smallest client: in all, for training, and of these for validation."""
        pool = (self.samples or about(self.dataset).samples) // self.clients
        train = int(pool * self.train_share)
        return pool, train, int(train * self.validation_share)


def _check_plugin(field: str, kind: str, chosen: Plugin, *facts: Any) -> None:
    """Raise `ValueError` where a plug-in does not exist, has wrong hyper-parameters, or refuses the facts."""
    try:
        catalogue.check(kind, chosen.name, f"{field}.name")
        params = plugins.params(kind, Choice(name=chosen.name, params=chosen.params), field)
    except UserError as error:
        raise ValueError(str(error).removesuffix(".")) from None
    try:
        plugins.load(kind, chosen.name).check(*facts, params)
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None


class Phase(Strict):
    """Local training in one phase. null: as in the previous phase (training, unlearning, recovery)."""

    lr: Rate = Field(description="learning rate of local SGD")
    lr_decay: Annotated[float, Field(gt=0, le=1)] = Field(description="factor applied to the rate after every round")
    batch_size: Count = Field(description="samples per gradient step, B")
    local_epochs: Count = Field(description="local epochs per round, E")
    evaluate_every: Count = Field(description="rounds between two measurements for the curves")


INHERITED = ("lr", "lr_decay", "batch_size", "local_epochs")  # null: as in the phase before


class Training(Phase):
    """The original training."""

    method: Plugin = Field(description="the algorithm that trains the original model (fu/training)")
    rounds: Count = Field(description="number of rounds")
    history: Annotated[list[Name], Different] = Field(
        description="what is recorded for methods that need it (fu/histories)"
    )


class Unlearning(Phase):
    """The unlearning phase. lr, lr_decay, batch_size and local_epochs may be null: as in training."""

    rounds: Count = Field(description="number of rounds")
    conflicts: bool = Field(
        description="count conflicting gradients in every round; this also trains the retained clients"
    )


class Recovery(Phase):
    """Post-training for the rounds left of `total_rounds`. The same keys may be null: as in unlearning."""

    client_weights: Literal["samples", "equal"] = Field(description="samples: N_i / N; equal: 1 / m")
    first_round_keeps_rate: bool = Field(
        description="the first round still uses the unlearning rate, as in FedOSD's code"
    )
    projection: Plugin | None = Field(
        None,
        description="how each client's update is projected before averaging (fu/projections); null: not at all",
    )


class Settings(Strict):
    """All that the models and numbers of one scenario depend on."""

    data: Data = Field(description="data set, partition, forgetting, backdoor")
    model: Plugin = Field(description="the architecture (fu/models)")
    training: Training = Field(description="the original training")
    unlearning: Unlearning = Field(description="the unlearning phase")
    recovery: Recovery = Field(description="post-training")
    total_rounds: Count = Field(description="rounds of unlearning and post-training together")
    evaluations: dict[Word, list[Name]] = Field(
        min_length=1,
        description="name -> evaluators (fu/evaluation) that share one job and one file, {trial}.{name}.csv; an "
        "evaluation under a new name can be added without rerunning the others",
    )
    traced: Annotated[list[Name], Different] = Field(
        default_factory=list,
        description="evaluators (fu/evaluation) whose `trace` is measured after every round of unlearning and "
        "post-training, in addition to ASR, R-Acc and distance",
    )
    grid: dict[GridKey, list[float | int | str]] = Field(
        default_factory=dict,
        description="setting (`unlearning.x`, `recovery.x`, `params.x`) -> values: each method is run with every "
        "combination, and tables show the one that is best on validation data; []: no grid",
    )

    @field_validator("evaluations")
    @classmethod
    def _apart(cls, evaluations: dict[str, list[str]]) -> dict[str, list[str]]:
        several = [name for found in evaluations.values() for name in found]
        if len(set(several)) < len(several) or not all(evaluations.values()):
            raise ValueError("every evaluation needs evaluators, and every evaluator may be in one evaluation only")
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
    """One scenario of a paper: how it differs from the paper's common settings."""

    label: str = Field(description="how tables name it")
    base: Name | None = Field(None, description="a scenario to start from, with its settings and methods")
    settings: dict[str, Any] = Field(default_factory=dict, description="merged into the paper's settings")
    methods: dict[Name, dict[str, Any]] = Field(
        default_factory=dict, description="method -> its settings in this scenario alone"
    )


class Method(Strict):
    """One method: a plug-in with hyper-parameters and settings of its own."""

    label: str = Field(description="how tables name it")
    plugin: Name | None = Field(None, description="the file in fu/methods or in your own folder")
    unlearned_from: Name | None = Field(
        None, description="instead of a plug-in: the method whose unlearned model this one post-trains"
    )
    post_training: Literal["after", "none", "own"] = Field(
        "after",
        description="after: for the rounds left of total_rounds; none: no post-training; own: the method runs for all",
    )
    source: str = Field(description="who proposed it, or which variant it is")
    in_paper: bool = Field(True, description="false: marked as not in the paper")
    shown_in: Annotated[list[Name], Different] = Field(
        default_factory=list, description="artefacts to show it in, in addition to those that list it"
    )
    params: dict[str, Any] = Field(default_factory=dict, description="its hyper-parameters")
    settings: dict[str, Any] = Field(default_factory=dict, description="merged into the scenario's settings")

    @model_validator(mode="after")
    def _one_start(self) -> "Method":
        if (self.plugin is None) == (self.unlearned_from is None):
            raise ValueError("needs either plugin or unlearned_from, not both")
        if self.unlearned_from and (self.params or "unlearning" in self.settings):
            raise ValueError("with unlearned_from, params and settings.unlearning must be set in the other method")
        return self


class Artefact(Strict):
    """One table or figure."""

    kind: Name = Field(description="the kind (fu/artefacts): table, curves, bars, ...")
    title: str = Field(description="heading")
    caption: str = Field(description="what it shows")
    note: str = Field("", description="what to know about the paper's numbers; shown with them")
    in_paper: bool = Field(True, description="false: our own addition")
    published: bool = Field(False, description="the paper's numbers are in workflow/published/{paper}/{artefact}.csv")
    scenarios: Annotated[list[Name], Different] = Field(default_factory=list, description="scenarios, in order")
    methods: Annotated[list[Name], Different] = Field(default_factory=list, description="methods, in order")
    metrics: Annotated[list[Name], Different] = Field(
        default_factory=list, description="metrics, in order (METRICS in fu/evaluation)"
    )
    stages: Annotated[list[Stage], Different] = Field(
        ["original", "unlearned", "recovered"], min_length=1, description="which models to show"
    )


class Paper(Strict):
    """A paper: what it computes, and which tables and figures show it."""

    title: str = Field(description="the paper's title")
    citation: str = Field(description="how artefacts cite it")
    seeds: Seeds = Field(description="everything is run once with each")
    settings: dict[str, Any] = Field(description="settings common to all scenarios")
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
    replace_datasets: dict[str, str] = Field(default_factory=dict, description="data set -> the one to use instead")
    papers: dict[Name, dict[str, Any]] = Field(
        default_factory=dict, description="paper -> what is merged into its YAML file"
    )

    @field_validator("replace_datasets")
    @classmethod
    def _known(cls, replaced: dict[str, str]) -> dict[str, str]:
        known = catalogue.available("datasets")
        for name in (*replaced, *replaced.values()):
            if name not in known:
                raise ValueError(f"unknown data set {name!r}{nearest(name, known)}")
        return replaced
