"""The blocking share consumer."""

from __future__ import annotations

import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex
from typing import Any

import pytest
from support.raw_client import RawClient
from support.share_members import configure

from aiokafkawire import Acknowledge, DeserializationError, Reject, ShareRecord, TopicPartition, UsageError, blocking
from aiokafkawire.network.connector import connect_tcp

COUNT = 60

pytestmark = pytest.mark.parametrize(
    "bootstrap",
    ["in-process", pytest.param("apache-kafka", marks=[pytest.mark.kafka, pytest.mark.thorough])],
    indirect=True,
)


@pytest.fixture
def topic(kafka: blocking.Client) -> str:
    """A topic of one partition with numbered records."""
    name = f"topic-{token_hex(6)}"
    kafka.admin.create_topics({name: 1})
    with kafka.producer() as producer:
        producer.send_many(name, [b"%d" % number for number in range(COUNT)])
    return name


@pytest.fixture
def group(kafka: blocking.Client, bootstrap: str) -> str:
    """A share group that begins at the logs' start."""
    name = f"group-{token_hex(6)}"

    async def begin_at_the_start() -> None:
        host, _, port = bootstrap.rpartition(":")
        async with RawClient(await connect_tcp(host, int(port))) as client:
            await configure(client, name, share_auto_offset_reset="earliest")

    kafka.loop.call(begin_at_the_start)
    return name


def number(record: ShareRecord[Any, Any]) -> int:
    return int(record.value or b"")


def test_records_are_processed_one_by_one(kafka: blocking.Client, topic: str, group: str) -> None:
    found: list[int] = []
    with kafka.share_consumer(topic, group_id=group) as consumer:
        for record in consumer:
            with record:
                found.append(number(record))
                if len(found) % 7 == 0:
                    raise Reject("every seventh")
            if len(found) == COUNT:
                break
        assert consumer.commit() == {TopicPartition(topic, 0): COUNT}
        assert consumer.subscription == (topic,)
        assert consumer.assignment == {TopicPartition(topic, 0)}
        assert consumer.acquisition_lock_timeout_ms == 30_000
    assert found == list(range(COUNT))
    with kafka.share_consumer(topic, group_id=group) as consumer:
        assert consumer.poll(timeout=0.3) == []


def test_threads_share_one_consumer(kafka: blocking.Client, topic: str, group: str) -> None:
    found: list[int] = []
    done = threading.Event()

    def work(consumer: blocking.ShareConsumer[bytes, bytes]) -> None:
        for record in consumer:
            with record:
                found.append(number(record))
            if len(found) == COUNT:
                done.set()

    with ThreadPoolExecutor(3) as pool, kafka.share_consumer(topic, group_id=group) as consumer:
        working = [pool.submit(work, consumer) for _ in range(3)]
        assert done.wait(30)
        consumer.close()
        for one in working:
            one.result(10)
    assert sorted(found) == list(range(COUNT))


def test_errors_are_those_of_the_asynchronous_consumer(kafka: blocking.Client, topic: str, group: str) -> None:
    with kafka.share_consumer(topic, group_id=group) as consumer:
        (record,) = consumer.poll(1, timeout=30)
        consumer.acknowledge(record, Acknowledge.RENEW)
        consumer.acknowledge(record, Acknowledge.RELEASE)
        with pytest.raises(UsageError, match=r"acknowledged already \(RELEASE\)"):
            consumer.acknowledge(record)
        other = consumer.poll(1, timeout=30)[0]
    with pytest.raises(UsageError, match="was released, since the share consumer is closed"):
        consumer.acknowledge(other)
    with pytest.raises(UsageError, match="is closed"):
        consumer.poll()
    assert list(consumer) == []

    def strict(_: bytes) -> int:
        raise ValueError("no")

    with (
        kafka.share_consumer(topic, group_id=group, value_deserializer=strict) as strictly,
        pytest.raises(DeserializationError),
    ):
        strictly.poll(timeout=30)


def test_an_interrupt_just_before_the_end_of_its_with_leaves_no_consumer_open(
    kafka: blocking.Client, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would remain a member of its group."""

    def interrupted(*_: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), kafka.share_consumer(topic, group_id=group) as consumer:
        monkeypatch.setattr(kafka.loop, "call", interrupted)
    assert consumer._consumer._state == "closed"


# A signal in the callback of a weak reference raises nowhere: Python only reports it.
@pytest.mark.filterwarnings("ignore:Exception ignored in.*_remove:pytest.PytestUnraisableExceptionWarning")
def test_signals_at_random_moments_lose_nothing(kafka: blocking.Client, topic: str, group: str) -> None:
    chance, found = random.Random(4), list[int]()

    def alarm(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, alarm)
    try:
        with kafka.share_consumer(topic, group_id=group) as consumer:
            while len(found) < COUNT:
                records: list[ShareRecord[bytes, bytes]] = []
                try:
                    signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00005, 0.003))
                    records = consumer.poll(3, timeout=1)
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except KeyboardInterrupt:
                    pass
                for record in records:
                    assert record.delivery_count == 1
                    found.append(number(record))
                    consumer.acknowledge(record)
            assert sum(consumer.commit().values()) == COUNT
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert found == list(range(COUNT))


def test_a_commit_does_not_accept_the_records_of_an_interrupted_poll(
    kafka: blocking.Client, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kafka.share_consumer(topic, group_id=group, share_acknowledgement_mode="implicit") as consumer:
        first = consumer.poll(1, timeout=30)
        call = kafka.loop.call

        def interrupted(*args: Any) -> None:
            call(*args)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(kafka.loop, "call", interrupted)
            with pytest.raises(KeyboardInterrupt):
                consumer.poll(5, timeout=30)
        assert consumer.commit() == {TopicPartition(topic, 0): len(first)}
        two = consumer.poll(2, timeout=30)
        assert consumer.commit() == {TopicPartition(topic, 0): len(two)}
        last = consumer.poll(1, timeout=30)
        assert [number(record) for record in first + two + last] == [0, 1, 2, 3]
    with kafka.share_consumer(topic, group_id=group) as consumer:
        assert number(consumer.poll(1, timeout=30)[0]) == 3  # closing has released it
