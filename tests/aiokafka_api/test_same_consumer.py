"""aiokafka's consumer and ours: the same programs do the same with both."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import anyio
import pytest
from support.patience import PATIENCE

from aiokafkawire import Client
from aiokafkawire.testing import Broker

pytestmark = pytest.mark.anyio

Api = Any
TOPIC = "orders"


@pytest.fixture
def api(api: Api, anyio_backend: tuple[str, dict[str, Any]]) -> Api:
    """aiokafka's API, where it runs."""
    if not api.is_ours and anyio_backend[0] != "asyncio":
        pytest.skip("aiokafka runs on asyncio alone")
    return api


@pytest.fixture
async def kafka() -> AsyncIterator[Client]:
    async with Broker(port=0) as broker, Client(broker.bootstrap) as client:
        await client.admin.create_topics({TOPIC: 2})
        client.bootstrap = broker.bootstrap  # type: ignore[attr-defined]
        yield client


async def write(kafka: Client, *values: bytes | None, partition: int = 0, topic: str = TOPIC, **more: Any) -> None:
    async with kafka.producer() as producer:
        for number, value in enumerate(values):
            await producer.send(topic, value, partition=partition, timestamp_ms=1000 * number + 1, **more)


def options(kafka: Client, **more: Any) -> dict[str, Any]:
    return {"bootstrap_servers": kafka.bootstrap, "auto_offset_reset": "earliest"} | more  # type: ignore[attr-defined]


async def read(consumer: Any, count: int) -> list[bytes]:
    with anyio.fail_after(PATIENCE):
        return [(await consumer.getone()).value for _ in range(count)]


async def test_records_have_all_fields(api: Api, kafka: Client) -> None:
    await write(kafka, b"value", None, key=b"k", headers=[("h", b"1")])
    async with api.AIOKafkaConsumer(TOPIC, **options(kafka)) as consumer:
        with anyio.fail_after(PATIENCE):
            first, second = await consumer.getone(), await consumer.getone()
    assert (first.topic, first.partition, first.offset, first.timestamp) == (TOPIC, 0, 0, 1)
    assert (first.timestamp_type, first.checksum, first.headers) == (0, None, (("h", b"1"),))
    assert (first.key, first.value, first.serialized_key_size, first.serialized_value_size) == (b"k", b"value", 1, 5)
    assert (second.value, second.serialized_value_size) == (None, -1)


async def test_reads_many_one_and_in_a_loop(api: Api, kafka: Client) -> None:
    await write(kafka, *(b"%d" % number for number in range(10)))
    async with api.AIOKafkaConsumer(TOPIC, group_id="g", **options(kafka)) as consumer:
        assert await read(consumer, 2) == [b"0", b"1"]
        found = await consumer.getmany(timeout_ms=PATIENCE * 1000, max_records=3)
        assert {at: [one.value for one in records] for at, records in found.items()} == {
            api.TopicPartition(TOPIC, 0): [b"2", b"3", b"4"]
        }
        with anyio.fail_after(PATIENCE):
            async for record in consumer:
                if record.offset == 8:
                    break
        found = await consumer.getmany(timeout_ms=PATIENCE * 1000)
        assert [one.value for records in found.values() for one in records] == [b"9"]
        assert await consumer.getmany() == {}
        with pytest.raises(ValueError, match="max_records"):
            await consumer.getmany(max_records=0)


@pytest.mark.parametrize(
    "settings",
    [
        {"request_timeout_ms": 500},
        {"request_timeout_ms": 450.5, "retry_backoff_ms": 1.5, "metadata_max_age_ms": 9_000.5, "client_id": None},
        {"group_id": "g", "group_instance_id": "", "heartbeat_interval_ms": 500.5, "max_poll_interval_ms": 9e5},
        {"group_id": "g", "auto_commit_interval_ms": 0},
        {"group_id": "g", "auto_commit_interval_ms": 50.5, "connections_max_idle_ms": 9_000.5, "check_crcs": 0},
    ],
    ids=str,
)
async def test_reads_with_settings_that_are_unusual(api: Api, kafka: Client, settings: dict[str, Any]) -> None:
    await write(kafka, b"value")
    async with api.AIOKafkaConsumer(TOPIC, **options(kafka, **settings)) as consumer:
        assert await read(consumer, 1) == [b"value"]


