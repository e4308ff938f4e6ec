"""The requests of one connection whose responses have not been passed on, oldest first."""

from collections import deque
from collections.abc import Iterator
from struct import Struct
from typing import Final, Generic, TypeVar

import attrs

from .request_frames import ParsedRequest

__all__ = ("MAX_BYTES", "MAX_REQUESTS", "ExpectedResponses", "Expecting")

MAX_REQUESTS: Final = 1_000
MAX_BYTES: Final = 64 * 1024 * 1024
_CORRELATION_ID: Final = Struct(">i")

T = TypeVar("T")


@attrs.define(eq=False)
class Expecting(Generic[T]):
    """A request that was passed on, and the ``context`` that its sender needs when the response arrives."""

    request: ParsedRequest
    context: T


class ExpectedResponses(Generic[T]):
    """The requests that await their responses.

    Brokers answer the requests of a connection in order. Requests that are skipped when a response arrives get no
    response: Produce with acks=0 in an unknown version, or the last token of a SASL mechanism.
    """

    def __init__(self) -> None:
        self._waiting: deque[Expecting[T]] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Expecting[T]]:
        return iter(list(self._waiting))

    @property
    def is_full(self) -> bool:
        """Whether so many requests, or bytes, await responses that no further request should be read."""
        return self._is_at_limit and self._waiting[0].request.message is not None

    @property
    def _is_at_limit(self) -> bool:
        return len(self._waiting) >= MAX_REQUESTS or self._bytes >= MAX_BYTES

    def add(self, request: ParsedRequest, context: T) -> Expecting[T]:
        """Add a request that is passed on now; at the limit, remove old ones that may get no response."""
        while self._waiting and self._is_at_limit and self._waiting[0].request.message is None:
            self.remove(self._waiting[0])
        added = Expecting(request, context)
        self._waiting.append(added)
        self._bytes += len(request.frame)
        return added

    def match(self, frame: bytes) -> tuple[Expecting[T] | None, list[Expecting[T]]]:
        """Return the request that a response frame answers, or None, and the older requests that get no response.

        The request stays until :meth:`remove`; the skipped ones are removed.
        """
        found = self._of(frame)
        skipped: list[Expecting[T]] = []
        while found is not None and self._waiting[0] is not found:
            skipped.append(self._waiting[0])
            self.remove(self._waiting[0])
        return found, skipped

    def remove(self, expecting: Expecting[T]) -> None:
        """Remove a request, unless it was removed already."""
        if expecting in self._waiting:
            self._waiting.remove(expecting)
            self._bytes -= len(expecting.request.frame)

    def _of(self, frame: bytes) -> Expecting[T] | None:
        if not self._waiting:
            return None
        if len(frame) >= _CORRELATION_ID.size:
            (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
            for expecting in self._waiting:
                if expecting.request.correlation_id == correlation_id:
                    return expecting
        oldest = self._waiting[0]
        return oldest if oldest.request.is_token else None
