"""The producer of aiokafka's API where it is safer than aiokafka's, and what only this one promises."""

from __future__ import annotations

import asyncio
import gc
import re
import warnings
from typing import Any

import anyio
import pytest
from support.patience import SOON

from aiokafkawire import Client
from aiokafkawire.aiokafka import AIOKafkaClient, AIOKafkaConsumer, AIOKafkaProducer, IllegalOperation
from aiokafkawire.aiokafka.admin import AIOKafkaAdminClient
from aiokafkawire.aiokafka.errors import (
    IllegalStateError,
    KafkaConnectionError,
    KafkaTimeoutError,
    NotEnoughReplicasError,
    ProducerClosed,
    TopicAuthorizationFailedError,
)
from aiokafkawire.testing import ApiKey, Broker, ErrorCode

pytestmark = pytest.mark.anyio


async def test_it_sends_on_every_loop() -> None:
    with anyio.fail_after(SOON):
        async with Broker() as broker:
            broker.create_topic("t")
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
                futures = [await producer.send("t", b"%d" % number) for number in range(5)]
                assert [(await future)[3] for future in futures] == list(range(5))  # type: ignore[index]
                batch = producer.create_batch()
                batch.append(timestamp=None, key=None, value=b"v")
                assert await (await producer.send_batch(batch, "t", partition=0))
            transactional = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="x")
            async with transactional, transactional.transaction():
                await transactional.send_and_wait("t", b"v")


@pytest.mark.parametrize(("acks", "expected"), [("all", 5), (1, 1), (0, 1)])
async def test_without_all_acknowledgements_one_request_is_in_flight(acks: Any, expected: int) -> None:
    """A retry while another request is in flight could change the order."""
    with anyio.fail_after(SOON):
        async with Broker() as broker:
            broker.create_topic("t")
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, max_batch_size=100, acks=acks) as producer:
                wire = producer.client.wire_client.producer(**producer._options)
                assert wire._config.max_in_flight_requests_per_connection == expected
                for number in range(50):
                    await producer.send("t", b"%050d" % number)
                await producer.flush()
            async with Client(broker.bootstrap) as kafka:
                found = [int(record.value or b"") async for record in kafka.read_records("t")]
            assert found == list(range(50))


@pytest.mark.parametrize(("acks", "is_idempotent"), [("all", True), (1, False)])
async def test_with_all_acknowledgements_it_is_idempotent(acks: Any, is_idempotent: bool) -> None:
    with anyio.fail_after(SOON):
        async with Broker() as broker:
            broker.create_topic("t")
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, acks=acks) as producer:
                await producer.send_and_wait("t", b"v")
            assert bool(broker.requests.of(ApiKey.INIT_PRODUCER_ID)) is is_idempotent


async def test_a_lost_response_duplicates_nothing_with_all_acknowledgements() -> None:
    with anyio.fail_after(SOON):
        async with Broker() as broker:
            broker.create_topic("t")
            broker.on(ApiKey.PRODUCE, drop="after")
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, acks="all", retry_backoff_ms=1) as producer:
                assert await producer.send_and_wait("t", b"one")
                assert await producer.send_and_wait("t", b"two")
            async with Client(broker.bootstrap) as kafka:
                assert [record.value async for record in kafka.read_records("t")] == [b"one", b"two"]


async def test_failures_are_in_the_futures_and_flush_and_stop_raise_nothing() -> None:
    with anyio.fail_after(SOON):
        async with Broker() as broker:
            broker.create_topic("t")
            broker.on(ApiKey.PRODUCE, answer=ErrorCode.TOPIC_AUTHORIZATION_FAILED, times=None)
            producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
            await producer.start()
            first = await producer.send("t", b"v")
            await producer.flush()
            assert isinstance(first.exception(), TopicAuthorizationFailedError)
            second = await producer.send("t", b"v")
            await producer.stop()
            assert second.done()
            with pytest.raises(TopicAuthorizationFailedError):
                await second


