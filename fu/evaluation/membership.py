"""Membership inference on the forgotten data: Shokri et al. 2017 (FATS section 6.2.5), and offline LiRA and RMIA.

All three attacks use shadow models, which are trained like the attacked model, on halves of the retained clients' data.
Each attack is evaluated on all members, and also on those that were in at least one training batch: where few clients
and samples are drawn, most were in none. Shokri's attack has one attack model per class, which learns from the shadow
models' outputs on samples inside and outside their training sets. It is run `ATTACKS` times with new training samples,
initial weights and evaluation sets; the standard deviation is over these runs, for one target model and one set of
shadow models, and not over trainings. LiRA (Carlini et al. 2022) and RMIA (Zarifzadeh et al. 2024) are the attacks in
current use; both are offline here, because no shadow model has seen a member or a non-member.

Our choices: the input of an attack model is the log-probability of the sample's own class and the highest others in
descending order, at most ten numbers in all, and it has 16 hidden units (Shokri: the whole vector, 64 units), so that
100 attacks take seconds even with a hundred classes.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from fu.data.membership import Shadows
from fu.evaluation.context import Context
from fu.evaluation.roc import area, caught
from fu.seeds import derive_integer

SHADOWS = True  # the stage evaluate is given the scenario's shadow models
ATTACKS = 100  # FATS section 6.1.3
NUMBERS, HIDDEN, RECORDS, STEPS, RATE, MOMENTUM = 10, 16, 4096, 50, 0.1, 0.9  # of an attack model
TOGETHER = 5  # attacks whose models train at once: as many as fit a CPU's cache
OWN_SPREAD = 64  # shadows from which LiRA estimates a spread for each sample (Carlini et al. 2022, section VI-B)
OF_TRAINED = ("mia_members", "mia_auc", "mia_auc_std", "lira_auc", "rmia_auc")  # also measured on these alone
OFFLINE = 0.3  # a in Pr(x) = ((1 + a) Pr_out(x) + 1 - a) / 2 (Zarifzadeh et al. 2024, section 3 and appendix B)

METRICS = {
    "mia_accuracy": {
        "label": "MIA accuracy",
        "unit": "fraction",
        "better": "neither",
        "formula": "accuracy of Shokri's attack on equally many members and non-members of each class, mean over 100 "
        "attacks; one half is chance",
        "source": "Shokri et al. 2017; FATS section 6.1.3",
        "spread": "mia_accuracy_std",
    },
    "mia_accuracy_std": {
        "label": "std",
        "unit": "fraction",
        "better": "neither",
        "formula": "sample standard deviation over 100 attacks",
        "source": "FATS section 6.1.3",
    },
    "mia_precision": {
        "label": "MIA precision",
        "unit": "fraction",
        "better": "neither",
        "formula": "share of members among the samples that Shokri's attack labels as members, mean over the attacks "
        "that label any",
        "source": "Shokri et al. 2017; FATS section 6.1.3",
        "spread": "mia_precision_std",
    },
    "mia_precision_std": {
        "label": "std",
        "unit": "fraction",
        "better": "neither",
        "formula": "sample standard deviation over the attacks that label any sample as a member",
        "source": "FATS section 6.1.3",
    },
    "mia_undefined": {
        "label": "Undefined precision",
        "unit": "attacks",
        "better": "neither",
        "formula": "number of the 100 attacks that label no sample as a member, so that their precision is undefined",
        "source": "our choice: not counted as a precision of 0",
    },
    "mia_auc": {
        "label": "MIA AUC",
        "unit": "fraction",
        "better": "neither",
        "formula": "area under the ROC curve of Shokri's attack, mean over 100 attacks; one half is chance",
        "source": "our choice: accuracy depends on a threshold",
        "spread": "mia_auc_std",
    },
    "mia_auc_std": {
        "label": "std",
        "unit": "fraction",
        "better": "neither",
        "formula": "sample standard deviation over 100 attacks",
        "source": "our choice: as for accuracy and precision",
    },
    "mia_tpr_1": {
        "label": "MIA TPR at 1%",
        "unit": "fraction",
        "better": "neither",
        "formula": "true positive rate of Shokri's attack at a false positive rate of at most 1%, mean over 100 "
        "attacks",
        "source": "Carlini et al. 2022",
        "spread": "mia_tpr_1_std",
    },
    "mia_tpr_1_std": {
        "label": "std",
        "unit": "fraction",
        "better": "neither",
        "formula": "sample standard deviation over 100 attacks",
        "source": "our choice: as for accuracy and precision",
    },
    "mia_auc_trained": {
        "label": "MIA AUC, members used in training",
        "unit": "fraction",
        "better": "neither",
        "formula": "area under the ROC curve of Shokri's attack, mean over 100 attacks, on the members that were in a "
        "training batch and the non-members paired with them",
        "source": "our choice: the other members left no trace",
        "spread": "mia_auc_std_trained",
    },
    "mia_auc_std_trained": {
        "label": "std",
        "unit": "fraction",
        "better": "neither",
        "formula": "sample standard deviation over 100 attacks",
        "source": "our choice: as for accuracy and precision",
    },
    "mia_members": {
        "label": "Members",
        "unit": "samples",
        "better": "neither",
        "formula": "members under attack, each paired with a non-member of the same class",
        "source": "our choice: results on few members are unreliable",
    },
    "mia_members_trained": {
        "label": "Members used in training",
        "unit": "samples",
        "better": "neither",
        "formula": "members that were in a training batch",
        "source": "our choice: results on few members are unreliable",
    },
    "lira_advantage": {
        "label": "LiRA advantage",
        "unit": "fraction",
        "better": "neither",
        "formula": "max(0, 2 AUC - 1) with the AUC of LiRA; 0 is chance",
        "source": "our choice: 0 for a model that forgot",
        "tells": {"original": "higher"},
    },
    "lira_auc": {
        "label": "LiRA AUC",
        "unit": "fraction",
        "better": "neither",
        "formula": "area under the ROC curve of (phi - mu) / sigma, where phi = log(p / (1 - p)) for the probability "
        "p of the sample's own class, and mu and sigma are its mean and standard deviation over the shadow models; "
        "with fewer than 64 shadow models, one sigma for all samples",
        "source": "Carlini et al. 2022, offline; requires at least two shadow models",
    },
    "lira_auc_trained": {
        "label": "LiRA AUC, members used in training",
        "unit": "fraction",
        "better": "neither",
        "formula": "LiRA's AUC on the members that were in a training batch and the non-members paired with them",
        "source": "our choice: the other members left no trace",
    },
    "lira_tpr_1": {
        "label": "LiRA TPR at 1%",
        "unit": "fraction",
        "better": "neither",
        "formula": "true positive rate of LiRA at a false positive rate of at most 1%",
        "source": "Carlini et al. 2022",
    },
    "lira_tpr_01": {
        "label": "LiRA TPR at 0.1%",
        "unit": "fraction",
        "better": "neither",
        "formula": "true positive rate of LiRA at a false positive rate of at most 0.1%: with fewer than 1000 "
        "non-members, at no false positive",
        "source": "Carlini et al. 2022",
    },
    "rmia_auc": {
        "label": "RMIA AUC",
        "unit": "fraction",
        "better": "neither",
        "formula": "area under the ROC curve of the share of samples z in the shadow models' pool with r(x) >= r(z), "
        "where r = p / Pr, Pr = ((1 + a) p_out + 1 - a) / 2, a = 0.3; p is the probability of the sample's own class "
        "and p_out its mean over the shadow models that were not trained on the sample",
        "source": "Zarifzadeh et al. 2024, offline, gamma 1 (our choice, so that as many z lie below x as above); "
        "requires at least one shadow model",
    },
    "rmia_auc_trained": {
        "label": "RMIA AUC, members used in training",
        "unit": "fraction",
        "better": "neither",
        "formula": "RMIA's AUC on the members that were in a training batch and the non-members paired with them",
        "source": "our choice: the other members left no trace",
    },
    "rmia_tpr_1": {
        "label": "RMIA TPR at 1%",
        "unit": "fraction",
        "better": "neither",
        "formula": "true positive rate of RMIA at a false positive rate of at most 1%",
        "source": "Zarifzadeh et al. 2024",
    },
    "rmia_tpr_01": {
        "label": "RMIA TPR at 0.1%",
        "unit": "fraction",
        "better": "neither",
        "formula": "true positive rate of RMIA at a false positive rate of at most 0.1%: with fewer than 1000 "
        "non-members, at no false positive",
        "source": "Zarifzadeh et al. 2024",
    },
}


def evaluate(context: Context) -> dict[str, float]:
    """Return the metrics of all attacks; nothing without shadow models or without members of any class."""
    shadows = context.shadows
    if shadows is None or not shadows.number or not len(shadows.members):
        return {}
    given = (shadows.members, shadows.non_members, shadows.pool)
    inside, outside, pool = (context.network.logits(context.theta, context.data.clean(rows)[0]) for rows in given)
    arrays = (shadows.classes, shadows.labels, shadows.pool_logits, shadows.inside, shadows.trained)
    labels, own, known, seen, trained = (torch.as_tensor(array, device=inside.device) for array in arrays)
    reference = np.concatenate([shadows.member_logits, shadows.non_member_logits], 1)
    samples = torch.cat([inside, outside]), torch.as_tensor(reference, device=inside.device), labels.repeat(2)
    scores = {"lira": lira(*samples)} if shadows.number > 1 else {}
    if not shadows.inside.all():
        scores["rmia"] = rmia(*samples, pool, known, own, seen)
    found = shokri(shadows, inside, outside)
    for attack, score in scores.items():
        found |= _summary(attack, score)
    if "lira_auc" in found:
        found["lira_advantage"] = max(0.0, 2 * found["lira_auc"] - 1)
    if len(trained):
        some = {"mia_members": 0.0} | shokri(shadows, inside, outside, trained)
        for attack, score in scores.items() if trained.any() else ():
            some |= _summary(attack, score[trained.repeat(2)])
        found |= {f"{name}_trained": some[name] for name in OF_TRAINED if name in some}
    return found


def _summary(attack: str, scores: Tensor) -> dict[str, float]:
    """Return the metrics of an attack from its scores of members, then non-members, [2 m]."""
    members, others = scores.chunk(2)
    rates = {f"{attack}_tpr_1": 0.01, f"{attack}_tpr_01": 0.001}
    return {
        f"{attack}_auc": area(members, others).item(),
        **{name: caught(members, others, share).item() for name, share in rates.items()},
    }


# ---- LiRA and RMIA ---------------------------------------------------------------------------------------------------


def scaled(logits: Tensor, labels: Tensor) -> Tensor:
    """Return phi = log(p / (1 - p)) of each label's own probability p, [..., n] of [..., n, C] and [n]."""
    index = labels.expand(logits.shape[:-1])[..., None]
    own = logits.double().gather(-1, index)
    return (own - logits.double().scatter(-1, index, -math.inf).logsumexp(-1, keepdim=True)).squeeze(-1)


