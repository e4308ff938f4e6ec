"""Builds Fetch requests, and reads the results of their partitions."""

from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from ..config import ConsumerConfig
from ..errors import BrokerError, ErrorCode, KafkaError, WireError, broker_error
from ..protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from ..types import TopicPartition
from .completed_fetch import CompletedFetch, PartitionFetch
from .fetch_session import FetchSessionRequest

__all__ = ("answers", "leaders_named", "received", "request")


def request(session_request: FetchSessionRequest, config: ConsumerConfig, budget: int) -> FetchRequest:
    """Build the Fetch request for one broker. ``budget`` limits the response's bytes."""
    return FetchRequest(
        max_wait_ms=config.fetch_max_wait_ms,
        min_bytes=config.fetch_min_bytes,
        max_bytes=budget,
        isolation_level=config.isolation,
        session_id=session_request.session_id,
        session_epoch=session_request.epoch,
        topics=_named(session_request.named, session_request.ids),
        forgotten_topics_data=_forgotten(session_request.forgotten, session_request.ids),
        rack_id=config.client_rack,
    )


def _named(asks: Iterable[PartitionFetch], ids: Mapping[str, UUID]) -> list[FetchTopic]:
    topics: dict[str, FetchTopic] = {}
    for ask in asks:
        name, partition = ask.state.partition
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = FetchTopic(topic=name, topic_id=ids[name], partitions=[])
        topic.partitions.append(
            FetchPartition(
                partition=partition,
                current_leader_epoch=ask.leader_epoch,
                fetch_offset=ask.offset,
                partition_max_bytes=ask.max_bytes,
            )
        )
    return list(topics.values())


def _forgotten(partitions: Iterable[TopicPartition], ids: Mapping[str, UUID]) -> list[ForgottenTopic]:
    topics: dict[str, ForgottenTopic] = {}
    for name, partition in partitions:
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = ForgottenTopic(topic=name, topic_id=ids[name], partitions=[])
        topic.partitions.append(partition)
    return list(topics.values())


def answers(
    session_request: FetchSessionRequest, response: FetchResponse, *, committed_only: bool, broker: str
) -> Iterator[tuple[PartitionFetch, CompletedFetch | KafkaError]]:
    """Yield the data or error of each partition in the response.

    If the response to a full request lacks a partition, yield an error for the partition, unless a quota has emptied
    the response (KIP-219).
    """
    found = {ask.state.partition: data for ask, data in _answered(session_request, response)}
    for partition, data in found.items():
        ask = session_request.asks[partition]
        if data.error_code != ErrorCode.NONE:
            yield ask, _refused(ask, data)
        else:
            yield ask, CompletedFetch(ask, data, committed_only=committed_only)
    if not session_request.is_full or (not found and response.throttle_time_ms > 0):
        return
    for partition, ask in session_request.asks.items():
        if partition not in found:
            yield ask, WireError(f"{broker} answered Fetch without {partition}")


def _answered(
    session_request: FetchSessionRequest, response: FetchResponse
) -> Iterator[tuple[PartitionFetch, PartitionData]]:
    """Yield the requested partitions with their data; skip partitions that were not requested."""
    names = {topic_id: name for name, topic_id in session_request.ids.items()}
    for topic in response.responses:
        name = topic.topic or names.get(topic.topic_id, "")
        for data in topic.partitions:
            ask = session_request.asks.get(TopicPartition(name, data.partition_index))
            if ask is not None:
                yield ask, data


def received(session_request: FetchSessionRequest, response: FetchResponse) -> dict[TopicPartition, memoryview]:
    """Return the batches of each partition that has brought some."""
    return {
        ask.state.partition: memoryview(data.records)
        for ask, data in _answered(session_request, response)
        if data.records and data.error_code == ErrorCode.NONE
    }


def leaders_named(
    session_request: FetchSessionRequest, response: FetchResponse
) -> dict[TopicPartition, tuple[int, int]]:
    """Return the id and epoch of the current leader, for each partition whose error names a leader (v16, KIP-951)."""
    return {
        ask.state.partition: (data.current_leader.leader_id, data.current_leader.leader_epoch)
        for ask, data in _answered(session_request, response)
        if data.error_code != ErrorCode.NONE and data.current_leader.leader_id >= 0
    }


def _refused(ask: PartitionFetch, answer: PartitionData) -> BrokerError:
    return broker_error(answer.error_code, f"Fetch of {ask.state.partition} at offset {ask.offset}")
