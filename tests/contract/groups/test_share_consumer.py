"""Share consumers (KIP-932): members acquire, process and acknowledge records one by one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from contract.conftest import Where
from contract.groups.conftest import COUNT
from support.committed import raw
from support.connecting import eventually
from support.patience import PATIENCE
from support.serializers import SlowReader
from support.share_members import configure

from aiokafkawire import (
    Acknowledge,
    AcknowledgementFailed,
    Client,
    ConfigError,
    DeserializationError,
    Reject,
    ShareConsumer,
    ShareRecord,
    TopicPartition,
    UsageError,
)
from aiokafkawire.errors import GroupIdNotFound, InvalidRecordState

pytestmark = pytest.mark.anyio

LOCK = 2.0
"""Seconds that a record stays locked where a lock is to end."""


@pytest.fixture
async def cluster(quick_cluster: Where) -> Where:
    return quick_cluster


@pytest.fixture
async def topic(kafka: Client, new_name: Callable[[], str]) -> str:
    """A topic of one partition, which all members share."""
    name = new_name()
    await kafka.admin.create_topics({name: 1})
    return name


@pytest.fixture
async def share_group(cluster: Where, group: str) -> AsyncIterator[str]:
    """A share group that begins at the logs' start, whose locks last 30 s, as the default is."""
    async with raw(cluster) as client:
        await configure(client, group, share_auto_offset_reset="earliest")
        yield group


class Share:
    """Makes members of a share group."""

    def __init__(self, cluster: Where, kafka: Client, group: str, topic: str, stack: AsyncExitStack) -> None:
        self.kafka, self.group, self.topic, self._cluster, self._stack = kafka, group, topic, cluster, stack

    async def join(self, **options: Any) -> ShareConsumer[bytes, bytes]:
        consumer = self.kafka.share_consumer(self.topic, group_id=self.group, **options)
        await self._stack.enter_async_context(consumer)
        await eventually(lambda: bool(consumer.assignment))
        return consumer

    async def lock_for(self, seconds: float) -> None:
        """Set how long records that are acquired from now on stay locked."""
        async with raw(self._cluster) as client:
            await configure(client, self.group, share_record_lock_duration_ms=f"{seconds * 1000:.0f}")


@pytest.fixture
async def share(cluster: Where, kafka: Client, share_group: str, topic: str) -> AsyncIterator[Share]:
    async with AsyncExitStack() as stack:
        yield Share(cluster, kafka, share_group, topic, stack)


async def write(kafka: Client, topic: str, first: int, last: int) -> None:
    """Write the numbers from first to last, without the last one."""
    async with kafka.producer() as producer:
        await producer.send(topic, b"%d" % first)
        for index in range(first + 1, last):
            producer.send_nowait(topic, b"%d" % index)


def number(record: ShareRecord[bytes, bytes]) -> int:
    return int(record.value or b"")


async def taken(
    consumer: ShareConsumer[bytes, bytes], count: int, kind: Acknowledge | None = None
) -> list[ShareRecord[bytes, bytes]]:
    """Take so many records, and acknowledge them alike."""
    records: list[ShareRecord[bytes, bytes]] = []
    with anyio.fail_after(PATIENCE):
        while len(records) < count:
            for record in await consumer.poll(count - len(records)):
                records.append(record)
                if kind is not None:
                    consumer.acknowledge(record, kind)
    return records


async def test_records_are_accepted_one_by_one(kafka: Client, share: Share) -> None:
    consumer = await share.join()
    await write(kafka, share.topic, 0, COUNT)
    found = []
    with anyio.fail_after(PATIENCE):
        async for record in consumer:
            async with record:
                found.append(number(record))
            assert record.acknowledged is Acknowledge.ACCEPT
            assert (record.topic, record.delivery_count) == (share.topic, 1)
            assert record.timestamp_ms > 0
            if len(found) == COUNT:
                break
    assert sorted(found) == list(range(COUNT))
    assert await consumer.commit() == {TopicPartition(share.topic, 0): COUNT}
    assert await consumer.commit() == {}
    assert consumer.acquisition_lock_timeout_ms == 30_000
    await consumer.close()
    again = await share.join()
    assert await again.poll(timeout=0.3) == []


async def test_members_share_the_records_of_a_partition(kafka: Client, share: Share) -> None:
    one, two = await share.join(), await share.join()
    await write(kafka, share.topic, 0, COUNT)
    found: list[int] = []

    async def work(consumer: ShareConsumer[bytes, bytes]) -> None:
        while len(found) < COUNT:
            for record in await consumer.poll(1, timeout=0.2):
                async with record:
                    found.append(number(record))

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work, one)
            tasks.start_soon(work, two)
    assert sorted(found) == list(range(COUNT))


