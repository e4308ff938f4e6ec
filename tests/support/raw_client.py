"""A Kafka client of thirty lines, and requests to send with it: nothing is decided here, nothing retried."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self, TypeVar, cast
from uuid import UUID

import anyio
from anyio import BrokenResourceError, EndOfStream
from anyio.abc import ByteStream

from aiokafkawire.protocol.api import RequestHeader, ResponseHeader, request_header_version, response_header_version
from aiokafkawire.protocol.compiler import decode, decode_prefix, encode
from aiokafkawire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from aiokafkawire.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from aiokafkawire.protocol.primitives import ZERO_UUID, Buffer
from aiokafkawire.protocol.schema import Request, Response
from aiokafkawire.records.batch import BatchBuilder, ConsumerRecord, split
from aiokafkawire.records.compression import Codec

from .patience import PATIENCE

__all__ = ("RawClient", "batch_of", "fetch_request", "produce_request", "records_of")


R = TypeVar("R", bound=Response)


class RawClient:
    """Speaks over an open stream, which it closes with its context."""

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self.client_id = "raw"
        self._correlation_id = 0
        self._received = bytearray()

    async def ask(self, request: Request[R], version: int) -> R:
        """Send one request and wait for its answer."""
        correlation_id = await self.send(request, version)
        return cast("R", await self.answer(type(request), version, correlation_id))

    async def send(self, request: Request[Any], version: int) -> int:
        """Send one request; its correlation id."""
        self._correlation_id += 1
        header = RequestHeader(
            request_api_key=request.api_key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=self.client_id,
        )
        head = encode(header, request_header_version(type(request), version))
        await self.send_frame(head + encode(request, version))
        return self._correlation_id

    async def answer(self, request: type[Request[Any]], version: int, correlation_id: int) -> Response:
        """The next answer, which must be to that request."""
        frame = await self.frame()
        header, position = decode_prefix(ResponseHeader, response_header_version(request, version), frame)
        assert header.correlation_id == correlation_id
        return decode(request.response, version, frame, position)

    async def send_frame(self, frame: bytes) -> None:
        """Send anything as one frame."""
        await self.stream.send(len(frame).to_bytes(4) + frame)

    async def frame(self) -> bytes:
        """The next frame; EndOfStream if the broker has hung up, TimeoutError if it says nothing."""
        with anyio.fail_after(PATIENCE):
            size = int.from_bytes(await self._exactly(4))
            return await self._exactly(size)

    async def is_cut_off(self) -> bool:
        """Whether the broker hangs up, and sends nothing before."""
        try:
            await self.frame()
        except (EndOfStream, BrokenResourceError):  # the latter where it had not read all that was sent
            return True
        return False

    async def _exactly(self, size: int) -> bytes:
        while len(self._received) < size:
            self._received += await self.stream.receive(1 << 18)
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stream.aclose()

    # --- one batch, one partition ------------------------------------------------------------------------------

    async def produce(self, topic: str | UUID, records: Buffer | None, **fields: Any) -> PartitionProduceResponse:
        """Send records to one partition; its part of the answer."""
        version = fields.pop("version", 13 if isinstance(topic, UUID) else 12)
        answer = await self.ask(produce_request(topic, records, **fields), version)
        return answer.responses[0].partition_responses[0]

    async def fetch(self, topic: str | UUID, offset: int, **fields: Any) -> PartitionData:
        """Read one partition from an offset; its part of the answer."""
        version = fields.pop("version", 18 if isinstance(topic, UUID) else 12)
        answer = await self.ask(fetch_request(topic, offset, **fields), version)
        return answer.responses[0].partitions[0]


def batch_of(*values: bytes | None, timestamp: int = 1000, codec: Codec = Codec.NONE, **state: Any) -> bytes:
    """A batch of these values, a millisecond apart; ``state`` is the producer's."""
    builder = BatchBuilder(limit=1 << 30, codec=codec)
    for index, value in enumerate(values):
        builder.append(timestamp + index, b"key", value)
    return builder.build(**state)


def records_of(data: PartitionData) -> list[ConsumerRecord[bytes, bytes]]:
    """All records of a fetched partition."""
    records: list[ConsumerRecord[bytes, bytes]] = []
    for batch in split(memoryview(data.records or b"")):
        records += batch.records("", data.partition_index)
    return records


def produce_request(
    topic: str | UUID,
    records: Buffer | None,
    *,
    partition: int = 0,
    acks: int = -1,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """A request that writes to one partition, of a topic by name or by id."""
    data = [PartitionProduceData(index=partition, records=records)]
    name, topic_id = _name_and_id(topic)
    topics = [TopicProduceData(name=name, topic_id=topic_id, partition_data=data)]
    return ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=5000, topic_data=topics)


def fetch_request(
    topic: str | UUID,
    offset: int,
    *,
    partition: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    partition_max_bytes: int = 1 << 20,
    epoch: int = -1,
    **fields: Any,
) -> FetchRequest:
    """A request that reads one partition, of a topic by name or by id."""
    asked = FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=partition_max_bytes,
        current_leader_epoch=epoch,
    )
    name, topic_id = _name_and_id(topic)
    topics = [FetchTopic(topic=name, topic_id=topic_id, partitions=[asked])]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=topics, **fields)


def _name_and_id(topic: str | UUID) -> tuple[str, UUID]:
    return ("", topic) if isinstance(topic, UUID) else (topic, ZERO_UUID)
