"""Handwritten digits from scikit-learn, half of them inverted, in 20 classes: a stand-in for CIFAR-100."""

from fu.data.dataset import Dataset

LABEL = "digits in 20 classes"
ABOUT = Dataset((20, 20, 3), 20, 1_797, (0.5,) * 3, (0.452,) * 3, embedded=True, training=1_540)
