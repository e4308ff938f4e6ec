"""What our consumer of aiokafka's API does otherwise than aiokafka, since that is safer."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import pytest
from support.patience import PATIENCE, SOON

from aiokafkawire import Client
from aiokafkawire.aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, ConsumerRecord, TopicPartition
from aiokafkawire.aiokafka.consumer.session import prefix_pattern
from aiokafkawire.aiokafka.errors import (
    CommitFailedError,
    ConsumerStoppedError,
    GroupAuthorizationFailedError,
    IllegalStateError,
    InvalidSessionTimeoutError,
    KafkaConnectionError,
    KafkaTimeoutError,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing import Broker, ErrorCode

TOPIC = "orders"
WHERE = TopicPartition(TOPIC, 0)


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(port=0) as broker:
        yield broker


@pytest.fixture
async def kafka(broker: Broker) -> AsyncIterator[Client]:
    async with Client(broker.bootstrap) as client:
        await client.admin.create_topics({TOPIC: 1})
        async with client.producer() as producer:
            for number in range(5):
                await producer.send(TOPIC, b"%d" % number)
        yield client


def consumer_of(broker: Broker, *topics: str, **more: Any) -> AIOKafkaConsumer[Any, Any]:
    settings: dict[str, Any] = {"auto_offset_reset": "earliest", "group_id": "g", "heartbeat_interval_ms": 50} | more
    return AIOKafkaConsumer(*topics, bootstrap_servers=broker.bootstrap, **settings)


async def committed(broker: Broker) -> int | None:
    async with consumer_of(broker) as other:
        return await other.committed(WHERE)


# --- auto-commit -------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_stop_commits_what_was_handed_out(broker: Broker, kafka: Client) -> None:
    async with consumer_of(broker, TOPIC) as consumer:
        await consumer.getone()
        await consumer.getone()
    assert await committed(broker) == 2


@pytest.mark.anyio
async def test_a_record_whose_processing_failed_is_not_committed(broker: Broker, kafka: Client) -> None:
    with pytest.raises(ZeroDivisionError):
        async with consumer_of(broker, TOPIC) as consumer:
            await consumer.getone()
            await consumer.getone()
            raise ZeroDivisionError
    assert await committed(broker) == 1


@pytest.mark.anyio
async def test_a_record_that_another_task_processes_is_not_committed(broker: Broker, kafka: Client) -> None:
    took = anyio.Event()

    async def process(consumer: AIOKafkaConsumer[Any, Any]) -> None:
        await consumer.getone()
        await consumer.getone()
        took.set()
        await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        async with consumer_of(broker, TOPIC) as consumer:
            tasks.start_soon(process, consumer)
            await took.wait()
        assert await committed(broker) == 1
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_unsubscribe_commits_what_was_handed_out(broker: Broker, kafka: Client) -> None:
    async with consumer_of(broker, TOPIC) as consumer:
        await consumer.getone()
        consumer.unsubscribe()
        consumer.assign([WHERE])
        with anyio.fail_after(PATIENCE):
            assert (await consumer.getone()).offset == 1


@pytest.mark.anyio
async def test_a_record_in_hand_delays_a_rebalance_for_a_while(broker: Broker, kafka: Client) -> None:
    """For less than the rebalance may take, after which the record's commit fails."""
    revoked = anyio.Event()

    class Listening(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked_partitions: Any) -> None:
            if revoked_partitions:
                revoked.set()

        def on_partitions_assigned(self, assigned: Any) -> None:
            pass

    first = consumer_of(broker, rebalance_timeout_ms=1000)
    first.subscribe([TOPIC], listener=Listening())
    await first.start()
    try:
        await first.getone()
        async with anyio.create_task_group() as tasks:
            second = consumer_of(broker, TOPIC)
            tasks.start_soon(second.start)
            with anyio.fail_after(PATIENCE):
                await revoked.wait()
                await first._subscription.wait_for_assignment()
        try:
            with pytest.raises(CommitFailedError, match="the group has already rebalanced: "):
                await first.commit()
        finally:
            await second.stop()
    finally:
        await first.stop()


