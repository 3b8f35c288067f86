"""Handwritten digits from scikit-learn, with noise: a stand-in for FEMNIST."""

from fu.data.dataset import Dataset

LABEL = "noisy digits"
ABOUT = Dataset((20, 20, 1), 10, 1_797, (0.282,), (0.291,), embedded=True, training=1_540, noise=64)
