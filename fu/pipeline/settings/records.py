"""The typed config: what a user sets, what a paper states, what a preset scales. Unknown keys are errors."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from fu import plugins
from fu.artefacts.entry import ORIGINAL, Claim, Display
from fu.artefacts.style import Figures
from fu.data.dataset import about
from fu.data.forget import Forget
from fu.data.sharing import Sharing
from fu.errors import UserError, nearest
from fu.federation.sgd import LocalSGD
from fu.pipeline import catalogue
from fu.pipeline.settings.types import GridKey, Names, Pattern, Seeds, Value, Word, typed
from fu.plugins import Choice
from fu.types import Count, Different, Name, Strict


class Config(Strict):
    """config.yaml: what a user edits."""

    preset: Name = Field(
        "smoke", description="how papers are scaled down: smoke, reduced, paper (not at all), or one of your own"
    )
    papers: Names = Field(min_length=1, description="the papers to reproduce")
    seeds: Annotated[Seeds | None, BeforeValidator(typed)] = Field(
        None, description="replaces the seeds of the preset and the paper"
    )
    choose_on: Count = Field(
        1,
        description="on how many seeds, from the first on, the points of a grid are compared; the others run the best",
    )
    plugins: str | None = Field(
        None,
        min_length=1,
        description="folder of your own: plug-ins (methods/mine.py, ...), papers, published numbers, presets",
    )
    data_dir: str = Field("data", min_length=1, description="folder for archives ({dataset}.npz) and downloads")
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="where models are trained and evaluated; auto: on a GPU if there is one"
    )
    jobs_per_gpu: Count | None = Field(
        None, description="how many jobs share a GPU of this machine; null: as many as its memory holds"
    )
    threads: Count = Field(
        1, description="CPU threads per job; for small models, two one-thread jobs beat one two-thread job"
    )
    figures: Annotated[Figures, BeforeValidator(typed)] = Field(Figures(), description="how pictures are drawn")  # type: ignore[call-arg]
    overrides: Annotated[dict[str, Any], BeforeValidator(typed)] = Field(
        default_factory=dict, description="paper -> anything in its YAML file; wins over the paper and the preset"
    )

    @field_validator("plugins", "data_dir")
    @classmethod
    def _at_home(cls, folder: str | None) -> str | None:
        try:
            path = folder and str(Path(folder).expanduser())  # a job's command line is quoted, so no shell expands it
        except RuntimeError:
            raise ValueError("the user's home folder is unknown") from None
        return f"./{path}" if path and path.startswith("-") else path  # else it would read as an option


class Data(Sharing, Strict):
    """The data set, how clients share it, which of them are to be forgotten, and their backdoor."""

    server_used: Count | None = Field(
        None, description="how many of these the server uses, so that clients hold the same for all numbers; null: all"
    )
    one_partition: bool = Field(
        False,
        description="all seeds have the partition and the request of the first one, so that runs with other seeds are "
        "repeats: they differ in first models and draws alone",
    )
    forget: Forget | None = Field(None, description="which clients are to be forgotten; null: none")
    attack: Choice | None = Field(
        None, description="the backdoor planted in the forgotten clients' data (fu/attacks); null: none"
    )

    @model_validator(mode="after")
    def _possible(self) -> "Data":
        try:
            catalogue.check("datasets", self.dataset, "dataset")
        except UserError as error:
            raise ValueError(str(error).removesuffix(".")) from None
        facts = about(self.dataset)
        self._check_split()
        self._check_forgotten()
        if self.samples is not None and self.samples > self.pool:
            raise ValueError(f"samples: {self.samples} are more than the {self.pool} samples of {self.dataset}")
        shared = (self.samples or self.pool) - self.server - self.held_out
        if self.clients * 2 > shared:
            raise ValueError(f"clients: {self.clients} clients cannot share {max(shared, 0)} samples")
        fewest, train, _ = self.fewest
        if self.train_share is not None and not 0 < train < fewest:
            raise ValueError(
                f"train_share: {self.train_share} leaves a client of {fewest} samples {train} for training and "
                f"{fewest - train} for testing; both must be at least 1"
            )
        _check_plugin("partition", "partitions", self.partition, self.clients, self._groups())
        if self.attack and facts.text:
            raise ValueError(f"attack: marks images, but {self.dataset} is text")
        if self.attack:
            _check_plugin("attack", "attacks", self.attack, facts.shape, facts.classes)
        return self

    def _groups(self) -> int:
        """Return how many groups the partition deals: classes, or the owners of naturally federated data."""
        facts, name = about(self.dataset), self.partition.name
        if name not in catalogue.available("partitions") or not catalogue.declared("partitions", name).get("NATURAL"):
            return facts.classes
        if facts.owners is None:
            raise ValueError(f"partition: {name} needs a data set whose samples have owners; {self.dataset} has none")
        if self.test != "global":
            raise ValueError(f"partition: {name} needs test: global")
        return facts.owners

    def _check_split(self) -> None:
        if self.split == "merged":
            if self.train_share is None:
                raise ValueError("train_share: is needed with split: merged")
            for name in ("server", "held_out", "absent"):
                if getattr(self, name):
                    raise ValueError(f"{name}: needs split: official")
            if self.test == "global":
                raise ValueError("test: global needs split: official")
        elif self.train_share is not None:
            raise ValueError("train_share: with split: official the test set is the data set's own; leave it out")
        if self.split == "official" and about(self.dataset).training is None:
            raise ValueError(f"split: {self.dataset} has no training part of its own; allowed: merged")
        if self.absent >= self.clients:
            raise ValueError(f"absent: {self.absent} of {self.clients} clients cannot be absent; one must take part")
        if (self.server_used or 0) > self.server:
            raise ValueError(f"server_used: {self.server_used} are more than the {self.server} samples of the server")

    def _check_forgotten(self) -> None:
        if self.forget is None:
            if self.attack:
                raise ValueError("attack: marks the data of the clients that are to be forgotten, but forget is null")
            return
        wanted, present = self.forget.clients, self.clients - self.absent
        number = self.forget.gone
        asked, held = (self.forget.samples or 0) * self.forget.requests, self.fewest[1] * self.clients
        if asked and asked >= held:
            raise ValueError(
                f"forget.samples: {asked} of {held} training samples cannot be forgotten; some must remain"
            )
        if self.attack and (self.forget.samples or self.forget.requests > 1):
            raise ValueError("attack: marks the clients of one request; forget.samples and forget.requests need null")
        if number >= present:
            raise ValueError(f"forget.clients: {number} of {present} clients cannot be forgotten; one must remain")
        if isinstance(wanted, list) and (max(wanted) >= self.clients or len(set(wanted)) < len(wanted)):
            raise ValueError(f"forget.clients: {wanted} must be different clients from 0 to {self.clients - 1}")

    @property
    def pool(self) -> int:
        """The samples that can be shared out to clients and the server."""
        facts = about(self.dataset)
        return facts.samples if self.split == "merged" else facts.training or 0

    @property
    def fewest(self) -> tuple[int, int, int]:
        """Upper bounds on the samples of the smallest client: in all, for training, and of these for validation."""
        each = ((self.samples or self.pool) - self.server - self.held_out) // self.clients
        train = each if self.train_share is None else int(each * self.train_share)
        return each, train, int(train * self.validation_share)

    @property
    def asked(self) -> bool:
        """Whether a request is drawn; with an attack those are forgotten whom it marks, as the partition says."""
        return self.forget is not None and self.attack is None


def _check_plugin(field: str, kind: str, chosen: Choice, *facts: Any) -> None:
    """Raise `ValueError` where a plug-in does not exist, has wrong hyper-parameters, or refuses the facts."""
    try:
        catalogue.check(kind, chosen.name, f"{field}.name")
        params = plugins.params(kind, chosen, field)
    except UserError as error:
        raise ValueError(str(error).removesuffix(".")) from None
    try:
        plugins.load(kind, chosen.name).check(*facts, params)
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None
    except Exception as error:
        raise ValueError(f"{field}: {plugins.told(error).removesuffix('.')}") from None


class Phase(LocalSGD, Strict):
    """Local training in one phase. null: as in the previous phase (training, unlearning, recovery)."""

    clients_per_round: Count | None = Field(
        None, description="how many clients are drawn for a round; null in training: all take part"
    )
    with_replacement: bool = Field(False, description="whether a client can be drawn twice for a round")
    evaluate_every: Count = Field(description="rounds between two measurements for the curves")
    evaluate_last: Count = Field(1, description="the last rounds that are each measured")
    traced: Annotated[list[Name], Different] = Field(
        default_factory=list, description="what is measured: evaluators (fu/evaluation) that define `trace` or `count`"
    )


LENGTH = ("local_epochs", "local_steps")  # null: as in the phase before only where both are
INHERITED = tuple(Phase.model_fields)  # null: as in the phase before


class Training(Phase):
    """The original training."""

    method: Choice = Field(description="the algorithm that trains the original model (fu/training)")
    rounds: Count = Field(description="number of rounds")
    history: Annotated[list[Name], Different] = Field(
        default_factory=list, description="what is recorded for methods that need it (fu/histories)"
    )

    @model_validator(mode="after")
    def _recorded(self) -> "Training":
        if self.history and self.clients_per_round is not None:
            raise ValueError("history: every client is recorded in every round, so clients_per_round must be null")
        return self


class Unlearning(Phase):
    """The unlearning phase. What may be null is as in training."""

    rounds: Count = Field(description="number of rounds; null: as many as training for every request")
    conflicts: bool = Field(
        False, description="count conflicting gradients in every round; this also trains the retained clients"
    )


class Recovery(Phase):
    """Post-training for the rounds left of `total_rounds`. What may be null is as in unlearning."""

    client_weights: Literal["samples", "equal"] = Field(description="samples: N_i / N; equal: 1 / m")
    first_round_keeps_rate: bool = Field(
        description="the first round still uses the unlearning rate, as in FedOSD's code"
    )
    projection: Choice | None = Field(
        None,
        description="how each client's update is projected before averaging (fu/projections); null: not at all",
    )


class Shadows(Strict):
    """Shadow models of evaluators that infer membership: each trains as the attacked one did, on half of the data."""

    number: Count = Field(
        8, description="how many are trained: our choice, for time; Shokri et al. 2017 train 20 to 100"
    )
    most: Count | None = Field(
        2000,
        description="how many samples each of an attack's sets has at most, drawn at random: our choice, for time; "
        "null: all",
    )


class Relearning(Strict):
    """Training on after unlearning, to see what comes back (Siddiqui et al. 2025), with the rates of post-training.

    Without post-training with those of unlearning; a method's own settings do not count.
    """

    rounds: Count = Field(10, description="for how many rounds (our choice)")
    samples: Count = Field(10, description="on how many samples of each forgotten client, where it trains (our choice)")
    repeats: Count | None = Field(None, description="with the models of how many seeds, the first ones; null: all")


class Settings(Strict):
    """All that the models and numbers of one scenario depend on. Without unlearning, its settings are left out."""

    data: Data = Field(description="data set, partition, forgetting, backdoor")
    model: Choice = Field(description="the architecture (fu/models)")
    training: Training = Field(description="the original training, and what other trainings start from")
    unlearning: Unlearning | None = Field(None, description="the unlearning phase")
    recovery: Recovery | None = Field(None, description="post-training")
    total_rounds: Count | None = Field(
        None, description="rounds of unlearning and post-training together; null: there is no post-training"
    )
    shadows: Shadows = Field(Shadows(), description="shadow models, where an evaluator needs them")  # type: ignore[call-arg]
    relearning: Relearning = Field(Relearning(), description="training on after unlearning, to see what comes back")  # type: ignore[call-arg]
    evaluations: dict[Word, list[Name]] = Field(
        min_length=1,
        description="name -> evaluators (fu/evaluation) that share one job and one file, {trial}.{name}.csv; an "
        "evaluation under a new name can be added without rerunning the others",
    )
    chosen_by: Annotated[list[Name], Different] = Field(
        ["r_acc_validation", "asr_validation"],
        min_length=1,
        description="metrics by whose sum the best point of a grid is chosen, those that are better lower subtracted",
    )
    grid: dict[GridKey, list[float | int | str]] = Field(
        default_factory=dict,
        description="setting (`unlearning.x`, `recovery.x`, `params.x`) -> values: each method is run with every "
        "combination, and tables show the one that is best on validation data; []: no grid",
    )

    @field_validator("evaluations")
    @classmethod
    def _apart(cls, evaluations: dict[str, list[str]]) -> dict[str, list[str]]:
        several = [name for evaluators in evaluations.values() for name in evaluators]
        if len(set(several)) < len(several) or not all(evaluations.values()):
            raise ValueError("every evaluation needs evaluators, and every evaluator may be in one evaluation only")
        taken = sorted(set(evaluations) & {"trained", "unlearned", "recovered"})
        if taken:
            raise ValueError(f"{taken[0]!r} is the name of a model's trace; an evaluation needs another")
        return evaluations

    @model_validator(mode="after")
    def _rounds(self) -> "Settings":
        if self.unlearning and self.unlearning.rounds > (self.total_rounds or 0):
            raise ValueError(
                f"unlearning.rounds: {self.unlearning.rounds} rounds exceed total_rounds, {self.total_rounds}"
            )
        if self.recovery and not self.unlearning:
            raise ValueError("recovery: needs unlearning before it")
        if self.unlearning and self.data.forget and self.unlearning.rounds % self.data.forget.requests:
            raise ValueError(
                f"unlearning.rounds: {self.unlearning.rounds} rounds cannot be shared by "
                f"{self.data.forget.requests} requests in a row; take a multiple"
            )
        if self.unlearning and not (self.data.forget and self.total_rounds):
            raise ValueError("unlearning: needs data.forget and total_rounds")
        return self

    @model_validator(mode="after")
    def _readable(self) -> "Settings":
        name, text = self.model.name, about(self.data.dataset).text
        if name in catalogue.available("models") and catalogue.declared("models", name).get("TEXT", False) != text:
            reads, holds = ("images", "text") if text else ("text", "images")
            raise ValueError(f"model: {name} reads {reads}, but {self.data.dataset} holds {holds}")
        used = [one for evaluators in self.evaluations.values() for one in evaluators] if text else []
        known = catalogue.available("evaluation")
        if pixels := [one for one in used if one in known and catalogue.declared("evaluation", one).get("IMAGES")]:
            raise ValueError(f"evaluations: {pixels[0]} reads images, but {self.data.dataset} holds text")
        return self

    @model_validator(mode="after")
    def _drawn(self) -> "Settings":
        present = self.data.clients - self.data.absent
        left = present - (self.data.forget.gone if self.data.forget else 0)
        for name, number in (("training", present), ("unlearning", left), ("recovery", left)):
            phase = getattr(self, name)
            if phase and not phase.with_replacement and (phase.clients_per_round or 0) > number:
                raise ValueError(
                    f"{name}.clients_per_round: {phase.clients_per_round} cannot be drawn from the {number} clients "
                    "that take part"
                )
        return self


class Vary(Strict):
    """A coordinate of scenarios: a setting that takes several values."""

    setting: str = Field(pattern=r"^[a-z_]+(\.[A-Za-z0-9_]+)+$", description="data.absent, training.rounds, ...")
    values: Annotated[list[Value], Field(min_length=1), Different] = Field(description="what it is set to")
    label: str | None = Field(None, description="how axes and columns name it; null: by its short name")


class Scenario(Strict):
    """One scenario of a paper: how it differs from the paper's common settings."""

    label: str = Field(description="how tables name it")
    base: Name | None = Field(
        None,
        description="a scenario whose settings and methods it starts from",
    )
    vary: dict[Word, Vary] = Field(
        default_factory=dict,
        description="short name -> setting and values: one scenario for every combination, named like mnist-p1-s4",
    )
    at: dict[Word, Value] = Field(default_factory=dict, description="further coordinates: short name -> value")
    settings: dict[str, Any] = Field(default_factory=dict, description="merged into the paper's settings")
    trainings: dict[Name, dict[str, Any]] = Field(
        default_factory=dict, description="training -> its params, settings and grid in this scenario alone"
    )
    methods: dict[Name, dict[str, Any]] = Field(
        default_factory=dict, description="method -> its settings in this scenario alone"
    )