@pytest.mark.anyio
async def test_commits_succeed_again_after_a_rebalance_if_each_request_names_its_partition(
    broker: Broker, kafka: Client
) -> None:
    async with consumer_of(broker, TOPIC, rebalance_timeout_ms=300, enable_auto_commit=False) as first:
        with anyio.fail_after(SOON):
            await first.getone(WHERE)
            async with consumer_of(broker, TOPIC):
                with pytest.raises(CommitFailedError):
                    await first.commit()
            again = await first.getone(WHERE)
            await first.commit({WHERE: again.offset + 1})
            assert await first.committed(WHERE) == again.offset + 1
            await first.getmany(WHERE)
            await first.commit()


@pytest.mark.anyio
async def test_two_starts_at_once_are_one(broker: Broker, kafka: Client) -> None:
    consumer, errors = consumer_of(broker, TOPIC), list[str]()

    async def start() -> None:
        try:
            await consumer.start()
        except IllegalStateError as error:
            errors.append(str(error))

    with anyio.fail_after(SOON):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start)
            tasks.start_soon(start)
        assert len(errors) == 1
        assert "has been called already" in errors[0]
        assert (await consumer.getone()).value == b"0"
        await consumer.stop()


@pytest.mark.anyio
async def test_a_position_that_the_group_refuses_is_not_waited_for(broker: Broker, kafka: Client) -> None:
    async with consumer_of(broker) as consumer:
        broker.on(ApiKey.OFFSET_FETCH, answer=ErrorCode.GROUP_AUTHORIZATION_FAILED, times=None)
        consumer.assign([WHERE])
        with anyio.fail_after(SOON), pytest.raises(GroupAuthorizationFailedError):
            await consumer.position(WHERE)


CALLS: dict[str, Callable[[AIOKafkaConsumer[Any, Any]], Awaitable[object]]] = {
    "getone": lambda consumer: consumer.getone(),
    "getmany": lambda consumer: consumer.getmany(timeout_ms=PATIENCE * 1000),
    "position": lambda consumer: consumer.position(WHERE),
}


@pytest.mark.anyio
@pytest.mark.parametrize("call", CALLS)
async def test_a_call_that_waits_ends_with_the_client(broker: Broker, kafka: Client, call: str) -> None:
    async def wait() -> None:
        with pytest.raises(IllegalStateError, match="the consumer is closed"):
            await CALLS[call](consumer)

    async with consumer_of(broker, group_id=None) as consumer:
        with anyio.fail_after(SOON):
            async with broker.hold(ApiKey.LIST_OFFSETS) as lookup, anyio.create_task_group() as tasks:
                consumer.assign([WHERE])
                tasks.start_soon(wait)
                await lookup.arrived()
                await consumer._client.wire_client.close()


@pytest.mark.anyio
async def test_a_start_that_is_stopped_says_so(broker: Broker, kafka: Client) -> None:
    consumer = consumer_of(broker, TOPIC)

    async def start() -> None:
        with pytest.raises(ConsumerStoppedError):
            await consumer.start()

    with anyio.fail_after(SOON):
        async with broker.hold(ApiKey.JOIN_GROUP) as join, anyio.create_task_group() as tasks:
            tasks.start_soon(start)
            await join.arrived()
            await consumer.stop()


@pytest.mark.anyio
async def test_stop_ends_a_call_that_waits_for_a_position(broker: Broker, kafka: Client) -> None:
    consumer = consumer_of(broker, group_id=None)
    await consumer.start()

    async def ask() -> None:
        with pytest.raises(ConsumerStoppedError):
            await consumer.position(WHERE)

    with anyio.fail_after(SOON):
        async with broker.hold(ApiKey.LIST_OFFSETS) as lookup, anyio.create_task_group() as tasks:
            consumer.assign([WHERE])
            tasks.start_soon(ask)
            await lookup.arrived()
            await consumer.stop()


