"""The alphabet, recited with omissions by 40 people, each of them a client: a stand-in for Shakespeare."""

from fu.data.dataset import Dataset

ABOUT = Dataset((80,), 26, 3_910, embedded=True, training=3_128, owners=40)