async def test_has_the_private_attributes_that_faust_uses(api: Api, kafka: Client) -> None:
    await write(kafka, b"0", b"1", b"2")
    where = api.TopicPartition(TOPIC, 0)
    async with api.AIOKafkaConsumer(TOPIC, group_id="g", **options(kafka)) as consumer:
        fetcher = consumer._fetcher
        assert not fetcher._closed
        with fetcher._subscriptions.fetch_context(), anyio.fail_after(PATIENCE):
            found = await fetcher.fetched_records([where], timeout=PATIENCE, max_records=2)
        assert [one.value for one in found[where]] == [b"0", b"1"]
        assignment = fetcher._subscriptions.subscription.assignment
        assert assignment.active
        state = assignment.state_value(where)
        assert (state.highwater, state.position) == (3, 2)
        # Each is made of the loop's clock and the wall's, so that they may differ by a millisecond.
        assert abs(state.timestamp - consumer.last_poll_timestamp(where)) <= 1
        assert assignment.state_value(api.TopicPartition("other", 0)) is None
        if api.is_ours:  # aiokafka's has the topics of all members once it leads the group
            assert consumer._coordinator._metadata_snapshot == {TOPIC: 2}


async def test_offsets_of_other_named_tuples(api: Api, kafka: Client) -> None:
    await write(kafka, b"0", b"1")

    class TP(NamedTuple):
        topic: str
        partition: int

    async with api.AIOKafkaConsumer(**options(kafka)) as consumer:
        await consumer._client.force_metadata_update()
        assert await consumer.end_offsets([TP(TOPIC, 0)]) == {TP(TOPIC, 0): 2}
        assert await consumer.beginning_offsets([TP(TOPIC, 0)]) == {TP(TOPIC, 0): 0}


async def test_a_subclass_of_an_assignor_has_its_own_name_and_learns_the_assignment(api: Api, kafka: Client) -> None:
    called: list[int] = []

    class Assignor(api("coordinator.assignors.roundrobin").RoundRobinPartitionAssignor):  # type: ignore[misc]
        name = "mine"

        @classmethod
        def on_assignment(cls, assignment: Any) -> None:
            called.append(len(assignment.partitions()))

    await write(kafka, b"value")
    assignors = (Assignor,)
    consumer = api.AIOKafkaConsumer(TOPIC, group_id="g", partition_assignment_strategy=assignors, **options(kafka))
    async with consumer:
        assert await read(consumer, 1) == [b"value"]
    assert called == [2]


async def test_an_assignor_learns_the_assignment_before_the_listener(api: Api, kafka: Client) -> None:
    called: list[str] = []

    class Assignor(api("coordinator.assignors.roundrobin").RoundRobinPartitionAssignor):  # type: ignore[misc]
        name = "mine"

        @classmethod
        def on_assignment(cls, assignment: Any) -> None:
            called.append("assignor")

    class Listener(api.ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None:
            pass

        def on_partitions_assigned(self, assigned: Any) -> None:
            called.append("listener")

    await write(kafka, b"value")
    consumer = api.AIOKafkaConsumer(group_id="g", partition_assignment_strategy=(Assignor,), **options(kafka))
    consumer.subscribe([TOPIC], listener=Listener())
    async with consumer:
        assert await read(consumer, 1) == [b"value"]
        assert called == ["assignor", "listener"]


async def test_tasks_read_a_partition_each(api: Api, kafka: Client) -> None:
    await write(kafka, *[b"a"] * 50, partition=0)
    await write(kafka, *[b"b"] * 50, partition=1)
    found: dict[int, list[bytes]] = {0: [], 1: []}
    async with api.AIOKafkaConsumer(TOPIC, **options(kafka)) as consumer:

        async def read_partition(partition: int) -> None:
            for _ in range(50):
                record = await consumer.getone(api.TopicPartition(TOPIC, partition))
                found[partition].append(record.value)

        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read_partition, 0)
                tasks.start_soon(read_partition, 1)
    assert found == {0: [b"a"] * 50, 1: [b"b"] * 50}


async def test_a_partition_is_read_while_another_has_unread_records(api: Api, kafka: Client) -> None:
    await write(kafka, b"unread", partition=1)
    await write(kafka, *[b"a"] * 3, partition=0)
    async with api.AIOKafkaConsumer(TOPIC, **options(kafka)) as consumer:
        where = api.TopicPartition(TOPIC, 0)
        with anyio.fail_after(PATIENCE):
            assert [(await consumer.getone(where)).value for _ in range(3)] == [b"a"] * 3
            await write(kafka, b"later", partition=0)
            assert (await consumer.getone(where)).value == b"later"
            found = await consumer.getmany(api.TopicPartition(TOPIC, 1), timeout_ms=PATIENCE * 1000)
        assert [one.value for records in found.values() for one in records] == [b"unread"]


