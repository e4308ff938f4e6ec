"""What is reported to observers of a client's work, whichever broker it talks to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from support.patience import PATIENCE

from aiokafkawire import ConfigResource, NewTopic, TopicPartition, observe
from aiokafkawire.observe import EVENTS

from .conftest import BOTH_TRANSACTION_VERSIONS, Where

pytestmark = pytest.mark.anyio


class Recording:
    """Keeps every event."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def __getattr__(self, name: str) -> Callable[[Any], None]:
        if name not in EVENTS:
            raise AttributeError(name)
        return self.events.append

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if type(event) is kind]


@pytest.fixture
def seen() -> Recording:
    return Recording()


async def test_what_a_producer_sends_adds_up(cluster: Where, seen: Recording, new_name: Callable[[], str]) -> None:
    name = new_name()
    async with cluster.client(observers=[seen]) as kafka:
        await kafka.admin.create_topics({name: NewTopic(2, 1)})
        async with kafka.producer(compression_type="gzip") as producer:
            sent = [await producer.enqueue(name, b"x" * 100, partition=number % 2) for number in range(10)]
            await producer.flush()
        snapshot = kafka._cluster.metadata.snapshot
    offsets = {(done.partition, done.offset) for done in [await one for one in sent]}
    batches = seen.of(observe.BatchEnded)
    assert sum(batch.records for batch in batches) == 10
    assert {(batch.partition, batch.offset + at) for batch in batches for at in range(batch.records)} == offsets
    assert {(batch.topic, batch.codec, batch.error) for batch in batches} == {(name, "gzip", None)}
    assert all(batch.size > 100 * batch.records and batch.attempts >= 1 for batch in batches)
    assert all(batch.seconds >= batch.queued_seconds >= 0 for batch in batches)
    assert all(0 < batch.compressed_size < batch.size for batch in batches)
    assert {(batch.lane, batch.transactional_id) for batch in batches} == {("produce-1", None)}
    [produced] = {(one.node_id, one.lane) for one in seen.of(observe.RequestEnded) if one.api == "Produce"}
    assert produced == (next(iter(snapshot.nodes)), "produce-1")


async def test_every_request_is_reported_with_its_size_and_time(
    cluster: Where, seen: Recording, new_name: Callable[[], str]
) -> None:
    async with cluster.client(observers=[seen]) as kafka:
        await kafka.admin.create_topics({new_name(): 1})
        await kafka.admin.list_topics()
    requests = seen.of(observe.RequestEnded)
    count = Counter(request.api for request in requests)
    assert count["ApiVersions"] >= 1
    assert count["Metadata"] >= 2
    assert count["CreateTopics"] == 1
    assert all(request.sent_bytes > 8 and request.received_bytes > 4 and request.seconds >= 0 for request in requests)
    assert {request.error for request in requests} == {None}
    lanes = [opened.lane for opened in seen.of(observe.ConnectionOpened)]
    assert sorted(lanes) == ["admin", "control"]
    assert sorted(closed.lane for closed in seen.of(observe.ConnectionClosed)) == sorted(lanes)
    [bootstrap] = [opened for opened in seen.of(observe.ConnectionOpened) if opened.lane == "control"]
    assert bootstrap.node_id is None
    assert all(request.queued_seconds >= 0 and request.throttle_seconds == 0 for request in requests)
    ids = {request.node_id for request in requests if request.lane == "admin" and request.api == "CreateTopics"}
    assert ids == {closed.node_id for closed in seen.of(observe.ConnectionClosed) if closed.lane == "admin"} != {None}
    assert seen.of(observe.MetadataUpdated)[0].brokers == 1


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_members_life_is_reported(
    cluster: Where, seen: Recording, new_name: Callable[[], str], protocol: str
) -> None:
    name, group = new_name(), new_name()
    async with cluster.client(observers=[seen]) as kafka:
        await kafka.admin.create_topics({name: NewTopic(2, 1)})
        async with kafka.producer() as producer:
            for number in range(6):
                await producer.send(name, b"x" * 50, partition=number % 2)
        options: Any = {"group_id": group, "group_protocol": protocol, "auto_offset_reset": "earliest"}
        async with kafka.consumer(name, enable_auto_commit=False, **options) as consumer:
            with anyio.fail_after(PATIENCE):
                read = 0
                while read < 6:
                    read += len(await consumer.poll())
            await consumer.commit()
    both = {TopicPartition(name, 0), TopicPartition(name, 1)}
    joined = [event for event in seen.of(observe.RebalanceEnded) if event.assigned]
    assert set().union(*(event.assigned for event in joined)) == both
    assert joined[-1].partitions == 2
    assert (joined[-1].group, joined[-1].member_id != "", joined[-1].generation > 0) == (group, True, True)
    assert all(event.seconds >= 0 for event in joined)
    found = seen.of(observe.CoordinatorChanged)[-1]  # a new broker may have refused before
    assert (found.kind, found.key, found.is_lost) == ("group", group, False)
    [commit] = seen.of(observe.CommitEnded)
    assert (commit.group, commit.partitions, commit.error) == (group, 2, None)
    fetches = [fetch for fetch in seen.of(observe.FetchEnded) if fetch.size]
    assert {partition for fetch in fetches for partition in fetch.partitions} == both
    assert sum(fetch.size for fetch in fetches) >= 6 * 50
    assert sum(fetch.records for fetch in fetches) == 6
    assert {(fetch.group, fetch.lane[:6], fetch.node_id is None) for fetch in fetches} == {(group, "fetch-", False)}