def lira(logits: Tensor, said: Tensor, labels: Tensor) -> Tensor:
    """Return LiRA's offline score of each sample, [n] of a model's logits [n, C] and its shadows' [S, n, C].

    The paper's score is the normal distribution function of this one, and has the same order.
    """
    phi = scaled(said, labels)
    variance = phi.var(0, correction=1)
    sigma = (variance if len(said) >= OWN_SPREAD else variance.mean()).sqrt()
    return (scaled(logits, labels) - phi.mean(0)) / sigma.clamp(min=1e-30)


def rmia(
    logits: Tensor, said: Tensor, labels: Tensor, pool: Tensor, known: Tensor, own: Tensor, inside: Tensor
) -> Tensor:
    """Return RMIA's offline score of each sample, [n] of a model's logits [n, C] and its shadows' [S, n, C].

    The samples z that they are compared with are the pool, with the model's logits [z, C], the shadows' `known`
    [S, z, C], labels `own` [z] and what shadows trained on, `inside` [S, z]. The target may have trained on them: all
    z are then less likely to be beaten, which leaves the order of the scores. Some shadow must not have trained on one
    of them.
    """
    out = ~inside
    there = out.any(0)
    mean = (_own(known, own) * out).sum(0)[there] / out.sum(0)[there]
    compared = (_own(pool, own)[there] / _expected(mean)).sort().values
    ratio = _own(logits, labels) / _expected(_own(said, labels).mean(0))
    return torch.searchsorted(compared, ratio, right=True).double() / len(compared)


