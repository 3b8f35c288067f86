"""Import torchvision also where its compiled operators do not load (they need CUDA; no data set uses them)."""

import urllib.error
import urllib.request
from pathlib import Path
from types import ModuleType

import torch

GONE = (404, 410)
SECONDS = 5.0  # for a server to answer


def available(name: str, folder: Path) -> bool:
    """Whether a data set of torchvision was downloaded to a folder before, or one of its servers can be reached."""
    kind = getattr(datasets(), name)
    try:
        kind(root=str(folder))
        return True
    except Exception:  # absent or torn
        first = kind.resources[0][0] if hasattr(kind, "mirrors") else ""
        urls = [f"{mirror}{first}" for mirror in kind.mirrors] if first else [getattr(kind, "url", "")]
        return any(not url or _answers(url) for url in urls)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=SECONDS):
            return True
    except urllib.error.HTTPError as error:
        return error.code not in GONE
    except OSError:
        return False


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
