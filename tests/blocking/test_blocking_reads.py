"""``read_records`` and ``read_batches`` without an event loop."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Barrier
from typing import Any

import pytest
from support.interrupting import Interrupt

from aiokafkawire import ConfigError, OffsetSpec, TopicPartition, UsageError, blocking
from aiokafkawire.records.batch import ConsumerRecord
from aiokafkawire.testing.background import BackgroundBroker

T0 = TopicPartition("t", 0)


@pytest.fixture
def kafka() -> Iterator[blocking.Client]:
    """A client of a broker with a topic that was written in transactions: offsets 0 to 1199, and 1201 to 1202."""
    with BackgroundBroker() as broker, blocking.Client(broker.bootstrap) as kafka:
        kafka.admin.create_topics({"t": 1})
        with kafka.producer(transactional_id="id") as producer:
            for count in (1200, 2):
                with producer.transaction():
                    producer.send_many("t", [b"%d" % number for number in range(count)])
        yield kafka


OFFSETS = [*range(1200), 1201, 1202]


def lanes(kafka: blocking.Client) -> list[str]:
    """The consumers that run."""
    return kafka.loop.call_sync(
        lambda: [name for _, name in kafka.asynchronous._cluster.brokers._lanes if name.startswith("fetch-")]
    )


def test_they_end_by_themselves(kafka: blocking.Client) -> None:
    assert [record.offset for record in kafka.read_records("t")] == OFFSETS
    assert [one for batch in kafka.read_batches("t") for one in batch["offset"].to_pylist()] == OFFSETS
    assert [record.offset for record in kafka.read_records("t", start={T0: 1198}, end={T0: 1202})] == [1198, 1199, 1201]
    assert list(kafka.read_records("t", start=OffsetSpec.LATEST)) == []
    batches = list(kafka.read_batches("t", columns=["value"], isolation_level="read_uncommitted"))
    assert {name for batch in batches for name in batch.schema.names} == {"value"}
    assert lanes(kafka) == []


def test_one_that_is_left_early_is_closed(kafka: blocking.Client) -> None:
    for record in kafka.read_records("t"):
        assert record.offset == 0
        break
    for _ in kafka.read_batches("t"):
        break
    assert lanes(kafka) == []


@pytest.mark.parametrize("kind", ["records", "batches"])
def test_an_interrupt_at_any_moment_loses_nothing(kafka: blocking.Client, kind: str) -> None:
    for at in count():
        reading: Iterator[Any] = kafka.read_records("t") if kind == "records" else kafka.read_batches("t")
        interrupt, read = Interrupt(at, but=__file__), list[Any]()
        try:
            with interrupt:
                read.append(next(reading))
        except KeyboardInterrupt:
            pass
        read += reading
        assert [offset for one in read for offset in offsets_of(one)] == OFFSETS, at
        if not interrupt.raised:
            break
    assert at > 20  # there were moments


def test_threads_that_share_an_iterator_get_each_item_once(kafka: blocking.Client) -> None:
    reading, at_once = kafka.read_records("t"), Barrier(2)

    def read() -> list[int]:
        at_once.wait()
        return [record.offset for record in reading]

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.submit(read), threads.submit(read)
    assert sorted(first.result() + second.result()) == OFFSETS


def test_an_interrupt_loses_no_record_that_another_thread_has_read(kafka: blocking.Client) -> None:
    """The other one reads while this one waits for its turn, and Ctrl-C comes as the turn ends."""
    reading: Any = kafka.read_records("t")
    read = [next(reading).offset]
    others: list[int] = []

    class Turn:
        def __enter__(self) -> None:
            others.append(lend())

        def __exit__(self, *_: object) -> None:
            raise KeyboardInterrupt

    def lend() -> int:
        reading._refilling = turn
        return int(next(reading).offset)

    while reading._items.__length_hint__():
        read.append(next(reading).offset)
    turn, reading._refilling = reading._refilling, Turn()
    with pytest.raises(KeyboardInterrupt):
        next(reading)
    read += [record.offset for record in reading]
    assert sorted(read + others) == OFFSETS


def offsets_of(item: Any) -> list[int]:
    return [item.offset] if isinstance(item, ConsumerRecord) else item["offset"].to_pylist()


def test_mistakes_are_told_by_the_call(kafka: blocking.Client) -> None:
    with pytest.raises(UsageError):
        kafka.read_records("t", end={T0: -1})
    with pytest.raises(UsageError):
        kafka.read_batches("t", columns=["x"])
    with pytest.raises(ConfigError):
        kafka.read_records("t", group_id="g")


def test_one_that_is_left_open_does_not_keep_the_client_from_closing() -> None:
    with BackgroundBroker() as broker, blocking.Client(broker.bootstrap) as kafka:
        kafka.admin.create_topics({"t": 1})
        with kafka.producer() as producer:
            producer.send_many("t", [b"1", b"2"])
        records = kafka.read_records("t")
        assert next(records).offset == 0
    del records
