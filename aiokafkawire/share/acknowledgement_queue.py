"""A share consumer's acknowledgements: those to send, those in flight, and the results of the others."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from ..errors import BrokerError, ErrorCode, KafkaError, Refresh, broker_error
from ..event_log import EventLog
from ..types import TopicPartition
from .acknowledgements import Acknowledge, AcknowledgedOffsets, PendingAcknowledgements, records_in
from .acquired_partition import AcquiredPartition, AcquiredRange
from .commit_results import CommitResults
from .share_fetch_session import PartitionKey

__all__ = ("AcknowledgementQueue", "SentAcknowledgements")

_log = EventLog("aiokafkawire.share")

_LINGER: Final = 0.05
"""Seconds that acknowledgements wait for a fetch that carries them."""


@attrs.define(eq=False)
class SentAcknowledgements:
    """The acknowledgements in one request; ``number`` is that of the first one, None if there are none.

    Those of the partitions ``settled`` have results, or wait to be sent again. The records of ``again`` were acquired
    again meanwhile, so that their acknowledgements must not be repeated. The ``results`` are those of the partitions
    that have one: an error, or None if the broker has accepted them.
    """

    ranges: Mapping[PartitionKey, Sequence[AcknowledgedOffsets]]
    number: int | None
    again: dict[PartitionKey, list[AcquiredRange]] = attrs.field(factory=dict)
    settled: set[PartitionKey] = attrs.field(factory=set)
    results: dict[PartitionKey, KafkaError | None] = attrs.field(factory=dict)

    @property
    def renews(self) -> bool:
        """Whether some are renewals."""
        return any(part.kind == Acknowledge.RENEW for ranges in self.ranges.values() for part in ranges)


class AcknowledgementQueue:
    """The acknowledgements of one share consumer. Times are in seconds.

    Acknowledgements are numbered, so that a commit knows when all acknowledgements before it have results.
    """

    def __init__(self) -> None:
        self.results: CommitResults = CommitResults()
        self.number: int = 0
        """The number of the last acknowledgement; the client's own have that of the user's last one or commit."""
        self._flush_at = 0.0
        self._pending: dict[PartitionKey, PendingAcknowledgements] = {}
        self._acquired: dict[PartitionKey, AcquiredPartition] = {}
        self._sent: dict[SentAcknowledgements, None] = {}

    @property
    def flush_at(self) -> float | None:
        """When to send what waits, with a fetch or without; None if nothing waits."""
        return self._flush_at if any(self._pending.values()) else None

    def flush(self, now: float) -> None:
        """Send what waits at once, with a fetch or without."""
        self._flush_at = now

    def add(self, acquisition: AcquiredPartition, part: AcknowledgedOffsets, now: float) -> bool:
        """Add an acknowledgement; return whether the queue was empty."""
        self.number += part.by_user
        was_empty = self.flush_at is None
        self._put(acquisition, part, self.number, now)
        return was_empty

    def _put(self, acquisition: AcquiredPartition, part: AcknowledgedOffsets, number: int, now: float) -> None:
        if self.flush_at is None:
            self._flush_at = now + _LINGER
        pending = self._pending.get(acquisition.key)
        if pending is None:
            pending = self._pending[acquisition.key] = PendingAcknowledgements()
        self._acquired[acquisition.key] = acquisition
        pending.add(part, number)

    def partition(self, key: PartitionKey) -> TopicPartition:
        """Return the partition of an acknowledgement."""
        return self._acquired[key].partition

    def by_broker(self, leader: Callable[[TopicPartition], int | None]) -> dict[int, list[PartitionKey]]:
        """Return the partitions with acknowledgements to send, by their leaders, or else by the brokers of the records.

        Args:
            leader: returns the id of a partition's leader; None if it is unknown.
        """
        found: dict[int, list[PartitionKey]] = {}
        for key, pending in self._pending.items():
            if pending:
                acquisition = self._acquired[key]
                node_id = leader(acquisition.partition)
                found.setdefault(acquisition.node_id if node_id is None else node_id, []).append(key)
        return found

    def renews(self, keys: Iterable[PartitionKey]) -> bool:
        """Return whether there are renewals to send of these partitions."""
        return any(self._pending[key].renews for key in keys)

    def needs_two_requests(self, keys: Iterable[PartitionKey]) -> bool:
        """Return whether :meth:`take` leaves some acknowledgements of these partitions to the next request."""
        return any(self._pending[key].needs_two_requests for key in keys)

    def take(self, keys: Collection[PartitionKey], *, renewals: bool) -> SentAcknowledgements:
        """Remove and return the acknowledgements of these partitions, to send them now."""
        numbers = [number for key in keys if (number := self._pending[key].since) is not None]
        ranges = {key: self._pending[key].take(renewals=renewals) for key in keys}
        sent = SentAcknowledgements({key: found for key, found in ranges.items() if found}, min(numbers, default=None))
        self._sent[sent] = None
        return sent

    def number_so_far(self) -> int:
        """Return the highest number of the acknowledgements so far; all later ones have higher numbers."""
        number = self.number
        self.number += 1
        return number

    def unsettled(self, number: int) -> bool:
        """Return whether acknowledgements up to this number are not sent, or have no result."""
        return any(since <= number for since in self._numbers())

    def _numbers(self) -> Iterator[int]:
        yield from (pending.since for pending in self._pending.values() if pending.since is not None)
        yield from (sent.number for sent in self._sent if sent.number is not None)

    # --- results -----------------------------------------------------------------------------------------

    def ended(self, sent: SentAcknowledgements) -> None:
        """Take notice that a request has ended; all its acknowledgements have results, or wait again."""
        del self._sent[sent]

    def put_back(self, sent: SentAcknowledgements, now: float) -> None:
        """Send them again, since the broker has not looked at them."""
        for key in sent.ranges.keys() - sent.settled:
            self._put_again(sent, key, sent.ranges[key], now)

    def renewals_unsupported(self, sent: SentAcknowledgements, error: KafkaError, now: float) -> None:
        """Settle the renewals with the error, and send the others again."""
        for key, ranges in sent.ranges.items():
            renewals = [part for part in ranges if part.kind == Acknowledge.RENEW]
            self._settle(self.partition(key), records_in(renewals), error)
            self._put_again(sent, key, [part for part in ranges if part not in renewals], now)

    def _put_again(
        self, sent: SentAcknowledgements, key: PartitionKey, ranges: Iterable[AcknowledgedOffsets], now: float
    ) -> None:
        sent.settled.add(key)
        for part in ranges:
            offsets = AcquiredRange(part.first, part.last)
            if any(offsets.overlaps(other) for other in sent.again.get(key, ())):
                self.refuse(self.partition(key), records_in([part]))
            else:
                self._put(self._acquired[key], part, sent.number or 0, now)

    def refused(self, sent: SentAcknowledgements, error: KafkaError) -> None:
        """Settle those of a request's acknowledgements that have no result with an error."""
        for key in sent.ranges.keys() - sent.settled:
            self.settle(sent, key, error)

    def abandon(self, error: KafkaError) -> None:
        """Settle all acknowledgements that wait to be sent with an error."""
        for key, pending in self._pending.items():
            while pending:
                self._settle(self.partition(key), records_in(pending.take(renewals=True)), error)

    def settle(self, sent: SentAcknowledgements, key: PartitionKey, error: KafkaError | None) -> None:
        """Settle the acknowledgements of one partition with the broker's result."""
        sent.settled.add(key)
        sent.results[key] = error
        self._settle(self.partition(key), records_in(sent.ranges[key]), error)

    def _settle(self, partition: TopicPartition, count: int, error: KafkaError | None) -> None:
        if error is not None and count:
            message = (
                "%(records)d records of %(partition)s were not acknowledged, and may be delivered again: %(error)s"
            )
            _log.warning(message, records=count, partition=partition, error=error)
        self.results.settle(partition, count, error)

    def lose(self, acquisition: AcquiredPartition) -> None:
        """Refuse the acknowledgements that wait for the records of this fetch, which has acquired them again."""
        for sent in self._sent:
            sent.again.setdefault(acquisition.key, []).extend(acquisition.ranges)
        pending = self._pending.get(acquisition.key)
        count = sum(pending.drop(*part) for part in acquisition.ranges) if pending else 0
        if count:
            self.refuse(acquisition.partition, count)

    def forget(self, acquisition: AcquiredPartition, offset: int) -> None:
        """Remove the renewal of a record that was dropped."""
        pending = self._pending.get(acquisition.key)
        if pending:
            pending.drop(offset, offset)

    def refuse(self, partition: TopicPartition, count: int = 1) -> None:
        """Settle acknowledgements of records whose locks have ended; the broker would take them for the next locks."""
        self._settle(partition, count, broker_error(ErrorCode.INVALID_RECORD_STATE, f"{partition} of a share group"))

    def settle_or_retry(
        self, sent: SentAcknowledgements, key: PartitionKey, error: KafkaError | None, now: float
    ) -> bool:
        """Settle as :meth:`settle`, or send again after an error that may pass while the locks hold; return whether."""
        acquisition = self._acquired[key]
        may_pass = isinstance(error, BrokerError) and error.retriable and error.refresh is not Refresh.METADATA
        if may_pass and acquisition.lock_end > now:
            self._put_again(sent, key, sent.ranges[key], now)
            return True
        self.settle(sent, key, error)
        return False
