"""Fashion-MNIST (Xiao et al. 2017); FedOSD's code only scales pixels to [0, 1]."""

from fu.data.dataset import Dataset

LABEL = "Fashion-MNIST"
ABOUT = Dataset((28, 28, 1), 10, 70_000, torchvision="FashionMNIST", training=60_000)
