"""The log of received requests: every request that could be parsed, and the outcome of its response."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Final, Self, TypedDict, Unpack
from uuid import UUID

import anyio
import attrs

from ...protocol.api import ApiKey
from ...protocol.messages.fetch import FetchRequest
from ...protocol.messages.share_fetch import ShareFetchRequest
from ...protocol.schema import Response
from .request_targets import NameOf, Target, Targets, targets_of

__all__ = ("PATIENCE", "Bell", "LoggedRequest", "RequestLog", "RequestOutcome", "Selector", "Which", "time_limit")

PATIENCE: Final = 30.0
"""How long tests wait for requests by default, in seconds."""
MAX_REQUESTS: Final = 10_000
MAX_BYTES: Final = 32 * 1024 * 1024
_ACTIONS: Final = ("answer", "drop", "swallow", "cut", "corrupt", "delay", "delay_answer", "times", "after")
"""Arguments beside the selectors, which may be misspelt as well."""
_KINDS: Final = {"node": int, "client_id": str, "version": int, "topic": str, "partition": int, "group": str} | {
    "transactional_id": str
}


class RequestOutcome(StrEnum):
    """The outcome of a received request: whether and how the broker has answered it."""

    PENDING = "pending"
    """There is no response yet: the request is being handled, delayed or held, or waits at a frozen broker."""
    ANSWERED = "answered"
    """The response was passed to the connection."""
    UNANSWERED = "unanswered"
    """No response is sent: the request is Produce with acks=0, or a fault rule's function returned None."""
    DROPPED = "dropped"
    """A fault rule closed the connection instead of sending the response."""
    CUT = "cut"
    """A fault rule sent half of the response and closed the connection."""
    CORRUPTED = "corrupted"
    """A fault rule sent the response with a wrong byte."""
    SWALLOWED = "swallowed"
    """A fault rule suppressed the response and all later responses on this connection."""
    FAILED = "failed"
    """The connection ended before the response was sent: the client or the broker closed it."""


class Which(TypedDict, total=False):
    """Selectors of requests: a request must match each given selector.

    ``topic``, ``partition`` (with ``topic``), ``group`` and ``transactional_id`` match if the request contains them; a
    topic matches by its name even if the request has only its id. ``where`` is a predicate of the request.
    """

    node: int
    client_id: str
    version: int
    topic: str
    partition: int
    group: str
    transactional_id: str
    where: Callable[[Any], bool]


@attrs.define(eq=False)
class LoggedRequest:
    """A received request and its outcome."""

    time: float
    """The time of arrival, by the event loop's clock, in seconds."""
    node: int
    connection: int
    """The number of the connection, counted from 1 over all brokers."""
    client_id: str | None
    api: ApiKey
    version: int
    request: Any
    outcome: RequestOutcome = RequestOutcome.PENDING
    response: Response | None = None
    """The response, once the broker begins to send it; None before that."""
    size: int = attrs.field(default=0, repr=False)
    """The size of the request frame, plus that of the response frame once there is one, in bytes."""
    kept: bool = attrs.field(default=False, repr=False)
    """Whether the request is still in the log."""
    name_of: NameOf = attrs.field(default=lambda _: None, repr=False)
    session_of: Callable[[int], Sequence[tuple[str | None, int]]] = attrs.field(default=lambda _: (), repr=False)
    share_session_of: Callable[[str, str], Sequence[tuple[UUID, int]]] = attrs.field(default=lambda *_: (), repr=False)

    @property
    def targets(self) -> Targets:
        """The topics, partitions, groups and transactional ids in the request, and the partitions of its session.

        Fetch and ShareFetch have sessions.
        """
        found, request = targets_of(self.request, self.version, self.name_of), self.request
        partitions: Sequence[tuple[str | None, int]] = ()
        if isinstance(request, FetchRequest) and request.session_epoch > 0:
            partitions = self.session_of(request.session_id)
        elif isinstance(request, ShareFetchRequest) and request.share_session_epoch > 0:
            shared = self.share_session_of(request.group_id or "", request.member_id or "")
            partitions = [(self.name_of(topic_id), index) for topic_id, index in shared]
        found.partitions += [Target(*partition) for partition in partitions]
        return found


