"""Fetch sessions: a client names its partitions once, and a response has only the partitions with changes (KIP-227)."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Final, TypeAlias
from uuid import UUID

import attrs

from ...errors import ErrorCode
from ...protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, PartitionData
from ...protocol.primitives import ZERO_UUID
from ..cluster.api_error import ApiError

__all__ = ("FULL_EPOCH", "NO_SESSION", "FetchSessions", "Fetching", "BrokerFetchSession", "Wanted")

NO_SESSION: Final = 0
FULL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_NEWEST_EPOCH: Final = 2**31 - 1

Key: TypeAlias = tuple[str | UUID, int]
"""A partition as requests name it: by topic id since Fetch v13, by topic name before."""


@attrs.define(eq=False)
class Wanted:
    """A partition to read; in a session, also the values that the client last received for the partition."""

    topic: str | None
    """The topic's name; None while no topic has the id."""
    topic_id: UUID
    asked: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1

    @property
    def key(self) -> Key:
        """The partition's key in a fetch session: the topic's id, or its name without one, and its partition."""
        return (self.topic or "" if self.topic_id == ZERO_UUID else self.topic_id), self.asked.partition

    def record_response(self, data: PartitionData) -> bool:
        """Record the result of a read; return whether the client must receive the result."""
        news = (
            bool(data.records)
            or data.error_code != ErrorCode.NONE
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
            or data.preferred_read_replica >= 0
            or data.diverging_epoch.epoch >= 0
        )
        # After an error the client receives the next result, even without changes.
        self.high_watermark = -1 if data.error_code else data.high_watermark
        self.log_start_offset = data.log_start_offset
        return news


@attrs.define(eq=False)
class BrokerFetchSession:
    """A session: the partitions that one client reads; ``epoch`` is the epoch expected in the client's next request."""

    session_id: int
    from_follower: bool
    by_topic_id: bool
    created: float
    used: float
    partitions: dict[Key, Wanted]
    epoch: int = 1
    size: int = 0
    evictable: bool = False
    """Whether the session was so old at its last use that a larger new session may evict it."""

    def update(self, added: Sequence[Wanted], forgotten: Sequence[Key]) -> None:
        """Apply a request's changes: added partitions, changed offsets and forgotten partitions."""
        for wanted in added:
            known = self.partitions.get(wanted.key)
            if known is None:
                self.partitions[wanted.key] = wanted
            else:
                known.asked = wanted.asked
        for key in forgotten:
            self.partitions.pop(key, None)


