"""The typed config: what a user sets, what a paper states, what a preset scales. Unknown keys are errors."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from fu.data.assignment import pathological
from fu.errors import UserError, nearest
from fu.plan.datasets import DATASETS
from fu.plan.fields import Count, GridKey, Name, Names, Params, Rate, Seeds, Share, fraction, typed, which_clients

ORIGINAL = "original"


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
    data_dir: str = Field("data", min_length=1, description="folder with archives ({dataset}.npz); downloads go there")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="where training runs")
    threads: Count = Field(1, description="CPU threads of one job; two jobs of one beat one of two on small work")
    overrides: Annotated[dict[str, Any], BeforeValidator(typed)] = Field(
        default_factory=dict, description="per paper: anything of its YAML file, laid over paper and preset"
    )


class Partition(Strict):
    """How clients share the classes."""

    kind: Literal["iid", "pat"] = Field(description="iid: a share of every class; pat: some classes per client")
    class_share: Annotated[float, BeforeValidator(fraction), Field(gt=0, le=1)] | None = Field(
        None, description="of `pat`: which share of all classes a client holds"
    )

    @model_validator(mode="after")
    def _complete(self) -> "Partition":
        if (self.kind == "pat") != (self.class_share is not None):
            raise ValueError("class_share belongs to kind pat, and kind pat needs it")
        return self

    def classes_per_client(self, classes: int) -> int | None:
        """How many classes a client holds; `ValueError` where the share is no whole number of classes."""
        if self.class_share is None:
            return None
        number = self.class_share * classes
        if abs(number - round(number)) > 1e-6 or round(number) < 1:
            raise ValueError(f"class_share: {self.class_share} of {classes} classes is no whole number of classes")
        return round(number)


class Forget(Strict):
    """Who is to be forgotten."""

    clients: Annotated[int | list[int], BeforeValidator(which_clients)] = Field(
        description="how many clients to draw, or which (counted from 0)"
    )


class Backdoor(Strict):
    """The implanted backdoor."""

    share: Share = Field(description="share of the forgotten clients' training samples that carry the trigger")
    size: Count = Field(description="side of the square patch in pixels")
    margin: Annotated[int, Field(ge=0)] = Field(description="pixels between patch and lower right border")
    value: float = Field(description="value of set pixels in model-input space", allow_inf_nan=False)
    label_shift: Share = Field(description="y becomes (y + label_shift * classes) mod classes")


class Data(Strict):
    """Data set and partition."""

    dataset: str = Field(description=f"one of {', '.join(DATASETS)}")
    samples: Count | None = Field(None, description="how many samples are used, drawn at random; null: all")
    clients: Count = Field(description="number of clients m")
    partition: Partition = Field(description="how clients share the classes")
    train_share: Share = Field(gt=0, lt=1, description="share of a client's pool that is training data")
    validation_share: Share = Field(lt=1, description="share of the training data held out for choosing rates")
    forget: Forget = Field(description="who is to be forgotten")
    backdoor: Backdoor | None = Field(None, description="the implanted backdoor, or none")

    @model_validator(mode="after")
    def _possible(self) -> "Data":
        if self.dataset not in DATASETS:
            raise ValueError(f"dataset: unknown data set {self.dataset!r}{nearest(self.dataset, DATASETS)}")
        about = DATASETS[self.dataset]
        wanted = self.forget.clients
        number = wanted if isinstance(wanted, int) else len(set(wanted))
        if number >= self.clients:
            raise ValueError(f"forget.clients: {number} of {self.clients} clients cannot be forgotten; one must stay")
        if isinstance(wanted, list) and (max(wanted) >= self.clients or len(set(wanted)) < len(wanted)):
            raise ValueError(f"forget.clients: {wanted} must be different clients from 0 to {self.clients - 1}")
        if self.samples is not None and self.samples > about.samples:
            raise ValueError(f"samples: {self.samples} of {about.samples} samples of {self.dataset} cannot be used")
        if self.clients * 2 > (self.samples or about.samples):
            raise ValueError(f"clients: {self.clients} clients cannot share {self.samples or about.samples} samples")
        per_client = self.partition.classes_per_client(about.classes)
        if per_client is not None:
            try:
                pathological(self.clients, about.classes, per_client)
            except UserError as error:
                raise ValueError(f"partition: {error}") from None
        if self.backdoor and not 0 < int(about.classes * self.backdoor.label_shift) < about.classes:
            raise ValueError(
                f"backdoor.label_shift: {self.backdoor.label_shift} of {about.classes} classes flips nothing"
            )
        if self.backdoor and self.backdoor.size + self.backdoor.margin > min(about.shape[:2]):
            raise ValueError(f"backdoor: a patch of {self.backdoor.size} does not fit {about.shape[0]} pixels")
        return self


class Plugin(Strict):
    """A plug-in by name, with its hyper-parameters."""

    name: Name = Field(description="file name of the plug-in, without .py")
    params: Params = Field(default_factory=dict, description="its hyper-parameters (`Params` in the file)")


class Phase(Strict):
    """Local training in one phase. null: as in the phase before (training, unlearning, recovery)."""

    lr: Rate = Field(description="learning rate of local SGD")
    lr_decay: Annotated[float, Field(gt=0, le=1)] = Field(description="factor on the rate per round")
    batch_size: Count = Field(description="samples of one gradient step")
    local_epochs: Count = Field(description="epochs of a client in a round, E")
    evaluate_every: Count = Field(description="rounds between two measurements in the trace")


class Training(Phase):
    """The original training."""

    method: Plugin = Field(description="way to train the original model (fu/training)")
    rounds: Count = Field(description="rounds of the original training")
    history: list[Name] = Field(description="what is recorded on the way for methods that need it")


class Unlearning(Phase):
    """The unlearning phase."""

    rounds: Count = Field(description="unlearning rounds")
    conflicts: bool = Field(description="count the conflicts of every round (costs the retained clients' training)")


class Recovery(Phase):
    """Post-training; it fills up to `total_rounds`."""

    client_weights: Literal["samples", "equal"] = Field(description="samples: p_i = N_i / N; equal: 1 / m")
    late: bool = Field(description="the first round still takes the unlearning rate (as in FedOSD's code)")
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
    evaluators: list[Name] = Field(min_length=1, description="what is evaluated (fu/evaluation)")
    grid: dict[GridKey, list[float | int | str]] = Field(
        default_factory=dict,
        description="setting -> values: a method is run with each (`unlearning.lr`, `recovery.lr`, `params.x`, ...); "
        "a table shows the one that is best on validation data; an empty list: the setting as it is",
    )

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
    params: Params = Field(default_factory=dict, description="its hyper-parameters")
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

    kind: Name = Field(description="table, curves, bars, sweep, runtime, losses, images: a file of fu/publishing")
    title: str = Field(description="heading")
    caption: str = Field(description="what it shows")
    in_paper: bool = Field(True, description="false: an extra artefact of ours")
    published: bool = Field(False, description="workflow/published/<paper>/<artefact>.csv holds the paper's numbers")
    scenarios: list[Name] = Field(default_factory=list, description="scenarios, in order")
    methods: list[Name] = Field(default_factory=list, description="methods, in order")
    metrics: list[Name] = Field(default_factory=list, description="metrics, in order (fu/evaluation/metrics.py)")
    stages: list[Literal["original", "unlearned", "recovered"]] = Field(
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
        for name in (*replaced, *replaced.values()):
            if name not in DATASETS:
                raise ValueError(f"unknown data set {name!r}{nearest(name, DATASETS)}")
        return replaced
