"""What is to be known of a data set. Each one is a file of `fu/datasets`, so that adding one changes no other."""

import importlib.util
from dataclasses import dataclass

from fu import plugins
from fu.errors import UserError


@dataclass(frozen=True)
class Dataset:
    """One data set of images.

    `shape` is (height, width, channels); `mean` and `std` are per channel, for pixels scaled to [0, 1].
    `torchvision` names the class that downloads it. `embedded`: scikit-learn's digits, enlarged to `shape`. Without
    either it comes from an archive alone.
    """

    shape: tuple[int, int, int]
    classes: int
    samples: int
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    torchvision: str | None = None
    embedded: bool = False


def about(name: str) -> Dataset:
    """Return what is known of a data set."""
    if not name.isidentifier() or importlib.util.find_spec(f"fu.datasets.{name}") is None:
        raise UserError(f"there is no data set {name!r}; docs/data.md lists them.")
    found = plugins.load("datasets", name).ABOUT
    assert isinstance(found, Dataset)
    return found
