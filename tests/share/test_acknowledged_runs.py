"""Records of share consumers, and acknowledgements of many in a row, by either twin."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from threading import Thread
from typing import Any
from uuid import UUID

import pytest
from anyio import to_thread

from aiokafkawire import Acknowledge, ConsumerRecord, TopicPartition
from aiokafkawire.errors import UsageError
from aiokafkawire.records import batch
from aiokafkawire.runtime import place_finder
from aiokafkawire.share import _implementation, _pure
from aiokafkawire.share.acknowledgement_queue import AcknowledgementQueue
from aiokafkawire.share.acknowledgements import AcknowledgedOffsets
from aiokafkawire.share.acquired_partition import AcquiredPartition, AcquiredRange
from aiokafkawire.share.fetch_size import FetchSize
from aiokafkawire.share.record_locks import RecordLocks
from aiokafkawire.share.share_buffer import ShareBuffer
from aiokafkawire.share.share_record import Reject

BOTH: list[Any] = [_pure, _implementation] if batch.IMPLEMENTATION == "cython" else [_pure]
ACCEPT, RELEASE, REJECT, RENEW = Acknowledge
KEY = (UUID(int=1), 0)


@pytest.fixture(params=BOTH, ids=["pure", "compiled"][: len(BOTH)])
def twin(request: pytest.FixtureRequest) -> Any:
    return request.param


class Owner:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []
        self.error: UsageError | None = None

    def begin(self, record: Any) -> None:
        self.told.append(("begin", record.offset))

    def acknowledge(self, record: Any, kind: Acknowledge) -> None:
        self.told.append((kind.name, record.offset))
        if self.error is not None:
            raise self.error


def acquired(*offsets: int, lock_end: float = 30.0) -> AcquiredPartition:
    return AcquiredPartition(KEY, TopicPartition("t", 3), 1, lock_end, [AcquiredRange(one, one) for one in offsets])


def made(twin: Any, acquisition: AcquiredPartition, *offsets: int, owner: Any = None) -> list[Any]:
    records: list[ConsumerRecord[bytes, bytes]] = [
        ConsumerRecord("t", 3, offset, raw_key=b"k", raw_value=b"v", headers=(("h", b"1"),), timestamp=7)
        for offset in offsets
    ]
    found: list[Any] = twin.share_records(records, [2] * len(offsets), acquisition, owner or Owner())
    return found


def test_a_record_has_what_was_sent(twin: Any) -> None:
    acquisition = acquired(5)
    (record,) = made(twin, acquisition, 5)
    assert (record.topic, record.partition, record.offset, record.delivery_count) == ("t", 3, 5, 2)
    assert (record.key, record.value, record.headers, record.timestamp_ms) == (b"k", b"v", (("h", b"1"),), 7)
    assert record.timestamp_type.name == "CREATE_TIME"
    assert (record.acknowledged, record.acquisition, record.lock_end) == (None, acquisition, 30.0)
    acquisition.renewed[5] = 40.0
    assert record.lock_end == 40.0
    assert repr(record) == "<ShareRecord t-3 at offset 5, delivery 2>"
    assert twin.ShareRecord[bytes, bytes].__origin__ is twin.ShareRecord


@pytest.mark.parametrize(
    ("error", "kind"),
    [(None, "ACCEPT"), (ValueError(), "RELEASE"), (Reject(), "REJECT"), (KeyboardInterrupt(), "RELEASE")],
)
def test_the_end_of_a_body_acknowledges(twin: Any, error: BaseException | None, kind: str) -> None:
    owner = Owner()
    (record,) = made(twin, acquired(5), 5, owner=owner)
    assert record.__enter__() is record
    assert record.__exit__(type(error) if error else None, error, None) is isinstance(error, Reject)
    assert owner.told == [("begin", 5), (kind, 5)]


def test_a_body_of_an_acknowledged_record_is_refused(twin: Any) -> None:
    (record,) = made(twin, acquired(5), 5)
    record.acknowledged = REJECT
    with pytest.raises(UsageError, match=r"offset 5, delivery 2> was acknowledged already \(REJECT\)"):
        record.__enter__()


def test_the_error_of_a_body_matters_more_than_a_closed_consumer(twin: Any) -> None:
    owner = Owner()
    owner.error = UsageError("closed")
    (record,) = made(twin, acquired(5), 5, owner=owner)
    record.__enter__()
    assert record.__exit__(ValueError, ValueError(), None) is False
    with pytest.raises(UsageError, match="closed"):
        record.__exit__(None, None, None)


def test_a_body_may_be_asynchronous(twin: Any) -> None:
    owner = Owner()
    (record,) = made(twin, acquired(5), 5, owner=owner)

    async def use() -> None:
        async with record as entered:
            assert entered is record

    asyncio.run(use())
    assert owner.told == [("begin", 5), ("ACCEPT", 5)]


def test_counts_that_do_not_fit_are_refused(twin: Any) -> None:
    with pytest.raises(ValueError, match="zip"):
        twin.share_records([ConsumerRecord("t", 0, 1)], [], acquired(1), Owner())


def test_records_are_marked(twin: Any) -> None:
    records = made(twin, acquired(1, 2), 1, 2)
    twin.mark_accepted(records)
    assert [record.acknowledged for record in records] == [ACCEPT, ACCEPT]


def test_a_run_goes_on_with_the_next_record_of_the_same_fetch_and_kind(twin: Any) -> None:
    acquisition, run = acquired(1, 2, 3, 4), twin.AcknowledgedRun(place_finder())
    first, second, third, fourth = made(twin, acquisition, 1, 2, 3, 4)
    assert not run.extend(first, ACCEPT)
    run.begin(first, ACCEPT)
    assert not run.extend(third, ACCEPT)
    assert not run.extend(second, RELEASE)
    assert not run.extend(*made(twin, acquired(2), 2), ACCEPT)
    assert not run.extend("a record", ACCEPT)
    assert run.extend(second, ACCEPT)
    assert not run.extend(second, ACCEPT)
    assert run.extend(third, ACCEPT)
    assert [one.acknowledged for one in (first, second, third, fourth)] == [None, ACCEPT, ACCEPT, None]
    assert run.end() == (acquisition, 2, 3, ACCEPT)
    assert run.end() is None
    assert not run.extend(fourth, ACCEPT)


def test_a_run_does_not_take_an_acknowledged_record(twin: Any) -> None:
    run = twin.AcknowledgedRun(place_finder())
    first, second = made(twin, acquired(1, 2), 1, 2)
    second.acknowledged = REJECT
    run.begin(first, ACCEPT)
    assert not run.extend(second, ACCEPT)
    assert run.end() is None


def test_a_run_is_of_one_thread_and_event_loop(twin: Any) -> None:
    first, second = made(twin, acquired(1, 2), 1, 2)
    taken: list[bool] = []

    async def begin() -> Any:
        run = twin.AcknowledgedRun(place_finder())
        run.begin(first, ACCEPT)
        thread = Thread(target=lambda: taken.append(run.extend(second, ACCEPT)))
        thread.start()
        thread.join()
        return run

    async def extend(run: Any) -> None:
        taken.append(run.extend(second, ACCEPT))

    asyncio.run(extend(asyncio.run(begin())))
    assert taken == [False, False]


@pytest.mark.anyio
async def test_a_run_is_of_the_loop_that_began_it(twin: Any) -> None:
    run = twin.AcknowledgedRun(place_finder())
    first, second, third = made(twin, acquired(1, 2, 3), 1, 2, 3)
    run.begin(first, ACCEPT)
    assert not await to_thread.run_sync(run.extend, second, ACCEPT)
    assert run.extend(second, ACCEPT)
    assert run.extend(third, ACCEPT)


# --- the locks of records that are acknowledged in a row -----------------------------------------------------------


class World:
    """The locks of a consumer at a time that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.queue = AcknowledgementQueue()
        self.locks = RecordLocks(
            ShareBuffer(FetchSize(500)), self.queue, lambda: self.now, lambda: None, place_finder()
        )

    def hand_out(self, acquisition: AcquiredPartition, *offsets: int) -> list[Any]:
        records = made(_implementation, acquisition, *offsets)
        self.locks.hand_out([records])
        return records

    def acknowledge(self, records: Sequence[Any], kind: Acknowledge = ACCEPT) -> None:
        for record in records:
            if not self.locks.continues(record, kind):
                self.locks.acknowledge(record, kind)

    def sent(self) -> list[AcknowledgedOffsets]:
        self.locks.end_run()
        keys = self.queue.by_broker(lambda _: 1).get(1, [])
        return [part for parts in self.queue.take(keys, renewals=True).ranges.values() for part in parts]


