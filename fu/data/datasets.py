"""The data sets by name: shape, classes, normalisation and where each comes from. Needs nothing but Python."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Dataset:
    """One data set of images.

    `shape` is (height, width, channels); `mean` and `std` are per channel, for pixels scaled to [0, 1].
    `torchvision` names the class that downloads it; None means that it is embedded.
    """

    shape: tuple[int, int, int]
    classes: int
    samples: int
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    torchvision: str | None = None


# FedOSD's code: [0, 1] only for MNIST and Fashion-MNIST; for CIFAR the usual channel statistics.
_CIFAR_MEAN, _CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)

DATASETS = {
    "mnist": Dataset((28, 28, 1), 10, 70_000, torchvision="MNIST"),
    "fashion_mnist": Dataset((28, 28, 1), 10, 70_000, torchvision="FashionMNIST"),
    "cifar10": Dataset((32, 32, 3), 10, 60_000, _CIFAR_MEAN, _CIFAR_STD, torchvision="CIFAR10"),
    "cifar100": Dataset((32, 32, 3), 100, 60_000, _CIFAR_MEAN, _CIFAR_STD, torchvision="CIFAR100"),
    "digits": Dataset((28, 28, 1), 10, 1_797),
    "digits_rgb": Dataset((32, 32, 3), 10, 1_797, _CIFAR_MEAN, _CIFAR_STD),
}
