"""A producer's health: the records that are not acknowledged, what they wait for, and its transaction."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import attrs

from ..plain_values import as_plain, example_of, sentence
from ..types import Address, TopicPartition

__all__ = ("ProducerHealth", "RecordWait", "TransactionHealth", "UnacknowledgedRecords", "why_waiting")


class RecordWait(Enum):
    """The event for which the oldest unacknowledged record of a partition waits."""

    LINGER = "more records may join its batch (linger_ms)"
    COMPRESSION = "a thread compresses its batch"
    PRODUCER_ID = "no broker has assigned a producer id yet"
    TRANSACTION = (
        "the coordinator has not added the partition to the transaction yet, or the transaction is to be aborted"
    )
    LEADER = "it has no known leader"
    CONNECTION = "there is no open connection to the leader"
    THROTTLE = "the leader throttles this client, since a quota is exceeded"
    BACKOFF = "it will be sent again"
    EARLIER_REQUESTS = "requests before it are unanswered"
    ANSWER = "it was sent, and not acknowledged yet"


@attrs.frozen
class UnacknowledgedRecords:
    """The records of one partition that a producer has accepted, and that are not acknowledged. Times in seconds."""

    records: int
    size: int
    """Their size in bytes, before compression."""
    age: float
    """How long ago the first record of the oldest batch was accepted."""
    waits_for: RecordWait
    """What the oldest batch waits for."""
    attempts: int
    """How often the oldest batch was sent."""
    broker: Address | None
    """The broker that it waits for, or that leads the partition; None if no leader is known."""
    sent: float | None
    """How long ago the unanswered request was sent; None unless it waits for an answer."""
    left: float | None
    """How long linger, throttling or the backoff will still last; None otherwise."""
    error: str | None
    """Why the last attempt to send it, or to connect, has failed; None if none has."""

    stall_after: float = attrs.field(repr=False)
    """After how long records count as stalled without an error (``stall_report_ms``)."""

    @property
    def stalled(self) -> bool:
        """Whether something is wrong: an error, no leader, or no progress for ``stall_report_ms``."""
        return self.waits_for is not RecordWait.LINGER and (
            self.error is not None or self.waits_for is RecordWait.LEADER or self.is_overdue
        )

    @property
    def is_overdue(self) -> bool:
        """Whether the records have made no progress for ``stall_report_ms``."""
        return self.age >= self.stall_after and self.waits_for is not RecordWait.LINGER

    @property
    def why(self) -> str:
        """The reason why it waits, in words."""
        broker, kind, left = self.broker, self.waits_for, _in_words(self.left)
        if kind is RecordWait.LINGER:
            text = f"more records may join the batch for {left} (linger_ms)"
        elif kind is RecordWait.CONNECTION:
            text = f"there is no open connection to {broker}"
        elif kind is RecordWait.THROTTLE:
            text = f"{broker} throttles this client for another {left}, since a quota is exceeded"
        elif kind is RecordWait.BACKOFF:
            text = f"it will be sent again in {left}"
        elif kind is RecordWait.EARLIER_REQUESTS:
            text = f"{broker} has not answered the requests before it"
        elif kind is RecordWait.ANSWER:
            text = f"{broker} has not acknowledged it for {_in_words(self.sent)}"
        else:
            text = kind.value
        return text if self.error is None else f"{text}, after {self.error}"


@attrs.frozen
class TransactionHealth:
    """The state of a transactional producer."""

    transactional_id: str
    phase: str
    """The phase, which completes the sentence "the producer is ..."."""
    producer_id: int
    producer_epoch: int
    open_for: float | None
    """How long the transaction is open, in seconds; None if none is."""
    coordinator: Address | None
    """The coordinator of the transactional id, if known."""
    request: str | None
    """The request to the coordinator that is not answered yet, such as ``"EndTxn"``."""
    trouble: str | None
    """The error of the last attempt to send that request; None if none has failed."""
    error: str | None
    """Why the transaction can only be aborted, or the producer can do nothing more."""


@attrs.frozen
class ProducerHealth:
    """A producer's health at one moment. Ages are in seconds before that moment."""

    name: str
    """The producer's name, which its connections have as well, such as ``"produce-1"``."""
    state: str
    """``"new"``, ``"open"``, ``"closing"`` or ``"closed"``."""
    oldest: float | None
    """The age of the oldest unacknowledged record; None if all are acknowledged."""
    records: int
    """The number of unacknowledged records."""
    buffered: int
    """The bytes of ``buffer_memory`` that are in use."""
    buffer_memory: int
    blocked: int
    """The number of calls that wait for space in the buffer."""
    waiting_for_topics: Mapping[str, int]
    """The number of calls that wait for the metadata of a topic, by topic."""
    in_flight: int
    """The number of requests that are sent and not answered."""
    partitions: Mapping[TopicPartition, UnacknowledgedRecords]
    """The partitions with unacknowledged records."""
    transaction: TransactionHealth | None
    """The state of its transactions; None without a ``transactional_id``."""
    why: str | None
    """What the unacknowledged records and the waiting calls wait for; None if nothing waits."""
    stalled: bool
    """Whether something is wrong with what waits: an error, no leader, or no progress for ``stall_report_ms``."""
    failed: str | None
    """Why the producer can send nothing more, so that the program has to make another; None if it can."""

    def to_dict(self) -> dict[str, Any]:
        """Return the health as a dict that JSON can encode; partitions are texts such as ``"orders-0"``."""
        return dict(as_plain(self))


