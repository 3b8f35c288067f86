"""The handwritten digits that scikit-learn ships, as large as MNIST: a stand-in."""

from fu.data.dataset import Dataset

ABOUT = Dataset((28, 28, 1), 10, 1_797, (0.22,), (0.35,), embedded=True, training=1_540)
