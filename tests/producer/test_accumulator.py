"""The accumulator decides when a batch goes; time is an argument."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire.config import ProducerConfig
from aiokafkawire.errors import BufferFull, ConnectionLost, RecordTooLarge
from aiokafkawire.producer.accumulator import NO_LEADER, NOT_READY, RecordAccumulator
from aiokafkawire.producer.batch import ProducerBatch
from aiokafkawire.producer.idempotence import SequenceAction, SequenceNumbers
from aiokafkawire.records.batch import record_size_bound
from aiokafkawire.types import TopicPartition

ONE, TWO = TopicPartition("a", 0), TopicPartition("a", 1)
GONE = ConnectionLost("gone")


def accumulator(sequences: SequenceNumbers | None = None, **settings: Any) -> RecordAccumulator:
    return RecordAccumulator(ProducerConfig(**settings), asyncio.Event, sequences)


def numbering(producer_epoch: int = 0) -> SequenceNumbers:
    sequences = SequenceNumbers()
    sequences.set_producer_id(7, producer_epoch)
    return sequences


def bound(size: int) -> int:
    return record_size_bound(None, b"x" * size)


def has_room(gathered: RecordAccumulator, size: int) -> bool:
    return size <= gathered.max_record_size and gathered.space.used + size <= gathered.space.limit


def add(
    gathered: RecordAccumulator, where: TopicPartition = ONE, size: int = 10, now: float = 0.0
) -> tuple[ProducerBatch, int]:
    assert has_room(gathered, bound(size))
    return gathered.append(where, 1_000, None, b"x" * size, (), now)


def led_by(node: int) -> Callable[[TopicPartition], int]:
    return lambda where: node


def sent(
    gathered: RecordAccumulator, now: float = 0.0, *, flushing: bool = False, node: int = 1
) -> list[list[ProducerBatch]]:
    """What each request has that goes now."""
    drained = gathered.drain(led_by(node), now, flushing=flushing)
    assert not drained.no_leader
    return [request.batches for request in drained.requests]


def end_request(gathered: RecordAccumulator, batch: ProducerBatch) -> None:
    """The request that the batch is alone in has its response."""
    (request,) = [one for one in gathered.in_flight.requests(batch.sent_to) if batch in one.batches]
    gathered.in_flight.remove(request)


def acknowledge(gathered: RecordAccumulator, *batches: ProducerBatch) -> None:
    """Each batch's request is over, and the batch is written."""
    for batch in batches:
        end_request(gathered, batch)
        gathered.acknowledge(batch)
        batch.result.resolve(0, -1)


def try_again(gathered: RecordAccumulator, batch: ProducerBatch, not_before: float = 0.0) -> None:
    end_request(gathered, batch)
    gathered.requeue(batch, GONE, not_before)


def several(gathered: RecordAccumulator, count: int, now: float = 0.0) -> list[ProducerBatch]:
    """So many full batches of one partition that has shown that it takes several: all are on their way."""
    first, _ = add(gathered, size=200, now=now)
    batches = [first, *(add(gathered, size=200, now=now)[0] for _ in range(count))]
    assert sent(gathered, now, flushing=True) == [[first]]
    acknowledge(gathered, first)
    assert sent(gathered, now, flushing=True) == [[batch] for batch in batches[1:]]
    return batches[1:]


# --- when --------------------------------------------------------------------------------------------------------


def test_an_idle_lane_sends_at_once() -> None:
    gathered = accumulator()
    batch, index = add(gathered)
    assert index == 0
    assert sent(gathered) == [[batch]]


def test_records_gather_while_a_partitions_batch_is_on_its_way() -> None:
    gathered = accumulator()
    first, _ = add(gathered)
    sent(gathered)
    second, zero = add(gathered)
    same, one = add(gathered)
    assert second is same
    assert (zero, one) == (0, 1)
    assert second is not first
    assert sent(gathered) == []
    acknowledge(gathered, first)
    assert sent(gathered) == [[second]]


def test_a_busy_lane_takes_full_batches_only() -> None:
    gathered = accumulator(batch_size=200)
    add(gathered, ONE)
    sent(gathered)
    add(gathered, TWO)
    assert sent(gathered) == []
    full = add(gathered, TWO, size=30)[0]
    add(gathered, TWO, size=150)
    assert sent(gathered) == [[full]]