@pytest.mark.anyio
async def test_a_partition_that_is_assigned_again_stays_where_it_is(broker: Broker, kafka: Client) -> None:
    await kafka.admin.create_partitions({TOPIC: 2})
    other = TopicPartition(TOPIC, 1)
    async with consumer_of(broker, group_id=None) as consumer:
        consumer.assign([WHERE])
        with anyio.fail_after(SOON):
            await consumer.getone()
            consumer.pause(WHERE)
            consumer.assign([WHERE, other])
            assert await consumer.position(WHERE) == 1
            assert consumer.paused() == {WHERE}
            assert consumer.assignment() == {WHERE, other}


# --- errors ------------------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("many", [True, False])
async def test_records_before_one_that_cannot_be_deserialized_are_not_lost(
    broker: Broker, kafka: Client, many: bool
) -> None:
    def deserialize(value: bytes) -> int:
        return 1 // (int(value) - 2)

    async with consumer_of(broker, TOPIC, value_deserializer=deserialize) as consumer:
        if many:
            found = await consumer.getmany(timeout_ms=int(PATIENCE * 1000))
            assert [record.offset for record in found[WHERE]] == [0, 1]
        else:
            assert [(await consumer.getone()).offset for _ in range(2)] == [0, 1]
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                if many:
                    await consumer.getmany(timeout_ms=int(PATIENCE * 1000))
                else:
                    await consumer.getone()
        consumer.seek(WHERE, 3)
        assert (await consumer.getone()).value == 1


@pytest.mark.slow
@pytest.mark.anyio
async def test_start_can_be_called_again_after_it_failed(broker: Broker, kafka: Client) -> None:
    unreachable: AIOKafkaConsumer[Any, Any] = AIOKafkaConsumer(
        TOPIC, bootstrap_servers="127.0.0.1:1", request_timeout_ms=1000
    )
    for _ in range(2):
        with pytest.raises(KafkaConnectionError):
            await unreachable.start()
    await unreachable.stop()
    consumer = consumer_of(broker, TOPIC)
    with pytest.raises(IllegalStateError, match="start"):
        await consumer.getone()
    await consumer.start()
    with pytest.raises(IllegalStateError, match="already"):
        await consumer.start()
    await consumer.stop()
    with pytest.raises(ConsumerStoppedError):
        await consumer.start()
    with pytest.raises(ConsumerStoppedError):
        consumer.subscribe([TOPIC])


class _Stopping(ConsumerRebalanceListener):
    """Calls a method of its consumer, once."""

    def __init__(self, name: str) -> None:
        self.consumer: AIOKafkaConsumer[Any, Any] | None = None
        self.called = anyio.Event()
        self.errors: list[Exception] = []
        self._name = name

    async def on_partitions_revoked(self, revoked: object) -> None:
        """Do nothing."""

    async def on_partitions_assigned(self, assigned: object) -> None:
        """Call the method."""
        if self.called.is_set():
            return
        try:
            called = getattr(self.consumer, self._name)()
            if called is not None:
                await called
        except IllegalStateError as error:
            self.errors.append(error)
        self.called.set()


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["stop", "unsubscribe"])
async def test_a_listener_that_stops_its_own_consumer_does_not_wait_for_itself(
    broker: Broker, kafka: Client, name: str
) -> None:
    listener = _Stopping(name)
    with anyio.fail_after(PATIENCE):
        async with consumer_of(broker) as consumer:
            listener.consumer = consumer
            consumer.subscribe([TOPIC], listener=listener)
            await listener.called.wait()
            if name == "stop":
                assert "a listener cannot stop the consumer" in str(listener.errors[0])
                assert (await consumer.getone()).value == b"0"
            else:
                assert not listener.errors
                assert consumer.subscription() == frozenset()


@pytest.mark.parametrize("name", ["session_timeout_ms", "heartbeat_interval_ms", "rebalance_timeout_ms"])
def test_a_time_that_is_no_number_is_refused(name: str) -> None:
    settings: dict[str, Any] = {name: "1"}
    with pytest.raises(ValueError, match=f"{name} must be a number of milliseconds, got '1'"):
        AIOKafkaConsumer(**settings)


