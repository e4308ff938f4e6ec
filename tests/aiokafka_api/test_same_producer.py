"""A producer of aiokafka's API does what aiokafka's does: the same tests on both, on the in-process broker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextvars import Context, ContextVar
from typing import Any
from unittest import mock

import pytest
from support.patience import SOON

from aiokafkawire import Client
from aiokafkawire.testing import ApiKey, Broker, ErrorCode

Api = Any
KEYS = [1, 0, 2, 2, 0, 2, 2, 1, 1, 0, 2, 1]
"""The partitions of three for the keys key-0, key-1 and so on."""


def run(test: Callable[[Broker], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with asyncio.timeout(SOON), Broker(**options) as broker:
            broker.create_topic("t", partitions=3)
            await test(broker)

    asyncio.run(main())


async def written(broker: Broker) -> list[Any]:
    """The records of the topic's first partition."""
    async with Client(broker.bootstrap) as kafka:
        return [one async for one in kafka.read_records("t") if one.partition == 0]


def test_a_record_has_a_future_with_its_metadata(api: Api) -> None:
    async def test(broker: Broker) -> None:
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            future = await producer.send("t", b"one", partition=1, timestamp_ms=1234)
            written = await future
            assert written[:6] == ("t", 1, ("t", 1), 0, 1234, 0)
            assert isinstance(written, api("structs").RecordMetadata)
            assert isinstance(written.topic_partition, api.TopicPartition)
            assert future.done()
            assert future.result() == written
            assert future.exception() is None
            assert (await producer.send_and_wait("t", b"two", partition=1)).offset == 1

    run(test)


def test_futures_work_with_what_asyncio_has_for_them(api: Api) -> None:
    async def test(broker: Broker) -> None:
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            many = [await producer.send("t", b"%d" % number, partition=0) for number in range(20)]
            assert [one.offset for one in await asyncio.gather(*many)] == list(range(20))
            assert (await asyncio.gather(*many))[3].offset == 3
            waited = {await producer.send("t", b"x", partition=0) for _ in range(5)}
            done, pending = await asyncio.wait(waited)
            assert (done, pending) == (waited, set())
            assert (await asyncio.wait_for(await producer.send("t", b"x", partition=0), SOON)).offset == 25
            assert (await asyncio.shield(await producer.send("t", b"x", partition=0))).offset == 26
            called: list[Any] = []
            removed: list[Any] = []
            future = await producer.send("t", b"x", partition=0)
            future.add_done_callback(called.append)
            future.add_done_callback(removed.append)
            assert future.remove_done_callback(removed.append) == 1
            await asyncio.wait([future])
            await asyncio.sleep(0)
            assert called == [future]
            assert removed == []
            late: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            future.add_done_callback(late.set_result)
            assert await late is future

    run(test)


def test_callbacks_are_called_in_their_order_and_context_and_none_stops_the_others(api: Api) -> None:
    variable: ContextVar[str] = ContextVar("variable", default="outside")
    seen: list[str] = []
    told: list[dict[str, Any]] = []

    def callback(name: str) -> Callable[[Any], None]:
        return lambda _: seen.append(f"{name} {variable.get()} {asyncio.current_task()}")

    def fail(_: Any) -> None:
        raise asyncio.CancelledError if len(told) else LookupError

    async def test(broker: Broker) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            future = await producer.send("t", b"one")
            future.add_done_callback(callback("first"))
            future.add_done_callback(fail)
            variable.set("inside")
            future.add_done_callback(callback("second"))
            future.add_done_callback(fail)
            future.add_done_callback(callback("third"), context=Context())
            await future
            for _ in range(5):
                await asyncio.sleep(0)
            assert seen == ["first outside None", "second inside None", "third outside None"]
            assert [type(one["exception"]) for one in told] == [LookupError, asyncio.CancelledError]
            assert fail.__name__ in told[0]["message"]

    run(test)


def test_a_future_that_is_cancelled_calls_its_callbacks(api: Api) -> None:
    async def test(broker: Broker) -> None:
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            future = await producer.send("t", b"one")
            called: list[Any] = []
            future.add_done_callback(called.append)
            gathered = asyncio.gather(future, return_exceptions=True)
            assert future.cancel("no more")
            assert not future.cancel()
            assert called == []
            assert [str(one) for one in await gathered] == ["no more"]
            assert called == [future]
            await producer.flush()
            assert called == [future]

    run(test)


def test_a_future_that_is_cancelled_does_not_stop_its_record(api: Api) -> None:
    async def test(broker: Broker) -> None:
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            future = await producer.send("t", b"one", partition=0)
            assert future.cancel()
            assert future.cancelled()
            assert future.done()
            with pytest.raises(asyncio.CancelledError):
                await future
            with pytest.raises(asyncio.CancelledError):
                future.exception()
            assert (await producer.send_and_wait("t", b"two", partition=0)).offset == 1

    run(test)


