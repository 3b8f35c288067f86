"""Shakespeare (McMahan et al. 2017, Caldas et al. 2019): the character after 80 others; each speaking role is a client.

Sizes as in FATS's Table 2, four fifths of them for training; an archive may hold fewer roles, samples and characters.
"""

from fu.data.dataset import Dataset

LABEL = "Shakespeare"
ABOUT = Dataset((80,), 80, 3_678_451, training=2_942_760, owners=660)
