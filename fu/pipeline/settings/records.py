"""The typed settings of config.yaml, papers and presets. An unknown key is an error."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from fu import plugins
from fu.artefacts.entry import ORIGINAL, Claim, Display
from fu.artefacts.style import Figures
from fu.data.dataset import about
from fu.data.forget import Forget
from fu.data.sharing import Sharing
from fu.errors import UserError, nearest
from fu.federation.sgd import LocalSGD
from fu.pipeline.provenance import cached, catalogue
from fu.pipeline.settings.types import Distinct, GridKey, Names, Pattern, Seeds, Value, Varied, Word, typed
from fu.plugins import Choice
from fu.types import Count, Different, Name, Parameters, Strict


class Config(Strict):
    """The settings of a run."""

    preset: Name = Field(
        "smoke", description="how far papers are scaled down: smoke, reduced, paper (not at all), or your own preset"
    )
    papers: Names = Field(min_length=1, description="the papers to reproduce")
    seeds: Annotated[Seeds | None, BeforeValidator(typed)] = Field(
        None, description="random seeds; override those of the preset and the paper"
    )
    choose_on: Count = Field(
        1,
        description="number of seeds on which grid points are compared; the other seeds run only the best point",
    )
    plugins: str | None = Field(
        None,
        min_length=1,
        description="your own folder with plug-ins (methods/mine.py, ...), papers, published numbers or presets",
    )
    data_dir: str = Field(
        "data", min_length=1, description="folder with data set archives ({dataset}.npz) and downloads"
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto",
        validate_default=True,
        description="device for training and evaluation; auto: a GPU if there is one, but the CPU at preset smoke, "
        "whose jobs take less time than initialising CUDA",
    )
    cpu: Literal["auto", "portable", "native"] = Field(
        "auto",
        validate_default=True,
        description="CPU instructions of jobs; portable: those of any x86-64 CPU with AVX2, so that all give the same "
        "numbers, with large matrix products at half the speed; auto: portable at preset smoke, else native",
    )
    jobs_per_gpu: Count | None = Field(
        None, description="number of jobs that share one GPU of this machine; null: as many as fit into its memory"
    )
    threads: Count = Field(
        1,
        description="CPU threads per job; for small models, two jobs with one thread each are faster than one with two",
    )
    figures: Annotated[Figures, BeforeValidator(typed)] = Field(Figures(), description="size and style of figures")  # type: ignore[call-arg]
    overrides: Annotated[dict[str, Any], BeforeValidator(typed)] = Field(
        default_factory=dict,
        description="paper -> any part of its YAML file; takes precedence over the paper and the preset",
    )

    @field_validator("device")
    @classmethod
    def _brief_on_the_cpu(cls, device: str, info: ValidationInfo) -> str:
        return "cpu" if device == "auto" and info.data.get("preset") == "smoke" else device

    @field_validator("cpu")
    @classmethod
    def _smoke_is_portable(cls, cpu: str, info: ValidationInfo) -> str:
        return cpu if cpu != "auto" else "portable" if info.data.get("preset") == "smoke" else "native"

    @field_validator("plugins", "data_dir")
    @classmethod
    def _at_home(cls, folder: str | None) -> str | None:
        try:
            path = folder and str(Path(folder).expanduser())  # a job's command line is quoted, so no shell expands it
        except RuntimeError:
            raise ValueError("cannot determine your home folder") from None
        return f"./{path}" if path and path.startswith("-") else path  # else it would read as an option


class Data(Sharing, Strict):
    """The data set, its partition, the clients or samples to forget, and the backdoor."""

    server_used: Count | None = Field(
        None,
        description="number of `server` samples that the server uses (clients' samples do not depend on it); null: all",
    )
    one_partition: bool = Field(
        False,
        description="use the partition and request of the first seed for all seeds, so that runs are repeats that "
        "differ only in initial models and random draws",
    )
    forget: Forget | None = Field(None, description="what to forget; null: nothing")
    attack: Choice | None = Field(
        None, description="the backdoor planted in the forgotten clients' data (fu/attacks); null: none"
    )

    @field_validator("partition")
    @classmethod
    def _with_file(cls, partition: Choice) -> Choice:
        return _of_file("partitions", partition)

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
            raise ValueError(f"samples: {self.samples} exceeds the {self.pool} samples of {self.dataset}")
        shared = (self.samples or self.pool) - self.server - self.held_out
        if self.clients * 2 > shared:
            raise ValueError(f"clients: {self.clients} clients cannot share {max(shared, 0)} samples")
        fewest, train, _ = self.fewest
        if self.train_share is not None and not 0 < train < fewest:
            raise ValueError(
                f"train_share: {self.train_share} gives a client with {fewest} samples {train} for training and "
                f"{fewest - train} for testing; both must be at least 1"
            )
        _check_plugin("partition", "partitions", self.partition, self.clients, self._groups())
        self._check_file()
        if self.attack and facts.text:
            raise ValueError(f"attack: needs images, but {self.dataset} has text")
        if self.attack:
            _check_plugin("attack", "attacks", self.attack, facts.shape, facts.classes)
        return self

    def _check_file(self) -> None:
        """Raise `ValueError` where a partition is read from a file that lists other samples than there are."""
        name = self.partition.name
        if not catalogue.defines("partitions", name, "check_samples"):
            return
        for key, needed in (("samples", None), ("server", 0), ("held_out", 0)):
            if getattr(self, key) != needed:
                raise ValueError(
                    f"partition: {name} lists all samples; set {key}: {'null' if needed is None else needed}"
                )
        if self.split == "official" and self.test != "global":
            raise ValueError(f"partition: {name} lists training samples alone; set test: global, or split: merged")
        params = plugins.params("partitions", self.partition, "partition")
        try:
            plugins.load("partitions", name).check_samples(self.pool, self.clients, params)
        except ValueError as error:
            raise ValueError(f"partition: {error}") from None

    def _groups(self) -> int:
        """Return how many groups the partition deals: classes, or the owners of naturally federated data."""
        facts, name = about(self.dataset), self.partition.name
        if name not in catalogue.available("partitions") or not catalogue.declared("partitions", name).get("NATURAL"):
            return facts.classes
        if facts.owners is None:
            raise ValueError(
                f"partition: {name} requires a data set whose samples have owners; those of {self.dataset} have none"
            )
        if self.test != "global":
            raise ValueError(f"partition: {name} requires test: global")
        return facts.owners

    def _check_split(self) -> None:
        if self.split == "merged":
            if self.train_share is None:
                raise ValueError("train_share: required with split: merged")
            for name in ("server", "held_out", "absent"):
                if getattr(self, name):
                    raise ValueError(f"{name}: requires split: official")
            if self.test == "global":
                raise ValueError("test: global requires split: official")
        elif self.train_share is not None:
            raise ValueError("train_share: not allowed with split: official, which uses the data set's own test set")
        if self.split == "official" and about(self.dataset).training is None:
            raise ValueError(f"split: {self.dataset} has no official training set; allowed: merged")
        if self.absent >= self.clients:
            raise ValueError(
                f"absent: cannot leave out {self.absent} of {self.clients} clients; at least one must take part"
            )
        if (self.server_used or 0) > self.server:
            raise ValueError(f"server_used: {self.server_used} exceeds the {self.server} samples of the server")

    def _check_forgotten(self) -> None:
        if self.forget is None:
            if self.attack:
                raise ValueError("attack: marks the data of the forgotten clients, so forget must not be null")
            return
        wanted, present = self.forget.clients, self.clients - self.absent
        number = self.forget.gone
        asked, held = (self.forget.samples or 0) * self.forget.requests, self.fewest[1] * self.clients
        if asked and asked >= held:
            raise ValueError(f"forget.samples: cannot forget {asked} of {held} training samples; some must remain")
        if self.attack and (self.forget.samples or self.forget.requests > 1):
            raise ValueError("attack: requires one request for clients, not forget.samples or several requests")
        if isinstance(wanted, list) and self.absent:
            raise ValueError("forget.clients: must be a number, as seeds differ in who is absent")
        if number >= present:
            raise ValueError(f"forget.clients: cannot forget {number} of {present} clients; at least one must remain")
        if isinstance(wanted, list) and (max(wanted) >= self.clients or len(set(wanted)) < len(wanted)):
            raise ValueError(f"forget.clients: must be different clients from 0 to {self.clients - 1}, got {wanted}")

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


def _of_file(kind: str, chosen: Choice) -> Choice:
    """Return a choice with the checksum of its file, if it has one; `ValueError` where there is none."""
    try:
        return cached.with_checksum(kind, chosen)
    except UserError as error:
        raise ValueError(str(error).removesuffix(".")) from None


def _check_plugin(field: str, kind: str, chosen: Choice, *facts: Any) -> None:
    """Raise `ValueError` where a plug-in does not exist, has wrong hyper-parameters, or refuses the facts."""
    try:
        catalogue.check(kind, chosen.name, f"{field}.name")
        params = plugins.params(kind, chosen, field)
        plugins.load(kind, chosen.name).check(*facts, params)
    except UserError as error:
        raise ValueError(str(error).removesuffix(".")) from None
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None
    except Exception as error:
        raise ValueError(f"{field}: {plugins.told(error).removesuffix('.')}") from None


class Phase(LocalSGD, Strict):
    """Local training in one phase. null: same as in the previous phase (training, unlearning, recovery)."""

    clients_per_round: Count | None = Field(
        None,
        description="number of clients drawn for each round; null in training: all take part; in unlearning EWCSGA, "
        "FedEraser, FedOSD, MoDe and SFU use every retained client all the same",
    )
    with_replacement: bool = Field(False, description="whether the same client can be drawn more than once for a round")
    evaluate_every: Count = Field(description="number of rounds between two measurements for the curves")
    evaluate_last: Count = Field(1, description="number of final rounds that are all measured")
    traced: Distinct = Field(
        [], description="evaluators (fu/evaluation) to measure; they must define `trace` or `count`"
    )


LENGTH = ("local_epochs", "local_steps")  # null: as in the phase before only where both are
INHERITED = tuple(Phase.model_fields)  # null: as in the phase before


class Training(Phase):
    """Training of the original model."""

    method: Annotated[Choice, AfterValidator(partial(_of_file, "training"))] = Field(
        description="the training algorithm (fu/training)"
    )
    rounds: Count = Field(description="number of rounds")
    history: Distinct = Field([], description="histories to record for methods that need them (fu/histories)")

    @model_validator(mode="after")
    def _recorded(self) -> "Training":
        if self.history and self.clients_per_round is not None:
            raise ValueError("history: requires clients_per_round: null, as every client is recorded in every round")
        return self


class Unlearning(Phase):
    """The unlearning phase. null: same as in training."""

    rounds: Count = Field(
        description="number of rounds, of all requests together; null: for each request as many as in training"
    )
    conflicts: bool = Field(
        False, description="count conflicting gradients in every round, which also trains the retained clients"
    )


class Recovery(Phase):
    """Post-training for the remaining rounds of `total_rounds`. null: same as in unlearning."""

    client_weights: Literal["samples", "equal"] = Field(
        description="weight of a client in the average; samples: N_i / N; equal: 1 / m"
    )
    first_round_keeps_rate: bool = Field(description="the first round uses the unlearning rate, as in FedOSD's code")
    projection: Choice | None = Field(
        None,
        description="projection of each client's update before averaging (fu/projections); null: none",
    )


class Shadows(Strict):
    """Shadow models for membership inference: each is trained like the attacked model, on half of the data."""

    number: Count = Field(
        8, description="number of shadow models; our choice, to save time: Shokri et al. 2017 use 20 to 100"
    )
    most: Count | None = Field(
        2000,
        description="maximum number of samples, drawn at random, in each set of an attack; null: all; our choice, to "
        "save time",
    )


class Relearning(Strict):
    """Further training after unlearning, to measure relearning (Siddiqui et al. 2025).

    It uses the settings of post-training, or of unlearning where there is no post-training, never a method's own.
    """

    rounds: Count = Field(10, description="number of rounds (our choice)")
    samples: Count = Field(
        10, description="samples of each forgotten client, where forgotten clients train (our choice)"
    )
    repeats: Count | None = Field(
        None, description="number of seeds, from the first, whose models are trained; null: all"
    )


class Settings(Strict):
    """Everything that the results of a scenario depend on. Leave out `unlearning` where nothing is unlearned."""

    data: Data = Field(description="data set, partition, forget set and backdoor")
    model: Choice = Field(description="model architecture (fu/models)")
    training: Training = Field(description="training of the original model; defaults for other trainings")
    unlearning: Unlearning | None = Field(None, description="the unlearning phase")
    recovery: Recovery | None = Field(None, description="post-training")
    total_rounds: Count | None = Field(
        None, description="total rounds of unlearning and post-training; null: no post-training"
    )
    shadows: Shadows = Field(Shadows(), description="shadow models, for evaluators that need them")  # type: ignore[call-arg]
    relearning: Relearning = Field(Relearning(), description="further training after unlearning, to measure relearning")  # type: ignore[call-arg]
    evaluations: dict[Word, list[Name]] = Field(
        min_length=1,
        description="name -> evaluators (fu/evaluation) that run in one job and write {trial}.{name}.csv; adding a new "
        "name does not rerun the others; []: not run",
    )
    chosen_by: Distinct = Field(
        ["r_acc_validation", "asr_validation"],
        min_length=1,
        description="metrics whose sum chooses the best grid point; lower-is-better metrics are subtracted",
    )
    grid: dict[GridKey, list[float | int | str]] = Field(
        {},
        description="setting (`unlearning.x`, `recovery.x`, `params.x`) -> values; each method runs with every "
        "combination, and tables show the best one on validation data; []: no grid",
    )

    @field_validator("evaluations")
    @classmethod
    def _apart(cls, evaluations: dict[str, list[str]]) -> dict[str, list[str]]:
        several = [name for evaluators in evaluations.values() for name in evaluators]
        if not several or len(set(several)) < len(several):
            raise ValueError("at least one evaluator is needed, and no evaluator may be in two evaluations")
        taken = sorted(set(evaluations) & {"trained", "unlearned", "recovered"})
        if taken:
            raise ValueError(f"{taken[0]!r} is reserved for a model's trace; choose another name")
        return {name: evaluators for name, evaluators in evaluations.items() if evaluators}

    @model_validator(mode="after")
    def _rounds(self) -> "Settings":
        if self.unlearning and self.unlearning.rounds > (self.total_rounds or 0):
            raise ValueError(f"unlearning.rounds: {self.unlearning.rounds} exceeds total_rounds ({self.total_rounds})")
        if self.recovery and not self.unlearning:
            raise ValueError("recovery: requires unlearning")
        if self.unlearning and self.data.forget and self.unlearning.rounds % self.data.forget.requests:
            raise ValueError(
                f"unlearning.rounds: must be a multiple of forget.requests "
                f"({self.data.forget.requests}), got {self.unlearning.rounds}"
            )
        if self.unlearning and not (self.data.forget and self.total_rounds):
            raise ValueError("unlearning: requires data.forget and total_rounds")
        return self

    @model_validator(mode="after")
    def _readable(self) -> "Settings":
        name, text = self.model.name, about(self.data.dataset).text
        if name in catalogue.available("models") and catalogue.declared("models", name).get("TEXT", False) != text:
            reads, holds = ("images", "text") if text else ("text", "images")
            raise ValueError(f"model: {name} needs {reads}, but {self.data.dataset} has {holds}")
        used = [one for evaluators in self.evaluations.values() for one in evaluators] if text else []
        known = catalogue.available("evaluation")
        if pixels := [one for one in used if one in known and catalogue.declared("evaluation", one).get("IMAGES")]:
            raise ValueError(f"evaluations: {pixels[0]} needs images, but {self.data.dataset} has text")
        return self

    @model_validator(mode="after")
    def _drawn(self) -> "Settings":
        present = self.data.clients - self.data.absent
        left = present - (self.data.forget.gone if self.data.forget else 0)
        for name, number in (("training", present), ("unlearning", left), ("recovery", left)):
            phase = getattr(self, name)
            if phase and phase.with_replacement and not phase.clients_per_round:
                raise ValueError(f"{name}.with_replacement: requires clients_per_round")
            if phase and not phase.with_replacement and (phase.clients_per_round or 0) > number:
                raise ValueError(
                    f"{name}.clients_per_round: cannot draw {phase.clients_per_round} of the {number} clients that "
                    "take part"
                )
        return self


class Vary(Strict):
    """A setting that takes several values, one per scenario."""

    setting: str = Field(
        pattern=r"^[a-z_]+(\.[A-Za-z0-9_]+)+$", description="the setting: data.absent, training.rounds, ..."
    )
    values: Annotated[list[Varied], Field(min_length=1), Different] = Field(
        description="its values; for data.forget.clients lists of clients: [[0], [1]] forgets each of two in turn"
    )
    label: str | None = Field(None, description="label on axes and in columns; null: the short name")


class Scenario(Strict):
    """One scenario of a paper: how it differs from the paper's common settings."""

    label: str = Field(description="label in tables")
    base: Name | None = Field(None, description="the scenario to start from, with its settings and methods")
    vary: dict[Word, Vary] = Field(
        {},
        description="short name -> setting and values; makes a scenario for every combination, named like mnist-p1-s4",
    )
    at: dict[Word, Value] = Field({}, description="further coordinates: short name -> value")
    settings: dict[str, Any] = Field({}, description="merged into the paper's settings")
    trainings: dict[Name, dict[str, Any]] = Field(
        {}, description="training -> params, settings and grid for this scenario only"
    )
    methods: dict[Name, dict[str, Any]] = Field({}, description="method -> settings for this scenario only")