async def test_released_records_come_again_and_rejected_ones_do_not(kafka: Client, share: Share) -> None:
    consumer = await share.join()
    await write(kafka, share.topic, 0, 6)
    seen: dict[int, list[int]] = {}
    with anyio.fail_after(PATIENCE):
        while sum(map(len, seen.values())) < 8:
            (record,) = await consumer.poll(1)
            seen.setdefault(number(record), []).append(record.delivery_count)
            try:
                async with record:
                    if number(record) < 2 and record.delivery_count == 1:
                        raise OSError("try it again")
                    if number(record) == 5:
                        raise Reject("cannot be parsed")
            except OSError:
                assert record.acknowledged is Acknowledge.RELEASE
            else:
                assert record.acknowledged is (Acknowledge.REJECT if number(record) == 5 else Acknowledge.ACCEPT)
    assert seen == {0: [1, 2], 1: [1, 2], 2: [1], 3: [1], 4: [1], 5: [1]}
    await consumer.commit()
    assert await consumer.poll(timeout=0.3) == []


@pytest.mark.slow
async def test_a_lock_is_renewed_while_the_body_runs(kafka: Client, share: Share) -> None:
    one, two = await share.join(), await share.join()
    await share.lock_for(LOCK)
    await write(kafka, share.topic, 0, 1)
    (record,) = await taken(one, 1)
    async with record:
        assert await two.poll(timeout=1.5 * LOCK) == []
    assert sum((await one.commit()).values()) == 1
    assert await two.poll(timeout=0.3) == []


@pytest.mark.slow
async def test_a_record_that_is_not_acknowledged_in_time_goes_to_another_member(
    kafka: Client, share: Share, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = await share.join(), await share.join()
    await share.lock_for(LOCK)
    await write(kafka, share.topic, 0, 1)
    (record,) = await taken(one, 1)
    await share.lock_for(30)
    (again,) = await taken(two, 1)
    assert (number(again), again.delivery_count) == (number(record), 2)
    await eventually(lambda: "were not acknowledged within their lock of 2 s" in caplog.text)
    one.acknowledge(record)
    with pytest.raises(AcknowledgementFailed) as raised:
        await one.commit()
    (error,) = raised.value.errors.values()
    assert isinstance(error, InvalidRecordState)
    two.acknowledge(again)
    assert sum((await two.commit()).values()) == 1


@pytest.mark.slow
async def test_a_renewal_begins_the_lock_again(kafka: Client, share: Share) -> None:
    one, two = await share.join(), await share.join()
    await share.lock_for(LOCK)
    await write(kafka, share.topic, 0, 1)
    (record,) = await taken(one, 1)
    for _ in range(3):
        assert await two.poll(timeout=LOCK / 2) == []
        one.acknowledge(record, Acknowledge.RENEW)
        await one.commit()
    one.acknowledge(record)
    assert sum((await one.commit()).values()) == 1


async def test_closing_releases_what_is_not_acknowledged(kafka: Client, share: Share) -> None:
    one = await share.join()
    await write(kafka, share.topic, 0, COUNT)
    records = await taken(one, 9)
    for record in records[:3]:
        one.acknowledge(record)
    await one.close()
    with pytest.raises(UsageError, match="was released, since the share consumer is closed"):
        one.acknowledge(records[3])
    two = await share.join()
    found = await taken(two, COUNT - 3, Acknowledge.ACCEPT)
    accepted = {number(record) for record in records[:3]}
    assert sorted(map(number, found)) == sorted(set(range(COUNT)) - accepted)


async def test_in_the_implicit_mode_the_next_poll_accepts(kafka: Client, share: Share) -> None:
    one = await share.join(share_acknowledgement_mode="implicit")
    await write(kafka, share.topic, 0, COUNT)
    found: list[ShareRecord[bytes, bytes]] = []
    with anyio.fail_after(PATIENCE):
        while len(found) < COUNT:
            records = await one.poll(7)
            assert {record.acknowledged for record in records} == {None}
            found += records
    assert sum((await one.commit()).values()) == COUNT
    assert sorted(map(number, found)) == list(range(COUNT))
    with pytest.raises(UsageError, match="implicit"):
        one.acknowledge(found[-1])
    await write(kafka, share.topic, COUNT, COUNT + 1)
    (record,) = await one.poll(1)
    await one.close()
    two = await share.join()
    (again,) = await taken(two, 1, Acknowledge.ACCEPT)
    assert (number(again), again.delivery_count) == (number(record), 2)


async def test_a_strict_limit_acquires_no_more(kafka: Client, share: Share) -> None:
    one = await share.join(share_acquire_mode="record_limit")
    await write(kafka, share.topic, 0, 10)
    (record,) = await one.poll(1)
    two = await share.join()
    others = await taken(two, 9, Acknowledge.ACCEPT)
    assert number(record) not in set(map(number, others))
    one.acknowledge(record)
    assert sum((await one.commit()).values()) == 1


async def test_a_cancelled_poll_loses_nothing(kafka: Client, share: Share) -> None:
    consumer = await share.join()
    found: list[int] = []

    async def fill() -> None:
        for index in range(COUNT):
            await write(kafka, share.topic, index, index + 1)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fill)
            while len(found) < COUNT:
                with anyio.move_on_after(0.003):
                    record = await anext(consumer)
                    found.append(number(record))
                    consumer.acknowledge(record)
    assert sorted(found) == list(range(COUNT))


