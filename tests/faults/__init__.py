"""Faults on purpose."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any


class HangError(BaseException):
    """No handler of ordinary errors takes this one."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `HangError` after a time limit."""

    def late(*_: Any) -> None:
        raise HangError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def damage(content: bytes, random: Random, odd: Sequence[bytes]) -> bytes:
    """Flip a bit, cut off, remove, double, insert or overwrite by something odd; the beginning is hit more often."""
    at = random.randrange(1 + min(len(content), random.choice([400, len(content)])))
    end = at + random.randrange(1, 40)
    some = random.choice(odd)
    match random.randrange(6):
        case 0:
            return (
                content[:at]
                + bytes(byte ^ 1 << random.randrange(8) for byte in content[at : at + 1])
                + content[at + 1 :]
            )
        case 1:
            return content[:at]
        case 2:
            return content[:at] + content[end:]
        case 3:
            return content[:end] + content[at:]
        case 4:
            return content[:at] + some + content[at:]
        case _:
            return content[:at] + some + content[at + len(some) :]