async def test_a_request_without_an_answer_ends_with_its_write(
    cluster: Where, seen: Recording, new_name: Callable[[], str]
) -> None:
    name = new_name()
    async with cluster.client(observers=[seen]) as kafka:
        await kafka.admin.create_topics({name: 1})
        async with kafka.producer(acks=0) as producer:
            await producer.send(name, b"1")
    [request] = [request for request in seen.of(observe.RequestEnded) if request.api == "Produce"]
    assert (request.received_bytes, request.seconds, request.error, request.sent_bytes > 61) == (0, 0.0, None, True)


async def test_a_share_consumers_work_is_reported(cluster: Where, seen: Recording, new_name: Callable[[], str]) -> None:
    name, group = new_name(), new_name()
    async with cluster.client(observers=[seen]) as kafka:
        await kafka.admin.create_topics({name: NewTopic(2, 1)})
        await kafka.admin.incremental_alter_configs(
            {ConfigResource.group(group): {"share.auto.offset.reset": "earliest"}}
        )
        async with kafka.producer() as producer:
            for number in range(6):
                await producer.send(name, b"x" * 50, partition=number % 2)
        async with kafka.share_consumer(name, group_id=group, share_acknowledgement_mode="explicit") as consumer:
            with anyio.fail_after(60):
                read = 0
                while read < 6:
                    for record in await consumer.poll():
                        consumer.acknowledge(record)
                        read += 1
                await consumer.commit()
    both = {TopicPartition(name, 0), TopicPartition(name, 1)}
    fetches = [fetch for fetch in seen.of(observe.FetchEnded) if fetch.records]
    assert (sum(fetch.records for fetch in fetches), sum(fetch.size for fetch in fetches) >= 6 * 50) == (6, True)
    assert {partition for fetch in fetches for partition in fetch.partitions} == both
    assert {(fetch.group, fetch.lane[:6]) for fetch in fetches} == {(group, "share-")}
    ended = seen.of(observe.AcknowledgementEnded)
    assert sum(event.records for event in ended) == 6
    assert {partition for event in ended for partition in event.partitions} == both
    assert {(event.group, event.error) for event in ended} == {(group, None)}
    assert all(event.seconds >= 0 for event in ended)
    joined = seen.of(observe.RebalanceEnded)
    assert set().union(*(event.assigned for event in joined)) == both
    assert (joined[-1].group, joined[-1].partitions, joined[-1].generation > 0) == (group, 2, True)


@BOTH_TRANSACTION_VERSIONS
async def test_the_ends_of_transactions_are_reported(
    cluster: Where, seen: Recording, new_name: Callable[[], str]
) -> None:
    name, transactional_id = new_name(), new_name()
    async with cluster.client(observers=[seen]) as kafka:
        await kafka.admin.create_topics({name: 1})
        async with kafka.producer(transactional_id=transactional_id) as producer:
            async with producer.transaction():
                await producer.send(name, b"1")
            with pytest.raises(LookupError):
                async with producer.transaction():
                    await producer.send(name, b"2")
                    raise LookupError
            async with producer.transaction():
                pass
    ends = seen.of(observe.TransactionEnded)
    assert [end.is_committed for end in ends] == [True, False, True]
    assert all(end.transactional_id == transactional_id and end.seconds >= 0 for end in ends)
