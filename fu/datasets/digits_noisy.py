"""The digits that scikit-learn ships, with noise: a stand-in for FEMNIST."""

from fu.data.dataset import Dataset

LABEL = "noisy digits"
ABOUT = Dataset((28, 28, 1), 10, 1_797, (0.3,), (0.31,), embedded=True, training=1_540, noise=64)
