"""Random streams by name: a draw depends on what it is for, never on what was drawn before."""

import hashlib


def derive_integer(*parts: int | str) -> int:
    """Return a 63-bit seed from named parts: the first bytes of SHA-256 over them."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