class Algorithm(Strict):
    """A training or a method, as tables name it."""

    label: str = Field(description="how tables name it")
    source: str = Field("", description="who proposed it, or which variant it is (asked of this repository's papers)")
    in_paper: bool = Field(True, description="false: marked as not in the paper")
    shown_in: Annotated[list[Name], Different] = Field(
        default_factory=list, description="artefacts to show it in, in addition to those that list it"
    )
    params: dict[str, Any] = Field(default_factory=dict, description="its hyper-parameters")


class Trained(Algorithm):
    """One way to train, beside `original`: a plug-in with hyper-parameters and settings of its own."""

    plugin: Name = Field(description="the file in fu/training or in your own folder")
    settings: dict[str, Any] = Field(
        default_factory=dict, description="`training`: merged into the scenario's settings.training"
    )
    grid: dict[GridKey, list[Value]] = Field(
        default_factory=dict,
        description="`params.x` or `training.x` -> values: trained with every combination; the best is chosen on "
        "validation data",
    )


class Method(Algorithm):
    """One method: a plug-in with hyper-parameters and settings of its own."""

    plugin: Name | None = Field(None, description="the file in fu/methods or in your own folder")
    unlearned_from: Name | None = Field(
        None, description="instead of a plug-in: the method whose unlearned model this one post-trains"
    )
    trained_by: Name = Field(ORIGINAL, description="the training whose model it unlearns")
    post_training: Literal["after", "none", "own"] = Field(
        "after",
        description="after: for the rounds left of total_rounds; none: no post-training; own: the method runs for all",
    )
    settings: dict[str, Any] = Field(default_factory=dict, description="merged into the scenario's settings")

    @model_validator(mode="after")
    def _one_start(self) -> "Method":
        if (self.plugin is None) == (self.unlearned_from is None):
            raise ValueError("needs either plugin or unlearned_from, not both")
        if self.unlearned_from and (self.params or "unlearning" in self.settings):
            raise ValueError("with unlearned_from, params and settings.unlearning must be set in the other method")
        return self


