"""The handwritten digits that scikit-learn ships, as large and normalised as CIFAR-10: a stand-in."""

from fu.data.dataset import Dataset

ABOUT = Dataset(
    (32, 32, 3), 10, 1_797, (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010), embedded=True, training=1_540
)