def test_what_was_on_its_way_before_is_waited_for_and_nothing_else() -> None:
    gathered = accumulator()
    early, _ = add(gathered, ONE, now=1.0)
    sent(gathered, 1.0)
    waiting, _ = add(gathered, TWO, now=2.0)
    busy, _ = add(gathered, TopicPartition("a", 2), size=20_000, now=3.0)
    assert sent(gathered, 3.0) == [[busy]]  # full, so it goes at once
    acknowledge(gathered, early)
    assert sent(gathered, 4.0) == [[waiting]]


@pytest.mark.parametrize("most", [1, 2, 5])
def test_no_more_requests_than_allowed_are_in_flight(most: int) -> None:
    gathered = accumulator(batch_size=1, max_in_flight_requests_per_connection=most)
    for number in range(most + 1):
        add(gathered, TopicPartition("a", number))
        drained = gathered.drain(led_by(1), 0.0)
        assert len(drained.requests) == (1 if number < most else 0)
        assert drained.full == (set() if number < most else {1})
    gathered.in_flight.remove(gathered.in_flight.requests(1)[0])
    assert len(sent(gathered)) == 1


def test_a_batch_lingers_as_long_as_asked() -> None:
    gathered = accumulator(linger_ms=5)
    batch, _ = add(gathered, now=1.0)
    assert sent(gathered, 1.004) == []
    assert gathered.deadline(1.004) == pytest.approx(1.005)
    assert sent(gathered, 1.005) == [[batch]]


def test_flushing_cuts_the_lingering_short() -> None:
    gathered = accumulator(linger_ms=5_000)
    batch, _ = add(gathered)
    assert sent(gathered, flushing=True) == [[batch]]


@pytest.mark.parametrize("flushing", [True, False])
def test_a_batch_that_failed_does_not_linger_again(flushing: bool) -> None:
    gathered = accumulator(linger_ms=60_000)
    batch, _ = add(gathered)
    sent(gathered, flushing=True)
    try_again(gathered, batch, not_before=0.1)
    assert sent(gathered, 0.05, flushing=flushing) == []
    assert gathered.deadline(0.05) == 0.1
    assert sent(gathered, 0.1, flushing=flushing) == [[batch]]


def test_time_that_is_over_already_is_no_deadline() -> None:
    gathered = accumulator(linger_ms=5, delivery_timeout_ms=1_000)
    add(gathered, now=0.0)
    assert gathered.deadline(0.5) == 1.0


# --- in which order ----------------------------------------------------------------------------------------------


def test_the_first_batch_goes_alone_and_then_as_many_as_there_are() -> None:
    gathered = accumulator(batch_size=200)
    assert len(several(gathered, 4)) == 4


def test_what_failed_goes_first_once_nothing_behind_it_is_on_its_way() -> None:
    gathered = accumulator(batch_size=200)
    one, two, three = several(gathered, 3)
    new, _ = add(gathered, size=200)
    try_again(gathered, one)
    assert sent(gathered) == []
    try_again(gathered, two)
    assert sent(gathered) == []
    try_again(gathered, three)
    assert sent(gathered) == [[one]]
    acknowledge(gathered, one)
    assert sent(gathered) == [[two], [three]]
    acknowledge(gathered, two)
    assert sent(gathered, flushing=True) == []  # nothing new follows what is tried again
    acknowledge(gathered, three)
    assert sent(gathered) == [[new]]


def test_what_failed_waits_for_those_behind_it_though_some_are_written() -> None:
    gathered = accumulator(batch_size=200)
    one, two, three = several(gathered, 3)
    try_again(gathered, one)
    acknowledge(gathered, two)
    assert sent(gathered) == []
    acknowledge(gathered, three)
    assert sent(gathered) == [[one]]


def test_all_that_is_on_its_way_goes_to_one_broker() -> None:
    gathered = accumulator(batch_size=200)
    old = several(gathered, 2)
    new, _ = add(gathered, size=200)
    assert sent(gathered, flushing=True, node=2) == []
    acknowledge(gathered, *old)
    assert sent(gathered, node=2) == [[new]]


