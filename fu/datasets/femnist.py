"""FEMNIST (Caldas et al. 2019): handwritten digits and letters of writers with at least 100 samples.

Sizes as in FATS's Table 2; LEAF holds out a tenth of each writer's samples for testing. Pixels are only scaled to [0,
1].
"""

from fu.data.dataset import Dataset

LABEL = "FEMNIST"
ABOUT = Dataset((28, 28, 1), 62, 811_586, training=730_427, owners=3_556)
