"""The blocking consumer in its group: listeners, rebalances with records in hand; and transactions with its offsets."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from secrets import token_hex
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokafkawire import GroupMetadata, KafkaError, OutgoingRecord, TopicPartition, UsageError, blocking
from aiokafkawire.consumer.health import PartitionHealth
from aiokafkawire.group.assignors import RoundRobinAssignor
from aiokafkawire.records.batch import ConsumerRecord

Partitions = tuple[TopicPartition, ...]
Consumer = blocking.Consumer[bytes, bytes]


@pytest.fixture
def topic(kafka: blocking.Client) -> str:
    """A topic of two partitions with 300 records each."""
    name = f"topic-{token_hex(6)}"
    kafka.admin.create_topics({name: 2})
    with kafka.producer(linger_ms=0) as producer:
        for partition in (0, 1):
            for _ in range(30):
                producer.send_many(name, [b"x"] * 10, partition=partition)
    return name


def member(kafka: blocking.Client, *topics: str, group_id: str, **options: Any) -> Consumer:
    options = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 100, **options}
    return kafka.consumer(*topics, group_id=group_id, **options)


def wait_for(condition: Any) -> None:
    waiting = threading.Event()
    for _ in range(3000):
        if condition():
            return
        waiting.wait(0.01)
    raise AssertionError("it has not come to that in 30 s")


# --- listeners ---------------------------------------------------------------------------------------------


def test_listeners_run_on_a_thread_of_their_own_and_may_call_the_consumer(kafka: blocking.Client, topic: str) -> None:
    heard: list[tuple[str, Partitions, str]] = []

    def assigned(partitions: Partitions) -> None:
        heard.append(("assigned", partitions, threading.current_thread().name))
        for partition in partitions:
            consumer.seek(partition, 290)
        consumer.pause(*partitions)
        consumer.resume(*partitions)
        with pytest.raises(UsageError, match="a listener cannot read"):
            consumer.poll()
        with pytest.raises(UsageError, match="a listener cannot close"):
            consumer.close()

    def revoked(partitions: Partitions) -> None:
        heard.append(("revoked", partitions, threading.current_thread().name))
        consumer.commit(consumer.positions())
        assert {one.offset for one in consumer.committed(partitions).values() if one is not None} == {295, 300}

    both = (TopicPartition(topic, 0), TopicPartition(topic, 1))
    with member(kafka, group_id=topic, enable_auto_commit=False) as consumer:
        consumer.subscribe(pattern=topic.replace("-", "."), on_assigned=assigned, on_revoked=revoked)
        records = consumer.poll(5, timeout=30)
        while len(records) < 15:
            records += consumer.poll(15 - len(records), timeout=30)
        assert {record.offset for record in records} == set(range(290, 300))
        assert consumer.group_metadata().generation_id > 0
        consumer.check_ownership()
        assert all(consumer.owns(record) for record in records)
        consumer.unsubscribe()
        assert not any(consumer.owns(record) for record in records)
        assert consumer.assignment == ()
    assert heard == [("assigned", both, "aiokafkawire-listener"), ("revoked", both, "aiokafkawire-listener")]


def test_what_a_listener_raises_the_next_call_raises(kafka: blocking.Client, topic: str) -> None:
    def assigned(partitions: Partitions) -> None:
        raise ZeroDivisionError

    async def coroutine_function(partitions: Partitions) -> None: ...

    with member(kafka, group_id=topic) as consumer:
        with pytest.raises(UsageError, match="on_lost must be a plain function"):
            consumer.subscribe(topic, on_lost=coroutine_function)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="on_revoked must be a function"):
            consumer.subscribe(topic, on_revoked=7)  # type: ignore[arg-type]
        consumer.subscribe(topic, on_assigned=assigned)
        with pytest.raises(ZeroDivisionError):
            consumer.poll(timeout=30)
        assert len(consumer.poll(timeout=30)) > 0


def test_a_listener_that_exits_ends_no_thread_of_the_client(kafka: blocking.Client, topic: str) -> None:
    def assigned(partitions: Partitions) -> None:
        sys.exit("no room")

    with member(kafka, group_id=topic) as consumer:
        consumer.subscribe(topic, on_assigned=assigned)
        with pytest.raises(KafkaError, match=r"a listener has raised SystemExit\('no room'\)"):
            consumer.poll(timeout=30)
        assert len(consumer.poll(timeout=30)) > 0


def of(consumer: Consumer) -> list[PartitionHealth]:
    return list(consumer.health().partitions.values())


# --- rebalances --------------------------------------------------------------------------------------------


def read_rest(consumer: Consumer, seen: list[tuple[int, int]], total: list[tuple[int, int]], most: int) -> None:
    while len(total) < most:
        for record in consumer.poll(20, timeout=0.1):
            seen.append((record.partition, record.offset))
            total.append(seen[-1])


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_rebalance_waits_for_the_record_in_hand_and_takes_the_rest(
    kafka: blocking.Client, bootstrap: str, topic: str, strategy: str
) -> None:
    """What was read ahead of the loop is the next owner's: each record is seen once."""
    options: dict[str, Any] = {"group_id": topic, "partition_assignment_strategy": [strategy]}
    first_seen: list[tuple[int, int]] = []
    second_seen: list[tuple[int, int]] = []
    total: list[tuple[int, int]] = []
    with member(kafka, topic, **options) as first, blocking.Client(bootstrap) as another:
        for record in first:
            first_seen.append((record.partition, record.offset))
            if len(first_seen) == 37:
                break
        total += first_seen
        held = TopicPartition(topic, first_seen[-1][0])
        with member(another, topic, **options) as second:
            reading = threading.Thread(target=read_rest, args=(second, second_seen, total, 600))
            reading.start()
            # A partition that is in nobody's hands goes at once; the one that is held stays.
            wait_for(lambda: second.assignment or any(one.being_given_up for one in of(first)))
            assert held in first.assignment
            read_rest(first, first_seen, total, 600)
            reading.join(30)
    assert sorted(first_seen + second_seen) == [(partition, offset) for partition in (0, 1) for offset in range(300)]
    assert second_seen