class Artefact(Display, Strict):
    """One table or figure."""

    published: bool = Field(False, description="the paper's numbers are in workflow/published/{paper}/{artefact}.csv")
    scenarios: Annotated[list[Pattern], Different] = Field(
        default_factory=list, description="scenarios, in order; of one that varies all, or those that match mnist-p*-s4"
    )
    trainings: Annotated[list[Name], Different] = Field(default_factory=list, description="trainings, in order")
    methods: Annotated[list[Name], Different] = Field(default_factory=list, description="methods, in order")
    metrics: Annotated[list[Name], Different] = Field(
        default_factory=list, description="metrics, in order (METRICS in fu/evaluation)"
    )
    points: Literal["chosen", "all"] = Field("chosen", description="of a grid the chosen point or all of them")
    judges: Annotated[list[Name], Different] = Field(
        default_factory=list, description="the artefacts whose claims are judged (kind: verdicts; default: all)"
    )

    @property
    def trains_only(self) -> bool:
        """Whether trainings are shown and nothing that unlearns, so that the original model is not either."""
        return bool(self.trainings) and not self.methods

    @property
    def shown(self) -> list[str]:
        """The trainings and methods that are shown or compared with, in order."""
        return [*dict.fromkeys([*self.trainings, *self.methods, *self.against])]


