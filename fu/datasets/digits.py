"""Handwritten digits from scikit-learn, 20 x 20: a stand-in for MNIST."""

from fu.data.dataset import Dataset

ABOUT = Dataset((20, 20, 1), 10, 1_797, (0.195,), (0.334,), embedded=True, training=1_540)
