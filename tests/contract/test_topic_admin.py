"""What the admin does with topics and their records, whichever broker it talks to."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID, uuid4

import anyio
import pytest
from contract.conftest import Where
from support.patience import SOON
from support.raw_client import RawClient
from support.transactional import settled

from aiokafkawire import (
    Client,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    PartitionDescription,
    TopicDescription,
    TopicPartition,
)
from aiokafkawire.config import parse_servers
from aiokafkawire.errors import (
    AdminError,
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    OffsetOutOfRange,
    PolicyViolation,
    ThrottlingQuotaExceeded,
    TopicAlreadyExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from aiokafkawire.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from aiokafkawire.protocol.primitives import ZERO_UUID

pytestmark = pytest.mark.anyio

Names = Callable[[], str]


async def described(kafka: Client, topic: str, partitions: int) -> TopicDescription:
    """Describe a topic once brokers know that many partitions and their leaders, a moment after they were created."""

    async def ask() -> TopicDescription | None:
        try:
            found = (await kafka.admin.describe_topics(topic))[topic]
        except UnknownTopicOrPartition:
            return None
        ready = len(found.partitions) == partitions and all(one.leader is not None for one in found.partitions)
        return found if ready else None

    found = await settled(ask, lambda known: known is not None)
    assert found is not None
    return found


async def created_topic(kafka: Client, new_name: Names, partitions: int = 1) -> str:
    name = new_name()
    await kafka.admin.create_topics({name: partitions})
    await described(kafka, name, partitions)
    return name


async def gone(kafka: Client, topic: str) -> None:
    async def ask() -> bool:
        try:
            await kafka.admin.describe_topics(topic)
        except UnknownTopicOrPartition:
            return True
        return False

    await settled(ask, bool)


# --- creating ------------------------------------------------------------------------------------------------------


async def test_a_created_topic_is_returned_with_its_id_counts_and_configs(kafka: Client, new_name: Names) -> None:
    name = new_name()
    created = (await kafka.admin.create_topics([NewTopic(name, 2, 1, {"retention.ms": "5000"})]))[name]
    assert (created.name, created.partitions, created.replication_factor) == (name, 2, 1)
    assert created.configs is not None
    retention, segment = created.configs["retention.ms"], created.configs["segment.ms"]
    assert (retention.value, retention.source) == ("5000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert (segment.source, segment.is_sensitive) == (ConfigSource.DEFAULT_CONFIG, False)
    assert (await described(kafka, name, 2)).topic_id == created.topic_id != ZERO_UUID


async def test_the_brokers_of_each_partition_are_given(kafka: Client, new_name: Names) -> None:
    name = new_name()
    created = (await kafka.admin.create_topics({name: NewTopic(assignments=[[1], [1]])}))[name]
    assert (created.partitions, created.replication_factor) == (2, 1)
    found = await described(kafka, name, 2)
    assert [one.replicas for one in found.partitions] == [(1,), (1,)]
    with pytest.raises(InvalidReplicaAssignment, match=r"creating topic .*broker 99"):
        await kafka.admin.create_topics({new_name(): NewTopic(assignments=[[99]])})


async def test_topics_are_checked_alone(kafka: Client, new_name: Names) -> None:
    name = new_name()
    checked = (await kafka.admin.create_topics({name: NewTopic(3, 1)}, validate_only=True))[name]
    assert (checked.partitions, checked.replication_factor) == (3, 1)
    with pytest.raises(InvalidConfig, match="x"):
        await kafka.admin.create_topics({name: NewTopic(3, 1, {"retention.ms": "x"})}, validate_only=True)
    with pytest.raises(UnknownTopicOrPartition):
        await kafka.admin.describe_topics(name)


async def test_topics_are_created_beside_those_that_fail(kafka: Client, topic: str, new_name: Names) -> None:
    good, bad = new_name(), new_name()
    with pytest.raises(AdminError, match="creating topics failed for 2 of 3") as caught:
        await kafka.admin.create_topics(
            [NewTopic(topic, 1), NewTopic(good, 2), NewTopic(bad, 1, 1, {"no.such.config": "x"})]
        )
    assert {name: type(error) for name, error in caught.value.errors.items()} == {
        topic: TopicAlreadyExists,
        bad: InvalidConfig,
    }
    assert list(caught.value.results) == [good]
    assert caught.value.results[good].partitions == 2
    assert len((await described(kafka, good, 2)).partitions) == 2


# --- describing ----------------------------------------------------------------------------------------------------


async def test_topics_are_described_by_name_and_by_id(kafka: Client, topic: str, new_name: Names) -> None:
    other = await created_topic(kafka, new_name)
    by_name = await described(kafka, topic, 3)
    assert (by_name.name, by_name.is_internal, by_name.authorized_operations) == (topic, False, None)
    assert by_name.partitions[2] == PartitionDescription(2, 1, 0, (1,), (1,), (), (), ())
    found = await kafka.admin.describe_topics([by_name.topic_id, other, topic])
    assert list(found) == [by_name.topic_id, other, topic]
    assert found[topic] == by_name
    by_id = found[by_name.topic_id]
    assert (by_id.name, by_id.topic_id) == (topic, by_name.topic_id)
    # Metadata, which describes topics by id, has no eligible leader replicas.
    assert by_id.partitions[2] == PartitionDescription(2, 1, 0, (1,), (1,))
    assert await kafka.admin.describe_topics([]) == {}


async def test_what_a_client_may_do_with_topics(kafka: Client, topic: str) -> None:
    topic_id = (await described(kafka, topic, 3)).topic_id
    found = await kafka.admin.describe_topics([topic, topic_id], include_authorized_operations=True)
    for one in found.values():
        assert one.authorized_operations == frozenset(
            ("READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
        )


async def test_topics_are_described_beside_those_that_do_not_exist(kafka: Client, topic: str, new_name: Names) -> None:
    await described(kafka, topic, 3)
    missing, missing_id = new_name(), uuid4()
    with pytest.raises(AdminError) as caught:
        await kafka.admin.describe_topics([missing, topic, missing_id])
    assert {key: type(error) for key, error in caught.value.errors.items()} == {
        missing: UnknownTopicOrPartition,
        missing_id: UnknownTopicId,
    }
    assert caught.value.results[topic].name == topic
    with pytest.raises(UnknownTopicId, match=f"describing topic '{missing_id}'"):
        await kafka.admin.describe_topics(missing_id)


# --- deleting ------------------------------------------------------------------------------------------------------


async def test_topics_are_deleted_by_name_and_by_id(kafka: Client, new_name: Names) -> None:
    names = [await created_topic(kafka, new_name) for _ in range(3)]
    by_id = (await described(kafka, names[0], 1)).topic_id
    await kafka.admin.delete_topics([by_id, names[1]])
    for name in names[:2]:
        await gone(kafka, name)
    assert (await kafka.admin.describe_topics(names[2]))[names[2]].partitions
    third = (await described(kafka, names[2], 1)).topic_id
    await kafka.admin.delete_topics(third)
    await gone(kafka, names[2])
    with pytest.raises(UnknownTopicId, match=f"deleting topic '{third}'"):
        await kafka.admin.delete_topics(third)


async def test_topics_are_deleted_beside_those_that_do_not_exist(kafka: Client, topic: str, new_name: Names) -> None:
    missing, missing_id = new_name(), UUID(int=77)
    with pytest.raises(AdminError, match="deleting topics failed for 2 of 3") as caught:
        await kafka.admin.delete_topics([missing, topic, missing_id])
    assert [type(error) for error in caught.value.errors.values()] == [UnknownTopicOrPartition, UnknownTopicId]
    assert caught.value.results == {topic: None}
    await gone(kafka, topic)


async def test_a_topic_given_by_name_and_by_id_is_not_deleted(kafka: Client, topic: str) -> None:
    topic_id = (await described(kafka, topic, 3)).topic_id
    with pytest.raises(AdminError, match="failed for 2 of 2") as caught:
        await kafka.admin.delete_topics([topic, topic_id])
    assert "already supplied" in str(caught.value)
    assert list(caught.value.errors) == [topic, topic_id]
    await described(kafka, topic, 3)


# --- partitions ----------------------------------------------------------------------------------------------------


async def test_a_topic_gets_more_partitions(kafka: Client, topic: str) -> None:
    await described(kafka, topic, 3)
    await kafka.admin.create_partitions({topic: 5})
    await described(kafka, topic, 5)
    await kafka.admin.create_partitions({topic: NewPartitions(7, [[1], [1]])})
    assert [one.replicas for one in (await described(kafka, topic, 7)).partitions] == [(1,)] * 7
    async with kafka.producer() as producer:
        assert (await producer.send(topic, b"v", partition=6)).partition == 6


async def test_partitions_are_checked_alone(kafka: Client, topic: str) -> None:
    await kafka.admin.create_partitions({topic: 5}, validate_only=True)
    with pytest.raises(InvalidPartitions, match=f"creating partitions of topic '{topic}'.* 2 would not be an increase"):
        await kafka.admin.create_partitions({topic: 2}, validate_only=True)
    await described(kafka, topic, 3)


async def test_partitions_are_created_beside_topics_that_fail(kafka: Client, topic: str, new_name: Names) -> None:
    few, other, missing = await created_topic(kafka, new_name), await created_topic(kafka, new_name, 2), new_name()
    with pytest.raises(AdminError, match="creating partitions failed for 3 of 4") as caught:
        await kafka.admin.create_partitions({topic: 3, few: 4, missing: 2, other: NewPartitions(3, [[77]])})
    assert {name: type(error) for name, error in caught.value.errors.items()} == {
        topic: InvalidPartitions,
        missing: UnknownTopicOrPartition,
        other: InvalidReplicaAssignment,
    }
    assert caught.value.results == {few: None}
    await described(kafka, few, 4)


# --- records -------------------------------------------------------------------------------------------------------


async def with_records(kafka: Client, topic: str) -> list[TopicPartition]:
    """Write ten records to each of the topic's three partitions."""
    partitions = [TopicPartition(topic, index) for index in range(3)]
    async with kafka.producer() as producer:
        for partition in partitions:
            await producer.send_many(topic, [b"v"] * 10, partition=partition.partition)
    return partitions


