"""The handwritten digits that scikit-learn ships, 20 x 20 with three equal channels: a stand-in for CIFAR-10."""

from fu.data.dataset import Dataset

LABEL = "digits in colour"
ABOUT = Dataset((20, 20, 3), 10, 1_797, (0.3,) * 3, (0.37,) * 3, embedded=True, training=1_540)