async def test_commits_offsets_in_all_forms(api: Api, kafka: Client) -> None:
    await write(kafka, b"0", b"1", b"2")
    where = api.TopicPartition(TOPIC, 0)
    async with api.AIOKafkaConsumer(TOPIC, group_id="g", enable_auto_commit=False, **options(kafka)) as consumer:
        assert await consumer.committed(where) is None
        await read(consumer, 1)
        await consumer.commit()
        assert await consumer.committed(where) == 1
        await consumer.commit({where: 2})
        assert await consumer.committed(where) == 2
        await consumer.commit({where: (3, "text")})
        assert await consumer.committed(where) == 3
        await consumer.commit({where: api.OffsetAndMetadata(1, "")})
        assert (await consumer.seek_to_committed(where)) == {where: 1}
        assert await read(consumer, 1) == [b"1"]
        assert await consumer.committed(api.TopicPartition("other", 7)) is None


async def test_refuses_wrong_commits(api: Api, kafka: Client) -> None:
    where, errors = api.TopicPartition(TOPIC, 0), api("errors")
    async with api.AIOKafkaConsumer(TOPIC, group_id="g", **options(kafka)) as consumer:
        for wrong in ({}, "offsets", {where: (1, "text", 2)}):
            with pytest.raises(ValueError):
                await consumer.commit(wrong)
        with pytest.raises(TypeError, match="Key should be TopicPartition instance"):
            await consumer.commit({"orders": 1})
        with pytest.raises(TypeError, match="Metadata should be a string"):
            await consumer.commit({where: (1, b"bytes")})
        with pytest.raises(errors.IllegalStateError, match="is not assigned"):
            await consumer.commit({api.TopicPartition(TOPIC, 10): 1})
        if api.is_ours:  # aiokafka's fetcher may fail when nothing is subscribed
            consumer.unsubscribe()
            with pytest.raises(errors.IllegalStateError, match="Not subscribed"):
                await consumer.commit({where: 1})
    async with api.AIOKafkaConsumer(TOPIC, **options(kafka)) as consumer:
        with pytest.raises(errors.IllegalOperation):
            await consumer.commit()
        with pytest.raises(errors.IllegalOperation):
            await consumer.committed(where)


async def test_a_commit_of_partitions_that_members_of_the_group_read_fails(api: Api, kafka: Client) -> None:
    where = api.TopicPartition(TOPIC, 0)
    settings = options(kafka, group_id="g", enable_auto_commit=False)
    async with api.AIOKafkaConsumer(TOPIC, **settings), api.AIOKafkaConsumer(**settings) as other:
        other.assign([where])
        with pytest.raises(api("errors").CommitFailedError):
            await other.commit({where: 1})


@pytest.mark.slow
async def test_seeks_and_looks_up_offsets(api: Api, kafka: Client) -> None:
    await write(kafka, b"0", b"1", b"2")
    where, errors = api.TopicPartition(TOPIC, 0), api("errors")
    async with api.AIOKafkaConsumer(TOPIC, **options(kafka)) as consumer:
        assert await consumer.position(where) == 0
        assert await read(consumer, 2) == [b"0", b"1"]
        assert await consumer.position(where) == 2
        assert consumer.highwater(where) == 3
        if api.is_ours:  # as its documentation says; aiokafka returns the broker's answer
            assert consumer.last_stable_offset(where) == -1
        assert consumer.last_poll_timestamp(where) > 0
        await consumer.seek_to_beginning()
        assert await read(consumer, 1) == [b"0"]
        consumer.seek(where, 2)
        assert await read(consumer, 1) == [b"2"]
        await consumer.seek_to_end(where)
        assert await consumer.position(where) == 3
        assert await consumer.beginning_offsets([where]) == {where: 0}
        assert await consumer.end_offsets([where]) == {where: 3}
        found = await consumer.offsets_for_times({where: 1500})
        assert found == {where: api.OffsetAndTimestamp(2, 2001)}
        assert await consumer.offsets_for_times({where: 10**12}) == {where: None}
        assert await consumer.topics() == {TOPIC}
        assert consumer.partitions_for_topic(TOPIC) == {0, 1}
        for wrong in (-1, "2"):
            with pytest.raises(ValueError):
                consumer.seek(where, wrong)
        with pytest.raises(ValueError):
            await consumer.offsets_for_times({where: -1})
        with pytest.raises(TypeError):
            await consumer.seek_to_end(1)
        with pytest.raises(errors.IllegalStateError):
            await consumer.seek_to_beginning(api.TopicPartition(TOPIC, 9))
        with pytest.raises(errors.IllegalStateError):
            await consumer.position(api.TopicPartition(TOPIC, 9))