class Algorithm(Strict):
    """What trainings and methods have in common."""

    label: str = Field(description="label in tables")
    source: str = Field(
        "", description="who proposed it, or which variant it is (required for papers in this repository)"
    )
    in_paper: bool = Field(True, description="false: mark as not in the paper")
    shown_in: Distinct = Field([], description="further tables and figures that show it, besides those that list it")
    params: Parameters = Field({}, description="its hyper-parameters")


class Trained(Algorithm):
    """A training besides `original`: a plug-in with its own hyper-parameters and settings."""

    plugin: Name = Field(description="file name in fu/training or in your own folder, without .py")
    settings: dict[str, Any] = Field({}, description="`training`: merged into the scenario's settings.training")
    grid: dict[GridKey, list[Value]] = Field(
        {},
        description="`params.x` or `training.x` -> values; trains with every combination and chooses the best on "
        "validation data",
    )


class Method(Algorithm):
    """An unlearning method: a plug-in with its own hyper-parameters and settings."""

    plugin: Name | None = Field(None, description="file name in fu/methods or in your own folder, without .py")
    unlearned_from: Name | None = Field(
        None, description="alternative to plugin: post-train the unlearned model of this method"
    )
    trained_by: Name = Field(ORIGINAL, description="the training whose model is unlearned")
    post_training: Literal["after", "none", "own"] = Field(
        "after",
        description="after: for the remaining total_rounds; none: no post-training; own: the method runs all rounds",
    )
    reference: Name | None = Field(
        None,
        description="the retraining with which audits compare it: one with the same noise, rounds and post-training; "
        "null: the one in `against` that has the same training",
    )
    all_left: Name | None = Field(
        None,
        description="of a retraining: the method that is trained for as long and leaves all of the client in; audits "
        "look for its traces; null: the original models",
    )
    settings: dict[str, Any] = Field({}, description="merged into the scenario's settings")

    @model_validator(mode="after")
    def _one_start(self) -> "Method":
        if (self.plugin is None) == (self.unlearned_from is None):
            raise ValueError("set either plugin or unlearned_from, not both")
        if self.unlearned_from and (self.params or "unlearning" in self.settings or self.trained_by != ORIGINAL):
            raise ValueError(
                "params, trained_by and settings.unlearning are not allowed with unlearned_from; set them in that "
                "method"
            )
        return self


