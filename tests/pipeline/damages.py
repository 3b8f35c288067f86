"""Ways to damage a JSON file of our own."""

import os
from pathlib import Path

DAMAGES: dict[str, str | bytes | None] = {
    "empty": "",
    "cut off": '{"%s": ["0',
    "a list": "[]",
    "a huge number": "1" * 10_000,
    "an entry that is none": '{"%s": null}',
    "an entry of one": '{"%s": ["ab"]}',
    "a number for a flag": '{"%s": ["ab", "ab", 0, [], []]}',
    "numbers for imports": '{"%s": ["ab", "ab", false, [1], []]}',
    "deep": "[" * 100_000,
    "not UTF-8": b"\xff\xfe\x00",
    "a folder": None,
    "a pipe": None,
}


def damage(path: Path, kind: str, key: str) -> None:
    """Put something else in the place of a cache."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    text = DAMAGES[kind]
    if isinstance(text, bytes):
        path.write_bytes(text)
    elif text is not None:
        path.write_text(text.replace("%s", key))
    elif kind == "a folder":
        path.mkdir()
    else:
        os.mkfifo(path)