def _own(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the probability of each label, [..., n] of [..., n, C]."""
    return logits.double().softmax(-1).gather(-1, labels.expand(logits.shape[:-1])[..., None]).squeeze(-1)


def _expected(out: Tensor) -> Tensor:
    """Return Pr(x) from its mean over models that did not train on x."""
    return ((1 + OFFLINE) * out + 1 - OFFLINE) / 2


# ---- Shokri's attack -------------------------------------------------------------------------------------------------


class Models(NamedTuple):
    """The attack models of A attacks on K classes with F numbers and H hidden units, and how numbers are scaled."""

    classes: Tensor  # [K]
    centre: Tensor  # [K, 1, F]
    scale: Tensor  # [K, 1, F]
    weights: list[Tensor]  # [A K, F, H], [A K, 1, H], [A K, H, 1], [A K, 1, 1]


def shokri(shadows: Shadows, inside: Tensor, outside: Tensor, kept: Tensor | None = None) -> dict[str, float]:
    """Return mean and spread over `ATTACKS` attacks on a model with logits [m, C] on members and on non-members.

    Each attack takes half of the pairs of a member and a non-member, drawn anew, and calls a member what its model of
    the class gives more than an even chance. `kept` [m]: which pairs there are (None: all).
    """
    models = attackers(shadows, inside.device)
    labels = torch.as_tensor(shadows.classes, device=inside.device)
    if kept is not None:
        labels, inside, outside = labels[kept], inside[kept], outside[kept]
    scores = [judged(models, features(logits, labels), labels) for logits in (inside, outside)]
    pairs = scores[0].shape[1]
    if not pairs:
        return {}
    random = torch.rand(ATTACKS, pairs, generator=_generator(shadows, "sets"))
    drawn = random.argsort(1)[:, : -(-pairs // 2)].to(inside.device)
    return {"mia_members": float(pairs), **told(*(score.gather(1, drawn) for score in scores))}


def told(members: Tensor, others: Tensor) -> dict[str, float]:
    """Return mean and spread over attacks of what scores [A, m] of members and of non-members tell; above 0: a member.

    Precision is over those attacks that call somebody a member.
    """
    right, wrong = (members > 0).double().mean(1), (others > 0).double().mean(1)
    some = right + wrong > 0
    several = {
        "mia_accuracy": (right + 1 - wrong) / 2,
        "mia_precision": right[some] / (right + wrong)[some],
        "mia_auc": area(members, others),
        "mia_tpr_1": caught(members, others, 0.01),
    }
    found = {"mia_undefined": float((~some).sum())}
    for name, values in several.items():
        found |= {name: values.mean().item()} if len(values) else {}
        found |= {f"{name}_std": values.std(correction=1).item()} if len(values) > 1 else {}
    return found


def features(logits: Tensor, labels: Tensor) -> Tensor:
    """Return what an attack model is given of a prediction: the label's own log-probability and the highest others."""
    found = logits.log_softmax(-1).clamp(min=-30)
    index = labels.expand(found.shape[:-1])[..., None]
    others = found.scatter(-1, index, -math.inf).topk(min(NUMBERS, found.shape[-1]) - 1).values
    return torch.cat([found.gather(-1, index), others], -1)


@lru_cache(maxsize=1)
def attackers(shadows: Shadows, device: torch.device) -> Models:
    """Return the attack models: for each class with rows that shadows did and did not train on, trained on these."""
    arrays = (shadows.labels, shadows.inside, shadows.pool_logits)
    labels, inside, logits = (torch.as_tensor(array, device=device) for array in arrays)
    given = features(logits, labels)
    wanted = np.unique(shadows.classes).tolist()
    both = [(given[inside & (labels == label)], given[~inside & (labels == label)]) for label in wanted]
    found = {label: pair for label, pair in zip(wanted, both, strict=True) if all(map(len, pair))}
    if not found:
        return Models(labels[:0], given[0, :0], given[0, :0], [])
    means = torch.stack([torch.cat(pair).mean(0, keepdim=True) for pair in found.values()])
    scales = torch.stack([torch.cat(pair).std(0, correction=0, keepdim=True) for pair in found.values()]) + 1e-6
    random = _generator(shadows, "records")
    each = min(128, max(16, RECORDS // (2 * len(found))), max(len(part) for pair in found.values() for part in pair))
    drawn = [
        torch.stack([part[torch.randint(len(part), (ATTACKS, each), generator=random).to(device)] for part in pair], 1)
        for pair in found.values()
    ]
    records = (torch.stack(drawn, 1).flatten(2, 3) - means) / scales  # [A, K, 2 each, F], members first
    member = torch.arange(2 * each, device=device)[:, None] < each
    begun = torch.randn(ATTACKS, len(found), records.shape[-1] + 1, HIDDEN, generator=_generator(shadows, "weights"))
    begun /= torch.tensor([*[records.shape[-1]] * records.shape[-1], HIDDEN])[:, None].sqrt()
    begun = begun.to(device)
    size = TOGETHER if device.type == "cpu" else ATTACKS
    parts = [
        fitted(x.flatten(0, 1), member.float(), first.flatten(0, 1))
        for x, first in zip(records.split(size), begun.split(size), strict=True)
    ]
    weights = [torch.cat(several) for several in zip(*parts, strict=True)]
    return Models(torch.tensor([*found], device=device), means, scales, weights)


def fitted(x: Tensor, y: Tensor, first: Tensor) -> list[Tensor]:
    """Train B attack models on records x [B, n, F], with members y [n, 1], from the weights `first` [B, F + 1, H].

    Full-batch gradient descent with momentum on the mean cross-entropy of each. (An optimiser of torch takes a second
    to import.)
    """
    hidden, out = first[:, :-1].clone(), first[:, -1:].transpose(1, 2).clone()
    weights = [hidden, torch.zeros_like(first[:, :1]), out, torch.zeros_like(out[:, :1])]
    velocities = [torch.zeros_like(weight) for weight in weights]
    target = y.expand(len(x), -1, -1)
    for _ in range(STEPS):
        with torch.enable_grad():
            traced = [weight.requires_grad_() for weight in weights]
            loss = binary_cross_entropy_with_logits(called(x, traced), target, reduction="sum") / x.shape[1]
            gradients = torch.autograd.grad(loss, traced)
        with torch.no_grad():
            for weight, velocity, gradient in zip(weights, velocities, gradients, strict=True):
                weight.sub_(velocity.mul_(MOMENTUM).add_(gradient), alpha=RATE)
    return [weight.detach() for weight in weights]


def called(x: Tensor, weights: list[Tensor]) -> Tensor:
    """Return the logits [B, n, 1] of B attack models for x [B, n, F]: above 0 means a member."""
    hidden, shift, out, offset = weights
    return torch.baddbmm(offset, torch.baddbmm(shift, x, hidden).relu(), out)


def judged(models: Models, x: Tensor, labels: Tensor) -> Tensor:
    """Return the scores [A, n] that the attacks give to samples x [n, F], by their classes; other classes aside."""
    parts = []
    for number, label in enumerate(models.classes.tolist()):
        mine = (x[labels == label] - models.centre[number]) / models.scale[number]
        weights = [weight.unflatten(0, (-1, len(models.classes)))[:, number] for weight in models.weights]
        parts.append(called(mine.expand(ATTACKS, -1, -1), weights).squeeze(-1))
    return torch.cat(parts, 1) if parts else x.new_zeros(ATTACKS, 0)


def _generator(shadows: Shadows, what: str) -> torch.Generator:
    return torch.Generator().manual_seed(derive_integer(int(shadows.seed), "membership", what))
