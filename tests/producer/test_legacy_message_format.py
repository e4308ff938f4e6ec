"""Producing to brokers from before record batches, and what they have no place for."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from support.patience import SOON

from aiokafkawire import Client, DeliveryFailed, TopicPartition, UnsupportedVersion
from aiokafkawire.producer import batch as batch_module
from aiokafkawire.producer.legacy_message_format import as_message_set, check_codec, magic_of
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.schema import Versions
from aiokafkawire.records.batch import BatchBuilder, split
from aiokafkawire.records.compression import Codec
from aiokafkawire.records.interfaces import AnyReader
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio

T0 = TopicPartition("t", 0)
BEFORE_LZ4 = ["0.8.0", "0.8.1"]
OLD = pytest.mark.parametrize(
    ("release", "magic"), [("0.8.0", 0), ("0.8.1", 0), ("0.8.2", 0), ("0.9.0", 0), ("0.10.2", 1)]
)


@asynccontextmanager
async def running(release: str) -> AsyncIterator[tuple[Broker, Client]]:
    async with Broker(port=None, max_versions=release) as broker:
        broker.create_topic("t")
        options: dict[str, Any] = {"api_version_request_timeout_ms": 20, "retry_backoff_ms": 1}
        async with Client(broker.bootstrap, connector=broker.connect, **options) as client:
            yield broker, client


def sent(broker: Broker) -> list[bytes]:
    """What Produce has carried so far."""
    return [
        bytes(data.records)
        for asked in broker.requests.of(ApiKey.PRODUCE)
        for topic in asked.request.topic_data
        for data in topic.partition_data
    ]


async def read(client: Client, count: int) -> list[tuple[bytes | None, bytes | None]]:
    async with client.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        found: list[tuple[bytes | None, bytes | None]] = []
        while len(found) < count:
            found += [(one.key, one.value) for one in await consumer.poll(count, timeout=5)]
        return found


@OLD
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
async def test_records_travel_in_message_sets(release: str, magic: int, codec: Any) -> None:
    if codec == "lz4" and release in BEFORE_LZ4:
        return
    async with running(release) as (broker, client):
        async with client.producer(compression_type=codec, linger_ms=5) as producer:
            for number in range(3):
                await producer.enqueue("t", b"v%d" % number, key=b"k")
            await producer.flush()
        for records in sent(broker):
            assert records[16] == magic
        assert await read(client, 3) == [(b"k", b"v0"), (b"k", b"v1"), (b"k", b"v2")]


@OLD
async def test_a_record_with_headers_fails_alone(release: str, magic: int) -> None:
    async with running(release) as (broker, client):
        async with client.producer(linger_ms=50) as producer:
            first = await producer.enqueue("t", b"first")
            headed = await producer.enqueue("t", b"headed", headers={"h": b""})
            last = await producer.enqueue("t", b"last")
            with pytest.raises(UnsupportedVersion, match=r"has headers, which need Kafka 0\.11 \(KIP-82\)"):
                await headed
            assert [(await one).offset for one in (first, last)] == [0, 1]
        assert await read(client, 2) == [(None, b"first"), (None, b"last")]
        assert not any(b"headed" in records for records in sent(broker))


@OLD
async def test_what_nobody_awaits_is_told_by_flush(release: str, magic: int) -> None:
    async with running(release) as (_, client), client.producer() as producer:
        await producer.enqueue("t", b"", headers={"h": b""})
        with pytest.raises(DeliveryFailed, match="KIP-82"):
            await producer.flush()


@pytest.mark.parametrize("release", BEFORE_LZ4)
@pytest.mark.parametrize("codec", ["lz4", "zstd"])
async def test_codecs_that_came_after_0_8_1_are_refused_before_they_are_sent(release: str, codec: Any) -> None:
    async with running(release) as (broker, client), client.producer(compression_type=codec) as producer:
        came = {
            "lz4": rf"is a broker of Kafka {release}, and lz4 came with Kafka 0\.8\.2: set compression_type to ",
            "zstd": r"zstd came with v7, in Kafka 2\.1 \(KIP-110\): set compression_type to ",
        }
        with anyio.fail_after(SOON), pytest.raises(UnsupportedVersion, match=f"{came[codec]}gzip or snappy$"):
            await producer.send("t", b"v" * 1000)
        assert sent(broker) == []


@pytest.mark.parametrize("release", ["0.8.2", "0.9.0", "0.10.2", "0.11.0", "2.0"])
async def test_zstd_is_refused_before_it_is_sent(release: str) -> None:
    async with running(release) as (broker, client), client.producer(compression_type="zstd") as producer:
        with pytest.raises(UnsupportedVersion, match=r"zstd came with v7, in Kafka 2\.1 \(KIP-110\)"):
            await producer.send("t", b"")
        assert sent(broker) == []


@OLD
async def test_idempotence_that_is_asked_for_is_refused_with_the_release_that_brought_it(
    release: str, magic: int
) -> None:
    async with running(release) as (broker, client):
        with pytest.raises(UnsupportedVersion, match=r"InitProducerId .*which came with Kafka 0\.11"):
            async with client.producer(enable_idempotence=True) as producer:
                await producer.send("t", b"")
        assert sent(broker) == []


@OLD
async def test_transactions_are_refused_with_the_release_that_brought_them(release: str, magic: int) -> None:
    async with running(release) as (broker, client):
        with pytest.raises(UnsupportedVersion, match=r"transactions came with Kafka 0\.11 \(KIP-98\)"):
            async with client.producer(transactional_id="x"):
                raise AssertionError("opened")
        assert sent(broker) == []


async def test_large_batches_become_message_sets_on_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def noted(*args: Any, **options: Any) -> bytes:
        threads.append(threading.get_ident())
        return as_message_set(*args, **options)

    monkeypatch.setattr(batch_module, "as_message_set", noted)
    value = bytes(range(256)) * 400
    async with running("0.9.0") as (_, client):
        async with client.producer(compression_type="gzip") as producer:
            await producer.send("t", b"small")
            await producer.send("t", value)
            with pytest.raises(UnsupportedVersion, match="KIP-82"):
                await producer.send("t", value, headers={"h": b""})
        assert await read(client, 2) == [(None, b"small"), (None, value)]
    here = threading.get_ident()
    assert [one == here for one in threads] == [True, False, False, True]


# --- formats -------------------------------------------------------------------------------------------------------


def test_the_version_says_the_format() -> None:
    assert [magic_of(version) for version in range(5)] == [0, 0, 1, 2, 2]


def test_a_codec_is_checked_against_what_is_spoken() -> None:
    check_codec(Codec.ZSTD, Versions(0, 7), "b:1")
    check_codec(Codec.LZ4, Versions(0, 0), "b:1")
    check_codec(Codec.LZ4, Versions(0, 0), "b:1", "0.8.2")
    check_codec(Codec.SNAPPY, Versions(0, 0), "b:1", "0.8.0")
    with pytest.raises(UnsupportedVersion, match=r"b:1 is a broker of Kafka 0\.8\.1, and lz4 came with Kafka 0\.8\.2"):
        check_codec(Codec.LZ4, Versions(0, 0), "b:1", "0.8.1")
    with pytest.raises(UnsupportedVersion, match="b:1 speaks Produce 0-6"):
        check_codec(Codec.ZSTD, Versions(0, 6), "b:1")


@pytest.mark.parametrize(("magic", "timestamp"), [(0, -1), (1, 7)])
def test_a_batch_becomes_a_message_set(magic: int, timestamp: int) -> None:
    builder = BatchBuilder(limit=1000, codec=Codec.GZIP)
    builder.append(7, b"k", b"v")
    (batch,) = split(memoryview(as_message_set(builder, magic, transactional=False)), "t-0")
    reader: AnyReader[bytes, bytes] = batch.records("t", 0)
    (record,) = reader
    assert (batch.header.magic, record.timestamp, record.raw_value) == (magic, timestamp, b"v")