def why_waiting(
    partitions: Mapping[TopicPartition, UnacknowledgedRecords],
    transaction: TransactionHealth | None = None,
    *,
    failed: str | None = None,
    blocked: int = 0,
    topics: Mapping[str, int] | None = None,
) -> tuple[str | None, bool]:
    """Return what a producer's records and callers wait for (None if nothing waits), and whether it is stalled.

    Args:
        partitions: the partitions with unacknowledged records; those that are stalled, and the oldest, come first.
            Partitions with one cause share a reason.
        transaction: the state of its transactions, if it has any.
        failed: why it can send nothing more.
        blocked: the number of calls that wait for space in the buffer.
        topics: the number of calls that wait for the metadata of a topic.
    """
    reasons = [failed] if failed is not None else []
    stalled = failed is not None
    if transaction is not None and transaction.error is not None and failed is None:
        reasons.append(f"the transaction can only be aborted: {transaction.error}")
    if transaction is not None and transaction.trouble is not None:
        at = transaction.coordinator or "the coordinator, which is not known,"
        reasons.append(f"{at} has not carried out {transaction.request}: {transaction.trouble}")
        stalled = True
    ordered = sorted(partitions.items(), key=lambda found: (not found[1].stalled, -found[1].age))
    causes: dict[object, dict[TopicPartition, UnacknowledgedRecords]] = {}
    for partition, health in ordered:
        causes.setdefault(_cause(partition, health), {})[partition] = health
    reasons += [_of_one_cause(list(found), list(found.values())) for found in causes.values()]
    stalled = stalled or any(health.stalled for health in partitions.values())
    if blocked:
        reasons.append(f"{blocked} {'call waits' if blocked == 1 else 'calls wait'} for space in the buffer")
    for topic, calls in (topics or {}).items():
        reasons.append(f"{calls} {'call waits' if calls == 1 else 'calls wait'} for the metadata of topic {topic!r}")
    return sentence(reasons), stalled


def _cause(partition: TopicPartition, health: UnacknowledgedRecords) -> object:
    """Return a value that is equal for partitions that wait for the same."""
    error = health.error and health.error.replace(str(partition), "")
    return health.waits_for, health.broker, error, health.stalled


def _of_one_cause(partitions: Sequence[TopicPartition], found: Sequence[UnacknowledgedRecords]) -> str:
    age, records = _in_words(max(health.age for health in found)), sum(health.records for health in found)
    counted = f"1 record waits for {age}" if records == 1 else f"{records} records wait for up to {age}"
    return f"{example_of(partitions)}: {counted}: {found[0].why}"


def _in_words(seconds: float | None) -> str:
    if seconds is None:
        return "some time"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