async def test_several_tasks_take_records_at_once(kafka: Client, share: Share) -> None:
    consumer = await share.join()
    found: list[int] = []

    async def work() -> None:
        async for record in consumer:
            async with record:
                await anyio.lowlevel.checkpoint()
                found.append(number(record))

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(work)
            await write(kafka, share.topic, 0, COUNT)
            await eventually(lambda: len(found) == COUNT)
            await consumer.close()  # ends the iterations
    assert sorted(found) == list(range(COUNT))


async def test_a_record_that_cannot_be_deserialized_is_released(kafka: Client, share: Share) -> None:
    def strict(value: bytes) -> int:
        return int(value)

    await write(kafka, share.topic, 0, 1)
    async with kafka.producer() as producer:
        await producer.send(share.topic, b"no number")
    async with kafka.share_consumer(share.topic, group_id=share.group, value_deserializer=strict) as consumer:
        values: list[int | None] = []
        errors: list[bytes | None] = []
        with anyio.fail_after(PATIENCE):
            while not (values and errors):
                try:
                    for record in await consumer.poll(1):
                        async with record:
                            values.append(record.value)
                except DeserializationError as error:
                    errors.append(error.raw_value)
    assert (values, errors[0]) == ([0], b"no number")


async def test_a_dead_letter_is_written_and_no_member_gets_the_record_again(
    kafka: Client, share: Share, new_name: Callable[[], str]
) -> None:
    dead = new_name()
    await kafka.admin.create_topics({dead: 1})
    async with kafka.producer() as producer:
        await producer.send_many(share.topic, [b"0", b"no number", b"2"])
    options: Any = {"on_error": "dead_letter", "dead_letter_topic": dead, "value_deserializer": SlowReader()}
    values: list[Any] = []
    async with kafka.share_consumer(share.topic, group_id=share.group, **options) as consumer:
        with anyio.fail_after(30):
            while len(values) < 2:
                for record in await consumer.poll():
                    async with record:
                        values.append(record.value)
        await consumer.commit()
        assert consumer.undeserializable_records == 1
    assert values == [0, 2]
    assert [record.value async for record in kafka.read_records(dead)] == [b"no number"]
    again = await share.join()
    assert await again.poll(timeout=0.3) == []


async def test_a_poll_that_does_not_wait_returns_records_in_the_end(kafka: Client, share: Share) -> None:
    consumer = await share.join()
    await write(kafka, share.topic, 0, COUNT)
    found: list[int] = []
    with anyio.fail_after(PATIENCE):
        while len(found) < COUNT:
            for record in await consumer.poll(timeout=0):
                async with record:
                    found.append(number(record))
            await anyio.sleep(0.01)
    assert sorted(found) == list(range(COUNT))


@pytest.mark.slow
async def test_acknowledging_in_the_body_ends_the_renewals(kafka: Client, share: Share) -> None:
    one, two = await share.join(), await share.join()
    await share.lock_for(LOCK)
    await write(kafka, share.topic, 0, 2)
    first, second = await taken(one, 2)
    await share.lock_for(30)
    async with second:
        one.acknowledge(second)
        (again,) = await taken(two, 1, Acknowledge.ACCEPT)
    assert number(again) == number(first)
    assert sum((await one.commit()).values()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Acknowledge.ACCEPT, Acknowledge.RENEW])
