"""How the blocking consumer reads: record by record, by polls and by batches; left, entered again and interrupted."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from secrets import token_hex
from typing import Any

import pytest
from support.interrupting import Interrupt
from support.patience import SOON

from aiokafkawire import DeserializationError, OffsetSpec, TopicPartition, UsageError, blocking
from aiokafkawire.consumer.consumer import ConsumerBatch
from aiokafkawire.records.batch import ConsumerRecord

Record = ConsumerRecord[bytes, bytes]
Consumer = blocking.Consumer[bytes, bytes]


@pytest.fixture
def topic(kafka: blocking.Client) -> str:
    """A topic of two partitions; the first has 1000 records in batches of 20, each its offset."""
    name = f"topic-{token_hex(6)}"
    kafka.admin.create_topics({name: 2})
    with kafka.producer(linger_ms=0) as producer:
        for first in range(0, 1000, 20):
            producer.send_many(name, [b"%d" % one for one in range(first, first + 20)], partition=0)
    return name


def reader(kafka: blocking.Client, topic: str, **options: Any) -> Consumer:
    return kafka.consumer(topic, auto_offset_reset="earliest", **options)


def member(kafka: blocking.Client, topic: str, **options: Any) -> Consumer:
    return reader(kafka, topic, group_id=f"group-of-{topic}", enable_auto_commit=False, **options)


def committed(consumer: Consumer, topic: str) -> int:
    found = consumer.committed([TopicPartition(topic, 0)])[TopicPartition(topic, 0)]
    return 0 if found is None else found.offset


def first_of(consumer: Consumer) -> Record:
    for record in consumer:
        return record
    raise AssertionError("the iteration has ended")


# --- record by record --------------------------------------------------------------------------------------


def test_a_loop_that_is_left_goes_on_with_the_next_record(kafka: blocking.Client, topic: str) -> None:
    with reader(kafka, topic) as consumer:
        assert [first_of(consumer).offset for _ in range(60)] == list(range(60))
        assert [next(iter(consumer)).offset for _ in range(60)] == list(range(60, 120))


def test_iterators_polls_and_batches_of_one_consumer_share_its_position(kafka: blocking.Client, topic: str) -> None:
    with reader(kafka, topic) as consumer:
        one, other = iter(consumer), iter(consumer)
        assert [next(one).offset, next(other).offset, next(one).offset] == [0, 1, 2]
        assert [record.offset for record in consumer.poll(3)] == [3, 4, 5]
        assert next(other).offset == 6
        batch = next(consumer.batches())
        assert [record.offset for record in batch] == list(range(7, 20))
        assert next(one).offset == 20
        assert consumer.position(TopicPartition(topic, 0)) == 21


def test_a_commit_covers_what_the_loop_has_seen(kafka: blocking.Client, topic: str) -> None:
    with member(kafka, topic) as consumer:
        for record in consumer:
            consumer.commit()
            assert committed(consumer, topic) == record.offset + 1
            if record.offset == 50:
                break
        assert consumer.positions()[TopicPartition(topic, 0)].offset == 51
    with member(kafka, topic) as consumer:
        assert next(iter(consumer)).offset == 51


def test_auto_commit_leaves_out_the_record_that_the_loop_holds(kafka: blocking.Client, topic: str) -> None:
    with reader(kafka, topic, group_id=topic, enable_auto_commit=True) as consumer:
        for record in consumer:
            if record.offset == 50:
                break
    with reader(kafka, topic, group_id=topic) as consumer:
        assert next(iter(consumer)).offset == 50


def test_seek_decides_the_very_next_record(kafka: blocking.Client, topic: str) -> None:
    seen = []
    with reader(kafka, topic) as consumer:
        for record in consumer:
            seen.append(record.offset)
            if record.offset == 2:
                consumer.seek(TopicPartition(topic, 0), 700)
            if record.offset == 702:
                consumer.seek(TopicPartition(topic, 0), OffsetSpec.EARLIEST)
            if len(seen) == 8:
                break
    assert seen == [0, 1, 2, 700, 701, 702, 0, 1]


def test_a_paused_partition_rests_at_once_and_goes_on_with_the_next_record(kafka: blocking.Client, topic: str) -> None:
    with reader(kafka, topic) as consumer:
        partition = TopicPartition(topic, 0)
        for goal in (50, 90, 130):
            for record in consumer:
                if record.offset == goal:
                    break
            consumer.pause(partition)
            assert consumer.paused == (partition,)
            assert consumer.poll(timeout=0.05) == []
            consumer.resume(partition)
            assert not consumer.paused
            assert next(iter(consumer)).offset == goal + 1
            assert [record.offset for record in consumer.poll(2)] == [goal + 2, goal + 3]
        assert consumer.high_watermark(partition) == 1000
        assert consumer.health().partitions[partition].position == 134


def test_what_is_read_again_hides_no_committed_record(kafka: blocking.Client) -> None:
    """After a pause the fetched data is read again, from behind the marker of a transaction that was aborted."""
    topic = f"topic-{token_hex(6)}"
    kafka.admin.create_topics({topic: 1})
    partition = TopicPartition(topic, 0)
    with kafka.producer(transactional_id=topic) as producer:
        with pytest.raises(ZeroDivisionError), producer.transaction() as transaction:
            transaction.send_many(topic, [b"aborted"] * 5)
            raise ZeroDivisionError
        for _ in range(3):
            with producer.transaction() as transaction:
                transaction.send_many(topic, [b"committed"] * 5)
    with reader(kafka, topic, isolation_level="read_committed") as consumer:
        seen = [next(iter(consumer))]
        consumer.pause(partition)
        assert consumer.poll(timeout=0.05) == []
        consumer.resume(partition)
        seen += [record for _, record in zip(range(14), consumer, strict=False)]
        assert consumer.poll(timeout=0.05) == []
        assert consumer.position(partition) == 24  # behind the markers
    assert [record.offset for record in seen] == [*range(6, 11), *range(12, 17), *range(18, 23)]
    assert {record.value for record in seen} == {b"committed"}


def test_a_poll_returns_records_of_several_partitions(kafka: blocking.Client, topic: str) -> None:
    with kafka.producer() as producer:
        producer.send_many(topic, [b"x"] * 10, partition=1)
    with reader(kafka, topic) as consumer:
        seen: dict[int, list[int]] = {0: [], 1: []}
        polls = []
        while sum(map(len, seen.values())) < 1010:
            polls.append(consumer.poll(5000, timeout=10))
            for record in polls[-1]:
                seen[record.partition].append(record.offset)
        assert seen == {0: list(range(1000)), 1: list(range(10))}
        consumer.seek(TopicPartition(topic, 0), 990)
        consumer.seek(TopicPartition(topic, 1), 0)
        assert len(consumer.poll(5000, timeout=10)) > 0


def test_a_record_that_cannot_be_deserialized_is_raised_in_its_turn(kafka: blocking.Client, topic: str) -> None:
    def even(value: bytes) -> int:
        if int(value) % 30 == 15:
            raise ValueError("odd")
        return int(value)

    def read(take: Callable[[blocking.Consumer[bytes, int]], list[int | None]]) -> list[int | None]:
        seen: list[int | None] = []
        with kafka.consumer(topic, auto_offset_reset="earliest", value_deserializer=even) as consumer:
            while len(seen) < 100:
                position = consumer.position(TopicPartition(topic, 0))
                try:
                    seen += take(consumer)
                except DeserializationError:
                    seen.append(-1)
                    assert position is not None
                    assert consumer.position(TopicPartition(topic, 0)) == position + 1
        return seen

    expected = [-1 if one % 30 == 15 else one for one in range(100)]
    assert read(lambda consumer: [next(iter(consumer)).value])[:100] == expected
    assert read(lambda consumer: [record.value for record in consumer.poll(40)])[:100] == expected


# --- interrupted -------------------------------------------------------------------------------------------


Taken = list[Record | ConsumerBatch[bytes, bytes]]


def iterate(consumer: Consumer, taken: Taken) -> None:
    for record in consumer:
        taken.append(record)
        if len(taken) >= 25:
            break


def poll(consumer: Consumer, taken: Taken) -> None:
    taken += consumer.poll(30, timeout=10)


def take_batch(consumer: Consumer, taken: Taken) -> None:
    for batch in consumer.batches(timeout=10):
        taken.append(batch)
        break


def iterate_and_commit(consumer: Consumer, taken: Taken) -> None:
    iterate(consumer, taken)
    consumer.commit()


def offsets(taken: Taken) -> list[int]:
    return [one.offset for each in taken for one in (each if isinstance(each, ConsumerBatch) else (each,))]


@pytest.mark.parametrize("read", [iterate, poll, take_batch, iterate_and_commit])
def test_an_interrupt_at_any_moment_loses_nothing(
    kafka: blocking.Client, topic: str, read: Callable[[Consumer, Taken], None]
) -> None:
    """Every moment of a call has its turn; the next call goes on with the record that is next."""
    with member(kafka, topic) as consumer:
        seen = [record.offset for record in consumer.poll(1, timeout=30)]
        for at in count():
            if seen[-1] > 900:
                consumer.seek(TopicPartition(topic, 0), 0)
                seen = [record.offset for record in consumer.poll(1, timeout=30)]
            interrupt, taken = Interrupt(at, but=__file__), Taken()
            try:
                with interrupt:
                    read(consumer, taken)
            except KeyboardInterrupt:
                if at % 2:
                    consumer.commit()
                    assert committed(consumer, topic) == len(seen) + len(offsets(taken)), at
            poll(consumer, taken)
            seen += offsets(taken)
            assert seen == list(range(len(seen))), at
            if not interrupt.raised:
                break
        assert at > 20  # there were moments


@pytest.mark.parametrize("read", [iterate, poll, take_batch])
def test_signals_at_random_moments_lose_nothing(
    kafka: blocking.Client, topic: str, read: Callable[[Consumer, Taken], None]
) -> None:
    chance, seen, interrupted = random.Random(7), list[int](), 0
    armed = False

    def alarm(*_: object) -> None:
        nonlocal armed
        if armed:
            armed = False
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, alarm)
    try:
        with member(kafka, topic) as consumer:
            while len(seen) < 900:
                taken = Taken()
                try:
                    armed = True
                    signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00005, 0.003))
                    read(consumer, taken)
                    armed = False
                except KeyboardInterrupt:
                    interrupted += 1
                seen += offsets(taken)
                assert seen == list(range(len(seen)))
                if interrupted % 3 == 1:
                    consumer.commit()
                    assert committed(consumer, topic) == len(seen)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted


def test_an_interrupt_just_before_the_end_of_its_with_leaves_no_consumer_open(
    kafka: blocking.Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would remain a member of its group."""

    def interrupted(*_: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), member(kafka, topic) as consumer:
        monkeypatch.setattr(kafka.loop, "call", interrupted)
    assert consumer._consumer._iteration.state == "closed"


