"""The handwritten digits that scikit-learn ships, as large as MNIST: stands in where no data are at hand."""

from fu.data.dataset import Dataset

ABOUT = Dataset((28, 28, 1), 10, 1_797)
