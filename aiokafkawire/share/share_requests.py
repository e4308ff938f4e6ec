"""Builds ShareFetch and ShareAcknowledge requests."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeAlias
from uuid import UUID

from ..config import ShareConsumerConfig
from ..protocol.messages.share_fetch import (
    AcknowledgePartition,
    AcknowledgeTopic,
    FetchPartition,
    FetchTopic,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
)
from .acknowledgements import AcknowledgedOffsets, as_batches
from .share_fetch_session import PartitionKey, ShareFetchSession

__all__ = ("AcknowledgedRanges", "acknowledge_request", "fetch_request")

AcknowledgedRanges: TypeAlias = Mapping[PartitionKey, Sequence[AcknowledgedOffsets]]
"""Acknowledgements by partition."""

_ACQUIRE_MODES: Final = {"batch_optimized": 0, "record_limit": 1}


def fetch_request(
    config: ShareConsumerConfig,
    member_id: str,
    session: ShareFetchSession,
    wanted: Collection[PartitionKey],
    acknowledged: AcknowledgedRanges,
    *,
    max_records: int,
    max_wait_ms: int,
) -> ShareFetchRequest:
    """Build a fetch of the partitions ``wanted``, with acknowledgements of records of these partitions."""
    topics: dict[UUID, FetchTopic] = {}
    for key in dict.fromkeys([*session.added(wanted), *acknowledged]):
        topic = topics.setdefault(key[0], FetchTopic(topic_id=key[0], partitions=[]))
        topic.partitions.append(
            FetchPartition(partition_index=key[1], acknowledgement_batches=as_batches(acknowledged.get(key, ())))
        )
    return ShareFetchRequest(
        group_id=config.group_id,
        member_id=member_id,
        share_session_epoch=session.next_epoch(),
        max_wait_ms=max_wait_ms,
        min_bytes=config.fetch_min_bytes,
        max_bytes=config.fetch_max_bytes,
        max_records=max_records,
        batch_size=config.max_poll_records,
        share_acquire_mode=_ACQUIRE_MODES[config.share_acquire_mode],
        topics=list(topics.values()),
        forgotten_topics_data=session.forgotten(wanted),
    )


def acknowledge_request(
    group_id: str | None, member_id: str, epoch: int, acknowledged: AcknowledgedRanges, *, renews: bool = False
) -> ShareAcknowledgeRequest:
    """Build a request that only acknowledges; one that ``renews`` may renew locks as well (v2, KIP-1222)."""
    topics: dict[UUID, AcknowledgeTopic] = {}
    for key, ranges in acknowledged.items():
        topic = topics.setdefault(key[0], AcknowledgeTopic(topic_id=key[0], partitions=[]))
        topic.partitions.append(
            AcknowledgePartition(partition_index=key[1], acknowledgement_batches=as_batches(ranges))
        )
    return ShareAcknowledgeRequest(
        group_id=group_id,
        member_id=member_id,
        share_session_epoch=epoch,
        is_renew_ack=renews,
        topics=list(topics.values()),
    )
