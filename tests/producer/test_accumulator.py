"""The accumulator decides when a batch goes; time is an argument."""

import asyncio
from collections.abc import Callable

import pytest

from aiokafkawire.config import ProducerConfig
from aiokafkawire.errors import ConnectionLost, RecordTooLarge
from aiokafkawire.producer.accumulator import MAX_IN_FLIGHT, Accumulator, Batch
from aiokafkawire.records.batch import record_size_bound
from aiokafkawire.types import TopicPartition

ONE, TWO = TopicPartition("a", 0), TopicPartition("a", 1)


def accumulator(**settings: int) -> Accumulator:
    return Accumulator(ProducerConfig(**settings), asyncio.Event)  # type: ignore[arg-type]


def bound(size: int) -> int:
    return record_size_bound(None, b"x" * size)


def add(gathered: Accumulator, where: TopicPartition = ONE, size: int = 10, now: float = 0.0) -> tuple[Batch, int]:
    appended = gathered.append(where, 1_000, None, b"x" * size, (), bound(size), now)
    assert appended is not None
    return appended


def led_by(node: int) -> Callable[[TopicPartition], int]:
    return lambda where: node


def drained(gathered: Accumulator, now: float = 0.0, *, flushing: bool = False) -> list[Batch]:
    requests, unled = gathered.drain(led_by(1), now, flushing=flushing)
    assert not unled
    return requests.get(1, [])


def test_an_idle_lane_sends_at_once() -> None:
    gathered = accumulator()
    batch, index = add(gathered)
    assert index == 0
    assert drained(gathered) == [batch]


def test_records_gather_while_a_partitions_batch_is_on_its_way() -> None:
    gathered = accumulator()
    first, _ = add(gathered)
    drained(gathered)
    second, zero = add(gathered)
    same, one = add(gathered)
    assert second is same
    assert (zero, one) == (0, 1)
    assert second is not first
    assert drained(gathered) == []
    gathered.finish(first)
    gathered.request_done(1)
    assert drained(gathered) == [second]


def test_a_busy_lane_takes_full_batches_only() -> None:
    gathered = accumulator(batch_size=200)
    add(gathered, ONE)
    drained(gathered)
    add(gathered, TWO)
    assert drained(gathered) == []
    full = add(gathered, TWO, size=30)[0]
    add(gathered, TWO, size=150)
    assert drained(gathered) == [full]


def test_no_more_requests_than_allowed_are_in_flight() -> None:
    gathered = accumulator(batch_size=1)
    for number in range(MAX_IN_FLIGHT + 1):
        add(gathered, TopicPartition("a", number))
        assert len(drained(gathered)) == (1 if number < MAX_IN_FLIGHT else 0)
    gathered.request_done(1)
    assert len(drained(gathered)) == 1


def test_a_batch_lingers_as_long_as_asked() -> None:
    gathered = accumulator(linger_ms=5)
    batch, _ = add(gathered, now=1.0)
    assert drained(gathered, 1.004) == []
    assert gathered.deadline(1.004) == pytest.approx(1.005)
    assert drained(gathered, 1.005) == [batch]


def test_flushing_cuts_the_lingering_short() -> None:
    gathered = accumulator(linger_ms=5_000)
    batch, _ = add(gathered)
    assert drained(gathered, flushing=True) == [batch]


def test_a_batch_that_failed_goes_first_again_after_its_backoff() -> None:
    gathered = accumulator()
    first, _ = add(gathered)
    drained(gathered)
    later, _ = add(gathered)
    gathered.request_done(1)
    gathered.put_back(first, ConnectionLost("gone"), not_before=2.0)
    assert drained(gathered, 1.0) == []
    assert gathered.deadline(1.0) == 2.0
    assert drained(gathered, 2.0) == [first]
    gathered.finish(first)
    gathered.request_done(1)
    assert drained(gathered, 2.0) == [later]


@pytest.mark.parametrize("flushing", [True, False])
def test_a_batch_that_failed_does_not_linger_again(flushing: bool) -> None:
    gathered = accumulator(linger_ms=60_000)
    batch, _ = add(gathered)
    drained(gathered, flushing=True)
    gathered.request_done(1)
    gathered.put_back(batch, ConnectionLost("gone"), not_before=0.1)
    assert drained(gathered, 0.05, flushing=flushing) == []
    assert gathered.deadline(0.05) == 0.1
    assert drained(gathered, 0.1, flushing=flushing) == [batch]


def test_one_request_holds_one_batch_a_partition_up_to_its_size() -> None:
    gathered = accumulator(batch_size=400, max_request_size=700)
    batches = [add(gathered, TopicPartition("a", number), size=200)[0] for number in range(3)]
    assert drained(gathered) == batches[:2]


def test_partitions_without_a_leader_wait_and_are_told() -> None:
    gathered = accumulator()
    add(gathered, ONE)
    requests, unled = gathered.drain(lambda where: None, 0.0)
    assert requests == {}
    assert unled


def test_what_waits_too_long_expires_but_not_what_is_on_its_way() -> None:
    gathered = accumulator(delivery_timeout_ms=1_000)
    sent, _ = add(gathered, now=0.0)
    drained(gathered)
    waiting, _ = add(gathered, now=0.5)
    assert gathered.expired(1.4) == []
    assert gathered.expired(1.5) == [waiting]
    assert gathered.unfinished == [sent]


def test_memory_is_counted_until_the_outcome_is_known() -> None:
    gathered = accumulator(buffer_memory=300, batch_size=10_000)
    batch, _ = add(gathered, size=100)
    assert gathered.append(ONE, 0, None, b"x" * 200, (), bound(200), 0.0) is None
    drained(gathered)
    assert gathered.used == batch.builder.size
    gathered.finish(batch)
    assert gathered.used == 0
    add(gathered, size=200)


def test_a_record_that_never_fits_is_refused() -> None:
    gathered = accumulator(max_request_size=500)
    with pytest.raises(RecordTooLarge, match="max_request_size allows 500"):
        add(gathered, size=500)
    assert gathered.used == 0


def test_a_record_larger_than_a_batch_travels_alone() -> None:
    gathered = accumulator(batch_size=100)
    large, _ = add(gathered, size=5_000)
    small, index = add(gathered, size=5)
    assert small is not large
    assert index == 0
    assert drained(gathered) == [large]


def test_whether_an_open_batch_takes_a_record_is_known_before() -> None:
    gathered = accumulator(batch_size=300)
    assert not gathered.takes(ONE, 10)
    add(gathered, size=100)
    assert gathered.takes(ONE, 50)
    assert not gathered.takes(ONE, 300)
    drained(gathered)
    assert not gathered.takes(ONE, 50)


def test_time_that_is_over_already_is_no_deadline() -> None:
    gathered = accumulator(linger_ms=5, delivery_timeout_ms=1_000)
    add(gathered, now=0.0)
    assert gathered.deadline(0.5) == 1.0
