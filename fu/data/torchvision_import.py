"""Import torchvision also where its compiled operators do not load (they need CUDA; no data set uses them)."""

from types import ModuleType

import torch


def datasets() -> ModuleType:
    """Return `torchvision.datasets`, declaring the operators that its import expects when they are absent."""
    try:
        import torchvision.datasets as module
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision.datasets as module
    return module