def test_after_a_commit_what_was_read_ahead_holds_no_rebalance_up(
    kafka: blocking.Client, bootstrap: str, topic: str
) -> None:
    options: dict[str, Any] = {"group_id": topic, "enable_auto_commit": False}
    with member(kafka, topic, **options) as first, blocking.Client(bootstrap) as another:
        seen = []
        for record in first:
            seen.append((record.partition, record.offset))
            if len(seen) == 37:
                break
        first.commit()
        with member(another, topic, **options) as second:
            wait_for(lambda: second.assignment)  # the first member makes no call meanwhile
            others = second.assignment
            wait_for(lambda: len(first.assignment) == 1)
            mine = [(record.partition, record.offset) for _, record in zip(range(200), first, strict=False)]
            theirs = [(record.partition, record.offset) for record in second.poll(5, timeout=30)]
    assert {partition for partition, _ in mine} == {1 - others[0].partition}
    for partition in (0, 1):
        of_one = [offset for where, offset in seen + mine + theirs if where == partition]
        assert of_one == list(range(len(of_one)))


# --- transactions and what else producers have -------------------------------------------------------------


def test_a_transaction_commits_what_the_consumer_has_returned(kafka: blocking.Client, topic: str) -> None:
    out = f"{topic}-out"
    kafka.admin.create_topics({out: 1})
    with (
        member(kafka, topic, group_id=topic, enable_auto_commit=False) as consumer,
        kafka.producer(transactional_id=topic) as producer,
    ):
        record = next(iter(consumer))
        where = TopicPartition(topic, record.partition)
        with producer.transaction() as transaction:
            assert transaction.send(out, b"0").offset == 0
            assert [one.offset for one in transaction.send_many(out, [b"1", b"2"])] == [1, 2]
            delivery = transaction.enqueue(out, b"3")
            transaction.commit_offsets(consumer)
        assert delivery.done
        assert delivery.result().offset == 3
        found = consumer.committed([where])[where]
        assert found is not None
        assert found.offset == 1
        assert next(iter(consumer)).offset == 1
        with producer.transaction() as transaction:
            transaction.commit_offsets(consumer.positions(), group=consumer.group_metadata())
        found = consumer.committed([where])[where]
        assert found is not None
        assert found.offset == 2
        with producer.transaction() as transaction:
            transaction.commit_offsets({where: 7}, group=GroupMetadata(f"{topic}-other"))


def decimal(number: int) -> bytes:
    return b"%d" % number


