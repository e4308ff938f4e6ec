"""The admin client of aiokafka's API does what aiokafka's does: the same tests on both, on the in-process broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.patience import SOON

from aiokafkawire.testing import Broker

Api = Any


def run(api: Api, test: Callable[[Any, Broker], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(SOON), Broker() as broker, started(api, broker) as admin:
            await test(admin, broker)

    asyncio.run(main())


@asynccontextmanager
async def started(api: Api, broker: Broker) -> AsyncIterator[Any]:
    admin = api("admin").AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await admin.start()
    await admin.start()
    yield admin
    await admin.close()
    await admin.close()


def test_a_client_sends_the_two_requests_that_faust_makes(api: Api) -> None:
    async def test(admin: Any, broker: Broker) -> None:
        client = admin._client
        request = api("protocol.metadata").MetadataRequest([])
        assert (await client.send(1, request)).controller_id == 1
        topics: Any = [("a", 2, 1, [], [("retention.ms", 5)])]
        response = await client.send(1, api("protocol.admin").CreateTopicsRequest(topics, 5_000, False))
        assert [(topic, code) for topic, code, _ in response.topic_errors] == [("a", 0)]
        assert await admin.list_topics() == ["a"]

    run(api, test)


def test_values_of_configs_may_be_numbers(api: Api) -> None:
    config_resource = api("admin.config_resource").ConfigResource

    async def values(admin: Any) -> dict[str, str]:
        (found,) = await admin.describe_configs([config_resource("topic", "a")])
        return {entry[0]: str(entry[1]).lower() for entry in found.resources[0][4]}

    async def test(admin: Any, broker: Broker) -> None:
        configs = {"retention.ms": 5, "preallocate": True, "min.cleanable.dirty.ratio": 0.25}
        await admin.create_topics([api("admin").NewTopic("a", 1, 1, topic_configs=configs)])
        before = await values(admin)
        assert [before[name] for name in configs] == ["5", "true", "0.25"]
        (altered,) = await admin.alter_configs([config_resource("topic", "a", {"retention.ms": 6})])
        assert altered.resources[0][0] == 0
        assert (await values(admin))["retention.ms"] == "6"

    run(api, test)


def test_topics_are_created_listed_described_and_deleted(api: Api) -> None:
    new_topic = api("admin").NewTopic

    async def test(admin: Any, broker: Broker) -> None:
        created = await admin.create_topics(
            [new_topic("a", 2, 1, topic_configs={"retention.ms": "5"}), new_topic("b", -1, -1, {0: [1], 1: [1]})]
        )
        assert [(topic, code) for topic, code, _ in created.topic_errors] == [("a", 0), ("b", 0)]
        assert [(one["topic"], one["error_code"]) for one in created.to_object()["topic_errors"]] == [
            ("a", 0),
            ("b", 0),
        ]
        again = await admin.create_topics([new_topic("a", 1, 1)])
        assert [(topic, code) for topic, code, _ in again.topic_errors] == [("a", 36)]
        assert set(await admin.list_topics()) == {"a", "b"}
        (described,) = await admin.describe_topics(["a"])
        assert (described["topic"], described["error_code"], described["is_internal"]) == ("a", 0, False)
        first = described["partitions"][0]
        assert {name: first[name] for name in ("partition", "leader", "replicas", "isr", "error_code")} == {
            "partition": 0,
            "leader": 1,
            "replicas": [1],
            "isr": [1],
            "error_code": 0,
        }
        deleted = await admin.delete_topics(["a"])
        assert deleted.topic_error_codes == [("a", 0)]
        assert await admin.list_topics() == ["b"]

    run(api, test)


def test_a_new_topic_has_numbers_or_assignments(api: Api) -> None:
    illegal, new_topic = api("errors").IllegalArgumentError, api("admin").NewTopic
    for arguments in ((-1, -1), (1, -1), (1, 1, {0: [1]})):
        with pytest.raises(illegal):
            new_topic("t", *arguments)


def test_partitions_are_added(api: Api) -> None:
    async def test(admin: Any, broker: Broker) -> None:
        broker.create_topic("t", partitions=2)
        new_partitions = api("admin").NewPartitions
        assert (await admin.create_partitions({"t": new_partitions(3)})).topic_errors[0][:2] == ("t", 0)
        assert (await admin.create_partitions({"t": new_partitions(4, [[1]])})).topic_errors[0][:2] == ("t", 0)
        with pytest.raises(api("errors").InvalidPartitionsError):
            await admin.create_partitions({"t": new_partitions(1)})

    run(api, test)


def test_configs_are_described_and_set(api: Api) -> None:
    module = api("admin.config_resource")

    async def test(admin: Any, broker: Broker) -> None:
        broker.create_topic("t")
        await admin.alter_configs([module.ConfigResource("TOPIC", "t", {"retention.ms": "77"})])
        topic = module.ConfigResource(module.ConfigResourceType.TOPIC, "t", {"retention.ms": None})
        node = module.ConfigResource("broker", 1, {"log.retention.ms": None})
        answers = await admin.describe_configs([topic, node], include_synonyms=True)
        found = {one.resources[0][2:4]: one.resources[0] for one in answers}
        assert set(found) == {(2, "t"), (4, "1")}
        code, message, *_, entries = found[2, "t"]
        assert (code, bool(message)) == (0, False)
        name, value, is_read_only, source, is_sensitive, synonyms = entries[0]
        assert (name, value, is_read_only, source, is_sensitive) == ("retention.ms", "77", False, 1, False)
        assert synonyms[0] == ("retention.ms", "77", 1)
        (named,) = (one.to_object()["resources"][0] for one in answers if one.resources[0][2] == 2)
        assert (named["resource_name"], named["config_entries"][0]["config_value"]) == ("t", "77")
        assert named["config_entries"][0]["config_synonyms"][0]["config_value"] == "77"

    run(api, test)


def test_the_cluster_is_described(api: Api) -> None:
    async def test(admin: Any, broker: Broker) -> None:
        found = await admin.describe_cluster()
        (one,) = found["brokers"]
        assert f"{one['host']}:{one['port']}" == broker.bootstrap
        assert (one["node_id"], found["controller_id"]) == (1, 1)
        assert found["cluster_id"]

    run(api, test)


def test_groups_and_their_offsets_are_listed_and_described(api: Api) -> None:
    async def test(admin: Any, broker: Broker) -> None:
        broker.create_topic("t", partitions=2)
        partition, other = api.TopicPartition("t", 0), api.TopicPartition("t", 1)
        options = {"bootstrap_servers": broker.bootstrap, "transactional_id": "x"}
        async with api.AIOKafkaProducer(**options) as producer, producer.transaction():
            await producer.send_offsets_to_transaction({partition: 3}, "g")
        assert [group for group, _ in await admin.list_consumer_groups()] == ["g"]
        assert [group for group, _ in await admin.list_consumer_groups([1])] == ["g"]
        (described,) = await admin.describe_consumer_groups(["g"])
        assert described.groups[0][:3] == (0, "g", "Empty")
        assert (described.to_object()["groups"][0]["state"], described.to_object()["groups"][0]["members"]) == (
            "Empty",
            [],
        )
        assert await admin.list_consumer_group_offsets("g") == {partition: (3, "")}
        assert await admin.list_consumer_group_offsets("g", partitions=[partition, other]) == {
            partition: (3, ""),
            other: (-1, ""),
        }
        assert await admin.find_coordinator("g") == 1

    run(api, test)


def test_records_are_deleted(api: Api) -> None:
    async def test(admin: Any, broker: Broker) -> None:
        broker.create_topic("t")
        partition, records_to_delete = api.TopicPartition("t", 0), api("admin").RecordsToDelete
        async with api.AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            for _ in range(3):
                await producer.send_and_wait("t", b"v")
        assert await admin.delete_records({partition: records_to_delete(2)}) == {partition: 2}
        with pytest.raises(api("errors").OffsetOutOfRangeError):
            await admin.delete_records({partition: records_to_delete(9)})

    run(api, test)