@attrs.frozen(kw_only=True)
class Selector:
    """A condition on requests: the values that a request must have or contain; None matches any value."""

    api: ApiKey | None = None
    node: int | None = None
    client_id: str | None = None
    version: int | None = None
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None
    where: Callable[[Any], bool] | None = None

    @classmethod
    def made_of(cls, api: ApiKey | None, which: Which) -> Self:
        """Return the selector of an API's requests that match ``which``. Raises as :meth:`RequestLog.of`."""
        unknown = [name for name in which if name not in Which.__annotations__]
        if unknown:
            near = get_close_matches(unknown[0], [*Which.__annotations__, *_ACTIONS], n=1)
            hint = f"did you mean {near[0]}=?" if near else f"known: {', '.join(Which.__annotations__)}"
            raise TypeError(f"unknown selector {unknown[0]}=; {hint}")
        return cls(api=api, **which)

    def __attrs_post_init__(self) -> None:
        if self.api is not None and not isinstance(self.api, ApiKey):
            raise TypeError(f"api must be an ApiKey, or None for any, got {self.api!r}")
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
                raise TypeError(f"{name}= must be {'a string' if kind is str else 'an integer'}, got {value!r}")
        if self.where is not None and not callable(self.where):
            raise TypeError(f"where= must be a function of the request, got {self.where!r}")
        if self.partition is not None and self.topic is None:
            raise ValueError("partition= needs topic=")

    def __str__(self) -> str:
        given = [(name, value) for name, value in attrs.asdict(self).items() if name != "api" and value is not None]
        return " ".join([self.api.name if self.api is not None else "any API", *(f"{k}={v!r}" for k, v in given)])

    def fits(self, asked: LoggedRequest) -> bool:
        """Return whether this request matches the selector."""
        if self.api is not None and self.api is not asked.api:  # nearly every request of another API
            return False
        plain = ((self.node, asked.node), (self.client_id, asked.client_id), (self.version, asked.version))
        if any(expected is not None and expected != found for expected, found in plain):
            return False
        return self._targets_fit(asked) and (self.where is None or self.where(asked.request))

    def chooses(self, topic: str | None, partition: int | None) -> bool:
        """Return whether this partition matches the selector; if ``partition`` is None, whether the topic does."""
        if self.topic is not None and topic != self.topic:
            return False
        return self.partition is None or partition is None or partition == self.partition

    def _targets_fit(self, asked: LoggedRequest) -> bool:
        if self.topic is None and self.group is None and self.transactional_id is None:
            return True
        targets = asked.targets
        return (
            (self.topic is None or any(self.chooses(*target) for target in targets.partitions))
            and (self.group is None or self.group in targets.groups)
            and (self.transactional_id is None or self.transactional_id in targets.transactional_ids)
        )


class Bell:
    """An event that can be set repeatedly: each :meth:`ring` wakes the tasks that wait at that time."""

    def __init__(self) -> None:
        self._event: anyio.Event | None = None

    def ring(self) -> None:
        """Wake the tasks that wait now."""
        if self._event is not None:
            self._event.set()
            self._event = None

    async def wait(self) -> None:
        """Wait for the next :meth:`ring`."""
        if self._event is None:
            self._event = anyio.Event()
        await self._event.wait()


@contextmanager
def time_limit(seconds: float | None, told: Callable[[], str]) -> Iterator[None]:
    """Raise a TimeoutError that begins with ``told()`` if the block takes longer."""
    with anyio.move_on_after(seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise TimeoutError(f"{told()}: nothing more came within {seconds:g} s (timeout)")


class RequestLog:
    """The latest requests, oldest first: at most 10,000 requests and 32 MiB of frames.

    The newest request stays, however large it is. Requests that no broker could parse are missing: the logger says why
    their connections were closed.
    """

    def __init__(self, max_requests: int = MAX_REQUESTS, max_bytes: int = MAX_BYTES) -> None:
        self._max_requests = max_requests
        self._max_bytes = max_bytes
        self._kept: deque[LoggedRequest] = deque()
        self._bytes = 0
        self._bell = Bell()

    def __iter__(self) -> Iterator[LoggedRequest]:
        return iter(list(self._kept))

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, index: int) -> LoggedRequest:
        return self._kept[index]

    def of(self, api: ApiKey | None = None, **which: Unpack[Which]) -> list[LoggedRequest]:
        """Return the requests of an API (None for any API) that match the selectors of :class:`Which`.

        Raises:
            TypeError: a selector is unknown or of a wrong type, or the API is not an ApiKey.
            ValueError: a partition is given without its topic.
        """
        selector = Selector.made_of(api, which)
        return [asked for asked in self._kept if selector.fits(asked)]

    async def wait_for(
        self, api: ApiKey | None = None, count: int = 1, *, timeout: float | None = None, **which: Unpack[Which]
    ) -> list[LoggedRequest]:
        """Wait until ``count`` matching requests are in the log, old ones included; return all matching requests.

        Raises:
            TimeoutError: the log had fewer matching requests after ``timeout`` seconds; None waits without end.
            TypeError, ValueError: as :meth:`of`.
        """
        wanted, found = Selector.made_of(api, which), list[LoggedRequest]()
        with time_limit(timeout, lambda: f"{len(found)} of {count} requests have arrived ({wanted})"):
            while len(found := self.of(api, **which)) < count:
                await self._bell.wait()
        return found

    def clear(self) -> None:
        """Drop all requests."""
        while self._kept:
            self._forget()

    def add(self, asked: LoggedRequest) -> None:
        """Log a request."""
        self._kept.append(asked)
        asked.kept = True
        self._grow(asked.size)
        self._bell.ring()

    def settle(
        self, asked: LoggedRequest, outcome: RequestOutcome, response: Response | None = None, size: int = 0
    ) -> None:
        """Record the outcome of a request; ``size`` is the size of the response frame."""
        asked.outcome, asked.response = outcome, response
        if asked.kept:
            asked.size += size
            self._grow(size)

    def _grow(self, size: int) -> None:
        self._bytes += size
        while len(self._kept) > 1 and (len(self._kept) > self._max_requests or self._bytes > self._max_bytes):
            self._forget()

    def _forget(self) -> None:
        oldest = self._kept.popleft()
        oldest.kept = False
        self._bytes -= oldest.size
