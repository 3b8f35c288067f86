"""Damage every kind of file that the science reads: each must be read right or be told in one sentence, soon.

python -m tests.faults.fuzz_files [--cases N] [--first SEED]
"""

import argparse
import io
import resource
import sys
import tempfile
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import torch
from numpy.lib import format as npy
from torch import nn

from fu.data import archives, clients
from fu.errors import UserError
from fu.federation import model_files
from fu.federation.checkpoint import Checkpoint
from fu.federation.flat import Layout
from fu.methods.fupga import Bounded
from tests.data.files import arrays_of
from tests.factories import make_partition
from tests.faults import damage, limited

Load = Callable[[Path], object]
Damage = Callable[[bytes, Random], bytes]
SECONDS, MEBIBYTES = 5, 256  # that one case may take
CPU = torch.device("cpu")
TEXTS = (
    "", "0", "-1", "1e400", "NaN", "null", "true", "()", "[]", "{}", "'", '"', "((", "-" * 3000, "[" * 190, "(" * 300,
    "9" * 18, "9" * 30, "9" * 5000, "1_0", "0777", "10L", "2**62", "'O'", "'|V9'", "'<f8'", "'>i8'", "'<U9'", "'M8[D]'",
    "[('a', '|O')]", "('u1', (9, 9))", "('u1', 10**9)", "\n", "\t", "\0", "\\", "#", "\xff", "é", "💥",
)  # fmt: skip
NUMBERS = (0, 1, 2, 5, 99, 127, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1)
ODD = [
    *(text.encode() for text in TEXTS),
    *(number.to_bytes(8, "little")[:size] for number in NUMBERS for size in (2, 8)),
]


def damage_bytes(content: bytes, random: Random) -> bytes:
    """Damage the text at a random place."""
    return damage(content, random, ODD)


def damage_array(content: bytes, random: Random) -> bytes:
    """Change the type of an array, one of its values, or its shape; else damage the bytes, mostly of its header."""
    if random.random() < 0.5:
        return damage_bytes(content, random)
    array = np.load(io.BytesIO(content))
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        array = array.astype(random.choice([array.dtype, "u1", "i8", ">i8", "f4", "f8", "?", "U3"]))
        flat = array.reshape(-1)
        if flat.size and flat.dtype.kind in "iuf":
            odd = [np.nan, np.inf, -1e300] if flat.dtype.kind == "f" else [-1, *NUMBERS[:-2]]
            flat[random.randrange(flat.size)] = np.array(random.choice(odd)).astype(flat.dtype)
    out = io.BytesIO()
    npy.write_array(out, flat[: random.randrange(1, 9)] if random.random() < 0.2 else array, allow_pickle=False)
    return out.getvalue()


def damage_npz(content: bytes, random: Random) -> bytes:
    """Damage the bytes, or a member that is packed again: damaged, dropped, doubled, renamed or swapped."""
    if random.random() < 0.35:
        return damage_bytes(content, random)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    k, (other, its) = random.randrange(len(members)), random.choice(members)
    name, data = members[k]
    changed = [(name, damage_array(data, random))]
    members[k : k + 1] = random.choice(
        [changed, changed, changed, [], [members[k]] * 2, [(other, data)], [(name, its)]]
    )
    out = io.BytesIO()
    method = random.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(out, "w", method, compresslevel=1) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


def damage_safetensors(content: bytes, random: Random) -> bytes:
    """Damage the bytes, or the header's text under a right length."""
    if random.random() < 0.5:
        return damage_bytes(content, random)
    end = 8 + int.from_bytes(content[:8], "little")
    header = damage_bytes(content[8:end], random)
    return len(header).to_bytes(8, "little") + header + content[end:]