async def test_records_are_deleted_before_an_offset_and_to_the_end(kafka: Client, topic: str) -> None:
    zero, one, two = await with_records(kafka, topic)
    assert await kafka.admin.delete_records({two: -1, zero: 4, one: 0}) == {two: 10, zero: 4, one: 0}
    found = await kafka.admin.list_offsets(dict.fromkeys((zero, one, two), OffsetSpec.EARLIEST))
    assert [entry.offset for entry in found.values() if entry is not None] == [4, 0, 10]
    # Offsets before the beginning delete nothing.
    assert await kafka.admin.delete_records({zero: 2}) == {zero: 4}
    assert [record.offset async for record in kafka.read_records(topic) if record.partition == 0] == [4, 5, 6, 7, 8, 9]


async def test_records_are_deleted_beside_partitions_that_fail(kafka: Client, topic: str, new_name: Names) -> None:
    zero, one, _ = await with_records(kafka, topic)
    missing, none = TopicPartition(new_name(), 0), TopicPartition(topic, 99)
    with anyio.fail_after(SOON), pytest.raises(AdminError, match="deleting records failed for 3 of 4") as caught:
        await kafka.admin.delete_records({missing: 0, zero: 11, one: 5, none: -1})
    assert {partition: type(error) for partition, error in caught.value.errors.items()} == {
        missing: UnknownTopicOrPartition,
        zero: OffsetOutOfRange,
        none: UnknownTopicOrPartition,
    }
    assert caught.value.results == {one: 5}
    with pytest.raises(OffsetOutOfRange, match=f"deleting records of {zero}"):
        await kafka.admin.delete_records({zero: 11})