def test_a_future_that_is_cancelled_wakes_those_that_wait_for_it_and_no_others(api: Api) -> None:
    async def waits(future: Any) -> Any:
        return await future

    async def test(broker: Broker) -> None:
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            future, other = [await producer.send("t", value, partition=0) for value in (b"one", b"two")]
            waiting = [asyncio.create_task(waits(future)) for _ in range(2)]
            others = asyncio.create_task(waits(other))
            await asyncio.sleep(0)
            assert future.cancel("no more")
            await asyncio.wait(waiting, timeout=SOON)
            assert [task.cancelled() for task in waiting] == [True, True]
            assert not others.done()
        assert (await others).offset == 1  # so the record was sent

    run(test)


def test_a_result_cannot_be_had_before_it_is_known(api: Api) -> None:
    async def test(broker: Broker) -> None:
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            future = await producer.send("t", b"one")
            assert not future.done()
            with pytest.raises(asyncio.InvalidStateError):
                future.result()
            with pytest.raises(asyncio.InvalidStateError):
                future.exception()
            await producer.flush()
            assert future.done()

    run(test)


def test_a_refused_record_has_the_broker_s_error(api: Api) -> None:
    async def test(broker: Broker) -> None:
        broker.on(ApiKey.PRODUCE, answer=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            future = await producer.send("t", b"one")
            errors = api("errors")
            with pytest.raises(errors.TopicAuthorizationFailedError) as caught:
                await future
            assert isinstance(caught.value, errors.BrokerResponseError)
            assert caught.value.errno == 29
            assert isinstance(caught.value, RuntimeError)
            assert isinstance(future.exception(), errors.TopicAuthorizationFailedError)
            outcomes: Any = await asyncio.gather(future, return_exceptions=True)
            assert isinstance(outcomes[0], errors.TopicAuthorizationFailedError)
            await producer.flush()

    run(test)


def test_both_map_keys_to_the_same_partitions(api: Api) -> None:
    async def test(broker: Broker) -> None:
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            many = [await producer.send("t", b"v", key=b"key-%d" % number) for number in range(12)]
            assert [one.partition for one in await asyncio.gather(*many)] == KEYS

    run(test)


def test_records_without_a_key_go_to_all_partitions(api: Api) -> None:
    async def test(broker: Broker) -> None:
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            many = [await producer.send("t", b"v") for _ in range(60)]
            assert {one.partition for one in await asyncio.gather(*many)} == {0, 1, 2}

    run(test)


def test_a_partitioner_gets_the_serialized_key_and_lists_of_partitions(api: Api) -> None:
    given = []

    def partitioner(key: Any, all_partitions: Any, available: Any) -> int:
        given.append((key, all_partitions, sorted(available)))
        return 2

    async def test(broker: Broker) -> None:
        async with api.AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap, partitioner=partitioner, key_serializer=str.encode
        ) as producer:
            assert (await producer.send_and_wait("t", b"v", key="k")).partition == 2
        assert given == [(b"k", [0, 1, 2], [0, 1, 2])]

    run(test)


def test_serializers_get_none_as_well(api: Api) -> None:
    async def test(broker: Broker) -> None:
        def to_json(value: Any) -> bytes:
            return json.dumps(value).encode()

        async with api.AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap, key_serializer=to_json, value_serializer=to_json
        ) as producer:
            await producer.send_and_wait("t", None, key="k", partition=0)
            await producer.send_and_wait("t", {"a": 1}, partition=0, headers=[("h", b"1"), ("h", b"2")])
        found = [(one.key, one.value, list(one.headers)) for one in await written(broker)]
        assert found == [(b'"k"', b"null", []), (b"null", b'{"a": 1}', [("h", b"1"), ("h", b"2")])]

    run(test)


def test_without_acknowledgements_the_result_is_none(api: Api) -> None:
    async def test(broker: Broker) -> None:
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, acks=0) as producer:
            assert await producer.send_and_wait("t", b"v") is None

    run(test)


@pytest.mark.parametrize(
    ("arguments", "acks"),
    [({}, 1), ({"acks": "all"}, -1), ({"acks": -1}, -1), ({"acks": 1}, 1), ({"enable_idempotence": True}, -1)],
)
def test_acks_are_aiokafka_s(api: Api, arguments: dict[str, Any], acks: int) -> None:
    async def test(broker: Broker) -> None:
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, **arguments) as producer:
            await producer.send_and_wait("t", b"v")
        assert [one.request.acks for one in broker.requests.of(ApiKey.PRODUCE)] == [acks]

    run(test)