def kinds(folder: Path) -> dict[str, tuple[bytes, Damage, Load]]:
    """Return for each kind of file: a right one, how to damage it, how to load it and check what was loaded."""
    part = make_partition()
    merged = sum(len(rows) for rows in (*part.train, *part.validation, *part.test))
    arrays, archive = arrays_of("digits", merged - 5, 5), folder / "digits.npz"
    np.savez(archive, allow_pickle=False, **arrays)  # type: ignore[arg-type]
    stored = archive.read_bytes()
    np.savez_compressed(folder / "deflated.npz", allow_pickle=False, **{**arrays, "x_test": arrays["x_test"][..., 0]})
    np.savez(folder / "partition.npz", allow_pickle=False, **part.arrays())  # type: ignore[arg-type]
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Linear(3, 4))
    layout, path = Layout(model), folder / "x.safetensors"
    theta = torch.arange(layout.size, dtype=torch.float32)
    model_files.save(path, layout, theta, None)
    weights = path.read_bytes()
    model_files.save(path, layout, theta, 7)
    diverged = path.read_bytes()
    model_files.save_histories(
        path, {"norms": {"norms": torch.ones(2, 3)}, "sums": {"sums": theta, "weight": torch.ones(1)}}
    )
    history = path.read_bytes()
    notes = {"seconds": 1.5, "done": 2, "rows": [{"round": 1, "asr": None}], "cost": {"steps": 4}}
    saved = Checkpoint(folder / "saved.checkpoint", {"key": 1}, 0)
    state, weight = Bounded(theta, theta, 0.1), torch.ones(1).double()
    values = {**vars(state), "history.sums.weight": weight}
    saved.save(state, notes, {"sums": {"weight": weight}})

    def load_archive(path: Path) -> None:
        number = archives.check(path, "digits")  # a mistake that the headers show never waits for the data
        found = archives.read(path, "digits")
        assert number == len(found["y_train"]) + len(found["y_test"]) <= 1797
        assert all(array.dtype == np.uint8 for array in found.values())
        assert found["x_test"].shape[1:] == found["x_train"].shape[1:] == (20, 20, 1)

    def load_partition(path: Path) -> None:
        data = clients.load(archive, path, "digits", "patch", CPU, "share")
        for client in range(data.partition.clients):
            x, y = data.train(client)
            assert len(x) == len(y) > 0
            assert x.isfinite().all()
            assert 0 <= int(y.min()) <= int(y.max()) < 10

    def load_model(path: Path) -> None:
        found, round = model_files.load(path, layout)
        assert (round or 0) >= 1 if found is None else found.isfinite().all()

    def load_history(path: Path) -> None:
        assert model_files.load_history(path, "sums", CPU)

    def load_checkpoint(path: Path) -> object:
        found = Checkpoint(path, {"key": 1}, 0).load("cpu")
        if found is None:
            raise UserError("ignored.")
        assert found[1] == notes
        assert found[0].keys() == values.keys()
        assert all(torch.equal(torch.as_tensor(found[0][name]), torch.as_tensor(values[name])) for name in values)
        return found

    return {
        "archive, stored": (stored, damage_npz, load_archive),
        "archive, deflated": ((folder / "deflated.npz").read_bytes(), damage_npz, load_archive),
        "partition": ((folder / "partition.npz").read_bytes(), damage_npz, load_partition),
        "model": (weights, damage_safetensors, load_model),
        "model, diverged": (diverged, damage_safetensors, load_model),
        "history": (history, damage_safetensors, load_history),
        "checkpoint": (saved.path.read_bytes(), damage_safetensors, load_checkpoint),
    }


def end_of(load: Load, path: Path) -> str:
    """Load a file; return how that ended, "read" or "told", or a traceback."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with limited(SECONDS):
            load(path)
        end = "read"
    except UserError as error:
        end = "told" if "\n" not in str(error) and str(error).endswith(".") else f"no sentence: {error}"
    except BaseException:  # Rust's panics and our alarm are no `Exception`
        end = traceback.format_exc()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    return end if grown <= MEBIBYTES else f"{grown} MiB of memory"


def main(arguments: list[str] | None = None) -> int:
    """Load damaged files of each kind in turn; print how they ended, and the seed of the first that failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=14_000)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first case")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    ends: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as temporary:
        known = kinds(Path(temporary))
        path = Path(temporary) / "file"
        for name, (content, _, load) in known.items():
            path.write_bytes(content)
            assert end_of(load, path) == "read", name
        for seed in range(given.first, given.first + given.cases):
            name, (content, damaged, load) = list(known.items())[seed % len(known)]
            path.write_bytes(damaged(content, Random(seed)))
            end = end_of(load, path)
            if end not in ("read", "told"):
                print(f"{name}, seed {seed}: {end}", file=sys.stderr)
                return 1
            ends[name, end] += 1
    for name in known:
        print(f"{name:18} {ends[name, 'read']:5} read {ends[name, 'told']:5} told")
    print(f"{given.cases} damaged files, none with a traceback, a hang or more than {MEBIBYTES} MiB")
    return 0


if __name__ == "__main__":
    soft = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + 2**32
    resource.setrlimit(resource.RLIMIT_AS, (soft, resource.RLIM_INFINITY))
    sys.exit(main())
