"""Fetch sessions: a broker is told of a partition once, and again only when it is to read it otherwise (KIP-227)."""

from collections.abc import Collection, Mapping
from typing import Final
from uuid import UUID

import attrs

from ..errors import ErrorCode
from ..types import TopicPartition
from .fetch import PartitionFetch

__all__ = ("FetchSession", "FetchSessionRequest")

_NO_SESSION: Final = 0
_FULL: Final = 0
_NEWEST_EPOCH: Final = 2**31 - 1


@attrs.frozen
class FetchSessionRequest:
    """One request of a session: what it says, and what it may be answered with."""

    session_id: int
    epoch: int
    asks: Mapping[TopicPartition, PartitionFetch]
    """All that the broker is to read."""
    named: Collection[PartitionFetch]
    """Those of them that it has to be told of."""
    forgotten: Collection[TopicPartition]
    ids: Mapping[str, UUID]
    """The id of every topic in here; zeros where it has none."""

    @property
    def is_full(self) -> bool:
        """Whether it names everything, and so every partition is answered; otherwise those alone that have news."""
        return self.epoch == _FULL


class FetchSession:
    """What one broker knows of this consumer's partitions.

    1. Each request is one epoch. The next is known once the answer came; without one, the broker may be an epoch
       ahead or not, and all is told anew. That request closes the session before.
    2. The broker goes on reading what is not named: what is not wanted any more must be forgotten, and the memory that
       a partition was told of must end with its place, or what came for one place would be silence for the next.
    3. A session knows topics either by id or by name, and one topic by one id: a change of these begins anew.
    """

    def __init__(self) -> None:
        self._session_id, self._epoch = _NO_SESSION, _FULL
        self._asks: Mapping[TopicPartition, PartitionFetch] = {}
        self._ids: Mapping[str, UUID] = {}
        self._by_id = False

    def next(self, asks: Collection[PartitionFetch], ids: Mapping[str, UUID], *, by_id: bool) -> FetchSessionRequest:
        """The next request, to read ``asks`` and nothing else.

        Args:
            asks: at most one for a partition.
            ids: of all their topics.
            by_id: whether the request's version names topics by id (v13, KIP-516).
        """
        wanted = {ask.place.where: ask for ask in asks}
        if self._epoch != _FULL and (by_id != self._by_id or self._ids_differ(ids) or self._places_differ(wanted)):
            self.restart()
        known = self._asks if self._epoch != _FULL else {}
        turn = FetchSessionRequest(
            self._session_id,
            self._epoch,
            wanted,
            [ask for where, ask in wanted.items() if known.get(where) != ask],
            [where for where in known if where not in wanted],
            {**self._ids, **ids},
        )
        self._asks, self._ids, self._by_id = wanted, dict(ids), by_id
        return turn

    def _ids_differ(self, ids: Mapping[str, UUID]) -> bool:
        return self._by_id and any(self._ids.get(topic, topic_id) != topic_id for topic, topic_id in ids.items())

    def _places_differ(self, wanted: Mapping[TopicPartition, PartitionFetch]) -> bool:
        known = self._asks
        return any(where in known and known[where].place is not ask.place for where, ask in wanted.items())

    def answered(self, turn: FetchSessionRequest, session_id: int) -> None:
        """The request was answered without an error. Session 0 is none: the broker keeps none, or has ended it."""
        if session_id == _NO_SESSION:
            self._session_id, self._epoch = _NO_SESSION, _FULL
        elif turn.is_full or session_id == turn.session_id:
            self._session_id = session_id
            self._epoch = 1 if turn.epoch == _NEWEST_EPOCH else turn.epoch + 1
        else:
            self.restart()

    def refused(self, code: int) -> None:
        """The whole request was answered with an error."""
        if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._session_id = _NO_SESSION
        self.restart()

    def restart(self) -> None:
        """Tell everything anew: the request failed, or what came makes no sense."""
        self._epoch = _FULL
