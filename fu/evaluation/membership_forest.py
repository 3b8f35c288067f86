"""Membership inference as in the code of FATS's authors (FATS_supplement), with random forests as shadow models.

Five shadow models, random forests on raw pixels, are each trained on half of a disjoint fifth of the retained clients'
data. From their class probabilities, one attack forest per class learns which samples were in the training half. It is
then applied to the attacked model's class probabilities on training samples of the retained clients (members) and of
the clients that are forgotten or hold forgotten samples (non-members); members are subsampled to the number of
non-members 100 times. Forests fit their training data far more closely than the attacked model does, and the label
distributions of members and non-members differ: `membership` uses networks as shadow models and matches classes. On the
original model both groups are members; the authors' code does not evaluate it.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from torch import Tensor

from fu.evaluation.context import Context
from fu.seeds import derive_integer

IMAGES = True  # it reads pixels
FORESTS, TREES, DRAWS = 5, 100, 100  # authors' code

METRICS = {
    "forest_accuracy": {
        "label": "Forest MIA accuracy",
        "unit": "fraction",
        "better": "neither",
        "formula": "accuracy on equally many samples of retained clients (members) and forgotten clients "
        "(non-members), mean over 100 draws of the members; 0.5 is chance",
        "source": "FATS, authors' code",
    },
    "forest_false_positives": {
        "label": "Forest MIA false positives",
        "unit": "fraction",
        "better": "neither",
        "formula": "share of non-members labelled as members; precision is recall / (recall + this share)",
        "source": "FATS, authors' code, which prints the precision; undefined where no sample is labelled as a member",
    },
    "forest_recall": {
        "label": "Forest MIA recall",
        "unit": "fraction",
        "better": "neither",
        "formula": "share of members labelled as members, mean over 100 draws of the members",
        "source": "FATS, authors' code",
        "tells": {"broken": "lower"},
    },
}


def evaluate(context: Context) -> dict[str, float]:
    """Return the metrics; nothing where no request names anybody, or fewer samples are retained than forgotten."""
    data = context.data
    concerned = {*data.forgotten, *data.partition.holders(data.forgotten_samples)}
    others = [client for client in data.partition.present if client not in concerned]
    if not concerned or not others:
        return {}
    inside, outside = (
        np.concatenate([data.partition.train[one] for one in part]) for part in (others, sorted(concerned))
    )
    if len(inside) < len(outside):
        return {}
    random = np.random.default_rng(derive_integer("forest attack"))
    attacks = attack_forests(context, random.permutation(inside), random)
    return rates(calls(context, inside, attacks), calls(context, outside, attacks), random)


def rates(members: NDArray[np.bool_], non_members: NDArray[np.bool_], random: np.random.Generator) -> dict[str, float]:
    """Return the metrics of who is called a member [n], among all members and non-members."""
    drawn = [random.choice(members, len(non_members), replace=False).mean() for _ in range(DRAWS)]
    recall, wrong = float(np.mean(drawn)), float(non_members.mean())
    return {"forest_accuracy": (recall + 1 - wrong) / 2, "forest_recall": recall, "forest_false_positives": wrong}


def attack_forests(
    context: Context, rows: NDArray[np.int64], random: np.random.Generator
) -> dict[int, RandomForestClassifier]:
    """Return the attack's forest of each class, from shadow models on these rows of the data set."""
    labels = context.data.y.cpu().numpy()
    fifths: list[list[NDArray[np.int64]]] = [[] for _ in range(FORESTS)]
    for label in range(context.data.classes):
        own = rows[labels[rows] == label]
        size = len(own) // FORESTS
        for k, fifth in enumerate(fifths):
            fifth.append(own[k * size : (k + 1) * size])
    records: list[tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_]]] = []
    for fifth in fifths:
        both = random.permutation(np.concatenate(fifth))
        half = len(both) // 2
        if not half:
            continue
        pixels = context.data.clean(both)[0].flatten(1).cpu().numpy()
        forest = grown(pixels[:half], labels[both[:half]], random)
        scores = np.zeros((len(both), context.data.classes))
        scores[:, forest.classes_] = forest.predict_proba(pixels)
        records.append((scores, labels[both], np.arange(len(both)) < half))
    if not records:
        return {}
    scores, of, inside = (np.concatenate(parts) for parts in zip(*records, strict=True))
    return {int(label): grown(scores[of == label], inside[of == label], random) for label in np.unique(of)}


def calls(context: Context, rows: NDArray[np.int64], attacks: dict[int, RandomForestClassifier]) -> NDArray[np.bool_]:
    """Return whether the attack calls each row a member [n]; rows of a class that no shadow has seen are not."""
    x, y = context.data.clean(rows)
    logits: Tensor = context.network.logits(context.theta, x)
    scores, labels = logits.double().softmax(1).cpu().numpy(), y.cpu().numpy()
    found = np.zeros(len(rows), bool)
    for label, forest in attacks.items():
        if (own := labels == label).any():
            found[own] = forest.predict(scores[own])
    return found


def grown(x: NDArray[np.generic], y: NDArray[np.generic], random: np.random.Generator) -> RandomForestClassifier:
    """Return a random forest that is fitted to x [n, ...] and y [n]."""
    return RandomForestClassifier(TREES, random_state=int(random.integers(2**31))).fit(x, y)
