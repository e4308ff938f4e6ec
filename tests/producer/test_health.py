"""What a producer says of itself: each reason for which records wait, while it is true, and no longer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import attrs
import pytest
from support.virtual_time import virtual_time

from aiokafkawire import Client, Producer, ProducerFenced, TopicNotReady, TopicPartition
from aiokafkawire.errors import ErrorCode
from aiokafkawire.producer.health import RecordWait, TransactionHealth, UnacknowledgedRecords, why_waiting
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import Address

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
AT = Address("kafka-1", 9092)
SENT = UnacknowledgedRecords(
    records=3,
    size=90,
    age=2.5,
    waits_for=RecordWait.ANSWER,
    attempts=1,
    broker=AT,
    sent=2.0,
    left=None,
    error=None,
    stall_after=30.0,
)
IN_TRANSACTION = TransactionHealth(
    transactional_id="x",
    phase="committing a transaction",
    producer_id=1,
    producer_epoch=0,
    open_for=1.0,
    coordinator=AT,
    request="EndTxn",
    trouble=None,
    error=None,
)
OLDEST = "t-0: 3 records wait for up to 2.5 s: "


def with_(**changes: Any) -> UnacknowledgedRecords:
    return attrs.evolve(SENT, **changes)


@pytest.mark.parametrize(
    ("records", "why", "stalled"),
    [
        (SENT, "kafka-1:9092 has not acknowledged it for 2.0 s", False),
        (with_(error="NotLeader: x"), "kafka-1:9092 has not acknowledged it for 2.0 s, after NotLeader: x", True),
        (with_(waits_for=RecordWait.LINGER, left=0.04), "more records may join the batch for 40 ms (linger_ms)", False),
        (with_(waits_for=RecordWait.COMPRESSION), "a thread compresses its batch", False),
        (with_(waits_for=RecordWait.PRODUCER_ID), "no broker has assigned a producer id yet", False),
        (with_(waits_for=RecordWait.LEADER, broker=None), "it has no known leader", True),
        (with_(waits_for=RecordWait.CONNECTION), "there is no open connection to kafka-1:9092", False),
        (
            with_(waits_for=RecordWait.THROTTLE, left=20.0),
            "kafka-1:9092 throttles this client for another 20.0 s, since a quota is exceeded",
            False,
        ),
        (
            with_(waits_for=RecordWait.BACKOFF, left=0.1, error="X: y"),
            "it will be sent again in 100 ms, after X: y",
            True,
        ),
        (
            with_(waits_for=RecordWait.EARLIER_REQUESTS),
            "kafka-1:9092 has not answered the requests before it",
            False,
        ),
    ],
)
def test_each_reason_is_a_sentence(records: UnacknowledgedRecords, why: str, stalled: bool) -> None:
    assert why_waiting({T0: records}) == (OLDEST + why, stalled)


def test_a_record_that_waits_for_long_is_stalled_but_not_one_that_lingers() -> None:
    assert not with_(age=5.1).stalled
    assert with_(age=5.1, stall_after=5.0).stalled
    assert not with_(age=5.1, stall_after=5.0, waits_for=RecordWait.LINGER).stalled


def test_stalled_partitions_come_first_and_the_oldest_of_them() -> None:
    waiting = {
        TopicPartition("t", 0): with_(age=1.0),
        TopicPartition("t", 1): with_(age=3.0, waits_for=RecordWait.COMPRESSION),
        TopicPartition("t", 2): with_(age=0.5, error="X"),
    }
    why, stalled = why_waiting(waiting)
    assert stalled
    assert [part[:3] for part in (why or "").split("; ")] == ["t-2", "t-1", "t-0"]


def test_partitions_with_one_cause_share_a_reason() -> None:
    waiting = {TopicPartition("t", index): with_(age=float(index), error=f"X: t-{index}") for index in range(12)}
    why, _ = why_waiting(waiting | {TopicPartition("u", 0): with_(waits_for=RecordWait.LEADER, broker=None)})
    assert why == (
        "t-11 and 11 other partitions: 36 records wait for up to 11.0 s: "
        "kafka-1:9092 has not acknowledged it for 2.0 s, after X: t-11; "
        "u-0: 3 records wait for up to 2.5 s: it has no known leader"
    )


@pytest.mark.parametrize(
    ("options", "why", "stalled"),
    [
        ({}, None, False),
        ({"transaction": IN_TRANSACTION}, None, False),
        (
            {"transaction": attrs.evolve(IN_TRANSACTION, trouble="ConnectionLost: x")},
            "kafka-1:9092 has not carried out EndTxn: ConnectionLost: x",
            True,
        ),
        (
            {"transaction": attrs.evolve(IN_TRANSACTION, error="X: y")},
            "the transaction can only be aborted: X: y",
            False,
        ),
        ({"failed": "ProducerFenced: x"}, "ProducerFenced: x", True),
        ({"blocked": 1}, "1 call waits for space in the buffer", False),
        ({"topics": {"u": 2}}, "2 calls wait for the metadata of topic 'u'", False),
    ],
)
def test_what_else_a_producer_waits_for(options: dict[str, Any], why: str | None, stalled: bool) -> None:
    assert why_waiting({}, **options) == (why, stalled)


# --- on the in-process broker, in virtual time ------------------------------------------------------------


@asynccontextmanager
async def running(broker: Broker, **options: Any) -> AsyncIterator[Producer[Any, Any]]:
    """Open a producer that is known to the broker, and has records of t-0 acknowledged."""
    client = {"request_timeout_ms": options.pop("request_timeout_ms", 30_000), "stall_report_ms": 5_000}
    async with (
        Client(broker.bootstrap, connector=broker.connect, **client) as kafka,
        kafka.producer(**{"linger_ms": 0, **options}) as producer,
    ):
        await producer.send("t", b"first", partition=0)
        assert (producer.health().why, producer.health().stalled) == (None, False)
        yield producer
        await producer.flush()
        health = producer.health()
        assert (health.why, health.stalled, health.oldest, health.records, dict(health.partitions)) == (
            None,
            False,
            None,
            0,
            {},
        )


async def until(reached: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not reached():  # noqa: ASYNC110  # no event announces a change of the health
            await anyio.sleep(0.01)


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(port=None) as broker:
        broker.create_topic("t", 2)
        yield broker


@pytest.mark.anyio
@virtual_time
async def test_records_linger(broker: Broker) -> None:
    async with running(broker, linger_ms=400) as producer:
        producer.send_nowait("t", b"1", partition=0)
        producer.send_nowait("t", b"2", partition=0)
        await anyio.sleep(0.1)
        health = producer.health()
        waiting = health.partitions[T0]
        assert (waiting.waits_for, waiting.records, waiting.stalled) == (RecordWait.LINGER, 2, False)
        assert waiting.left == pytest.approx(0.3)
        assert waiting.age == pytest.approx(0.1)
        assert health.buffered > 0
        assert not health.stalled


@pytest.mark.anyio
@virtual_time
async def test_records_wait_for_an_answer_and_later_ones_for_the_requests_before(broker: Broker) -> None:
    async with running(broker) as producer, broker.hold(ApiKey.PRODUCE) as held:
        producer.send_nowait("t", b"1", partition=0)
        await held.arrived()
        producer.send_nowait("t", b"2", partition=1)
        producer.send_nowait("t", b"3", partition=0)
        await anyio.sleep(7)
        health = producer.health()
        assert {partition: one.waits_for for partition, one in health.partitions.items()} == {
            T0: RecordWait.ANSWER,
            T1: RecordWait.EARLIER_REQUESTS,
        }
        assert health.partitions[T0].sent == pytest.approx(7)
        assert health.partitions[T0].records == 2
        assert health.oldest == pytest.approx(7)
        assert health.in_flight >= 1
        assert health.stalled
        assert "has not acknowledged it for 7.0 s" in (health.why or "")


@pytest.mark.anyio
@virtual_time
async def test_records_wait_for_a_producer_id() -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("t", 2)
        async with (
            Client(broker.bootstrap, connector=broker.connect) as kafka,
            kafka.producer() as producer,
            broker.hold(ApiKey.INIT_PRODUCER_ID) as held,
        ):
            await producer.partitions_for("t")
            delivery = producer.send_nowait("t", b"1", partition=0)
            await held.arrived()
            assert producer.health().partitions[T0].waits_for is RecordWait.PRODUCER_ID
            held.release()
            await delivery
            assert producer.health().why is None


@pytest.mark.anyio
@virtual_time
async def test_records_wait_for_a_leader() -> None:
    async with Broker(nodes=2, port=None, default_replication_factor=1) as broker:
        broker.create_topic("t", 2)
        async with running(broker) as producer:
            node = broker.leader("t", 0)
            await broker.stop_node(node)
            producer.send_nowait("t", b"1", partition=0)
            await until(lambda: producer.health().partitions[T0].waits_for is RecordWait.LEADER)
            health = producer.health()
            assert health.stalled
            assert health.partitions[T0].broker is None
            assert "t-0: 1 record waits for" in (health.why or "")
            assert "it has no known leader" in (health.why or "")
            await broker.start_node(node)


@pytest.mark.anyio
@virtual_time
async def test_records_wait_for_a_connection_and_the_reason_is_there(broker: Broker) -> None:
    async with running(broker) as producer:
        await broker.refuse_connections(1)
        broker.on(ApiKey.PRODUCE, drop="before")
        producer.send_nowait("t", b"1", partition=0)
        await until(lambda: producer.health().partitions[T0].waits_for is RecordWait.CONNECTION)
        waiting = producer.health().partitions[T0]
        assert waiting.attempts == 1
        assert waiting.stalled
        await until(lambda: "ConnectionLost" in (producer.health().why or ""))
        await broker.accept_connections(1)


@pytest.mark.anyio
@virtual_time
async def test_records_wait_after_an_error(broker: Broker) -> None:
    async with running(broker) as producer:
        rule = broker.on(ApiKey.PRODUCE, answer=ErrorCode.NOT_ENOUGH_REPLICAS, topic="t")
        producer.send_nowait("t", b"1", partition=0)
        await rule.met()
        await until(lambda: producer.health().partitions[T0].waits_for is RecordWait.BACKOFF)
        health = producer.health()
        assert health.partitions[T0].left is not None
        assert "after NotEnoughReplicas: " in (health.why or "")
        assert health.stalled


@pytest.mark.anyio
@virtual_time
async def test_records_wait_while_a_broker_throttles(broker: Broker) -> None:
    async with running(broker) as producer:
        broker.throttle(None, 40_000)
        await producer.send("t", b"1", partition=0)
        broker.throttle(None, 0)
        producer.send_nowait("t", b"2", partition=0)
        await anyio.sleep(10)
        waiting = producer.health().partitions[T0]
        assert waiting.waits_for is RecordWait.THROTTLE
        assert waiting.left == pytest.approx(30)


@pytest.mark.anyio
@virtual_time
async def test_calls_wait_for_space_and_for_topics(broker: Broker) -> None:
    async with (
        running(broker, buffer_memory=2_000, max_block_ms=5_000) as producer,
        anyio.create_task_group() as tasks,
        broker.hold(ApiKey.PRODUCE) as held,
    ):
        producer.send_nowait("t", b"x" * 1_500, partition=0)
        await held.arrived()
        tasks.start_soon(producer.send, "t", b"x" * 1_500)

        async def send_to_a_missing_topic() -> None:
            with pytest.raises(TopicNotReady):
                await producer.send("missing", b"1")

        tasks.start_soon(send_to_a_missing_topic)
        await until(lambda: bool(producer.health().blocked))
        health = producer.health()
        assert (health.blocked, dict(health.waiting_for_topics)) == (1, {"missing": 1})
        assert "1 call waits for space in the buffer" in (health.why or "")
        assert "1 call waits for the metadata of topic 'missing'" in (health.why or "")
        assert 1_500 < health.buffered <= health.buffer_memory == 2_000


@pytest.mark.anyio
@virtual_time
async def test_a_transaction_waits_for_its_coordinator() -> None:
    async with Broker(port=None, max_versions="3.9") as broker:
        broker.create_topic("t", 2)
        async with (
            Client(broker.bootstrap, connector=broker.connect) as kafka,
            kafka.producer(transactional_id="x") as producer,
            anyio.create_task_group() as tasks,
        ):
            seen: list[str | None] = []

            async def watch() -> None:
                await anyio.sleep(1)
                seen.append(producer.health().why)

            async with producer.transaction() as transaction:
                async with broker.hold(ApiKey.ADD_PARTITIONS_TO_TXN) as held:
                    delivery = await transaction.enqueue("t", b"1", partition=0)
                    await held.arrived()
                    health = producer.health()
                    assert health.partitions[T0].waits_for is RecordWait.TRANSACTION
                    assert health.transaction is not None
                    assert (health.transaction.transactional_id, health.transaction.phase) == ("x", "in a transaction")
                    assert health.transaction.request == "AddPartitionsToTxn"
                    held.release()
                    await delivery
                broker.on(ApiKey.END_TXN, drop="before")
                broker.on(ApiKey.END_TXN, delay=3.0)
                tasks.start_soon(watch)
            assert "has not carried out EndTxn: ConnectionLost: " in (seen[0] or "")
            after = producer.health()
            assert (after.why, after.stalled, after.failed) == (None, False, None)
            assert after.transaction is not None
            assert (after.transaction.phase, after.transaction.open_for) == ("ready for a transaction to begin", None)


@pytest.mark.anyio
@virtual_time
async def test_a_fenced_producer_has_failed(broker: Broker) -> None:
    async with (
        Client(broker.bootstrap, connector=broker.connect) as kafka,
        kafka.producer(transactional_id="x") as fenced,
        kafka.producer(transactional_id="x"),
    ):
        with pytest.raises(ProducerFenced):
            async with fenced.transaction() as transaction:
                await transaction.send("t", b"1")
        health = fenced.health()
        assert (health.failed or "").startswith("ProducerFenced: ")
        assert health.stalled


@pytest.mark.anyio
async def test_before_and_after_its_life_a_producer_has_nothing_to_report(broker: Broker) -> None:
    async with Client(broker.bootstrap, connector=broker.connect) as kafka:
        producer = kafka.producer()
        assert (producer.health().state, producer.health().why) == ("new", None)
        async with producer:
            await producer.send("t", b"1")
            assert producer.health().name == producer.name == "produce-1"
    health = producer.health()
    assert (health.state, health.why, health.failed) == ("closed", None, None)


@pytest.mark.anyio
@virtual_time
async def test_the_health_is_plain_values_for_json(broker: Broker) -> None:
    async with running(broker, linger_ms=400) as producer:
        producer.send_nowait("t", b"1", partition=0)
        plain = json.loads(json.dumps(producer.health().to_dict()))
        assert plain["partitions"]["t-0"]["waits_for"] == "LINGER"
        assert plain["transaction"] is None
