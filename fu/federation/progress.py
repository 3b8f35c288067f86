"""A progress bar on a terminal, or occasional lines in a log file. No result depends on it."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

_hidden: list[bool] = []  # where somebody shows the progress of many runs


@contextmanager
def hidden() -> Iterator[None]:
    """Show nothing of single runs."""
    _hidden.append(True)
    try:
        yield
    finally:
        _hidden.pop()


def is_hidden() -> bool:
    """Whether progress is hidden."""
    return bool(_hidden)


def _shown() -> bool:
    return sys.stderr.isatty() and not _hidden


class Progress:
    """Shows rounds done, the latest metrics and the time left."""

    def __init__(self, label: str, rounds: int, done: int = 0, every_seconds: float = 10.0) -> None:
        """Start at `done` of `rounds` (after a resume)."""
        self.label, self.rounds, self.done, self.every_seconds = label, rounds, done, every_seconds
        self._started, self._first = time.monotonic(), done
        self._said = float("-inf")
        self._latest: dict[str, float] = {}
        self._bar = tqdm(total=rounds, initial=done, desc=label, unit="round") if _shown() else None
        if done:
            self._say(f"resumed after round {done}")

    def advance(self, metrics: dict[str, float]) -> None:
        """Count one round."""
        self.done += 1
        self._latest = metrics or self._latest
        text = "".join(f", {name} {value:.3f}" for name, value in self._latest.items())
        if self._bar is not None:
            self._bar.set_postfix_str(text.removeprefix(", "), refresh=False)
            self._bar.update()
            return
        now = time.monotonic()
        if now - self._said >= self.every_seconds or self.done == self.rounds:
            each = (now - self._started) / (self.done - self._first)
            left = each * (self.rounds - self.done)
            self._say(
                f"round {self.done}/{self.rounds} ({self.done / self.rounds:.0%}){text}, "
                f"{each:.2f} s per round, {left:.0f} s left"
            )

    def finish(self, diverged: int | None) -> None:
        """Close the bar, and say in which round the run diverged, if it did."""
        if self._bar is not None:
            self._bar.close()
        if diverged:
            self._say(f"diverged in round {diverged}")

    def _say(self, text: str) -> None:
        self._said = time.monotonic()
        if _hidden:
            return
        print(f"{time.strftime('%H:%M:%S')} {self.label}: {text}", file=sys.stderr, flush=True)
