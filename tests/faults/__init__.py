"""Faults on purpose."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class HangError(BaseException):
    """No handler of ordinary errors takes this one."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `HangError` after some seconds."""

    def late(*_: Any) -> None:
        raise HangError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