async def test_a_record_that_is_never_acknowledged_fails_in_time() -> None:
    with anyio.fail_after(SOON):
        async with Broker() as broker:
            broker.create_topic("t")
            broker.on(ApiKey.PRODUCE, answer=ErrorCode.NOT_ENOUGH_REPLICAS, times=None)
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, request_timeout_ms=200) as producer:
                with pytest.raises((KafkaTimeoutError, NotEnoughReplicasError)):
                    await producer.send_and_wait("t", b"v")


async def test_stopping_aborts_an_open_transaction() -> None:
    with anyio.fail_after(SOON):
        async with Broker() as broker:
            broker.create_topic("t")
            producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="x")
            await producer.start()
            await producer.begin_transaction()
            await producer.send_and_wait("t", b"v")
            await producer.stop()
            assert [one.request.committed for one in broker.requests.of(ApiKey.END_TXN)] == [False]


async def test_after_a_commit_that_failed_the_transaction_is_aborted() -> None:
    with anyio.fail_after(SOON):
        async with Broker() as broker:
            broker.create_topic("t")
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="x") as producer:
                await producer.begin_transaction()
                broker.on(ApiKey.PRODUCE, answer=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                await producer.send("t", b"v")
                with pytest.raises(TopicAuthorizationFailedError):
                    await producer.commit_transaction()
                await producer.abort_transaction()
                with pytest.raises(IllegalOperation):
                    await producer.abort_transaction()
                async with producer.transaction():
                    assert await producer.send_and_wait("t", b"v")


async def test_one_transaction_at_a_time() -> None:
    with anyio.fail_after(SOON):
        async with (
            Broker() as broker,
            AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="x") as producer,
        ):
            with pytest.raises(IllegalOperation):
                await producer.commit_transaction()
            await producer.begin_transaction()
            with pytest.raises(IllegalStateError):
                await producer.begin_transaction()
            await producer.abort_transaction()


async def test_a_record_needs_a_key_or_a_value_and_a_partition_that_exists() -> None:
    with anyio.fail_after(SOON):
        async with Broker() as broker:
            broker.create_topic("t")
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
                with pytest.raises(ValueError, match="a key or a value"):
                    await producer.send("t")
                with pytest.raises(ValueError, match="no 7"):
                    await producer.send("t", b"v", partition=7)
                with pytest.raises(ValueError, match="no partition 7"):
                    producer._partition("t", 7, None, b"v", None, b"v")
                batch = producer.create_batch()
                with pytest.raises(TypeError, match=r"; pass a value_serializer to AIOKafkaProducer\(\) to convert"):
                    batch.append(timestamp=None, key=None, value="text")
                batch.append(timestamp=None, key=None, value=b"v")
                with pytest.raises(ValueError, match="no 7"):
                    await producer.send_batch(batch, "t", partition=7)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        (None, "x", "the value is a str, and bytes are needed; pass a value_serializer to AIOKafkaProducer() to"),
        ("k", b"x", "the key is a str, and bytes are needed; pass a key_serializer to AIOKafkaProducer() to"),
    ],
)
async def test_a_record_that_is_not_bytes_needs_a_serializer_of_this_producer(key: Any, value: Any, text: str) -> None:
    with anyio.fail_after(SOON):
        async with Broker() as broker:
            broker.create_topic("t")
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
                with pytest.raises(TypeError, match=re.escape(text)):
                    await producer.send_and_wait("t", value, key=key)


@pytest.mark.parametrize("partition", [1.0, True, "0", -1, 7])
async def test_a_batch_for_what_is_no_partition_is_refused_and_stops_no_later_record(partition: Any) -> None:
    with anyio.fail_after(SOON):
        async with Broker() as broker:
            broker.create_topic("t", partitions=2)
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
                batch = producer.create_batch()
                batch.append(timestamp=None, key=None, value=b"v")
                with pytest.raises(ValueError, match="partition"):
                    await producer.send_batch(batch, "t", partition=partition)
                assert await producer.send_and_wait("t", b"v", partition=0)
                assert await (await producer.send_batch(batch, "t", partition=1))


async def test_a_serializer_that_returns_no_bytes_is_named() -> None:
    text = "^the value_serializer returned a str, and bytes are needed$"
    with anyio.fail_after(SOON):
        async with Broker() as broker:
            broker.create_topic("t")
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, value_serializer=str) as producer:
                with pytest.raises(TypeError, match=text):
                    await producer.send("t", 1)
                with pytest.raises(TypeError, match=text):
                    producer.create_batch().append(timestamp=None, key=None, value=1)


