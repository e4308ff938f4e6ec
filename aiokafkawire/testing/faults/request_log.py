"""What the brokers were asked: every request that could be read, and what became of its answer."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, Final, Self, TypedDict, Unpack

import anyio
import attrs

from ...protocol.api import ApiKey
from ...protocol.messages.fetch import FetchRequest
from ...protocol.schema import Response
from .request_targets import NameOf, Target, Targets, targets_of

__all__ = ("LoggedRequest", "Bell", "RequestLog", "RequestOutcome", "Selector", "Which")

MAX_REQUESTS: Final = 10_000
MAX_BYTES: Final = 32 * 1024 * 1024
_KINDS: Final = {"node": int, "client_id": str, "version": int, "topic": str, "partition": int, "group": str} | {
    "transactional_id": str
}


class RequestOutcome(StrEnum):
    """What became of a request's answer."""

    PENDING = "pending"
    """It is not there yet: the request is being handled, or held, or behind a frozen node."""
    ANSWERED = "answered"
    """It was handed to the connection."""
    UNANSWERED = "unanswered"
    """There is none to be had, as with Produce and acks=0, or an order took it away and the connection goes on."""
    DROPPED = "dropped"
    """An order closed the connection instead."""
    CUT = "cut"
    """Half of it was sent."""
    CORRUPTED = "corrupted"
    """It was sent with a byte that is wrong."""
    SWALLOWED = "swallowed"
    """Nothing was sent, and nothing will be on this connection."""
    FAILED = "failed"
    """The connection ended before it: the client or the broker left, or the broker hung up on what it was asked."""


class Which(TypedDict, total=False):
    """Which requests are meant; what is left out means any. All that is given must fit.

    ``topic``, ``partition`` (with ``topic``), ``group`` and ``transactional_id`` are looked for in the request, by
    name, also where it gives a topic's id.
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
    """One request."""

    time: float
    """When it had come, by the event loop's clock, in seconds."""
    node: int
    connection: int
    """The number of the connection: they count from 1 on, over all brokers."""
    client_id: str | None
    api: ApiKey
    version: int
    request: Any
    outcome: RequestOutcome = RequestOutcome.PENDING
    response: Response | None = None
    """What the broker answered, or would have; None as long as it has not, and where it never will."""
    size: int = attrs.field(default=0, repr=False)
    """The bytes of both frames."""
    kept: bool = attrs.field(default=False, repr=False)
    """Whether the journal has it still."""
    name_of: NameOf = attrs.field(default=lambda _: None, repr=False)
    session_of: Callable[[int], Sequence[tuple[str | None, int]]] = attrs.field(default=lambda _: (), repr=False)

    @property
    def targets(self) -> Targets:
        """The topics, partitions, groups and transactional ids that it names, and what its fetch session reads."""
        found = targets_of(self.request, self.version, self.name_of)
        if isinstance(self.request, FetchRequest) and self.request.session_epoch > 0:
            found.partitions += [Target(*one) for one in self.session_of(self.request.session_id)]
        return found


@attrs.frozen(kw_only=True)
class Selector:
    """Decides whether a request is meant."""

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
        """An API's requests, narrowed down.

        Raises:
            TypeError: there is no such selector, or the API is no ApiKey.
            ValueError: a partition without its topic.
        """
        unknown = [name for name in which if name not in Which.__annotations__]
        if unknown:
            raise TypeError(f"no selector {unknown[0]}=: there are {', '.join(Which.__annotations__)}")
        return cls(api=api, **which)

    def __attrs_post_init__(self) -> None:
        if self.api is not None and not isinstance(self.api, ApiKey):
            raise TypeError(f"{self.api!r} is no API: an ApiKey, or None for any")
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
                raise TypeError(f"{name}={value!r}: {'a string' if kind is str else 'an integer'}")
        if self.where is not None and not callable(self.where):
            raise TypeError(f"where={self.where!r}: a function of the request")
        if self.partition is not None and self.topic is None:
            raise ValueError("partition= needs topic=")

    def __str__(self) -> str:
        given = [(name, value) for name, value in attrs.asdict(self).items() if name != "api" and value is not None]
        return " ".join([self.api.name if self.api is not None else "any API", *(f"{k}={v!r}" for k, v in given)])

    def fits(self, asked: LoggedRequest) -> bool:
        """Whether this request is meant."""
        plain = (
            (self.api, asked.api),
            (self.node, asked.node),
            (self.client_id, asked.client_id),
            (self.version, asked.version),
        )
        if any(wanted is not None and wanted != found for wanted, found in plain):
            return False
        return self._targets_fit(asked) and (self.where is None or self.where(asked.request))

    def chooses(self, topic: str | None, partition: int | None) -> bool:
        """Whether one topic or partition of a request is meant; None is for all partitions of the topic."""
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
    """Wakes all who wait, each time that it rings."""

    def __init__(self) -> None:
        self._event: anyio.Event | None = None

    def ring(self) -> None:
        """Wake who waits now."""
        if self._event is not None:
            self._event.set()
            self._event = None

    async def wait(self) -> None:
        """Return at the next ring."""
        if self._event is None:
            self._event = anyio.Event()
        await self._event.wait()


class RequestLog:
    """The latest requests, oldest first: at most 10,000 of them, and 32 MiB of frames; older ones are forgotten.

    The newest is kept, however large it is.
    Requests that no broker could read are not among them: the log says why their connections were closed.
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
        """The requests of an API, narrowed down as :class:`Which` says.

        Raises:
            TypeError: there is no such selector, or the API is no ApiKey.
            ValueError: a partition without its topic.
        """
        selector = Selector.made_of(api, which)
        return [asked for asked in self._kept if selector.fits(asked)]

    async def wait_for(self, api: ApiKey | None = None, count: int = 1, **which: Unpack[Which]) -> list[LoggedRequest]:
        """Wait until there are ``count`` such requests in the journal, earlier ones included; all of them.

        Raises:
            TypeError: there is no such selector, or the API is no ApiKey.
            ValueError: a partition without its topic.
        """
        while len(found := self.of(api, **which)) < count:
            await self._bell.wait()
        return found

    def clear(self) -> None:
        """Forget all requests."""
        while self._kept:
            self._forget()

    def add(self, asked: LoggedRequest) -> None:
        """A request has come."""
        self._kept.append(asked)
        asked.kept = True
        self._grow(asked.size)
        self._bell.ring()

    def settle(
        self, asked: LoggedRequest, outcome: RequestOutcome, response: Response | None = None, size: int = 0
    ) -> None:
        """Its answer has gone its way; ``size`` is that of the answer's frame."""
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
