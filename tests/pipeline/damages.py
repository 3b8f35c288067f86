"""Ways to damage a JSON file of our own."""

import os
from pathlib import Path

DAMAGES: dict[str, str | bytes | None] = {
    "empty": "",
    "cut off": '{"%s": ["0',
    "a list": "[]",
    "a text": '"x"',
    "null": "null",
    "a number": "1e400",
    "a huge number": "1" * 10_000,
    "a huge number inside": '{"%s": [' + "1" * 10_000 + ", []]}",
    "an entry that is none": '{"%s": null}',
    "an entry that is a number": '{"%s": 1}',
    "an entry that is a text": '{"%s": "ab"}',
    "an entry that is a mapping": '{"%s": {"a": 1, "b": 2}}',
    "an entry of one": '{"%s": ["ab"]}',
    "an entry of three": '{"%s": ["ab", [], []]}',
    "a number for a hash": '{"%s": [1, "ab", false, [], []]}',
    "a number for a flag": '{"%s": ["ab", "ab", 0, [], []]}',
    "a text for imports": '{"%s": ["ab", "ab", false, "fu", []]}',
    "numbers for imports": '{"%s": ["ab", "ab", false, [1], []]}',
    "lists for imports": '{"%s": ["ab", "ab", false, [["fu"]], []]}',
    "deep": "[" * 100_000,
    "deep inside": '{"%s": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "not UTF-8": b"\xff\xfe\x00",
    "null bytes": b"\0" * 100,
    "a folder": None,
    "a pipe": None,
    "a link to nowhere": None,
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
    elif kind == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path.parent / "nowhere")