async def test_headers_and_timestamps_that_are_wrong_are_named() -> None:
    headers: Any = [("name", "text")]
    with anyio.fail_after(SOON):
        async with Broker() as broker:
            broker.create_topic("t")
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
                with pytest.raises(TypeError, match="a header must be a string and bytes"):
                    await producer.send("t", b"v", headers=headers)
                with pytest.raises(ValueError, match="timestamp_ms must be"):
                    await producer.send("t", b"v", timestamp_ms=-1)


@pytest.mark.parametrize("make", [AIOKafkaProducer, AIOKafkaConsumer, AIOKafkaAdminClient, AIOKafkaClient])
def test_an_unknown_argument_is_a_type_error_with_a_similar_name(make: Any) -> None:
    with pytest.raises(TypeError) as caught:
        make(bootstrap_server="localhost:9092")
    text = "__init__() got an unexpected keyword argument 'bootstrap_server': did you mean bootstrap_servers?"
    assert str(caught.value) == f"{make.__name__}.{text}"
    with pytest.raises(TypeError, match=r"argument 'zzz': known are .*api_version, .*security_protocol"):
        make(zzz=1)


def test_a_variadic_argument_is_no_known_keyword() -> None:
    make: Any = AIOKafkaConsumer
    with pytest.raises(TypeError, match=r"argument 'topics': "):
        make(topics=["t"])


async def test_calls_in_the_wrong_state_say_so() -> None:
    with anyio.fail_after(SOON):
        async with Broker() as broker:
            producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
            with pytest.raises(IllegalOperation, match="not started"):
                await producer.send("t", b"v")
            await producer.stop()
            with pytest.raises(ProducerClosed):
                await producer.send("t", b"v")
            with pytest.raises(IllegalStateError):
                await producer.start()


async def test_a_start_that_failed_or_was_cancelled_can_be_repeated() -> None:
    with anyio.fail_after(SOON):
        async with Broker() as broker:
            broker.create_topic("t")
            producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
            with anyio.CancelScope() as scope:
                scope.cancel()
                await producer.start()
            assert scope.cancelled_caught
            with pytest.raises(IllegalOperation, match="was not started"):
                await producer.send("t", b"v")
            await producer.start()
            assert await producer.partitions_for("t") == {0}
            with pytest.raises(IllegalStateError, match="has been called already"):
                await producer.start()
            await producer.send_and_wait("t", b"v")
            await producer.stop()
            with pytest.raises(IllegalStateError, match="is stopped: make another"):
                await producer.start()


def test_settings_of_this_client_are_wrong_with_aiokafkas_error() -> None:
    with pytest.raises(ValueError, match="linger_ms must be a whole number"):
        AIOKafkaProducer(linger_ms=-1)


@pytest.mark.parametrize("name", ["linger_ms", "request_timeout_ms", "retry_backoff_ms"])
def test_a_time_that_is_no_number_is_refused(name: str) -> None:
    settings: dict[str, Any] = {name: "1"}
    with pytest.raises(ValueError, match=f"{name} must be a number of milliseconds, got '1'"):
        AIOKafkaProducer(**settings)


async def test_an_admin_client_whose_start_failed_can_be_started_again() -> None:
    with anyio.fail_after(SOON):
        async with Broker() as broker:
            admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
            with anyio.CancelScope() as scope:
                scope.cancel()
                await admin.start()
            assert scope.cancelled_caught
            await admin.start()
            assert await admin.list_topics() == []
            await admin.close()


async def test_deprecated_arguments_warn_and_do_nothing() -> None:
    for make in (AIOKafkaProducer, AIOKafkaConsumer, AIOKafkaClient, AIOKafkaAdminClient):
        with pytest.warns(DeprecationWarning, match="loop") as caught:
            make(loop=object())
        assert caught[0].filename == __file__
        with pytest.warns(DeprecationWarning, match="api_version"):
            make(api_version="auto")


