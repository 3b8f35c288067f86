"""CIFAR-10 (Krizhevsky and Hinton 2009), normalised as in FedOSD's code."""

from fu.data.dataset import Dataset

LABEL = "CIFAR-10"
ABOUT = Dataset(
    (32, 32, 3), 10, 60_000, (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010), torchvision="CIFAR10", training=50_000
)
