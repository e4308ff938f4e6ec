"""Detects log truncation after a change of leader (KIP-320)."""

from collections.abc import Container, Iterable
from typing import Final

import attrs

from ..cluster.metadata import Snapshot
from ..errors import BrokerError, ErrorCode, LogTruncated, broker_error
from ..protocol.messages.offsets import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ..types import TopicPartition
from .subscription_state import PartitionState, SubscriptionState

__all__ = ("EpochCheck", "answered", "due", "request", "settle")

_CONSUMER: Final = -1
_UNDEFINED: Final = -1


@attrs.frozen
class EpochCheck:
    """A position to validate with the partition's new leader."""

    state: PartitionState
    epoch: int
    position: int
    read: int
    """The leader epoch of the record before the position."""
    leader_epoch: int
    """The new leader's epoch."""

    def counts(self, positions: SubscriptionState) -> bool:
        """Return whether a result of the check still counts: the partition is assigned, at the same position."""
        return positions.is_current(self.state, self.epoch) and self.state.position == self.position


def due(
    snapshot: Snapshot, states: Iterable[PartitionState], unread: Container[TopicPartition]
) -> dict[int, list[EpochCheck]]:
    """Return the checks due before the next fetches, by leader id. Partitions with unread data are checked later."""
    found: dict[int, list[EpochCheck]] = {}
    for state in states:
        # Written for speed: this runs before each fetch, and most positions are valid.
        if state.position is None or state.leader_epoch is None or state.lost or state.validating or state.is_suspended:
            continue
        known = snapshot.partition(state.partition)
        if known is None or known.leader not in snapshot.nodes or not state.needs_validation(known.leader_epoch):
            continue
        if state.partition not in unread and known.leader is not None:
            check = EpochCheck(state, state.epoch, state.position, state.leader_epoch, known.leader_epoch)
            found.setdefault(known.leader, []).append(check)
    return found


def request(checks: Iterable[EpochCheck]) -> OffsetForLeaderEpochRequest:
    """Build the OffsetForLeaderEpoch request of these checks."""
    topics: dict[str, OffsetForLeaderTopic] = {}
    for check in checks:
        name, partition = check.state.partition
        topic = topics.setdefault(name, OffsetForLeaderTopic(topic=name, partitions=[]))
        topic.partitions.append(
            OffsetForLeaderPartition(
                partition=partition, current_leader_epoch=check.leader_epoch, leader_epoch=check.read
            )
        )
    return OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=list(topics.values()))


def answered(response: OffsetForLeaderEpochResponse) -> dict[TopicPartition, EpochEndOffset]:
    """Return the result of each partition in the response."""
    return {
        TopicPartition(topic.topic, result.partition): result
        for topic in response.topics
        for result in topic.partitions
    }


def settle(
    positions: SubscriptionState, check: EpochCheck, answer: EpochEndOffset
) -> LogTruncated | BrokerError | None:
    """Apply the result of a check; return a LogTruncated for the user, a BrokerError to retry after, or None.

    1. The epoch of the last record read ended at the position or after it: the position is valid.
    2. The epoch ended before the position: the log was truncated, and reading continues at the end of the epoch.
    3. The leader does not know the epoch: none of its records may be left, so ``auto_offset_reset`` applies.

    With ``auto_offset_reset="none"``, cases 2 and 3 return a LogTruncated, and the partition waits for a seek.
    """
    state = check.state
    if answer.error_code != ErrorCode.NONE:
        return broker_error(answer.error_code, f"OffsetForLeaderEpoch of {state.partition} at offset {check.position}")
    if answer.leader_epoch == _UNDEFINED or answer.end_offset == _UNDEFINED:
        return None if positions.reset(state) else _truncated(check, None)
    if answer.end_offset >= check.position:
        state.validated = check.leader_epoch
        return None
    if positions.go_back(state, answer.end_offset, answer.leader_epoch, check.leader_epoch):
        return None
    return _truncated(check, answer.end_offset)


def _truncated(check: EpochCheck, diverging: int | None) -> LogTruncated:
    check.state.lost = True
    partition, position = check.state.partition, check.position
    cause = (
        "its new leader does not know that epoch"
        if diverging is None
        else f"its log was truncated at offset {diverging}"
    )
    what = f"{partition} was read up to offset {position} under leader epoch {check.read}, and {cause}"
    return LogTruncated(f"{what}; auto_offset_reset is 'none', so call seek()", partition, position, diverging)
