"""Requests with one batch are, byte for byte, what the encoder makes of the whole message."""

from uuid import UUID

import pytest

from aiokafkawire.errors import KafkaError
from aiokafkawire.producer.produce_request import ProduceRequestEncoder
from aiokafkawire.protocol.compiler import encode
from aiokafkawire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aiokafkawire.protocol.primitives import ZERO_UUID
from aiokafkawire.types import TopicPartition

ID = UUID(int=0x1234567890ABCDEF1234567890ABCDEF)
ONE, OTHER = TopicPartition("one", 0), TopicPartition("a longer name, ö", 300)
SIZES = (0, 1, 2, 126, 127, 128, 20_000)


def whole(version: int, where: TopicPartition, topic_id: UUID, records: bytes, transactional_id: str | None) -> bytes:
    data = PartitionProduceData(index=where.partition, records=records)
    topic = TopicProduceData(name=where.topic, topic_id=topic_id, partition_data=[data])
    request = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=1234, topic_data=[topic])
    return encode(request, version)


@pytest.mark.parametrize("transactional_id", [None, "", "orders"])
@pytest.mark.parametrize("version", range(ProduceRequest.versions.first, ProduceRequest.versions.last + 1))
def test_the_bytes_are_those_of_the_whole_message(version: int, transactional_id: str | None) -> None:
    if transactional_id is not None and version < 3:
        pytest.skip("transactions came with v3")
    requests = ProduceRequestEncoder(
        acks=-1, timeout_ms=1234, transactional_id=transactional_id, requires_idempotence=True
    )
    for size in SIZES:
        for where in (ONE, OTHER):
            records = bytes(size)
            parts = requests.encode_single(version, where, ID, records)
            assert b"".join(parts) == whole(version, where, ID, records, transactional_id)


def test_a_topic_that_was_made_again_and_another_version_are_told_apart() -> None:
    requests = ProduceRequestEncoder(acks=-1, timeout_ms=1234, transactional_id=None, requires_idempotence=True)
    for version, topic_id in [(13, ID), (13, UUID(int=7)), (12, ZERO_UUID), (13, ID), (3, ID)]:
        assert b"".join(requests.encode_single(version, ONE, topic_id, b"abc")) == whole(
            version, ONE, topic_id, b"abc", None
        )


def test_what_is_remembered_is_bounded() -> None:
    requests = ProduceRequestEncoder(acks=-1, timeout_ms=1234, transactional_id=None, requires_idempotence=True)
    for partition in range(2_500):
        where = TopicPartition("wide", partition)
        assert b"".join(requests.encode_single(13, where, ID, b"abc")) == whole(13, where, ID, b"abc", None)
        assert len(requests._envelopes) <= 1_000


def test_what_a_version_cannot_carry_is_refused_each_time() -> None:
    requests = ProduceRequestEncoder(acks=-1, timeout_ms=1234, transactional_id="orders", requires_idempotence=True)
    for _ in range(2):
        with pytest.raises(KafkaError, match="transactional_id"):
            requests.encode_single(2, ONE, ID, b"abc")
