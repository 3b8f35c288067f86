"""Import torchvision also where its compiled operators do not load (they need CUDA; nothing here uses them)."""

import urllib.error
import urllib.request
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

from fu.contents import checksum
from fu.errors import UserError

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


def pretrained(file: str) -> dict[str, Tensor]:
    """Return the weights of a file of torchvision's.

    The file is in the cache of `torch.hub`, else downloaded to it. As in all names of these files, the last eight
    letters are the first of its SHA-256, which is verified. Raises `UserError` where it can neither be read nor
    downloaded.
    """
    path, url = _places(file)
    try:
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(url, str(path), _prefix(file), progress=False)
        if not checksum(path).startswith(_prefix(file)):
            raise ValueError("the file is damaged: its SHA-256 does not match")
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of a torn file torch raises anything
        reason = str(error).splitlines()[0].rstrip(".: ") if str(error) else type(error).__name__
        raise _absent(file, reason) from None


def check_pretrained(file: str) -> None:
    """Raise `UserError` where a file of weights is neither there nor can its server be reached."""
    path, url = _places(file)
    if not path.is_file() and not _answers(url):
        raise _absent(file, "cannot reach its server")


def _places(file: str) -> tuple[Path, str]:
    return Path(torch.hub.get_dir(), "checkpoints", file), f"https://download.pytorch.org/models/{file}"


def _absent(file: str, reason: str) -> UserError:
    path, url = _places(file)
    return UserError(
        f"{path}: missing pretrained weights ({reason}); download {url} to this path or use random weights "
        "(model.params.weights: random)."
    )


def _prefix(file: str) -> str:
    return Path(file).stem.rpartition("-")[2]


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
