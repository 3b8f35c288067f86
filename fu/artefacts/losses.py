"""CE and UCE: loss and derivative as functions of the probability of the true class (FedOSD Figure 3)."""

import pandas as pd
import torch
from matplotlib.figure import Figure

from fu.artefacts.drawing import head, legend, panels
from fu.artefacts.entry import Entry
from fu.artefacts.result import Result
from fu.federation.losses import cross_entropy, unlearning_cross_entropy

INPUTS = ()
LOSSES = {"CE": cross_entropy, "UCE": unlearning_cross_entropy}
MARKED = (0.01, 0.1, 0.5, 0.9, 0.99)


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Evaluate the losses that training uses on two-class logits with p_y = p, and differentiate them."""
    grid = sorted({*torch.linspace(0.005, 0.995, 199, dtype=torch.float64).tolist(), *MARKED})
    parts = []
    for name, loss in LOSSES.items():
        p = torch.tensor(grid, dtype=torch.float64, requires_grad=True)
        values = loss(torch.stack([p.log(), (1 - p).log()], dim=1), torch.zeros(len(grid), dtype=torch.long))
        (slopes,) = torch.autograd.grad(values.sum(), p)
        parts.append(pd.DataFrame({"loss": name, "p": grid, "value": values.tolist(), "derivative": slopes.tolist()}))
    found = pd.concat(parts, ignore_index=True)
    marked = found[found["p"].isin(MARKED)].pivot(index="p", columns="loss", values=["value", "derivative"])
    marked.columns = pd.Index([" ".join(map(str, pair)) for pair in marked.columns.to_list()])
    text = marked.reset_index().to_markdown(index=False, floatfmt=".4g")
    return Result(found, f"{text}\n\nThe paper prints no numbers for this figure.\n", _picture(found))


def _picture(frame: pd.DataFrame) -> Figure:
    figure, [line] = panels(1, 2, 2.0)
    titles = {"CE": "(a) Cross-Entropy", "UCE": "(b) Unlearning Cross-Entropy"}
    for axis, (name, title) in zip(line, titles.items(), strict=True):
        part = frame[frame["loss"] == name]
        axis.plot(part["p"], part["value"], color="0.15", label="loss L")
        axis.plot(part["p"], part["derivative"], color="0.45", linestyle="--", label="derivative dL/dp")
        axis.set_xlabel("probability of the true class, $p_{o,c}$", parse_math=True)
        axis.set_ylabel("L, dL/dp")
        head(axis, title)
        axis.set_ylim((-12, 6) if name == "CE" else (-0.1, 1.1))
    legend(figure, line[0].get_lines())
    return figure
