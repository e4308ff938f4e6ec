"""librdkafka believes the broker: confluent-kafka produces, consumes in groups, and runs transactions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from support.examples import sampled
from support.patience import PATIENCE

from aiokafkawire.testing import BackgroundBroker

confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
admin_module = pytest.importorskip("confluent_kafka.admin")

COUNT = 500


def produced(bootstrap: str, topic: str, count: int = COUNT, **options: Any) -> list[Any]:
    """Records with keys and headers, and what was reported of each."""
    reports: list[Any] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, **options})
    for number in range(count):
        producer.produce(
            topic,
            key=f"k{number % 10}",
            value=f"v{number}",
            headers={"number": str(number)},
            on_delivery=lambda error, message: reports.append((error, message)),
        )
    assert producer.flush(PATIENCE) == 0
    return reports


def consumer(bootstrap: str, group: str, **options: Any) -> Any:
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", **options}
    return confluent_kafka.Consumer(settings)


def consumed(reader: Any, count: int, patience: float = PATIENCE) -> list[Any]:
    found: list[Any] = []
    deadline = time.monotonic() + patience
    while len(found) < count and time.monotonic() < deadline:
        found += [one for one in reader.consume(count - len(found), timeout=0.5) if one.error() is None]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"enable.idempotence": True}, {"acks": "1"}, {"compression.type": "lz4"}])
def test_what_is_produced_is_consumed_in_a_group(bootstrap: str, name: str, options: dict[str, Any]) -> None:
    reports = produced(bootstrap, name, **options)
    assert len(reports) == COUNT
    assert all(error is None for error, _ in reports)
    reader = consumer(bootstrap, name)
    reader.subscribe([name])
    found = consumed(reader, COUNT)
    assert sorted(one.value() for one in found) == sorted(b"v%d" % number for number in range(COUNT))
    assert all(dict(one.headers())["number"] == one.value()[1:] for one in found)
    reader.commit(asynchronous=False)
    committed = reader.committed([confluent_kafka.TopicPartition(name, index) for index in range(3)])
    assert sum(max(0, one.offset) for one in committed) == COUNT
    reader.close()


@pytest.mark.slow
@pytest.mark.parametrize("strategy", sampled(["range", "roundrobin", "cooperative-sticky"], "cooperative-sticky"))
def test_two_members_share_the_partitions(bootstrap: str, name: str, strategy: str) -> None:
    produced(bootstrap, name, 30)
    readers = [consumer(bootstrap, name, **{"partition.assignment.strategy": strategy}) for _ in range(2)]
    for reader in readers:
        reader.subscribe([name])
    deadline, shares = time.monotonic() + PATIENCE, [0, 0]
    while sorted(shares) != [1, 2] and time.monotonic() < deadline:
        for reader in readers:
            reader.poll(0.1)
        shares = [len(reader.assignment()) for reader in readers]
    assert sorted(shares) == [1, 2]
    readers[0].close()
    while len(readers[1].assignment()) < 3 and time.monotonic() < deadline:
        readers[1].poll(0.1)
    assert len(readers[1].assignment()) == 3
    readers[1].close()


@pytest.fixture
def quick() -> Iterator[str]:
    """A broker that wants many heartbeats of consumer groups."""
    with BackgroundBroker(num_partitions=3, group_consumer_heartbeat_interval_ms=200) as broker:
        yield broker.bootstrap


@pytest.mark.slow
@pytest.mark.parametrize("assignor", sampled(["uniform", "range"], "uniform"))
def test_members_of_a_consumer_group_share_the_partitions(quick: str, name: str, assignor: str) -> None:
    produced(quick, name, 30)
    options = {"group.protocol": "consumer", "group.remote.assignor": assignor}
    readers = [consumer(quick, name, **options) for _ in range(2)]
    readers[0].subscribe([name])
    assert len(consumed(readers[0], 30)) == 30
    readers[1].subscribe([name])
    deadline, shares = time.monotonic() + PATIENCE, [0, 0]
    while sorted(shares) != [1, 2] and time.monotonic() < deadline:
        for reader in readers:
            reader.poll(0.1)
        shares = [len(reader.assignment()) for reader in readers]
    assert sorted(shares) == [1, 2]
    admin = admin_module.AdminClient({"bootstrap.servers": quick})
    described = admin.describe_consumer_groups([name])[name].result(20)
    assert str(described.type).endswith("CONSUMER")
    assert sorted(len(member.assignment.topic_partitions) for member in described.members) == [1, 2]
    readers[0].close()
    while len(readers[1].assignment()) < 3 and time.monotonic() < deadline:
        readers[1].poll(0.1)
    assert len(readers[1].assignment()) == 3
    readers[1].close()
    again = consumer(quick, name, **options, **{"group.instance.id": "a"})
    again.subscribe(["^" + name])
    assert consumed(again, 1, 2) == []
    committed = again.committed([confluent_kafka.TopicPartition(name, index) for index in range(3)])
    assert sum(max(0, one.offset) for one in committed) == 30
    again.close()


def test_a_consumer_goes_on_where_its_group_was(bootstrap: str, name: str) -> None:
    produced(bootstrap, name, 60)
    first = consumer(bootstrap, name, **{"enable.auto.commit": False})
    first.subscribe([name])
    half = consumed(first, 30)
    for message in half:
        first.commit(message, asynchronous=False)
    first.close()
    second = consumer(bootstrap, name)
    second.subscribe([name])
    rest = consumed(second, 30)
    assert len({one.value() for one in half + rest}) == 60
    second.close()


def test_transactions_are_seen_when_they_commit(bootstrap: str, name: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(20)
    for outcome in ("abort", "commit"):
        producer.begin_transaction()
        for number in range(20):
            producer.produce(name, value=f"{outcome}{number}")
        if outcome == "abort":
            producer.flush(PATIENCE)
            producer.abort_transaction(20)
        else:
            producer.commit_transaction(20)
    reader = consumer(bootstrap, name, **{"isolation.level": "read_committed"})
    reader.subscribe([name])
    found = consumed(reader, 20)
    assert {one.value() for one in found} == {b"commit%d" % number for number in range(20)}
    assert reader.consume(1, timeout=0.5) == []
    reader.close()


def test_offsets_are_committed_in_a_transaction(bootstrap: str, name: str) -> None:
    produced(bootstrap, name, 30)
    reader = consumer(bootstrap, name, **{"enable.auto.commit": False})
    reader.subscribe([name])
    assert len(consumed(reader, 30)) == 30
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(f"{name}-out", value="sum")
    positions = reader.position(reader.assignment())
    producer.send_offsets_to_transaction(positions, reader.consumer_group_metadata(), 20)
    producer.commit_transaction(20)
    assert sum(one.offset for one in reader.committed(reader.assignment())) == 30
    reader.close()


def test_its_admin_client_works(bootstrap: str, name: str) -> None:
    admin = admin_module.AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([admin_module.NewTopic(name, 2, 1)])[name].result(20)
    assert len(admin.list_topics(timeout=PATIENCE).topics[name].partitions) == 2
    admin.create_partitions([admin_module.NewPartitions(name, 4)])[name].result(20)
    assert len(admin.list_topics(timeout=PATIENCE).topics[name].partitions) == 4
    resource = admin_module.ConfigResource("topic", name)
    settings = admin.describe_configs([resource])[resource].result(20)
    assert settings["cleanup.policy"].value == "delete"
    reader = consumer(bootstrap, name)
    reader.subscribe([name])
    deadline = time.monotonic() + PATIENCE
    while not reader.assignment() and time.monotonic() < deadline:
        reader.poll(0.1)
    group = admin.describe_consumer_groups([name])[name].result(20)
    assert group.state == confluent_kafka.ConsumerGroupState.STABLE
    assert [one.group_id for one in admin.list_consumer_groups().result(20).valid if one.group_id == name] == [name]
    reader.close()
    admin.delete_topics([name])[name].result(20)
