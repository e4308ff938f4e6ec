"""The trace of a simulation: the newest lines, and a digest of all lines."""

from collections import Counter, deque
from collections.abc import Callable
from hashlib import blake2b

__all__ = ("Trace",)


class Trace:
    """The trace of one run. Two runs are the same if their digests are equal.

    Args:
        now: returns the virtual time, in seconds.
        keep: the number of newest lines to keep; the digest covers all lines.
    """

    def __init__(self, now: Callable[[], float], keep: int = 2_000) -> None:
        self._now = now
        self._kept: deque[str] = deque(maxlen=keep)
        self._digest = blake2b(digest_size=16)
        self.count: int = 0
        """The number of all lines."""
        self.faults: Counter[str] = Counter()
        """The number of injected faults by type."""

    def add(self, line: str) -> None:
        """Add a line with the current time."""
        line = f"{self._now():12.6f} {line}"
        self._kept.append(line)
        self._digest.update(line.encode())
        self.count += 1

    def fault(self, kind: str, message: str) -> None:
        """Add a line about an injected fault."""
        self.faults[kind] += 1
        self.add(f"fault: {message}")

    @property
    def lines(self) -> list[str]:
        """The lines that are kept, oldest first."""
        return list(self._kept)

    @property
    def digest(self) -> str:
        """A checksum of every line with its time, in hex."""
        return self._digest.hexdigest()

    def __str__(self) -> str:
        left_out = self.count - len(self._kept)
        return "\n".join([f"... {left_out} lines before", *self._kept] if left_out else self._kept)