class Artefact(Display, Strict):
    """A table or figure."""

    highlight: bool = Field(False, description="whether its picture is on the first screen of the results page")
    published: bool = Field(
        False, description="whether workflow/published/{paper}/{artefact}.csv has the paper's numbers"
    )
    scenarios: Annotated[list[Pattern], Different] = Field(
        [],
        description="scenarios, in order; one with `vary` means all its combinations; patterns like mnist-p*-s4 work",
    )
    trainings: Distinct = Field([], description="trainings, in order")
    methods: Distinct = Field([], description="methods, in order")
    metrics: Distinct = Field([], description="metrics, in order (METRICS in fu/evaluation)")
    points: Literal["chosen", "all"] = Field("chosen", description="which points of a grid to show")
    judges: Distinct = Field([], description="tables and figures whose claims are judged (kind: verdicts); []: all")

    @property
    def trains_only(self) -> bool:
        """Whether trainings are shown and nothing that unlearns, so that the original model is not either."""
        return bool(self.trainings) and not self.methods

    @property
    def shown(self) -> list[str]:
        """The trainings and methods that are shown or compared with, in order."""
        return [*dict.fromkeys([*self.trainings, *self.methods, *self.against])]


class Paper(Strict):
    """A paper: its experiments, and the tables and figures that show them."""

    title: str = Field(description="the paper's title")
    citation: str = Field(description="citation in tables and figures")
    url: str | None = Field(None, pattern=r"^https://\S+$", description="where the paper is available")
    code: str | None = Field(None, pattern=r"^https://\S+$", description="where the authors' code is available")
    seeds: Seeds = Field(description="random seeds; every experiment runs once per seed")
    settings: dict[str, Any] = Field(description="settings shared by all scenarios")
    scenarios: dict[Name, Scenario] = Field(description="name -> scenario")
    trainings: dict[Name, Trained] = Field({}, description="name -> training, besides `original`")
    methods: dict[Name, Method] = Field({}, description="name -> method")
    artefacts: dict[Name, Artefact] = Field(description="name -> table or figure")
    claims: dict[Name, Claim] = Field({}, description="name -> claim of the paper, judged in a table of kind verdicts")

    def judged(self, entry: Artefact) -> dict[str, Claim]:
        """Return the claims that an artefact judges: those about the artefacts that it names, or all."""
        return {
            name: claim for name, claim in self.claims.items() if not entry.judges or claim.artefact in entry.judges
        }

    @model_validator(mode="after")
    def _different(self) -> "Paper":
        for name in self.methods:
            if name in self.trainings:
                raise ValueError(f"methods: {name!r} is already the name of a training; choose another name")
        for group in ("trainings", "methods"):
            if ORIGINAL in getattr(self, group):
                what = group.removesuffix("s")
                raise ValueError(
                    f"{group}: {ORIGINAL!r} is reserved for the original model; choose another name for the {what}"
                )
        return self


class Preset(Strict):
    """A preset: how to scale papers down."""

    description: str = Field(description="purpose of the preset")
    seeds: Seeds | None = Field(None, description="random seeds; override those of the papers")
    replace_datasets: dict[str, str] = Field({}, description="data set -> its replacement")
    papers: dict[Name, dict[str, Any]] = Field({}, description="paper -> settings to merge into its YAML file")

    @field_validator("replace_datasets")
    @classmethod
    def _known(cls, replaced: dict[str, str]) -> dict[str, str]:
        known = catalogue.available("datasets")
        for name in (*replaced, *replaced.values()):
            if name not in known:
                raise ValueError(f"unknown data set {name!r}{nearest(name, known)}")
        return replaced