def of_user(first: int, last: int, kind: Acknowledge = ACCEPT, *, is_late: bool = False) -> AcknowledgedOffsets:
    return AcknowledgedOffsets(first, last, kind, by_user=True, is_late=is_late)


def test_records_in_a_row_are_sent_as_one_range_and_are_no_longer_outstanding() -> None:
    world, acquisition = World(), acquired(*range(6))
    records = world.hand_out(acquisition, *range(6))
    world.acknowledge(records[:4])
    world.acknowledge(records[4:5], REJECT)
    assert world.sent() == [of_user(0, 3), of_user(4, 4, REJECT)]
    assert acquisition.outstanding == 1


def test_records_that_are_taken_one_after_the_other_are_in_hand_once() -> None:
    world, acquisition = World(), acquired(*range(3))
    for offset in range(2):
        world.acknowledge(world.hand_out(acquisition, offset))
        world.locks.end_run()
    world.hand_out(acquisition, 2)
    assert world.locks.outstanding == 1


def test_what_waits_in_a_row_is_waited_for() -> None:
    world = World()
    world.acknowledge(world.hand_out(acquired(0, 1), 0, 1))
    world.locks.end_run()
    number = world.queue.number
    assert world.queue.unsettled(number)
    assert world.sent() == [of_user(0, 1)]


