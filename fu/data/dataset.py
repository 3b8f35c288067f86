"""Facts about a data set. Each one is a file of `fu/datasets`, so that adding one changes no other."""

import math
from dataclasses import dataclass

from fu import plugins
from fu.errors import UserError

RESIDENT_BYTES = 2_000_000_000  # of images that a job holds as float32 (our choice: CIFAR-100 does, all of FEMNIST not)


@dataclass(frozen=True)
class Dataset:
    """One data set of images, or of text to predict the next character of.

    `samples` counts all, `training` those of its own training part (of text both are upper bounds). `shape` is (height,
    width, channels) of an image, (length,) of a window of characters; `mean` and `std` are per channel, for pixels
    scaled to [0, 1]. `torchvision` names the class that downloads it. `embedded`: scikit-learn's digits, moved by up to
    `shift` pixels, with noise of up to `noise` (of 255), or letters; made by `fu.data.sources`. Without either it comes
    from an archive or from LEAF's files. `owners`: how many clients the data come from (writers, roles), where every
    sample has one.
    """

    shape: tuple[int, ...]
    classes: int
    samples: int
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    torchvision: str | None = None
    embedded: bool = False
    training: int | None = None
    owners: int | None = None
    shift: int = 0
    noise: int = 0

    def __post_init__(self) -> None:
        """Raise `ValueError` unless samples are images or text."""
        if len(self.shape) not in (1, 3):
            raise ValueError(
                f"shape must be (height, width, channels) of images or (length,) of text, got {self.shape}"
            )

    @property
    def text(self) -> bool:
        """Whether samples are windows of text; classes are then characters."""
        return len(self.shape) == 1

    @property
    def streamed(self) -> bool:
        """Whether its images stay bytes until they are used, as too many to be held as float32."""
        return not self.text and 4 * self.samples * math.prod(self.shape) > RESIDENT_BYTES


def about(name: str) -> Dataset:
    """Return the facts about a data set."""
    if not plugins.exists("datasets", name):
        raise UserError(f"there is no data set {name!r}; docs/data.md lists them.")
    found = getattr(plugins.load("datasets", name), "ABOUT", None)
    if not isinstance(found, Dataset):
        raise UserError(f"{name}.py (datasets): ABOUT must be a fu.data.dataset.Dataset.")
    return found
