"""Whether a log still holds what was read of it, after another leader took over (KIP-320)."""

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
    """A place to ask its new leader about: where it is, and whose record is before it."""

    place: PartitionState
    epoch: int
    position: int
    read: int
    """The leader epoch of the record before the position."""
    leader_epoch: int
    """That of the leader who is asked."""

    def counts(self, positions: SubscriptionState) -> bool:
        """Whether the place is still there, and where it was."""
        return positions.is_current(self.place, self.epoch) and self.place.position == self.position


def due(
    snapshot: Snapshot, places: Iterable[PartitionState], unread: Container[TopicPartition]
) -> dict[int, list[EpochCheck]]:
    """The checks to make before more is fetched, by leader. What was fetched already is read first."""
    found: dict[int, list[EpochCheck]] = {}
    for place in places:
        # Most positions are valid, and this runs before each fetch.
        if place.position is None or place.leader_epoch is None or place.lost or place.validating or place.rests:
            continue
        known = snapshot.partition(place.where)
        if known is None or known.leader not in snapshot.nodes or not place.needs_validation(known.leader_epoch):
            continue
        if place.where not in unread and known.leader is not None:
            check = EpochCheck(place, place.epoch, place.position, place.leader_epoch, known.leader_epoch)
            found.setdefault(known.leader, []).append(check)
    return found


def request(checks: Iterable[EpochCheck]) -> OffsetForLeaderEpochRequest:
    """Ask where these epochs ended."""
    topics: dict[str, OffsetForLeaderTopic] = {}
    for check in checks:
        name, partition = check.place.where
        topic = topics.setdefault(name, OffsetForLeaderTopic(topic=name, partitions=[]))
        topic.partitions.append(
            OffsetForLeaderPartition(
                partition=partition, current_leader_epoch=check.leader_epoch, leader_epoch=check.read
            )
        )
    return OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=list(topics.values()))


def answered(response: OffsetForLeaderEpochResponse) -> dict[TopicPartition, EpochEndOffset]:
    """The answer for each partition."""
    return {TopicPartition(topic.topic, one.partition): one for topic in response.topics for one in topic.partitions}


def settle(
    positions: SubscriptionState, check: EpochCheck, answer: EpochEndOffset
) -> LogTruncated | BrokerError | None:
    """Do what the answer asks for; an error that the user must hear of, or that is worth another try.

    1. An epoch that ended at the position or behind it: all is well.
    2. One that ended before it: the log was cut off, and is read on from that end.
    3. Where the leader knows of no such epoch, nothing that was read is known to be left: the default is looked up.

    Without a default, 2 and 3 are told, and the place waits for a seek.
    """
    place = check.place
    if answer.error_code != ErrorCode.NONE:
        return broker_error(answer.error_code, f"OffsetForLeaderEpoch of {place.where} at offset {check.position}")
    if answer.leader_epoch == _UNDEFINED or answer.end_offset == _UNDEFINED:
        return None if positions.reset(place) else _truncated(check, None)
    if answer.end_offset >= check.position:
        place.validated = check.leader_epoch
        return None
    if positions.go_back(place, answer.end_offset, answer.leader_epoch, check.leader_epoch):
        return None
    return _truncated(check, answer.end_offset)


def _truncated(check: EpochCheck, diverging: int | None) -> LogTruncated:
    check.place.lost = True
    where, position = check.place.where, check.position
    left = "nothing of it is known to be left" if diverging is None else f"it now parts from that at offset {diverging}"
    what = f"{where} was read up to offset {position} under leader epoch {check.read}, and {left}"
    return LogTruncated(f"{what}; auto_offset_reset is 'none', so seek elsewhere", where, position, diverging)