@pytest.mark.parametrize(
    "arguments",
    [
        {"acks": 2},
        {"acks": 1, "enable_idempotence": True},
        {"acks": 0, "transactional_id": "x"},
        {"compression_type": "rar"},
        {"security_protocol": "TLS"},
        {"security_protocol": "SSL"},
        {"security_protocol": "SASL_PLAINTEXT"},
        {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "MD5"},
    ],
    ids=str,
)
def test_wrong_settings_are_value_errors(api: Api, arguments: dict[str, Any]) -> None:
    async def main() -> None:
        with pytest.raises(ValueError):
            api.AIOKafkaProducer(**arguments)

    asyncio.run(main())


def test_a_value_must_be_bytes(api: Api) -> None:
    async def test(broker: Broker) -> None:
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            with pytest.raises(TypeError):
                await producer.send("t", "text")
            with pytest.raises(TypeError):
                await producer.send("t", b"v", key=1)
            assert await producer.send_and_wait("t", bytearray(b"v"), key=memoryview(b"k"))

    run(test)


@pytest.mark.parametrize("headers", [[("a", "b")], [("a", 1)], [(b"a", b"b")], "ab", 5], ids=str)
def test_headers_must_be_text_and_bytes(api: Api, headers: Any) -> None:
    async def test(broker: Broker) -> None:
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            with pytest.raises(TypeError):
                await producer.send("t", b"v", headers=headers)
            assert await producer.send_and_wait("t", b"v", headers=[("a", b"b"), ("c", None)])

    run(test)


@pytest.mark.parametrize(
    "settings",
    [
        {"linger_ms": 5.5},
        {"metadata_max_age_ms": 10_000.5, "retry_backoff_ms": 10.5, "connections_max_idle_ms": 9_000.5},
        {"max_batch_size": 0},
    ],
    ids=str,
)
def test_a_record_is_sent_with_settings_that_are_no_whole_numbers_or_0(api: Api, settings: dict[str, Any]) -> None:
    async def test(broker: Broker) -> None:
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, **settings) as producer:
            assert await producer.send_and_wait("t", b"v")

    run(test)


def test_a_record_may_be_too_large(api: Api) -> None:
    async def test(broker: Broker) -> None:
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, max_request_size=1000) as producer:
            with pytest.raises(api("errors").MessageSizeTooLargeError):
                await producer.send("t", b"v" * 1001)

    run(test)


def test_a_topic_that_does_not_exist_is_named_in_time(api: Api) -> None:
    async def test(broker: Broker) -> None:
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, request_timeout_ms=300) as producer:
            with pytest.raises(api("errors").UnknownTopicOrPartitionError):
                await producer.send("nowhere", b"v")

    run(test, auto_create_topics_enable=False)


def test_a_stopped_producer_takes_no_record(api: Api) -> None:
    async def test(broker: Broker) -> None:
        producer = api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
        await producer.start()
        future = await producer.send("t", b"v")
        batch = producer.create_batch()
        batch.append(timestamp=None, key=None, value=b"v")
        await producer.stop()
        await producer.stop()
        assert future.done()
        with pytest.raises(api("errors").ProducerClosed):
            await producer.send("t", b"v")

    run(test)


def test_no_server_is_a_connection_error(api: Api) -> None:
    async def main() -> None:
        producer = api.AIOKafkaProducer(bootstrap_servers="127.0.0.1:1", request_timeout_ms=200)
        with pytest.raises(api("errors").KafkaConnectionError):
            await producer.start()
        await producer.stop()

    asyncio.run(main())


def test_a_batch_is_sent_as_it_was_filled(api: Api) -> None:
    async def test(broker: Broker) -> None:
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, max_batch_size=500) as producer:
            await producer.send_and_wait("t", b"before", partition=0)
            batch = producer.create_batch()
            count = 0
            while batch.append(timestamp=1000 + count, key=b"k", value=b"v" * 50, headers=[("h", b"1")]) is not None:
                count += 1
            assert batch.record_count() == count > 1
            assert batch.size() <= 500
            assert batch.closed()
            metadata = await (await producer.send_batch(batch, "t", partition=0))
            assert (metadata.partition, metadata.offset) == (0, 1)
            assert (await producer.send_and_wait("t", b"after", partition=0)).offset == count + 1
        found = (await written(broker))[1:-1]
        assert [one.timestamp for one in found] == [1000 + number for number in range(count)]
        assert {(one.key, one.value, tuple(one.headers)) for one in found} == {(b"k", b"v" * 50, (("h", b"1"),))}

    run(test)


def test_times_in_a_batch_may_have_a_fraction(api: Api) -> None:
    async def test(broker: Broker) -> None:
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            batch = producer.create_batch()
            assert batch.append(timestamp=1_234.9, key=None, value=b"v").timestamp == 1_234
            for wrong in ("1234", float("nan")):
                with pytest.raises((TypeError, ValueError)):
                    batch.append(timestamp=wrong, key=None, value=b"v")
            await (await producer.send_batch(batch, "t", partition=0))
        assert [one.timestamp for one in await written(broker)] == [1_234]

    run(test)


