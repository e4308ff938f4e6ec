"""Fetch sessions: a request names a partition only if its fetch has changed (KIP-227)."""

from collections.abc import Collection, Mapping
from typing import Final
from uuid import UUID

import attrs

from ..errors import ErrorCode
from ..types import TopicPartition
from .completed_fetch import PartitionFetch

__all__ = ("FetchSession", "FetchSessionRequest")

_NO_SESSION: Final = 0
_FULL: Final = 0
_NEWEST_EPOCH: Final = 2**31 - 1


@attrs.frozen
class FetchSessionRequest:
    """The fields of a request in a fetch session, and all partitions whose results the session may return."""

    session_id: int
    epoch: int
    asks: Mapping[TopicPartition, PartitionFetch]
    """All partitions of the session."""
    named: Collection[PartitionFetch]
    """The fetches that are new or have changed since the last request."""
    forgotten: Collection[TopicPartition]
    ids: Mapping[str, UUID]
    """The id of every topic in the request; zeros for a topic without an id."""

    @property
    def is_full(self) -> bool:
        """Whether the request names all partitions; the response then has all partitions, not only changed ones."""
        return self.epoch == _FULL


class FetchSession:
    """The state of one broker's fetch session.

    1. Each request has the session's next epoch, and the response confirms it. Without a response the broker's epoch is
       unknown, so the next request is full again, which closes the previous session.
    2. The broker keeps reading partitions that a request does not name, so a request must name as forgotten those
       that are no longer read. A partition assigned again is a new one: data for the old assignment must not count.
    3. A session has topics either by id or by name, and one id per topic: any change starts a new session.
    """

    def __init__(self) -> None:
        self._session_id, self._epoch = _NO_SESSION, _FULL
        self._asks: Mapping[TopicPartition, PartitionFetch] = {}
        self._ids: Mapping[str, UUID] = {}
        self._by_id = False

    def next(self, asks: Collection[PartitionFetch], ids: Mapping[str, UUID], *, by_id: bool) -> FetchSessionRequest:
        """Build the next request, which makes the session read the partitions of ``asks`` and no others.

        Args:
            asks: the fetches to make, at most one for each partition.
            ids: the ids of all topics of ``asks``.
            by_id: whether the request has topic ids instead of names (v13, KIP-516).
        """
        wanted = {ask.state.partition: ask for ask in asks}
        if self._epoch != _FULL and (by_id != self._by_id or self._ids_differ(ids) or self._states_differ(wanted)):
            self.restart()
        known = self._asks if self._epoch != _FULL else {}
        session_request = FetchSessionRequest(
            self._session_id,
            self._epoch,
            wanted,
            [ask for partition, ask in wanted.items() if known.get(partition) != ask],
            [partition for partition in known if partition not in wanted],
            {**self._ids, **ids},
        )
        self._asks, self._ids, self._by_id = wanted, dict(ids), by_id
        return session_request

    def _ids_differ(self, ids: Mapping[str, UUID]) -> bool:
        return self._by_id and any(self._ids.get(topic, topic_id) != topic_id for topic, topic_id in ids.items())

    def _states_differ(self, wanted: Mapping[TopicPartition, PartitionFetch]) -> bool:
        known = self._asks
        return any(partition in known and known[partition].state is not ask.state for partition, ask in wanted.items())

    def answered(self, session_request: FetchSessionRequest, session_id: int) -> None:
        """Handle a response without an error. Session id 0 means that the broker keeps no session."""
        if session_id == _NO_SESSION:
            self._session_id, self._epoch = _NO_SESSION, _FULL
        elif session_request.is_full or session_id == session_request.session_id:
            self._session_id = session_id
            self._epoch = 1 if session_request.epoch == _NEWEST_EPOCH else session_request.epoch + 1
        else:
            self.restart()

    def refused(self, code: int) -> None:
        """Handle a response with an error for the whole request."""
        if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._session_id = _NO_SESSION
        self.restart()

    def restart(self) -> None:
        """Make the next request full, after a request failed or its response was invalid."""
        self._epoch = _FULL
