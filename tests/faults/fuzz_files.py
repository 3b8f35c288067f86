"""Damage every kind of file that the science reads: each must be read right or be told in one sentence, soon.

python -m tests.faults.fuzz_files [--cases N] [--first SEED]
"""

import argparse
import io
import json
import resource
import struct
import sys
import tempfile
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

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
from tests.faults import limited

Random = np.random.Generator
Load = Callable[[Path], object]
SECONDS, MEBIBYTES = 5, 256  # that one case may take
CPU = torch.device("cpu")
ODD = (
    "", "0", "-1", "1e400", "NaN", "null", "True", "()", "[]", "{}", "'", '"', "((", "-" * 3000, "[" * 190, "(" * 300,
    "9" * 18, "9" * 30, "9" * 5000, "1_0", "0777", "10L", "2**62", "'O'", "'|V9'", "'<f8'", "'>i8'", "'<U9'", "'M8[D]'",
    "[('a', '|O')]", "('u1', (9, 9))", "('u1', 10**9)", "\n", "\t", "\0", "\\", "#", "\xff", "é", "💥",
)  # fmt: skip
NUMBERS = (0, 1, 2, 127, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1)


def damage_bytes(content: bytes, random: Random) -> bytes:
    """Flip, cut, zero, repeat, append or overwrite at random; small files and both ends are hit more often."""
    data = bytearray(content)
    end = len(data) if random.random() < 0.4 else min(len(data), 400)
    at = int(random.integers(end)) if random.random() < 0.7 else len(data) - 1 - int(random.integers(end))
    length = int(random.integers(1, 40))
    match random.integers(7):
        case 0 | 1:
            for _ in range(random.integers(1, 4)):
                data[max(0, at - int(random.integers(20)))] ^= 1 << int(random.integers(8))
        case 2:
            del data[at:]
        case 3:
            data[at : at + length] = bytes(len(data[at : at + length]))
        case 4:
            data[at:at] = data[at : at + length]
        case 5:
            data += random.bytes(length)
        case 6:
            number, size = int(random.choice(np.array(NUMBERS, np.uint64))), int(random.choice([2, 4, 8]))
            data[at : at + size] = struct.pack("<Q", number)[:size]
    return bytes(data)


def damage_text(text: str, random: Random) -> str:
    """Replace a piece of a text by something odd."""
    start = int(random.integers(len(text)))
    stop = start + int(random.integers(12))
    return text[:start] + str(random.choice(np.array(ODD, object))) + text[stop:]


def damage_member(content: bytes, random: Random) -> bytes:
    """Edit an array's header, its values, or the bytes; the zip file around it stays right."""
    if random.random() < 0.2:
        return damage_bytes(content, random)
    array = np.load(io.BytesIO(content))
    if random.random() < 0.4:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            if random.random() < 0.3:
                array = array.astype(random.choice(["u1", "i8", ">i8", "f4", "f8", "?", "U3"]))
            flat = array.reshape(-1)
            if flat.size and flat.dtype.kind in "iu":
                flat[random.integers(flat.size)] = np.array(random.choice([-1, 0, 1, 5, 99, 2**62])).astype(flat.dtype)
            elif flat.size and flat.dtype.kind == "f":
                flat[random.integers(flat.size)] = random.choice([np.nan, np.inf, -1e300])
        array = flat[: random.integers(1, 9)] if random.random() < 0.2 else flat.reshape(array.shape)
        out = io.BytesIO()
        npy.write_array(out, array, allow_pickle=False)
        return out.getvalue()
    version, length = content[6], int.from_bytes(content[8:10], "little")
    text = content[10 : 10 + length].decode("latin1")
    for _ in range(random.integers(1, 3)):
        text = damage_text(text, random)
    header = text.encode("utf8", "replace")
    size = len(header) if random.random() < 0.8 else int(random.choice(np.array(NUMBERS[:-2], np.uint64)))
    version = int(random.choice([version, 1, 2, 3, 0, 255], p=[0.7, 0.06, 0.06, 0.06, 0.06, 0.06]))
    packed = struct.pack("<I", size & 0xFFFFFFFF) if version > 1 else struct.pack("<H", size & 0xFFFF)
    return content[:6] + bytes([version, 0]) + packed + header + content[10 + length :]


def damage_npz(content: bytes, random: Random) -> bytes:
    """Damage the bytes, or members that are packed again: edited, dropped, doubled, swapped, renamed, bombs."""
    if random.random() < 0.35:
        return damage_bytes(content, random)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    k, other = random.integers(len(members), size=2)
    name, data = members[k]
    match random.integers(10):
        case 0:
            del members[k]
        case 1:
            members.insert(int(other), members[k])
        case 2:
            members[k], members[other] = (name, members[other][1]), (members[other][0], data)
        case 3:
            members[k] = damage_text(name, random), data
        case 4:
            header = npy.magic(1, 0) + struct.pack("<H", 200)
            shape = (int(random.choice([0, 10**6, 10**9, 10**18])), 20, 20, 1)[: random.integers(1, 5)]
            text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}}}".ljust(199) + "\n"
            members[k] = (
                name,
                header + text.encode() + bytes(int(random.choice([0, 10**4, 3 * 10**7], p=[0.5, 0.45, 0.05]))),
            )
        case _:
            members[k] = name, damage_member(data, random)
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    method = methods[random.choice(4, p=[0.45, 0.45, 0.05, 0.05])]
    out = io.BytesIO()
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(out, "w", method, compresslevel=1) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name.replace("\0", "") or "x"), data, method)
    return out.getvalue()


def damage_safetensors(content: bytes, random: Random) -> bytes:
    """Damage the bytes, or the header's text under a right length."""
    if random.random() < 0.5:
        return damage_bytes(content, random)
    length = int.from_bytes(content[:8], "little")
    text = content[8 : 8 + length].decode()
    if random.random() < 0.3:  # the notes alone, which are JSON within JSON
        header = json.loads(text)
        notes = header.get("__metadata__", {"fu": "{}"})
        key = str(random.choice(sorted(notes)))
        odd = ["[" * 3000, "[]", "7", "null", *(f'{{"diverged": {value}}}' for value in ("-1", "true", "[1]", "3"))]
        notes[key] = str(random.choice(np.array(odd))) if random.random() < 0.5 else damage_text(notes[key], random)
        text = json.dumps({**header, "__metadata__": notes})
    else:
        text = damage_text(text, random)
    return struct.pack("<Q", len(text.encode())) + text.encode() + content[8 + length :]


def kinds(folder: Path) -> dict[str, tuple[bytes, Callable[[bytes, Random], bytes], Load]]:
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
            name, (content, damage, load) = list(known.items())[seed % len(known)]
            path.write_bytes(damage(content, np.random.default_rng(seed)))
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
