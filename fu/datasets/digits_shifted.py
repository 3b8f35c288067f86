"""Handwritten digits from scikit-learn, each shifted by up to one pixel: a stand-in for Fashion-MNIST."""

from fu.data.dataset import Dataset

LABEL = "shifted digits"
ABOUT = Dataset((20, 20, 1), 10, 1_797, (0.195,), (0.334,), embedded=True, training=1_540, shift=1)