class Paper(Strict):
    """A paper: what it computes, and which tables and figures show it."""

    title: str = Field(description="the paper's title")
    citation: str = Field(description="how artefacts cite it")
    seeds: Seeds = Field(description="everything is run once with each")
    settings: dict[str, Any] = Field(description="settings common to all scenarios")
    scenarios: dict[Name, Scenario] = Field(description="name -> scenario")
    trainings: dict[Name, Trained] = Field(default_factory=dict, description="name -> training, beside `original`")
    methods: dict[Name, Method] = Field(default_factory=dict, description="name -> method")
    artefacts: dict[Name, Artefact] = Field(description="name -> table or figure")
    claims: dict[Name, Claim] = Field(
        default_factory=dict, description="name -> what the paper says, judged in an artefact of kind verdicts"
    )

    def judged(self, entry: Artefact) -> dict[str, Claim]:
        """Return the claims that an artefact judges: those about the artefacts that it names, or all."""
        return {
            name: claim for name, claim in self.claims.items() if not entry.judges or claim.artefact in entry.judges
        }

    @model_validator(mode="after")
    def _different(self) -> "Paper":
        for name in self.methods:
            if name in self.trainings:
                raise ValueError(f"methods: {name!r} is the name of a training; a method needs another")
        for group in ("trainings", "methods"):
            if ORIGINAL in getattr(self, group):
                what = group.removesuffix("s")
                raise ValueError(f"{group}: {ORIGINAL!r} is the name of the original model; a {what} needs another")
        return self


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
