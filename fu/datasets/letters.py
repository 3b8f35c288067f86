"""People who recite the alphabet and now and then skip to another letter: a stand-in for Shakespeare; a client is one."""

from fu.data.dataset import Dataset

ABOUT = Dataset((80,), 26, 3_910, embedded=True, training=3_128, owners=40)
