"""Calls for several resources: what is returned, and what is raised."""

import pytest
from support.clusters import QUICK

from aiokafkawire import Client, TopicPartition, TopicPartitionReplica, UsageError
from aiokafkawire.admin.outcomes import results_of
from aiokafkawire.errors import AdminError, InvalidPartitions, TopicAlreadyExists, UnknownTopicOrPartition
from aiokafkawire.testing.broker import Broker

MISSING = UnknownTopicOrPartition("deleting topic 'a'")
TAKEN = TopicAlreadyExists("creating topic 'b'")


def test_results_are_returned_if_nothing_failed() -> None:
    assert results_of("describing topics", {"a": 1, "b": 2}) == {"a": 1, "b": 2}
    assert results_of("describing topics", {}) == {}


def test_the_only_resource_raises_its_own_error() -> None:
    with pytest.raises(UnknownTopicOrPartition) as raised:
        results_of("deleting topics", {"a": MISSING})
    assert raised.value is MISSING


def test_some_of_several_raise_one_error_with_the_results_of_the_others() -> None:
    with pytest.raises(AdminError) as raised:
        results_of("changing topics", {"a": MISSING, "b": TAKEN, "c": 3})
    error = raised.value
    assert error.results == {"c": 3}
    assert error.errors == {"a": MISSING, "b": TAKEN}
    assert str(error) == f"changing topics failed for 2 of 3: {MISSING}; {TAKEN}"


def test_errors_of_a_kind_are_caught_by_except_star() -> None:
    caught: list[ExceptionGroup[TopicAlreadyExists]] = []
    with pytest.raises(AdminError) as raised:
        try:
            results_of("changing topics", {"a": MISSING, "b": TAKEN, "c": 3})
        except* TopicAlreadyExists as taken:
            caught.append(taken)
    assert isinstance(caught[0], AdminError)
    assert caught[0].errors == {"b": TAKEN}
    assert caught[0].results == raised.value.results == {"c": 3}
    assert raised.value.errors == {"a": MISSING}


def test_the_error_of_the_only_resource_is_caught_by_except_star_too() -> None:
    caught = []
    try:
        results_of("deleting topics", {"a": MISSING})
    except* (UnknownTopicOrPartition, InvalidPartitions) as unknown:
        caught.append(unknown)
    assert len(caught) == 1


@pytest.mark.anyio
@pytest.mark.usefixtures("nothing_fails_unheard")
async def test_a_closed_client_is_one_error_and_not_that_of_each_resource() -> None:
    partitions = [TopicPartition("a", 0), TopicPartition("a", 1)]
    replicas = [TopicPartitionReplica("a", 0, 1), TopicPartitionReplica("a", 0, 2)]
    async with Broker(2, port=None) as broker:
        broker.create_topic("a", 2)
        async with Client(broker.bootstrap, connector=broker.connect, **QUICK) as kafka:
            admin = kafka.admin
            assert await admin.list_offsets_of_groups("g", "h") == {"g": {}, "h": {}}
        for ask in (
            lambda: admin.api_versions([1, 2]),
            lambda: admin.list_offsets_of_groups("g", "h"),
            lambda: admin.describe_groups("g", "h"),
            lambda: admin.delete_groups("g", "h"),
            lambda: admin.fence_producers("x", "y"),
            lambda: admin.describe_producers(partitions),
            lambda: admin.delete_records(dict.fromkeys(partitions, -1)),
            lambda: admin.describe_log_dirs([1, 2]),
            lambda: admin.describe_replica_log_dirs(replicas),
            lambda: admin.alter_replica_log_dirs(dict.fromkeys(replicas, "/memory/1")),
        ):
            with pytest.raises(UsageError, match="the client is not open"):
                await ask()
