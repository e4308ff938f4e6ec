"""Changes to the results of Fetch and ShareFetch: errors that fault rules inject, and paused partitions."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from uuid import UUID

from ...errors import ErrorCode
from ...protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ...protocol.messages.share_fetch import (
    LeaderIdAndEpoch,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
    ShareFetchResponsePartitionData,
)
from .observed_cluster import SessionPartition

__all__ = ("FetchResults", "has_records", "inject_errors", "withhold_records")

FetchResults = FetchResponse | ShareFetchResponse

Blamed = Callable[[str, int], ErrorCode | None]
"""A function that returns the error for a partition, by topic and index; None for no error."""

Named = Callable[[SessionPartition], tuple[str | None, int]]
"""A function that returns the name of a partition's topic, None if it is unknown, and the partition's index."""


def inject_errors(response: FetchResults, asked: Iterable[SessionPartition], blamed: Blamed, named: Named) -> None:
    """Replace the results of partitions by errors, in place.

    Args:
        response: the broker's response.
        asked: the partitions that the request reads, those of its session included.
        blamed: returns the error for a partition, by topic and index; None for no error.
        named: returns the name of a partition's topic.
    """
    answered = dict(_results(response))
    for key in dict.fromkeys((*answered, *asked)):
        topic, index = named(key)
        error = blamed(topic or "", index)  # rules without a topic apply to unknown topics, too
        if error is None:
            continue
        data = answered.get(key)
        if data is None:  # a session's response has only partitions with changes
            data = _added(response, key)
        _clear(data)
        if isinstance(data, PartitionData):  # brokers answer no offsets with an error
            data.high_watermark = data.last_stable_offset = data.log_start_offset = -1
        data.error_code = int(error)


def withhold_records(response: FetchResults, is_paused: Callable[[str, int], bool], named: Named) -> bool:
    """Remove the records of paused partitions in place; return whether there were any."""
    changed = False
    for key, data in _results(response):
        topic, index = named(key)
        if topic is not None and data.records and is_paused(topic, index):
            _clear(data)
            changed = True
    return changed


def has_records(response: FetchResults) -> bool:
    """Return whether a response has records or errors for its client."""
    return any(data.records or data.error_code for _, data in _results(response))


def _results(response: FetchResults) -> Iterator[tuple[SessionPartition, Any]]:
    for topic in response.responses:
        for data in topic.partitions:
            yield (getattr(topic, "topic", "") or topic.topic_id, data.partition_index), data


def _clear(data: Any) -> None:
    """Remove the records of a result; members of share groups then have not acquired them."""
    data.records = b""
    if isinstance(data, ShareFetchResponsePartitionData):
        data.acquired_records = []
    else:
        data.aborted_transactions = []


def _added(response: FetchResults, key: SessionPartition) -> Any:
    topic, index = key
    data: Any
    if isinstance(response, ShareFetchResponse):
        assert isinstance(topic, UUID)
        leader = LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)
        data = ShareFetchResponsePartitionData(
            partition_index=index,
            error_code=0,
            acknowledge_error_code=0,
            current_leader=leader,
            records=b"",
            acquired_records=[],
        )
        response.responses.append(ShareFetchableTopicResponse(topic_id=topic, partitions=[data]))
        return data
    data = PartitionData(partition_index=index, error_code=0, high_watermark=-1, records=b"")
    name = {"topic_id": topic} if isinstance(topic, UUID) else {"topic": topic}
    response.responses.append(FetchableTopicResponse(partitions=[data], **name))
    return data
