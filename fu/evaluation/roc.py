"""How well scores separate members from non-members: area under the ROC curve, true positives at few false ones."""

import torch
from torch import Tensor


def area(members: Tensor, others: Tensor) -> Tensor:
    """Return the share of pairs in which the member scores higher, a tie counting half: [...] of [..., m], [..., n]."""
    ordered = others.sort(-1).values.contiguous()
    below, upto = (torch.searchsorted(ordered, members.contiguous(), right=right) for right in (False, True))
    return (below + upto).double().mean(-1) / (2 * others.shape[-1])


def caught(members: Tensor, others: Tensor, share: float) -> Tensor:
    """Return the largest share of members [..., m] above a threshold that at most `share` of others [..., n] exceed.

    Of few others that is none of them.
    """
    allowed = int(share * others.shape[-1] + 1e-9)
    threshold = others.sort(-1, descending=True).values[..., allowed]
    return (members > threshold[..., None]).double().mean(-1)