async def test_compacted_topics_keep_their_records(kafka: Client, new_name: Names) -> None:
    name = new_name()
    await kafka.admin.create_topics({name: NewTopic(1, 1, {"cleanup.policy": "compact"})})
    with pytest.raises(PolicyViolation):
        await kafka.admin.delete_records({TopicPartition(name, 0): -1})


async def test_nothing_to_do(kafka: Client) -> None:
    assert await kafka.admin.create_topics({}) == {}
    assert await kafka.admin.delete_records({}) == {}
    await kafka.admin.delete_topics([])
    await kafka.admin.create_partitions({})


# --- quotas --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_topics_beyond_the_quota_are_created_when_it_permits(cluster: Where, new_name: Names) -> None:
    client_id = new_name()

    async def limit(*, remove: bool = False) -> None:
        entity = [EntityData(entity_type="client-id", entity_name=client_id)]
        operation = OpData(key="controller_mutation_rate", value=20.0, remove=remove)
        entry = AlterClientQuotasRequestEntryData(entity=entity, ops=[operation])
        async with RawClient(await cluster.connector(*parse_servers(cluster.bootstrap)[0])) as raw:
            await raw.ask(AlterClientQuotasRequest(entries=[entry], validate_only=False), 1)

    async with cluster.client(client_id=client_id) as kafka:
        await limit()

        async def exceeded() -> bool:
            # Checks count as well: eleven seconds' worth of partitions are free, and a second's worth goes beyond.
            many, one = new_name(), new_name()
            try:
                await kafka.admin.create_topics({many: 240, one: 1}, validate_only=True, timeout=0.9)
            except AdminError as refused:
                return isinstance(refused.errors[one], ThrottlingQuotaExceeded)
            return False

        try:
            await settled(exceeded, bool)
            names = [new_name() for _ in range(3)]
            assert list(await kafka.admin.create_topics(dict.fromkeys(names, 1))) == names
            await kafka.admin.delete_topics(names)
        finally:
            await limit(remove=True)