def test_a_row_whose_lock_has_ended_meanwhile_is_late() -> None:
    world = World()
    world.acknowledge(world.hand_out(acquired(0, 1, lock_end=30.0), 0, 1))
    world.now = 30.0
    assert world.sent() == [of_user(0, 0)]
    assert world.sent() == [of_user(1, 1, is_late=True)]


def test_a_row_that_is_acquired_again_is_not_sent() -> None:
    world, first = World(), AcquiredPartition(KEY, TopicPartition("t", 3), 1, 30.0, [AcquiredRange(0, 2)])
    world.locks.begin(first)
    world.acknowledge(world.hand_out(first, 0, 1, 2))
    world.locks.begin(AcquiredPartition(KEY, TopicPartition("t", 3), 1, 60.0, [AcquiredRange(1, 2)]))
    assert world.sent() == [of_user(0, 0)]


def test_no_row_begins_while_locks_are_renewed() -> None:
    world, acquisition = World(), acquired(0, 1, 2)
    records = world.hand_out(acquisition, 0, 1, 2)
    world.locks.hold(records[2])
    world.acknowledge(records[:2])
    assert not world.locks.continues(records[2], ACCEPT)
    assert world.sent() == [of_user(0, 1)]


@pytest.mark.parametrize(("answered_at", "lock_end"), [(30.0, 55.0), (30.1, 30.0)])
def test_a_renewal_counts_only_if_it_is_answered_within_the_lock(answered_at: float, lock_end: float) -> None:
    # A leader refuses no renewal of a record that another member has acquired and accepted in the meantime.
    world = World()
    (record,) = world.hand_out(acquired(0, lock_end=30.0), 0)
    world.now = 25.0
    world.acknowledge([record], Acknowledge.RENEW)
    sent = world.sent()
    world.now = answered_at
    world.locks.settle_renewals(KEY, sent, 55.0)
    assert record.lock_end == lock_end