async def test_stop_ends_calls_that_wait(api: Api, kafka: Client) -> None:
    consumer = api.AIOKafkaConsumer(TOPIC, **options(kafka))
    await consumer.start()
    ended: dict[str, object] = {}

    async def get_one() -> None:
        try:
            await consumer.getone()
        except api("errors").ConsumerStoppedError as error:
            ended["getone"] = type(error).__name__

    async def get_many() -> None:
        ended["getmany"] = await consumer.getmany(timeout_ms=PATIENCE * 1000)

    async def iterate() -> None:
        ended["for"] = [record async for record in consumer]

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            for call in (get_one, get_many, iterate):
                tasks.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            await consumer.stop()
    assert ended == {"getone": "ConsumerStoppedError", "getmany": {}, "for": []}
    await consumer.stop()
    for call in (consumer.getone, consumer.getmany):
        with pytest.raises(api("errors").ConsumerStoppedError):
            await call()


async def test_subscribes_and_assigns_one_at_a_time(api: Api, kafka: Client) -> None:
    await write(kafka, b"0", partition=0)
    await write(kafka, b"1", partition=1)
    where = api.TopicPartition(TOPIC, 1)
    async with api.AIOKafkaConsumer(group_id="g", enable_auto_commit=False, **options(kafka)) as consumer:
        assert consumer.assignment() == frozenset()
        for wrong in ({"topics": [TOPIC], "pattern": "o"}, {}, {"topics": [TOPIC], "listener": object()}):
            with pytest.raises(TypeError):
                consumer.subscribe(**wrong)
        with pytest.raises(ValueError):
            consumer.subscribe(pattern="(")
        with pytest.raises(TypeError):
            consumer.subscribe(TOPIC)
        consumer.subscribe([TOPIC])
        assert consumer.subscription() == {TOPIC}
        with pytest.raises(api("errors").IllegalStateError):
            consumer.assign([where])
        assert sorted(await read(consumer, 2)) == [b"0", b"1"]
        assert consumer.assignment() == {api.TopicPartition(TOPIC, 0), where}
        consumer.unsubscribe()
        assert (consumer.assignment(), consumer.subscription()) == (frozenset(), frozenset())
        consumer.assign([where])
        assert consumer.assignment() == {where}
        assert await read(consumer, 1) == [b"1"]


async def test_partitions_can_be_assigned_before_the_start(api: Api, kafka: Client) -> None:
    await write(kafka, b"0", partition=0)
    await write(kafka, b"1", partition=1)
    consumer = api.AIOKafkaConsumer(**options(kafka))
    consumer.assign([api.TopicPartition(TOPIC, 1)])
    await consumer.start()
    try:
        assert await read(consumer, 1) == [b"1"]
    finally:
        await consumer.stop()


@pytest.mark.parametrize("group_id", [None, "g"])
async def test_a_pattern_matches_the_beginning_of_names(api: Api, kafka: Client, group_id: str) -> None:
    await kafka.admin.create_topics({"orders.eu": 1, "my-orders": 1})
    await write(kafka, b"eu", topic="orders.eu")
    await write(kafka, b"no", topic="my-orders")
    consumer = api.AIOKafkaConsumer(group_id=group_id, **options(kafka))
    consumer.subscribe(pattern="order")
    await consumer.start()
    try:
        assert await read(consumer, 1) == [b"eu"]
        assert consumer.subscription() == {TOPIC, "orders.eu"}
    finally:
        await consumer.stop()


async def test_paused_partitions_give_no_records(api: Api, kafka: Client) -> None:
    await write(kafka, b"0", partition=0)
    await write(kafka, b"1", partition=1)
    where = api.TopicPartition(TOPIC, 0)
    async with api.AIOKafkaConsumer(TOPIC, **options(kafka)) as consumer:
        consumer.pause(where)
        assert consumer.paused() == {where}
        assert await read(consumer, 1) == [b"1"]
        consumer.resume(where)
        assert consumer.paused() == set()
        assert await read(consumer, 1) == [b"0"]
        with pytest.raises(TypeError):
            consumer.pause(0)


