"""The handwritten digits that scikit-learn ships, as large and normalised as CIFAR-10: a stand-in."""

from fu.data.dataset import Dataset

ABOUT = Dataset(
    (20, 20, 3), 10, 1_797, (0.3,) * 3, (0.37,) * 3, embedded=True, training=1_540
)
