"""Decides which of several registries gets a request next, and how long to wait before."""

from collections.abc import Sequence

from ..errors import SchemaRegistryError

__all__ = ("RequestAttempts",)


class RequestAttempts:
    """The attempts of one request: every URL in turn, and again after a pause that doubles.

    Args:
        urls: the URLs of the registries.
        first: the index of the URL to begin with, which is the last one that has answered.
        max_retries: how often to try all URLs again.
        wait_ms: the longest pause before the first retry, in ms.
        max_wait_ms: the longest pause of all, in ms.
    """

    def __init__(self, urls: Sequence[str], first: int, max_retries: int, wait_ms: int, max_wait_ms: int) -> None:
        self._urls, self._index = urls, first % len(urls)
        self._max_retries, self._wait_ms, self._max_wait_ms = max_retries, wait_ms, max_wait_ms
        self._failures = 0
        self._errors: dict[str, SchemaRegistryError] = {}

    @property
    def index(self) -> int:
        """The index of the URL that gets the request."""
        return self._index

    @property
    def url(self) -> str:
        """The URL that gets the request."""
        return self._urls[self._index]

    def fail(self, error: SchemaRegistryError, chance: float) -> float | None:
        """Record a failed attempt. Return the seconds to wait before the next one; None if it was the last.

        Args:
            error: the reason.
            chance: a random number from 0 to 1, which spreads the retries of many clients.
        """
        self._errors.pop(self.url, None)  # so that the last one is that of the last attempt
        self._errors[self.url] = error
        self._failures += 1
        self._index = (self._index + 1) % len(self._urls)
        rounds, tried = divmod(self._failures, len(self._urls))
        if tried:
            return 0.0
        if rounds > self._max_retries:
            return None
        longest = min(self._wait_ms * 2.0 ** (rounds - 1), self._max_wait_ms)
        return longest * (0.5 + chance / 2) / 1000

    def error(self, ending: str = "") -> SchemaRegistryError | None:
        """Return the error of the request: that of the last attempt, and before it those of the other URLs.

        Args:
            ending: why there are no more attempts, for the message.
        """
        if not self._errors:
            return None
        *_, last = self._errors.values()
        message = "; ".join(map(str, self._errors.values()))
        count = "1 attempt" if self._failures == 1 else f"{self._failures} attempts"
        attempts = f" ({count}{ending})" if self._failures > 1 or ending else ""
        combined = SchemaRegistryError(message + attempts, last.status, last.error_code, last.retriable)
        combined.__cause__ = last.__cause__
        return combined