def test_one_request_holds_one_batch_a_partition_up_to_its_size() -> None:
    gathered = accumulator(batch_size=400, max_request_size=700)
    batches = [add(gathered, TopicPartition("a", number), size=200)[0] for number in range(3)]
    assert sent(gathered) == [batches[:2]]


def test_whoever_was_served_lets_the_others_go_first() -> None:
    gathered = accumulator(batch_size=400, max_request_size=700, max_in_flight_requests_per_connection=1)
    batches = [add(gathered, TopicPartition("a", number % 3), size=300)[0] for number in range(6)]
    assert sent(gathered) == [[batches[0]]]
    acknowledge(gathered, batches[0])
    assert sent(gathered) == [[batches[1]]]
    acknowledge(gathered, batches[1])
    assert sent(gathered) == [[batches[2]]]


@pytest.mark.parametrize(("where", "unled"), [(NO_LEADER, True), (NOT_READY, False)])
def test_partitions_without_a_leader_wait_and_are_told(where: int, unled: bool) -> None:
    gathered = accumulator()
    add(gathered, ONE)
    drained = gathered.drain(led_by(where), 0.0)
    assert drained.requests == []
    assert drained.no_leader is unled
    assert gathered.has_waiting


def test_a_heavy_batch_is_compressed_first_and_takes_no_more_records() -> None:
    gathered = accumulator(compression_type="gzip", batch_size=200_000)
    heavy, _ = add(gathered, size=100_000)
    drained = gathered.drain(led_by(1), 0.0)
    assert (drained.to_compress, drained.requests) == ([heavy], [])
    later, index = add(gathered, size=10)
    assert later is not heavy
    assert index == 0
    assert gathered.drain(led_by(1), 0.0, flushing=True).to_compress == []
    heavy.compressing, heavy.compressed = False, True
    assert sent(gathered) == [[heavy]]


# --- numbers -----------------------------------------------------------------------------------------------------


def test_a_batch_keeps_its_number_until_numbers_begin_anew() -> None:
    sequences = numbering()
    gathered = accumulator(sequences, batch_size=200)
    one, two = several(gathered, 2)
    assert [(batch.producer_epoch, batch.base_sequence) for batch in (one, two)] == [(0, 1), (0, 2)]
    try_again(gathered, one)
    gathered.restart(ONE, SequenceAction.RENUMBER)
    assert sent(gathered) == []
    try_again(gathered, two)
    assert sent(gathered) == [[one]]
    acknowledge(gathered, one)
    assert sent(gathered) == [[two]]
    assert [(batch.producer_epoch, batch.base_sequence) for batch in (one, two)] == [(1, 0), (1, 1)]


def test_a_new_id_is_waited_for_and_taken_by_those_that_need_it() -> None:
    sequences = numbering()
    gathered = accumulator(sequences, batch_size=200)
    (one,) = several(gathered, 1)
    try_again(gathered, one)
    gathered.restart(ONE, SequenceAction.NEW_PRODUCER_ID)
    assert sent(gathered) == []
    assert sequences.needs_producer_id
    assert sent(gathered) == []
    sequences.set_producer_id(8, 0)
    assert sent(gathered) == [[one]]
    assert (one.producer_id, one.producer_epoch, one.base_sequence) == (8, 0, 0)


def test_brokers_that_give_no_new_id_get_batches_without_numbers() -> None:
    gathered = accumulator(numbering(), batch_size=200)
    (one,) = several(gathered, 1)
    try_again(gathered, one)
    gathered.restart(ONE, SequenceAction.NEW_PRODUCER_ID)
    assert sent(gathered) == []
    gathered.sequences = None
    assert sent(gathered) == [[one]]
    assert (one.producer_id, one.base_sequence) == (-1, -1)


@given(st.integers(2, 40))
def test_halves_stand_and_are_numbered_where_the_whole_did(count: int) -> None:
    gathered = accumulator(numbering(), linger_ms=1)
    for _ in range(count):
        whole, _ = add(gathered)
    later, _ = add(gathered, size=20_000)
    assert sent(gathered) == [[whole]]
    end_request(gathered, whole)
    gathered.requeue_split(whole)
    first, second, last = gathered.unfinished
    assert last is later
    assert first.order < second.order < last.order
    assert (first.base_sequence, second.base_sequence) == (0, first.count)
    assert first.count + second.count == count
    assert gathered.space.used == first.builder.size + second.builder.size + later.builder.size
    assert sent(gathered) == [[first]]
    acknowledge(gathered, first)
    assert sent(gathered) == [[second]]
    acknowledge(gathered, second)
    assert sent(gathered, flushing=True) == [[last]]
    assert last.base_sequence == count