class FetchSessions:
    """The sessions of one broker.

    Args:
        slots: the maximum number of sessions (``max.incremental.fetch.session.cache.slots``).
        eviction_ms: any new session may evict a session that was idle for so long; a larger new session may evict one
            that has existed for so long (``min.incremental.fetch.session.eviction.ms``).
    """

    def __init__(self, slots: int = 1000, eviction_ms: int = 120_000) -> None:
        self._slots = slots
        self._eviction = eviction_ms / 1000
        self._sessions: dict[int, BrokerFetchSession] = {}
        self._ids = count(1)

    def __len__(self) -> int:
        return len(self._sessions)

    def read_by(self, session_id: int) -> list[tuple[str | None, int]]:
        """Return the topic and index of each partition in a session; empty for an unknown session."""
        session = self._sessions.get(session_id)
        return [(wanted.topic, wanted.asked.partition) for wanted in session.partitions.values()] if session else []

    def clear(self) -> None:
        """Remove all sessions, as when the broker stops."""
        self._sessions.clear()

    def begin(
        self, request: FetchRequest, name_of: Callable[[UUID], str | None], *, by_topic_id: bool, now: float
    ) -> "Fetching":
        """Apply a Fetch request to its session, if any, and return the partitions to read.

        Args:
            name_of: returns the name of the topic with an id; None if there is no such topic.
            by_topic_id: whether the request names topics by id, as since v13.
            now: the time in seconds.

        Raises:
            ApiError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or FETCH_SESSION_TOPIC_ID_ERROR.
        """
        asked = list(_asked(request, name_of, by_topic_id).values())
        if request.session_epoch in (FULL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            return Fetching(self, request, asked, by_topic_id, opens=request.session_epoch == FULL_EPOCH)
        session = self._sessions.get(request.session_id)
        if session is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_topic_id != by_topic_id:
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.update(asked, _forgotten(request, by_topic_id))
        if not session.partitions:
            del self._sessions[session.session_id]
            return Fetching(self, request, asked, by_topic_id, opens=False)
        session.epoch = _next(session.epoch)
        self._touch(session, now)
        for wanted in session.partitions.values():
            if wanted.topic is None:
                wanted.topic = name_of(wanted.topic_id)
        return Fetching(self, request, list(session.partitions.values()), by_topic_id, opens=False, session=session)

    def open(self, partitions: list[Wanted], *, from_follower: bool, by_topic_id: bool, now: float) -> int:
        """Open a session and return its id, or ``NO_SESSION`` if all slots hold sessions of higher priority."""
        if len(self._sessions) >= self._slots and not self._evict_for(len(partitions), from_follower, now):
            return NO_SESSION
        session = BrokerFetchSession(
            next(self._ids), from_follower, by_topic_id, now, now, {wanted.key: wanted for wanted in partitions}
        )
        self._sessions[session.session_id] = session
        self._touch(session, now)
        return session.session_id

    def take_back(self, response: FetchResponse, *, opened: bool) -> None:
        """Undo a response's effect on its session, because the response is throttled and sent empty.

        If the response has ``opened`` the session, close the session.
        """
        session = self._sessions.get(response.session_id)
        if opened:
            self._sessions.pop(response.session_id, None)
            response.session_id = NO_SESSION
        elif session is not None:
            for topic in response.responses:
                for data in topic.partitions:
                    key = topic.topic_id if session.by_topic_id else topic.topic, data.partition_index
                    if key in session.partitions:
                        session.partitions[key].high_watermark = -1

    def _touch(self, session: BrokerFetchSession, now: float) -> None:
        session.used = now
        session.size = len(session.partitions)
        session.evictable = now - session.created > self._eviction

    def _evict_for(self, size: int, from_follower: bool, now: float) -> bool:
        """Evict a session that is idle or has lower priority than the new one; return whether a session was evicted."""
        if not self._sessions:
            return False
        idle = min(self._sessions.values(), key=lambda session: (session.used, session.session_id))
        if now - idle.used > self._eviction:
            del self._sessions[idle.session_id]
            return True
        evictable = [
            session
            for session in self._sessions.values()
            if session.evictable or (from_follower and not session.from_follower)
        ]
        least = min(evictable, key=_priority, default=None)
        if least is None or (from_follower, size, 0) < _priority(least):
            return False
        del self._sessions[least.session_id]
        return True


@attrs.frozen(eq=False)
class Fetching:
    """A Fetch request and the partitions to read for it."""

    _sessions: FetchSessions
    _request: FetchRequest
    partitions: list[Wanted]
    _by_topic_id: bool
    _opens: bool = attrs.field(kw_only=True)
    _session: BrokerFetchSession | None = attrs.field(default=None, kw_only=True)

    def answer(
        self, results: list[tuple[Wanted, PartitionData]], *, from_follower: bool, now: float
    ) -> tuple[int, int, list[tuple[Wanted, PartitionData]]]:
        """Return the error code, the session id and the results to send: in a session only those with changes."""
        session = self._session
        if session is not None:
            if session.epoch != _next(self._request.session_epoch):
                # Another connection used the session while this request waited.
                return ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.session_id, []
            return ErrorCode.NONE, session.session_id, self._news(session, results)
        session_id = NO_SESSION
        if self._opens:
            partitions = [wanted for wanted, _ in results]
            for wanted, data in results:
                wanted.high_watermark = data.high_watermark
                wanted.log_start_offset = data.log_start_offset
            session_id = self._sessions.open(
                partitions, from_follower=from_follower, by_topic_id=self._by_topic_id, now=now
            )
        return ErrorCode.NONE, session_id, results

    def _news(
        self, session: BrokerFetchSession, results: list[tuple[Wanted, PartitionData]]
    ) -> list[tuple[Wanted, PartitionData]]:
        news = []
        for wanted, data in results:
            if not wanted.record_response(data):
                continue
            news.append((wanted, data))
            # A partition with records moves to the end, so that all partitions are read in turn if the limit is small.
            if data.records and session.partitions.pop(wanted.key, None) is not None:
                session.partitions[wanted.key] = wanted
        return news


def _next(epoch: int) -> int:
    return 1 if epoch == _NEWEST_EPOCH else epoch + 1


def _priority(session: BrokerFetchSession) -> tuple[bool, int, int]:
    return session.from_follower, session.size, session.session_id


def _asked(request: FetchRequest, name_of: Callable[[UUID], str | None], by_topic_id: bool) -> dict[Key, Wanted]:
    """Return the partitions of a request by key; if a partition occurs several times, the last one counts."""
    found: dict[Key, Wanted] = {}
    for topic in request.topics:
        name = name_of(topic.topic_id) if by_topic_id else topic.topic
        topic_id = topic.topic_id if by_topic_id else ZERO_UUID
        for asked in topic.partitions:
            wanted = Wanted(name, topic_id, asked)
            found[wanted.key] = wanted
    return found


def _forgotten(request: FetchRequest, by_topic_id: bool) -> list[Key]:
    return [
        (topic.topic_id if by_topic_id else topic.topic, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]
