"""The LSTM: its published size, what it reads, and that it learns."""

from typing import Any

import torch
from torch import Tensor

from fu.models import lstm
from fu.models.lstm import Params


def build(**params: Any) -> torch.nn.Module:
    torch.manual_seed(0)
    return lstm.build((80,), 80, Params(**params))


def test_the_lstm_has_its_published_number_of_parameters() -> None:
    assert sum(p.numel() for p in build().parameters()) == 819_920


def test_the_lstm_reads_every_character_and_scores_after_the_last() -> None:
    net, x = build(), torch.zeros(1, 8, dtype=torch.int64)
    others = [x.clone() for _ in range(8)]
    for place, other in enumerate(others):
        other[0, place] = 5
    with torch.no_grad():
        changes = [float((net(other) - net(x)).abs().max()) for other in others]
    assert changes[0] > 1e-4
    assert changes == sorted(changes)
    last: list[Tensor] = []
    net.lstm.register_forward_hook(lambda module, given, outputs: last.append(outputs[0]))  # type: ignore[union-attr, operator]
    scores = net(x)
    assert torch.equal(scores, net.linear(last[0][:, -1]))  # type: ignore[operator]


def test_the_lstm_is_always_in_the_mode_in_which_cudnn_has_its_gradient() -> None:
    net = build().eval()
    assert net.lstm.training  # type: ignore[union-attr]
    assert not net.training
