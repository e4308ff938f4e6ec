"""Share sessions: the partitions that a member reads from one broker (KIP-932)."""

from collections.abc import Collection, Iterable
from typing import Final, TypeAlias
from uuid import UUID

import attrs

from ..cluster.metadata import Node
from ..cluster.retry import Backoff
from ..errors import KafkaError
from ..protocol.messages.share_fetch import ForgottenTopic

__all__ = ("PartitionKey", "ShareBroker", "ShareFetchSession")

PartitionKey: TypeAlias = tuple[UUID, int]
"""A partition by topic id and index, as share sessions name it."""

_FIRST: Final = 0
_FINAL: Final = -1
_NEWEST: Final = 2**31 - 1


class ShareFetchSession:
    """The session with one broker, as the member knows it.

    1. Fetches and acknowledgements count in one row: each has the session's next epoch. The first has epoch 0, opens
       the session, and must not acknowledge; the last has -1, and releases what the member has not acknowledged.
    2. The broker keeps the session's partitions, so a fetch names only new ones and those that are no longer read.
    3. After a request without a response the broker's epoch is unknown, so the next request opens another session. The
       broker has released what the member had acquired, if it has closed the old one with the connection.
    """

    def __init__(self) -> None:
        self._epoch = _FIRST
        self._partitions: dict[PartitionKey, None] = {}

    @property
    def is_open(self) -> bool:
        """Whether the broker has a session, as far as this client knows."""
        return self._epoch != _FIRST

    def next_epoch(self) -> int:
        """Return the epoch of the next request."""
        return self._epoch

    def final_epoch(self) -> int:
        """Return the epoch of the request that closes the session."""
        return _FINAL

    def added(self, wanted: Collection[PartitionKey]) -> list[PartitionKey]:
        """Return the partitions of ``wanted`` that the session does not have."""
        return [key for key in wanted if key not in self._partitions]

    def forgotten(self, wanted: Collection[PartitionKey]) -> list[ForgottenTopic]:
        """Return the partitions of the session that are not in ``wanted``, as requests name them."""
        topics: dict[UUID, list[int]] = {}
        for topic_id, index in self._partitions:
            if (topic_id, index) not in wanted:
                topics.setdefault(topic_id, []).append(index)
        return [ForgottenTopic(topic_id=topic_id, partitions=indexes) for topic_id, indexes in topics.items()]

    def answered(self, partitions: Iterable[PartitionKey] | None = None) -> None:
        """Advance the epoch after a response; a fetch has set the session's ``partitions``."""
        self._epoch = 1 if self._epoch == _NEWEST else self._epoch + 1
        if partitions is not None:
            self._partitions = dict.fromkeys(partitions)

    def restart(self) -> None:
        """Open another session with the next request."""
        self._epoch, self._partitions = _FIRST, {}


@attrs.define(eq=False)
class ShareBroker:
    """The state of one broker.

    ``is_busy`` means that a request is unanswered; ``is_reading`` that records of the last fetch are being decompressed
    or deserialized, so that there is no other fetch; ``is_drained`` that the last fetch has brought nothing.
    """

    node: Node
    backoff: Backoff
    session: ShareFetchSession = attrs.field(factory=ShareFetchSession)
    is_busy: bool = False
    is_reading: bool = False
    is_drained: bool = False
    retry_at: float = 0.0
    error: KafkaError | None = None
    """Why the last request has failed; None if it was answered."""
    asked_at: float | None = None
    """When the request began that is unanswered; None if there is none."""

    def back_off(self, now: float) -> None:
        """Send no request for a moment, longer each time until :attr:`backoff` is reset."""
        self.retry_at = now + self.backoff.next()
