"""What a run has computed, by content: `python -m tests.frozen results/smoke > before.txt`, and what differs from it.

After a change that was to change no number `python -m tests.frozen results/smoke before.txt` lists every file with
another content, and ends with status 1 if there is one. A file under another name is no difference. Costs,
certificates, pictures and logs are left out: times are in them, as in the tables of what methods cost.
"""

import sys
from pathlib import Path

from fu.contents import checksum

KINDS = (".safetensors", ".npz", ".csv", ".selected.json", ".md", ".tex")


def contents(root: Path) -> dict[str, str]:
    """Return the SHA-256 of every file that is to stay, by its path below a folder of results."""
    files = sorted(path for path in root.rglob("*") if path.name.endswith(KINDS) and not path.name.startswith("."))
    return {str(path.relative_to(root)): checksum(path) for path in files}


def differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """Return a line for each file whose content is gone, and for each new one whose content was not there."""
    gone = [name for name, content in before.items() if now.get(name) != content and content not in now.values()]
    new = [name for name, content in now.items() if before.get(name) != content and content not in before.values()]
    return [f"{'gone' if name not in now else 'changed'}: {name}" for name in gone] + [
        f"new: {name}" for name in new if name not in gone
    ]


def main(root: str, *frozen: str) -> None:
    """Print contents, or compare them with those of a file."""
    now = contents(Path(root))
    if not frozen:
        print("\n".join(f"{content}  {name}" for name, content in now.items()))
        return
    lines = Path(frozen[0]).read_text().splitlines()
    before = {name: content for content, _, name in (line.partition("  ") for line in lines)}
    found = differences(before, now)
    print("\n".join([*found, f"{len(before)} files before, {len(now)} now, {len(found)} differ."]))
    sys.exit(bool(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