async def test_without_a_position_each_call_raises(api: Api, kafka: Client) -> None:
    await write(kafka, b"0")
    settings = options(kafka) | {"auto_offset_reset": "none"}
    async with api.AIOKafkaConsumer(TOPIC, group_id="g", **settings) as consumer:
        for _ in range(3):
            with pytest.raises(api("errors").NoOffsetForPartitionError):
                await consumer.getone(api.TopicPartition(TOPIC, 0))
        consumer.seek(api.TopicPartition(TOPIC, 0), 0)
        with anyio.fail_after(PATIENCE):
            assert (await consumer.getone(api.TopicPartition(TOPIC, 0))).value == b"0"
            consumer.seek(api.TopicPartition(TOPIC, 0), 99)
            for _ in range(2):
                with pytest.raises(api("errors").OffsetOutOfRangeError):
                    while True:
                        await consumer.getmany(api.TopicPartition(TOPIC, 0), timeout_ms=1000)


async def test_deserializers_are_called_with_none_too(api: Api, kafka: Client) -> None:
    await write(kafka, b"0", None)
    functions = {"key_deserializer": lambda key: ("key", key), "value_deserializer": lambda value: ("value", value)}
    async with api.AIOKafkaConsumer(TOPIC, **functions, **options(kafka)) as consumer:
        with anyio.fail_after(PATIENCE):
            record = await consumer.getone()
            found = await consumer.getmany(timeout_ms=PATIENCE * 1000)
    assert (record.key, record.value) == (("key", None), ("value", b"0"))
    assert [(one.key, one.value) for records in found.values() for one in records] == [(("key", None), ("value", None))]


async def test_listeners_are_called_at_every_rebalance(api: Api, kafka: Client) -> None:
    """A first join revokes nothing, and tells so; the methods may be coroutine functions or plain."""
    calls: list[tuple[str, set[Any]]] = []
    again = anyio.Event()

    class Listening(api.ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_revoked(self, revoked: Any) -> None:
            calls.append(("revoked", set(revoked)))

        def on_partitions_assigned(self, assigned: Any) -> None:
            calls.append(("assigned", set(assigned)))
            if len(calls) == 4:
                again.set()

    both = {api.TopicPartition(TOPIC, 0), api.TopicPartition(TOPIC, 1)}
    consumer = api.AIOKafkaConsumer(group_id="g", heartbeat_interval_ms=50, **options(kafka))
    consumer.subscribe([TOPIC], listener=Listening())
    await consumer.start()
    try:
        assert calls == [("revoked", set()), ("assigned", both)]
        async with api.AIOKafkaConsumer(TOPIC, group_id="g", **options(kafka)) as other:
            with anyio.fail_after(PATIENCE):
                await again.wait()
            assert calls[2:] == [("revoked", both), ("assigned", set(consumer.assignment()))]
            assert set(other.assignment()) | set(consumer.assignment()) == both
    finally:
        await consumer.stop()


async def test_users_can_write_assignors(api: Api, kafka: Client) -> None:
    await write(kafka, b"0", partition=0)
    await write(kafka, b"1", partition=1)
    metadata, assignment = (
        api("coordinator.protocol").ConsumerProtocolMemberMetadata,
        api("coordinator.protocol").ConsumerProtocolMemberAssignment,
    )
    told: list[Any] = []

    class OnlyTheLast(api("coordinator.assignors.abstract").AbstractPartitionAssignor):  # type: ignore[misc]
        name = "only-the-last"

        @classmethod
        def assign(cls, cluster: Any, members: Any) -> Any:
            last = max(cluster.partitions_for_topic(TOPIC))
            return {member: assignment(0, [(TOPIC, [last])], b"data") for member in members}

        @classmethod
        def metadata(cls, topics: Any) -> Any:
            return metadata(0, list(topics), b"mine")

        @classmethod
        def on_assignment(cls, assignment: Any) -> None:
            told.append((assignment.partitions(), assignment.user_data))

    settings = options(kafka, partition_assignment_strategy=[OnlyTheLast])
    async with api.AIOKafkaConsumer(TOPIC, group_id="g", **settings) as consumer:
        assert consumer.assignment() == {api.TopicPartition(TOPIC, 1)}
        assert await read(consumer, 1) == [b"1"]
    assert told == [([api.TopicPartition(TOPIC, 1)], b"data")]


async def test_refuses_wrong_arguments(api: Api, kafka: Client) -> None:
    for wrong in ({"max_poll_records": 0}, {"security_protocol": "SOME"}, {"security_protocol": "SSL"}):
        with pytest.raises(ValueError):
            api.AIOKafkaConsumer(TOPIC, **options(kafka, **wrong))


async def test_unsubscribe_after_stop_forgets_the_subscription(api: Api, kafka: Client) -> None:
    consumer = api.AIOKafkaConsumer(TOPIC, **options(kafka, group_id="billing"))
    await consumer.start()
    await consumer.stop()
    consumer.unsubscribe()
    assert (consumer.assignment(), consumer.subscription()) == (frozenset(), frozenset())
