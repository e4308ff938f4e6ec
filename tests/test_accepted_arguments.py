"""What people pass, and what is accepted: lists, bytes of any kind, names of topics; and names of other clients."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import attrs
import pytest
from support.patience import SOON

from aiokafkawire import (
    Client,
    ConfigError,
    NewTopic,
    OffsetSpec,
    TopicPartition,
    UsageError,
    blocking,
    other_clients_names,
)
from aiokafkawire.config import ClientConfig, ConsumerConfig, ProducerConfig, make_config
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@asynccontextmanager
async def running() -> AsyncIterator[Client]:
    async with Broker(port=None) as broker:
        broker.create_topic("t", partitions=2)
        async with Client(broker.bootstrap, connector=broker.connect) as client:
            with anyio.fail_after(SOON):
                yield client


# --- lists -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("topics", [["t"], ("t",), {"t"}, {"t": 0}.keys()])
async def test_a_consumer_takes_its_topics_as_a_collection(topics: Any) -> None:
    async with running() as client:
        async with client.consumer(topics) as whole:
            assert whole.assignment == (T0, T1)
        async with client.consumer(group_id="g", auto_offset_reset="earliest") as member, client.producer() as producer:
            member.subscribe(topics)
            await producer.send("t", b"1")
            assert [one.value for one in await member.poll()] == [b"1"]


async def test_partitions_are_paused_one_by_one_or_as_a_list() -> None:
    async with running() as client, client.consumer("t") as consumer:
        consumer.pause([T0, T1])
        assert list(consumer.paused) == [T0, T1]
        pair: Any = ("t", 0)
        consumer.resume(pair)
        assert list(consumer.paused) == [T1]
        consumer.resume(T1)
        assert list(consumer.paused) == []


async def test_topics_are_created_in_every_form() -> None:
    async with running() as client:
        admin = client.admin
        await admin.create_topics([NewTopic("a", 3), NewTopic(name="b", partitions=2, replication_factor=1)])
        await admin.create_topics(NewTopic("c", 1, 1, {"cleanup.policy": "compact"}))
        more: dict[str, int | NewTopic] = {"d": NewTopic(4), "e": NewTopic(partitions=5), "f": NewTopic("f", 6), "g": 7}
        await admin.create_topics(more)
        for name, count in {"a": 3, "b": 2, "c": 1, "d": 4, "e": 5, "f": 6, "g": 7}.items():
            assert len((await admin.describe_topic(name)).partitions) == count
        await admin.delete_topics("a")
        await admin.delete_topics(["b", "c"])
        assert await admin.list_topics() == ("d", "e", "f", "g", "t")


def test_a_new_topic_is_a_value() -> None:
    assert NewTopic("a", 3) == NewTopic(3, name="a") == NewTopic(name="a", partitions=3)
    first: Any = NewTopic("a", 3, 2)
    assert attrs.evolve(first, partitions=4) == NewTopic("a", 4, 2)
    assert NewTopic(3, 2, {"a": "b"}) == NewTopic(partitions=3, replication_factor=2, configs={"a": "b"})
    made: Any = NewTopic
    assert made("a", 3, configs=None) == NewTopic("a", 3)
    with pytest.raises(TypeError, match="'num_partitions'; here: partitions"):
        made("a", num_partitions=3)
    with pytest.raises(TypeError, match="multiple values for argument 'name'"):
        made("a", name="b")


async def test_groups_are_named_one_by_one_or_as_a_list() -> None:
    async with running() as client:
        admin = client.admin
        await admin.alter_consumer_group_offsets("g", {T0: 5})
        assert list(await admin.list_offsets_of_groups(["g", "h"])) == ["g", "h"]
        assert list(await admin.describe_groups(["g"])) == ["g"]
        await admin.delete_groups(["g"])
        assert await admin.list_groups() == []


# --- bytes -------------------------------------------------------------------------------------------------

KINDS = [bytearray, memoryview, lambda given: memoryview(bytearray(given)), lambda given: memoryview(given)[::1]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["send", "enqueue", "send_nowait", "send_many", "enqueue_many", "transaction"])
async def test_bytes_of_any_kind_are_sent(way: str, kind: Any) -> None:
    async with running() as client, client.producer(transactional_id="x" if way == "transaction" else None) as producer:
        await producer.partitions_for("t")
        given: dict[str, Any] = {"partition": 0, "headers": {"h": kind(b"header"), "n": None}}
        if way == "transaction":
            async with producer.transaction() as transaction:
                await transaction.send("t", kind(b"value"), key=kind(b"key"), **given)
        elif way.endswith("many"):
            await getattr(producer, way)("t", [kind(b"value")], keys=[kind(b"key")], **given)
        elif way == "send_nowait":
            await producer.send_nowait("t", kind(b"value"), key=kind(b"key"), **given)
        else:
            await getattr(producer, way)("t", kind(b"value"), key=kind(b"key"), **given)
        await producer.flush()
        async with client.consumer("t", auto_offset_reset="earliest") as consumer:
            (record,) = await consumer.poll()
    assert (record.key, record.value, record.headers) == (b"key", b"value", (("h", b"header"), ("n", None)))


async def test_the_bytes_are_those_of_the_call() -> None:
    async with running() as client, client.producer(linger_ms=60_000) as producer:
        await producer.partitions_for("t")
        value, key = bytearray(b"before"), bytearray(b"a")
        delivery = producer.send_nowait("t", value, key=key, partition=0)
        value[:], key[:] = b"after", b"b"
        await producer.flush()
        await delivery
        async with client.consumer("t", auto_offset_reset="earliest") as consumer:
            (record,) = await consumer.poll()
    assert (record.key, record.value) == (b"a", b"before")


async def test_a_serializer_may_make_them() -> None:
    async with running() as client:
        made: Any = {"value_serializer": bytearray, "key_serializer": memoryview}
        async with client.producer(**made) as producer:
            await producer.send("t", b"value", key=b"key", partition=1)
        async with client.consumer("t", auto_offset_reset="earliest") as consumer:
            (record,) = await consumer.poll()
    assert (record.key, record.value) == (b"key", b"value")


async def test_a_view_that_was_released_is_refused() -> None:
    async with running() as client, client.producer() as producer:
        await producer.partitions_for("t")
        view = memoryview(b"value")
        view.release()
        with pytest.raises(UsageError, match="the value cannot be read: operation forbidden on released memoryview"):
            producer.send_nowait("t", view)


# --- poll --------------------------------------------------------------------------------------------------


async def test_a_number_of_seconds_is_not_a_number_of_records() -> None:
    async with running() as client, client.producer() as producer:
        await producer.send_many("t", [b"1", b"2", b"3"], partition=0)
        async with client.consumer("t", auto_offset_reset="earliest") as consumer:
            poll: Any = consumer.poll
            with pytest.raises(
                UsageError, match=r"max_records must be a positive integer, got 1\.0: .*poll\(timeout=\.\.\.\)"
            ):
                await poll(1.0)
            assert len(await consumer.poll(1, timeout=1)) == 1
            assert len(await consumer.poll(max_records=2)) == 2


# --- threads -----------------------------------------------------------------------------------------------


async def test_another_thread_is_refused_and_changes_nothing() -> None:
    async with (
        running() as client,
        client.producer(transactional_id="x") as transactional,
        client.producer() as producer,
    ):
        await producer.partitions_for("t")
        for call in (producer.send_nowait, transactional.send_nowait):
            with pytest.raises(
                UsageError, match=r"a thread that does not run its event loop: .* aiokafkawire\.blocking"
            ):
                await anyio.to_thread.run_sync(call, "t", b"1")
        assert (await producer.send("t", b"2", partition=0)).offset == 0


# --- names of other clients --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "name", "told"),
    [
        (ConsumerConfig, "bootstrap_servers", "it is the first argument of Client: Client"),
        (ProducerConfig, "bootstrap.servers", "it is the first argument of Client: Client"),
        (ConsumerConfig, "client_id", r"Client\(servers, client_id=\.\.\.\)"),
        (ProducerConfig, "client.id", r"Client\(servers, client_id=\.\.\.\)"),
        (ProducerConfig, "security_protocol", r"Client\(servers, security_protocol=\.\.\.\)"),
        (ClientConfig, "group_id", r"client\.consumer\(group_id=\.\.\.\)"),
        (ConsumerConfig, "acks", r"client\.producer\(acks=\.\.\.\)"),
        (ConsumerConfig, "max_poll_records", r"poll\(max_records=\.\.\.\)"),
        (ConsumerConfig, "max.poll.records", r"poll\(max_records=\.\.\.\)"),
        (ConsumerConfig, "consumer_timeout_ms", r"poll\(timeout=\.\.\.\)"),
        (ConsumerConfig, "listener", "on_assigned="),
        (ProducerConfig, "max_batch_size", "here: batch_size"),
        (ProducerConfig, "loop", "leave it out: the client uses the running loop"),
        (ClientConfig, "sasl_plain_username", "sasl_username of Client"),
        (ClientConfig, "ssl_cafile", "ssl_ca_location of Client"),
        (ConsumerConfig, "group.id", "did you mean group_id"),
        (ConsumerConfig, "groop_id", "did you mean group_id"),
        (ClientConfig, "observer", "did you mean observers"),
        (ProducerConfig, "interceptor", "did you mean interceptors"),
        (ConsumerConfig, "interceptor", "did you mean interceptors"),
    ],
)
def test_a_setting_of_elsewhere_is_hinted(config: Any, name: str, told: str) -> None:
    with pytest.raises(ConfigError, match=rf"^unknown setting '{name}': .*{told}"):
        make_config(config, {name: 1})


async def test_an_attribute_of_elsewhere_is_hinted() -> None:
    async with running() as client, client.producer(transactional_id="x") as producer, client.consumer("t") as consumer:
        faces: list[tuple[Any, Any]] = [
            (client, other_clients_names.CLIENT),
            (client.admin, other_clients_names.ADMIN),
            (producer, other_clients_names.PRODUCER),
            (producer.transaction(), other_clients_names.TRANSACTION),
            (consumer, other_clients_names.CONSUMER),
        ]
        for face, names in faces:
            for name, hint in names.items():
                with pytest.raises(AttributeError) as caught:
                    getattr(face, name)
                assert str(caught.value) == f"{type(face).__name__!r} object has no attribute {name!r}; here: {hint}"
                assert (caught.value.name, caught.value.obj) == (name, face)
            assert not hasattr(face, "something")
            assert not hasattr(face, "__deepcopy__")


async def test_a_listener_is_hinted() -> None:
    async with running() as client, client.consumer(group_id="g") as consumer:
        subscribe: Any = consumer.subscribe
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'listener'; here: .*on_assigned=\.\.\."):
            subscribe("t", listener=object())
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'x'$"):
            subscribe("t", x=1)
        assert consumer.assignment == ()


@pytest.mark.parametrize(
    ("face", "names"),
    [
        (blocking.Producer, other_clients_names.BLOCKING_PRODUCER),
        (blocking.Consumer, other_clients_names.BLOCKING_CONSUMER),
        (blocking.Admin, other_clients_names.ADMIN),
    ],
)
def test_hints_of_the_blocking_client_await_nothing(face: Any, names: Any) -> None:
    for name, hint in names.items():
        with pytest.raises(AttributeError, match="; here: ") as caught:
            getattr(face.__new__(face), name)
        assert str(caught.value).endswith(hint)
        assert "await " not in hint
        assert "async" not in hint


def test_a_module_has_hints_too() -> None:
    import aiokafkawire

    for name in other_clients_names.MODULE:
        with pytest.raises(AttributeError, match="; here: "):
            getattr(aiokafkawire, name)
    assert blocking.Client is not None
    assert OffsetSpec.at(2**63 - 1).timestamp == 2**63 - 1
    for wrong in (2**63, -1):
        with pytest.raises(ValueError, match="a timestamp to look up"):
            OffsetSpec.at(wrong)
    for strange in ("now", 1.5, True, None):
        given: Any = strange
        with pytest.raises(TypeError, match="a timestamp to look up must be an integer"):
            OffsetSpec.at(given)