def test_an_interrupt_at_any_moment_of_the_end_of_its_with_leaves_no_thread(bootstrap: str) -> None:
    """Only at the first moment of ``__exit__``, before its first instruction, can nothing catch it."""
    for at in count(1):
        client = blocking.Client(bootstrap).open()
        client.loop.call(client._client.close)  # so that all moments are those of the thread's end
        thread, interrupt = client.loop._thread, Interrupt(at, but=__file__)
        with suppress(KeyboardInterrupt), interrupt:
            client.__exit__(None, None, None)
        assert thread is not None
        thread.join(SOON)
        assert not thread.is_alive(), at
        if not interrupt.raised:
            break
    assert at > 20  # there were moments


# --- one caller at a time ----------------------------------------------------------------------------------


def test_a_second_thread_in_a_call_is_refused(kafka: blocking.Client, topic: str) -> None:
    with reader(kafka, topic) as consumer:
        partition = TopicPartition(topic, 0)
        consumer.seek(partition, OffsetSpec.LATEST)
        returned: list[list[Record]] = []
        other = threading.Thread(target=lambda: returned.append(consumer.poll(timeout=1000)))
        other.start()
        while consumer._caller is None or consumer._running_call is None:
            other.join(0.001)
        for call in (consumer.poll, consumer.pause, lambda: next(iter(consumer)), lambda: consumer.seek(partition, 1)):
            with pytest.raises(UsageError, match="another thread is in a call"):
                call()
        assert partition in consumer.health().partitions
        consumer.close()
        other.join(10)
        assert returned == [[]]


def test_closing_ends_the_iteration_of_another_thread(kafka: blocking.Client, topic: str) -> None:
    with reader(kafka, topic) as consumer:
        seen: list[int] = []
        reached = threading.Event()

        def iterate() -> None:
            for record in consumer:
                seen.append(record.offset)
                if record.offset == 999:
                    reached.set()

        other = threading.Thread(target=iterate)
        other.start()
        assert reached.wait(30)
        consumer.close()
        other.join(10)
        assert not other.is_alive()
        assert seen == list(range(1000))
        with pytest.raises(UsageError, match="closed"):
            consumer.poll()