# --- outcomes ----------------------------------------------------------------------------------------------------


def test_what_waits_too_long_expires_but_not_what_is_on_its_way() -> None:
    gathered = accumulator(delivery_timeout_ms=1_000)
    on_its_way, _ = add(gathered, now=0.0)
    sent(gathered)
    waiting, _ = add(gathered, now=0.5)
    assert gathered.take_expired(0.9) == []
    assert gathered.take_expired(1.4) == [on_its_way]
    assert gathered.take_expired(1.5) == [on_its_way, waiting]
    assert gathered.unfinished == [on_its_way]


def test_what_is_too_late_on_its_way_is_forgotten_once_it_arrives() -> None:
    gathered = accumulator(delivery_timeout_ms=1_000)
    late, _ = add(gathered, now=0.0)
    sent(gathered)
    gathered.remove(late)
    late.result.fail(GONE)
    assert gathered.space.used == 0
    assert gathered.take_expired(2.0) == []
    assert gathered.in_flight
    end_request(gathered, late)
    gathered.discard_expired(late)
    assert gathered.unfinished == []
    assert not gathered.in_flight


def test_who_is_held_up_knows_why() -> None:
    gathered = accumulator(batch_size=200)
    one, two = several(gathered, 2)
    waiting, _ = add(gathered, size=200)
    try_again(gathered, one)
    assert (one.last_error, waiting.last_error) == (GONE, GONE)
    assert two.last_error is None


def test_only_what_there_is_a_reason_for_is_taken_out() -> None:
    gathered = accumulator(batch_size=200)
    batches = [add(gathered, size=200)[0] for _ in range(4)]
    (on_its_way,) = sent(gathered)
    assert on_its_way == batches[:1]
    taken = gathered.take_waiting(lambda batch: "why" if batch is batches[2] else None)
    assert taken == [(batches[2], "why")]
    assert gathered.unfinished == [batches[0], batches[1], batches[3]]


def test_memory_is_counted_until_the_outcome_is_known() -> None:
    gathered = accumulator(buffer_memory=300, batch_size=10_000)
    batch, _ = add(gathered, size=100)
    assert not has_room(gathered, bound(200))
    with pytest.raises(BufferFull, match=f"^{gathered.space.used} of 300 bytes wait"):
        raise gathered.no_space("a", bound(200))
    sent(gathered)
    assert gathered.space.used == batch.builder.size
    acknowledge(gathered, batch)
    assert gathered.space.used == 0
    add(gathered, size=200)


@pytest.mark.parametrize("setting", ["max_request_size", "buffer_memory"])
def test_a_record_that_never_fits_is_refused(setting: str) -> None:
    settings: dict[str, Any] = {setting: 500}
    gathered = accumulator(None, **settings)
    with pytest.raises(RecordTooLarge, match=f"{setting} allows 500"):
        raise gathered.no_space("a", bound(500))
    assert gathered.space.used == 0


def test_a_record_larger_than_a_batch_travels_alone() -> None:
    gathered = accumulator(batch_size=100)
    large, _ = add(gathered, size=5_000)
    small, index = add(gathered, size=5)
    assert small is not large
    assert index == 0
    assert sent(gathered) == [[large]]


def test_whether_an_open_batch_takes_a_record_is_known_before() -> None:
    gathered = accumulator(batch_size=300)
    assert not gathered.has_room(ONE, 10)
    add(gathered, size=100)
    assert gathered.has_room(ONE, 50)
    assert not gathered.has_room(ONE, 300)
    sent(gathered)
    assert not gathered.has_room(ONE, 50)


def test_what_waits_is_counted_by_partition() -> None:
    gathered = accumulator(batch_size=200)
    for where in (ONE, ONE, ONE, TWO, TopicPartition("b", 0)):
        add(gathered, where, size=200)
    assert gathered.queue_lengths("a") == {0: 3, 1: 1}
    assert gathered.queue_lengths("c") == {}
