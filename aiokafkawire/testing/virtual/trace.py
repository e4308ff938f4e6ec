"""What happened in a simulation, line by line: the newest lines, and a digest of all."""

from collections import Counter, deque
from collections.abc import Callable
from hashlib import blake2b

__all__ = ("Trace",)


class Trace:
    """The journal of one run. Two runs are the same if their digests are.

    Args:
        now: the virtual time, in seconds.
        keep: how many of the newest lines are kept; the digest is of all that there were.
    """

    def __init__(self, now: Callable[[], float], keep: int = 2_000) -> None:
        self._now = now
        self._kept: deque[str] = deque(maxlen=keep)
        self._digest = blake2b(digest_size=16)
        self.count: int = 0
        """How many lines there were."""
        self.faults: Counter[str] = Counter()
        """How often each kind of fault was injected."""

    def add(self, line: str) -> None:
        """Something happened now."""
        line = f"{self._now():12.6f} {line}"
        self._kept.append(line)
        self._digest.update(line.encode())
        self.count += 1

    def fault(self, kind: str, told: str) -> None:
        """A fault was injected."""
        self.faults[kind] += 1
        self.add(f"fault: {told}")

    @property
    def lines(self) -> list[str]:
        """The newest lines."""
        return list(self._kept)

    @property
    def digest(self) -> str:
        """A checksum of every line with its time, in hex."""
        return self._digest.hexdigest()

    def __str__(self) -> str:
        left_out = self.count - len(self._kept)
        return "\n".join([f"... {left_out} lines before", *self._kept] if left_out else self._kept)