def test_the_first_record_of_a_batch_always_has_room(api: Api) -> None:
    async def test(broker: Broker) -> None:
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, max_batch_size=100) as producer:
            batch = producer.create_batch()
            assert batch.append(timestamp=None, key=None, value=b"v" * 200) is not None
            assert batch.append(timestamp=None, key=None, value=b"v") is None

    run(test)


def test_a_transaction_commits_records_and_offsets_or_none(api: Api) -> None:
    async def test(broker: Broker) -> None:
        partition = api.TopicPartition("t", 0)
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="x") as producer:
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction():
                    await producer.send_and_wait("t", b"aborted", partition=0)
                    await producer.send_offsets_to_transaction({partition: 1}, "g")
                    raise ZeroDivisionError
            async with producer.transaction():
                future = await producer.send("t", b"committed", partition=0)
                await producer.send_offsets_to_transaction({partition: (7, "note")}, "g")
            assert future.done()
            await producer.begin_transaction()
            await producer.commit_transaction()
            await producer.begin_transaction()
            await producer.abort_transaction()
        admin = api("admin").AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await admin.start()
        assert await admin.list_consumer_group_offsets("g") == {partition: (7, "note")}
        await admin.close()

    run(test)


def test_transactions_have_their_order(api: Api) -> None:
    async def test(broker: Broker) -> None:
        illegal = api("errors").IllegalOperation
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            for call in (producer.begin_transaction, producer.commit_transaction, producer.abort_transaction):
                with pytest.raises(illegal):
                    await call()
            with pytest.raises(illegal):
                await producer.send_offsets_to_transaction({}, "g")
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="x") as producer:
            with pytest.raises(illegal):
                await producer.send("t", b"v")
            with pytest.raises(illegal):
                await producer.send_offsets_to_transaction({}, "g")
            await producer.begin_transaction()
            for offsets, group in (
                ({}, "g"),
                ({api.TopicPartition("t", 0): 1}, ""),
                ({api.TopicPartition("t", 0): 1}, None),
            ):
                with pytest.raises(ValueError):
                    await producer.send_offsets_to_transaction(offsets, group)
            with pytest.raises(TypeError):
                await producer.send_offsets_to_transaction({("t", 0): 1}, "g")
            await producer.abort_transaction()

    run(test)


def test_a_second_producer_fences_the_first(api: Api) -> None:
    async def test(broker: Broker) -> None:
        options = {"bootstrap_servers": broker.bootstrap, "transactional_id": "x"}
        async with api.AIOKafkaProducer(**options) as first, api.AIOKafkaProducer(**options) as second:
            async with second.transaction():
                await second.send_and_wait("t", b"v")
            with pytest.raises(api("errors").ProducerFenced):
                async with first.transaction():
                    await first.send_and_wait("t", b"v")

    run(test)


def test_instrumentation_finds_what_it_wraps_and_reads(api: Api) -> None:
    async def test(broker: Broker) -> None:
        servers = broker.bootstrap
        original = api.AIOKafkaProducer.send
        seen: list[Any] = []

        async def wrapped(self: Any, topic: str, *args: Any, **kwargs: Any) -> Any:
            seen.append(topic)
            return await original(self, topic, *args, **kwargs)

        with mock.patch.object(api.AIOKafkaProducer, "send", wrapped):
            async with api.AIOKafkaProducer(
                bootstrap_servers=servers, client_id="me", value_serializer=str.encode
            ) as producer:
                await producer.send_and_wait("t", "v")
                assert (producer.client._bootstrap_servers, producer.client._client_id) == (servers, "me")
                assert (producer._key_serializer, producer._value_serializer) == (None, str.encode)
                assert await producer.client._wait_on_metadata("t") == {0, 1, 2}
                assert producer._partition("t", None, b"key-0", b"v", b"key-0", b"v") == 1
                assert producer._partition("t", 2, None, b"v", None, b"v") == 2
        assert seen == ["t"]

    run(test)


def test_subclasses_override_methods(api: Api) -> None:
    async def test(broker: Broker) -> None:
        class Loud(api.AIOKafkaProducer):  # type: ignore[misc]
            def _serialize(self, key: Any, value: Any, headers: Any = ()) -> Any:
                return key, value.upper()

            async def send(self, topic: str, *args: Any, **kwargs: Any) -> Any:
                return await super().send("t", *args, **kwargs)

        async with Loud(bootstrap_servers=broker.bootstrap) as producer:
            assert (await producer.send_and_wait("other", b"v", partition=0)).topic == "t"
        assert [one.value for one in await written(broker)] == [b"V"]

    run(test)