async def test_a_late_acknowledgement_spoils_no_other(kafka: Client, share: Share, kind: Acknowledge) -> None:
    one, two = await share.join(), await share.join(share_acquire_mode="record_limit")  # two acquires nothing ahead
    await share.lock_for(LOCK)
    await write(kafka, share.topic, 0, 1)
    (late,) = await taken(one, 1)
    await share.lock_for(30)
    (again,) = await taken(two, 1)
    await write(kafka, share.topic, 1, 4)
    records = await taken(one, 3)
    one.acknowledge(late, kind)
    for record in records:
        one.acknowledge(record)
    with pytest.raises(AcknowledgementFailed) as raised:
        await one.commit()
    assert raised.value.acknowledged == {TopicPartition(share.topic, 0): 3}
    two.acknowledge(again)
    assert sum((await two.commit()).values()) == 1


@pytest.mark.slow
async def test_a_late_acknowledgement_spoils_no_other_of_the_last_request(kafka: Client, share: Share) -> None:
    one, two = await share.join(), await share.join(share_acquire_mode="record_limit")  # two acquires nothing ahead
    await share.lock_for(LOCK)
    await write(kafka, share.topic, 0, 1)
    (late,) = await taken(one, 1)
    await share.lock_for(30)
    (again,) = await taken(two, 1)
    await write(kafka, share.topic, 1, 4)
    for record in [late, *await taken(one, 3)]:
        one.acknowledge(record)
    await one.close()
    two.acknowledge(again)
    await two.commit()
    assert await two.poll(timeout=0.3) == []


@pytest.mark.slow
async def test_records_that_arrive_after_the_subscription_has_changed_are_released(
    kafka: Client, share: Share, new_name: Callable[[], str]
) -> None:
    other = new_name()
    await kafka.admin.create_topics({other: 1})
    one = await share.join(fetch_max_wait_ms=2000)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.poll)  # its request waits at the broker
        await anyio.sleep(0.3)
        one.subscribe(other)
        await eventually(lambda: one.assignment == {TopicPartition(other, 0)})
        await write(kafka, share.topic, 0, 1)
        two = await share.join()
        with anyio.fail_after(PATIENCE):
            (record,) = await taken(two, 1, Acknowledge.ACCEPT)
        tasks.cancel_scope.cancel()
    assert record.topic == share.topic


async def test_subscribing_ends_no_unsubscription_that_waits(kafka: Client, share: Share) -> None:
    consumer = await share.join()
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consumer.unsubscribe, 60)
            while consumer.subscription:
                await anyio.lowlevel.checkpoint()
            consumer.subscribe(share.topic)
    await write(kafka, share.topic, 0, 1)
    (record,) = await taken(consumer, 1, Acknowledge.ACCEPT)
    assert number(record) == 0


async def test_a_share_consumer_cannot_join_a_consumer_group(kafka: Client, share: Share) -> None:
    async with kafka.consumer(share.topic, group_id=share.group) as other:
        await eventually(lambda: bool(other.assignment))
        async with kafka.share_consumer(share.topic, group_id=share.group) as consumer:
            with anyio.fail_after(PATIENCE), pytest.raises(GroupIdNotFound, match=share.group):
                await consumer.poll()


async def test_wrong_use_raises_one_clear_error(kafka: Client, share: Share) -> None:
    one, two = await share.join(), await share.join()
    await write(kafka, share.topic, 0, 1)
    with anyio.fail_after(PATIENCE):
        record = await anext(one)
    with pytest.raises(UsageError, match="of another share consumer"):
        two.acknowledge(record)
    async with record:
        pass
    with pytest.raises(UsageError, match="event loop"):
        await anyio.to_thread.run_sync(one.acknowledge, record)
    with pytest.raises(UsageError, match=r"was acknowledged already \(ACCEPT\)"):
        one.acknowledge(record, Acknowledge.RELEASE)
    with pytest.raises(UsageError, match=r"was acknowledged already \(ACCEPT\)"):
        async with record:
            pass
    with pytest.raises(ConfigError, match="needs a group_id"):
        kafka.share_consumer(share.topic)
    with pytest.raises(ConfigError, match="share_acknowledgement_mode"):
        kafka.share_consumer(share.topic, group_id="g", share_acknowledgement_mode="automatic")  # type: ignore[call-overload]
    await one.close()
    with pytest.raises(UsageError, match="is closed"):
        await one.poll()
    with pytest.raises(UsageError, match="is not open"):
        await kafka.share_consumer(share.topic, group_id="g").poll()
