"""The traffic of clients of large clusters: messages in the newest version that all contenders have."""

from collections.abc import Callable
from typing import Final
from uuid import UUID

from aiokafkawire.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from aiokafkawire.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from aiokafkawire.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from aiokafkawire.protocol.schema import Message

RECORDS: Final = bytes(range(250)) * 4


def metadata(topics: int, partitions: int) -> MetadataResponse:
    brokers = [MetadataResponseBroker(node_id=node, host=f"broker-{node}.example", port=9092) for node in range(3)]
    return MetadataResponse(
        brokers=brokers,
        cluster_id="abcdefghijklmnopqrstuv",
        controller_id=0,
        topics=[
            MetadataResponseTopic(
                error_code=0,
                name=f"topic-{topic}",
                topic_id=UUID(int=topic + 1),
                partitions=[
                    MetadataResponsePartition(
                        error_code=0,
                        partition_index=index,
                        leader_id=index % 3,
                        leader_epoch=5,
                        replica_nodes=[0, 1, 2],
                        isr_nodes=[0, 1, 2],
                    )
                    for index in range(partitions)
                ],
            )
            for topic in range(topics)
        ],
    )


def fetch_request(topics: int, partitions: int) -> FetchRequest:
    asked = [
        FetchPartition(partition=index, fetch_offset=123_456 + index, partition_max_bytes=1 << 20)
        for index in range(partitions)
    ]
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        topics=[FetchTopic(topic_id=UUID(int=topic + 1), partitions=asked) for topic in range(topics)],
    )


def fetch_response(topics: int, partitions: int) -> FetchResponse:
    data = [
        PartitionData(
            partition_index=index,
            error_code=0,
            high_watermark=123_456,
            last_stable_offset=123_456,
            log_start_offset=0,
            records=RECORDS,
        )
        for index in range(partitions)
    ]
    return FetchResponse(
        responses=[FetchableTopicResponse(topic_id=UUID(int=topic + 1), partitions=data) for topic in range(topics)]
    )


def produce_request(topics: int, partitions: int) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=RECORDS) for index in range(partitions)]
    named = [TopicProduceData(topic_id=UUID(int=topic + 1), partition_data=data) for topic in range(topics)]
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=named)


def produce_response(topics: int, partitions: int) -> ProduceResponse:
    answers = [PartitionProduceResponse(index=index, error_code=0, base_offset=123_456) for index in range(partitions)]
    return ProduceResponse(
        responses=[
            TopicProduceResponse(topic_id=UUID(int=topic + 1), partition_responses=answers) for topic in range(topics)
        ]
    )


def offset_fetch(topics: int, partitions: int) -> OffsetFetchResponse:
    committed = [
        OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=123_456 + index, committed_leader_epoch=5, metadata="", error_code=0
        )
        for index in range(partitions)
    ]
    named = [OffsetFetchResponseTopics(name=f"topic-{topic}", partitions=committed) for topic in range(topics)]
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="group", topics=named, error_code=0)])


MESSAGES: Final[dict[str, tuple[Callable[[], Message], int]]] = {
    "MetadataResponse, 1,000 topics of 10": (lambda: metadata(1000, 10), 13),
    "FetchRequest, 100 topics of 10": (lambda: fetch_request(100, 10), 17),
    "FetchResponse, 100 topics of 10": (lambda: fetch_response(100, 10), 17),
    "ProduceRequest, 10 topics of 10": (lambda: produce_request(10, 10), 13),
    "ProduceResponse, 10 topics of 10": (lambda: produce_response(10, 10), 13),
    "OffsetFetchResponse, 500 topics of 10": (lambda: offset_fetch(500, 10), 9),
}
"""What makes each, and its version."""
