"""Settings of local training. Imports no torch."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from fu.types import Count, Frozen, Rate

AT_ONCE = 1_000_000  # parameters below which a GPU takes all clients at once (our choice: not measured on one yet)
TOGETHER = 64  # clients whose updates a mean holds at a time (our choice: more than train in a round of any paper)


class LocalSGD(Frozen):
    """SGD with rate lr * lr_decay ** round, over `local_epochs` (shuffled) or `local_steps`."""

    lr: Rate = Field(description="learning rate of local SGD")
    lr_decay: Annotated[float, Field(gt=0, le=1)] = Field(
        description="factor by which the rate is multiplied after every round"
    )
    momentum: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.0, description="momentum of local SGD, reset in every round"
    )
    weight_decay: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        0.0, description="weight decay (L2): this factor times the weights is added to the gradient"
    )
    batch_size: Count = Field(description="samples per gradient step, B")
    local_epochs: Count | None = Field(None, description="local epochs per round, E")
    local_steps: Count | None = Field(None, description="alternative to local_epochs: gradient steps per round")

    @model_validator(mode="after")
    def _either(self) -> Self:
        if (self.local_epochs is None) == (self.local_steps is None):
            raise ValueError("local_epochs, local_steps: set exactly one of them")
        return self


class LocalTraining(LocalSGD):
    """The local training of one job; `exception`: (a round, its rate), where one round takes another rate."""

    exception: tuple[int, float] | None = None

    def rate(self, round: int) -> float:
        """Return the learning rate of a round."""
        lr = self.exception[1] if self.exception and self.exception[0] == round else self.lr
        return lr * self.lr_decay**round
