"""Ways to damage a JSON file of our own."""

from pathlib import Path

DAMAGES: dict[str, bytes | None] = {
    "empty": b"",
    "cut off": b'{"%s": ["0',
    "a list": b"[]",
    "not UTF-8": b"\xff\xfe\x00",
    "a folder": None,
}


def damage(path: Path, kind: str, key: str) -> None:
    """Put something else in the place of a cache."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    content = DAMAGES[kind]
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content.replace(b"%s", key.encode()))
