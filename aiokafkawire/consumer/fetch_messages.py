"""What a fetch looks like on the wire, and what its answer says of each partition."""

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
from .fetch import CompletedFetch, PartitionFetch
from .fetch_session import FetchSessionRequest

__all__ = ("answers", "leaders_named", "request")


def request(turn: FetchSessionRequest, config: ConsumerConfig, room: int) -> FetchRequest:
    """The fetch for one broker. ``room`` is how many bytes it may bring."""
    return FetchRequest(
        max_wait_ms=config.fetch_max_wait_ms,
        min_bytes=config.fetch_min_bytes,
        max_bytes=room,
        isolation_level=config.isolation,
        session_id=turn.session_id,
        session_epoch=turn.epoch,
        topics=_named(turn.named, turn.ids),
        forgotten_topics_data=_forgotten(turn.forgotten, turn.ids),
        rack_id=config.client_rack,
    )


def _named(asks: Iterable[PartitionFetch], ids: Mapping[str, UUID]) -> list[FetchTopic]:
    topics: dict[str, FetchTopic] = {}
    for ask in asks:
        name, partition = ask.place.where
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
    turn: FetchSessionRequest, response: FetchResponse, *, committed_only: bool, where: str
) -> Iterator[tuple[PartitionFetch, CompletedFetch | KafkaError]]:
    """What the answer brings: for each partition that it has data, or an error.

    A full fetch is answered for every partition, unless a quota has emptied the answer (KIP-219).
    """
    found = {ask.place.where: data for ask, data in _answered(turn, response)}
    for place, data in found.items():
        ask = turn.asks[place]
        if data.error_code != ErrorCode.NONE:
            yield ask, _refused(ask, data)
        else:
            yield ask, CompletedFetch(ask, data, committed_only=committed_only)
    if not turn.is_full or (not found and response.throttle_time_ms > 0):
        return
    for place, ask in turn.asks.items():
        if place not in found:
            yield ask, WireError(f"{where} answered Fetch without {place}, which was asked")


def _answered(turn: FetchSessionRequest, response: FetchResponse) -> Iterator[tuple[PartitionFetch, PartitionData]]:
    """Partitions that were not asked for are passed over."""
    names = {topic_id: name for name, topic_id in turn.ids.items()}
    for topic in response.responses:
        name = topic.topic or names.get(topic.topic_id, "")
        for data in topic.partitions:
            ask = turn.asks.get(TopicPartition(name, data.partition_index))
            if ask is not None:
                yield ask, data


def leaders_named(turn: FetchSessionRequest, response: FetchResponse) -> dict[TopicPartition, tuple[int, int]]:
    """The leader's id and epoch of each partition whose error tells them (v16, KIP-951)."""
    return {
        ask.place.where: (data.current_leader.leader_id, data.current_leader.leader_epoch)
        for ask, data in _answered(turn, response)
        if data.error_code != ErrorCode.NONE and data.current_leader.leader_id >= 0
    }


def _refused(ask: PartitionFetch, answer: PartitionData) -> BrokerError:
    return broker_error(answer.error_code, f"Fetch of {ask.place.where} at offset {ask.offset}")
