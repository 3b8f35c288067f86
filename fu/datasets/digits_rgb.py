"""Handwritten digits from scikit-learn, with three equal channels: a stand-in for CIFAR-10."""

from fu.data.dataset import Dataset

LABEL = "digits in three channels"
ABOUT = Dataset((20, 20, 3), 10, 1_797, (0.195,) * 3, (0.334,) * 3, embedded=True, training=1_540)
