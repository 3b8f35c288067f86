"""MNIST (LeCun et al. 1998); FedOSD's code only scales pixels to [0, 1]."""

from fu.data.dataset import Dataset

LABEL = "MNIST"
ABOUT = Dataset((28, 28, 1), 10, 70_000, torchvision="MNIST", training=60_000)