def test_serializers_deserializers_and_assignors_are_taken(kafka: blocking.Client) -> None:
    topic = f"topic-{token_hex(6)}"
    kafka.admin.create_topics({topic: 1})
    with kafka.producer(key_serializer=str.encode, value_serializer=decimal) as producer:
        delivery = producer.enqueue(topic, 7, key="UA")
        assert delivery.result().offset == 0
        told: list[object] = []
        delivery.add_callback(lambda *outcome: told.append(outcome))
        assert told == [(delivery.result(), None)]
    with kafka.consumer(
        topic,
        group_id=topic,
        auto_offset_reset="earliest",
        key_deserializer=bytes.decode,
        value_deserializer=int,
        assignors=[RoundRobinAssignor()],
    ) as consumer:
        record = next(iter(consumer))
        assert (record.key, record.value) == ("UA", 7)
        consumer.commit(retention_ms=60_000)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_gets_nothing_of_what_was_read_ahead(kafka: blocking.Client, topic: str) -> None:
    with member(kafka, topic, group_id=topic) as consumer:
        records = iter(consumer)
        next(records)
        child = os.fork()
        if child == 0:
            code = 8
            try:
                next(records)
            except UsageError:
                code = 7
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert next(records).offset == 1


# --- the admin ---------------------------------------------------------------------------------------------


def test_groups_of_both_types_are_described(kafka: blocking.Client, topic: str) -> None:
    kafka.admin.alter_consumer_group_offsets(f"{topic}-2", {TopicPartition(topic, 0): 3})
    with kafka.consumer(topic, group_id=topic, group_protocol="consumer", auto_offset_reset="earliest") as consumer:
        next(iter(consumer))
        found = kafka.admin.describe_consumer_groups(topic, f"{topic}-2", include_authorized_operations=True)
        assert [(one.type, len(one.members)) for one in found.values()] == [("consumer", 1), ("classic", 0)]
        assert all("READ" in (one.authorized_operations or ()) for one in found.values())
        assert found[topic].members == kafka.admin.describe_groups([topic])[topic].members


# --- transform ---------------------------------------------------------------------------------------------


def test_transform_processes_on_the_calling_thread(kafka: blocking.Client, topic: str) -> None:
    out = f"{topic}-out"
    kafka.admin.create_topics({out: 1})
    stop = threading.Event()
    threads = set()
    fails = True

    def process(records: list[ConsumerRecord[bytes, bytes]]) -> Iterator[OutgoingRecord]:
        threads.add(threading.get_ident())
        if fails and any(record.offset > 150 for record in records):
            raise ZeroDivisionError
        for record in records:
            yield OutgoingRecord(out, b"%d-%d" % (record.partition, record.offset))
            if record.offset == 299:
                stop.set()

    options: dict[str, Any] = {"group_id": topic, "transactional_id": topic, "max_records": 100}
    with pytest.raises(ZeroDivisionError):
        kafka.transform(topic, process, **options)
    fails = False
    assert kafka.transform(topic, process, stop=stop, **options) > 0
    kafka.transform(topic, process, until_end=True, **options)
    assert threads == {threading.get_ident()}
    with kafka.consumer(out, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        found = [record.value or b"" for _, record in zip(range(600), consumer, strict=False)]
    assert sorted(found) == sorted(b"%d-%d" % (where, offset) for where in (0, 1) for offset in range(300))


def test_interrupting_transform_aborts_what_is_open(kafka: blocking.Client, topic: str) -> None:
    def interrupted(records: object) -> list[OutgoingRecord]:
        raise KeyboardInterrupt

    options: dict[str, Any] = {"group_id": topic, "transactional_id": topic}
    with pytest.raises(KeyboardInterrupt):
        kafka.transform(topic, interrupted, **options)
    assert kafka.transform(topic, lambda records: [], until_end=True, **options) == 600


def test_transform_lets_process_run_an_event_loop(kafka: blocking.Client, topic: str) -> None:
    """As a library may that has a blocking form of what it does by anyio."""
    ran: list[int] = []

    async def count(records: list[ConsumerRecord[bytes, bytes]]) -> None:
        await anyio.lowlevel.checkpoint()
        ran.append(len(records))

    def process(records: list[ConsumerRecord[bytes, bytes]]) -> list[OutgoingRecord]:
        anyio.run(count, records)
        return []

    assert kafka.transform(topic, process, group_id=topic, transactional_id=topic, until_end=True) == sum(ran) == 600


def test_transform_takes_no_stop_but_an_event(kafka: blocking.Client, topic: str) -> None:
    options: dict[str, Any] = {"group_id": "g", "transactional_id": "t", "stop": 5}
    with pytest.raises(UsageError, match=r"stop must be a threading\.Event or None, got 5"):
        kafka.transform(topic, lambda records: [], **options)