@pytest.mark.parametrize(
    "settings",
    [{"session_timeout_ms": 0}, {"max_poll_interval_ms": -1}, {"auto_offset_reset": "first"}, {"fetch_max_bytes": 0}],
    ids=str,
)
def test_a_setting_that_is_wrong_is_refused_before_the_start(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        AIOKafkaConsumer(TOPIC, **settings)


@pytest.mark.anyio
async def test_wrong_arguments_of_a_call_are_refused_in_words(broker: Broker, kafka: Client) -> None:
    nothing: Any = None
    listed: Any = [WHERE]
    async with consumer_of(broker, TOPIC) as consumer:
        with pytest.raises(ValueError, match="timeout_ms must be a number of milliseconds, got None"):
            await consumer.getmany(timeout_ms=nothing)
        with pytest.raises(TypeError, match="timestamps must be a dict of partitions"):
            await consumer.offsets_for_times(listed)


@pytest.mark.anyio
async def test_the_group_s_refusal_ends_the_start(broker: Broker, kafka: Client) -> None:
    consumer = consumer_of(broker, TOPIC, session_timeout_ms=200, heartbeat_interval_ms=100)
    with pytest.raises(InvalidSessionTimeoutError):
        await consumer.start()
    await consumer.stop()


@pytest.mark.anyio
async def test_a_partition_that_does_not_exist_has_no_offsets(broker: Broker, kafka: Client) -> None:
    async with consumer_of(broker) as consumer:
        with pytest.raises(KafkaTimeoutError):
            await consumer.end_offsets([TopicPartition(TOPIC, 7)])


@pytest.mark.anyio
async def test_a_loop_calls_the_getone_of_subclasses_and_instrumentations(broker: Broker, kafka: Client) -> None:
    seen: list[int] = []

    class Watching(AIOKafkaConsumer[Any, Any]):
        async def getone(self, *partitions: TopicPartition) -> ConsumerRecord[Any, Any]:
            record = await super().getone(*partitions)
            seen.append(record.offset)
            return record

    settings: dict[str, Any] = {"bootstrap_servers": broker.bootstrap, "auto_offset_reset": "earliest"}
    async with Watching(TOPIC, **settings) as consumer:
        async for record in consumer:
            if record.offset == 2:
                break
    assert seen == [0, 1, 2]


@pytest.mark.anyio
@pytest.mark.parametrize("replaced", ["wrapped", "class", "object", "not"])
async def test_a_loop_calls_a_getone_that_was_replaced_at_run_time(
    broker: Broker, kafka: Client, replaced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapt = pytest.importorskip("wrapt", reason="wrapt is not installed, which instrumentations of OpenTelemetry use")
    own, calls = AIOKafkaConsumer.getone, 0

    def count(call: Any, *args: Any) -> Any:
        nonlocal calls
        calls += 1
        return call(*args)

    async with consumer_of(broker, TOPIC) as consumer:
        if replaced == "wrapped":
            wrapper = wrapt.FunctionWrapper(own, lambda call, _, args, __: count(call, *args))
            monkeypatch.setattr(AIOKafkaConsumer, "getone", wrapper)
        elif replaced == "class":
            monkeypatch.setattr(AIOKafkaConsumer, "getone", lambda self: count(own, self))
        elif replaced == "object":
            monkeypatch.setattr(consumer, "getone", lambda: count(own, consumer))
        offsets = [(await anext(consumer)).offset for _ in range(2)]
    assert offsets == [0, 1]
    assert calls == (0 if replaced == "not" else 2)
    with pytest.raises(StopAsyncIteration):
        await anext(consumer)


@pytest.mark.anyio
async def test_frameworks_read_private_attributes(broker: Broker, kafka: Client) -> None:
    consumer = consumer_of(broker, TOPIC)
    assert (consumer._group_id, consumer._coordinator.member_id, consumer._coordinator.generation) == ("g", "", -1)
    async with consumer:
        assert consumer._subscription.topics == consumer.subscription() == {TOPIC}
        assert consumer._subscription.assigned_partitions() == {WHERE}
        assert consumer._coordinator.group_id == "g"
        assert consumer._coordinator.member_id
        assert consumer._coordinator.generation == 1


# --- records and patterns ------------------------------------------------------------------------------------


async def read_one(broker: Broker) -> ConsumerRecord[Any, Any]:
    async with consumer_of(broker, TOPIC) as consumer:
        return await consumer.getone()


@pytest.mark.anyio
async def test_records_are_used_as_dataclasses(broker: Broker, kafka: Client) -> None:
    record = await read_one(broker)
    names = [field.name for field in dataclasses.fields(record)]
    made = ConsumerRecord(**{name: getattr(record, name) for name in names})
    assert made == record
    assert made != object()
    assert pickle.loads(pickle.dumps(record)) == record
    assert dataclasses.asdict(record)["value"] == b"0"
    assert dataclasses.replace(record, value=b"other").value == b"other"
    record.value, record.offset, record.checksum = "deserialized", 7, 3
    assert (record.value, record.offset, record.checksum, record.serialized_value_size) == ("deserialized", 7, 3, 1)
    assert repr(record).startswith("ConsumerRecord(topic='orders', partition=0, offset=7, ")
    assert record != made
    with pytest.raises(TypeError):
        hash(record)
    other: Any = record
    other.consumer = "added"  # as FastStream does
    assert other.consumer == "added"


@pytest.mark.anyio
async def test_vars_copies_and_pickles_have_the_fields_and_what_was_added(broker: Broker, kafka: Client) -> None:
    record: Any = await read_one(broker)
    record.consumer = "added"
    shown = vars(record)
    assert list(shown) == [*(field.name for field in dataclasses.fields(ConsumerRecord)), "consumer"]
    assert (shown["topic"], shown["value"], shown["serialized_value_size"]) == (TOPIC, b"0", 1)
    for copied in (copy.copy(record), copy.deepcopy(record), *(again(record, protocol) for protocol in range(6))):
        assert vars(copied) == shown


def again(record: Any, protocol: int) -> Any:
    return pickle.loads(pickle.dumps(record, protocol))


@dataclasses.dataclass
class Flight(ConsumerRecord[bytes, bytes]):
    """A subclass as users write it."""

    gate: str
    notes: list[str] = dataclasses.field(default_factory=list)


@pytest.mark.anyio
async def test_a_subclass_may_be_a_dataclass(broker: Broker, kafka: Client) -> None:
    record = await read_one(broker)
    flight = Flight(**vars(record), gate="A1")
    assert (flight.offset, flight.value, flight.gate, flight.notes) == (record.offset, b"0", "A1", [])
    assert dataclasses.replace(flight, gate="B2", offset=7) == Flight(**vars(record) | {"offset": 7}, gate="B2")
    assert again(flight, pickle.HIGHEST_PROTOCOL) == flight != record
    assert dataclasses.asdict(flight) == vars(flight)
    assert repr(flight).startswith("Flight(topic='orders', partition=0, ")
    assert repr(flight).endswith("gate='A1', notes=[])")
    with pytest.raises(TypeError, match="frozen"):
        dataclasses.dataclass(frozen=True)(type("Frozen", (ConsumerRecord,), {}))


@pytest.mark.parametrize(
    ("pattern", "matches", "others"),
    [
        ("order", ["order", "orders", "order.eu"], ["my-order"]),
        ("^orders$", ["orders"], ["orders.eu", "my-orders"]),
        ("a|b", ["a", "b", "bc"], ["c"]),
        ("(?i)Order", ["ORDERS"], ["x"]),
    ],
)
def test_a_pattern_is_matched_at_the_beginning(pattern: str, matches: list[str], others: list[str]) -> None:
    made = prefix_pattern(re.compile(pattern))
    assert all(made.fullmatch(name) for name in matches)
    assert not any(made.fullmatch(name) for name in others)


def test_a_verbose_pattern_may_end_with_a_comment() -> None:
    assert prefix_pattern(re.compile("order # those", re.VERBOSE)).fullmatch("orders")