def test_callbacks_of_one_batch_share_a_task() -> None:
    async def main() -> None:
        async with asyncio.timeout(SOON), Broker() as broker:
            broker.create_topic("t")
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=10_000) as producer:
                await producer.partitions_for("t")
                futures = [await producer.send("t", b"v") for _ in range(100)]
                before = len(asyncio.all_tasks())
                gathered = asyncio.gather(*futures)
                assert len(asyncio.all_tasks()) - before == 1
                await producer.flush()
                assert len(await gathered) == 100

    asyncio.run(main())


def test_a_future_that_nobody_awaited_before_the_end_is_settled() -> None:
    async def main() -> None:
        async with asyncio.timeout(SOON), Broker() as broker:
            broker.create_topic("t")
            producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=10_000)
            await producer.start()
            future = await producer.send("t", b"v")
            waiting = asyncio.gather(future)
            await producer.stop()
            (found,) = await waiting
            assert found is not None
            assert found.offset == 0

    asyncio.run(main())


def test_a_producer_that_is_not_stopped_warns() -> None:
    async def main() -> None:
        async with Broker() as broker:
            producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
            await producer.start()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                del producer
                gc.collect()
                first = str(caught[0].message)
                caught.clear()  # a warning holds its producer
                gc.collect()
            assert "Unclosed AIOKafkaProducer" in first

    asyncio.run(main())


async def test_the_client_knows_the_cluster() -> None:
    with anyio.fail_after(SOON):
        async with Broker(nodes=2) as broker:
            broker.create_topic("t", partitions=2)
            client = AIOKafkaClient(bootstrap_servers=[*broker.bootstrap.split(","), "localhost"])
            assert client.hosts[-1][:2] == ("localhost", 9092)
            await client.bootstrap()
            await client.bootstrap()
            assert await client.add_topic("t")
            assert await client.add_topic("t")
            assert client.cluster.topics() == {"t"}
            assert client.cluster.partitions_for_topic("t") == {0, 1}
            assert client.cluster.available_partitions_for_topic("t") == {0, 1}
            assert client.cluster.partitions_for_topic("nowhere") is None
            assert {one.nodeId for one in client.cluster.brokers()} == {1, 2}
            assert await client.set_topics([])
            assert (await client.fetch_all_metadata()).topics() == {"t"}
            assert await client.coordinator_lookup(0, "g") in (1, 2)
            assert client.get_random_node() in (1, 2)
            assert await client.ready(1)
            assert not await client.ready(9)
            with pytest.raises(TypeError):
                await client.send(1, "no request")  # type: ignore[call-overload]
            await client.close()
            await client.close()


async def test_a_client_that_reaches_no_server_says_so() -> None:
    client = AIOKafkaClient(bootstrap_servers="127.0.0.1:1", request_timeout_ms=100)
    with pytest.raises(KafkaConnectionError, match=r"127\.0\.0\.1:1"):
        await client.bootstrap()
    await client.close()


async def test_configs_that_are_not_named_stay() -> None:
    """aiokafka's alter_configs resets them."""
    from aiokafkawire.aiokafka.admin.config_resource import ConfigResource

    with anyio.fail_after(SOON):
        async with Broker() as broker, AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
            broker.create_topic("t", configs={"max.message.bytes": "4242"})
            await admin.alter_configs([ConfigResource("TOPIC", "t", {"retention.ms": "77"})])
            names = {"max.message.bytes": None, "retention.ms": None}
            (answer,) = await admin.describe_configs([ConfigResource("TOPIC", "t", names)])
            values = {entry[0]: entry[1] for entry in answer.resources[0][4]}
            assert values == {"max.message.bytes": "4242", "retention.ms": "77"}
            await admin.alter_configs([ConfigResource("TOPIC", "t", {"retention.ms": None})])
            (answer,) = await admin.describe_configs([ConfigResource("TOPIC", "t", {"retention.ms": None})])
            assert answer.resources[0][4][0][1] != "77"


async def test_describing_creates_no_topic() -> None:
    with anyio.fail_after(SOON):
        async with Broker() as broker, AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
            (found,) = await admin.describe_topics(["nowhere"])
            assert found["error_code"] == 3
            assert await admin.list_topics() == []
