"""What a batch's waiters hear, when it is whole, in parts, and in parts of parts; and what flush has to tell."""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any

import anyio
import pytest
from support.patience import SOON

from aiokafkawire.errors import KafkaError, MessageTooLarge, RequestTimeout, UsageError
from aiokafkawire.producer.batch import BatchResult
from aiokafkawire.producer.unreported_failures import UnreportedFailures
from aiokafkawire.records.batch import Delivery
from aiokafkawire.types import RecordMetadata, TopicPartition

WHERE = TopicPartition("a", 3)


def result_of(count: int) -> BatchResult:
    """A batch of so many records, a millisecond apart."""
    result = BatchResult(WHERE, anyio.Event)
    result.timestamps.extend(1_000 + index for index in range(count))
    return result


def heard(waiting: Coroutine[Any, Any, RecordMetadata]) -> RecordMetadata:
    """What is there already: nobody has to wait."""
    try:
        waiting.send(None)
    except StopIteration as stop:
        place: RecordMetadata = stop.value
        return place
    waiting.close()
    raise AssertionError("it waits")


def in_parts(result: BatchResult) -> list[BatchResult]:
    """Seven records as 3 and 4, and the latter as 1 and 3: the parts that have outcomes, in order."""
    first, second = result.split([3, 4])
    return [first, *second.split([1, 3])]


def test_records_have_the_offsets_and_times_of_their_places() -> None:
    result = result_of(3)
    assert not result.is_done(0)
    result.resolve(500, -1)
    assert result.is_done(0)
    assert [heard(result.wait(index)) for index in range(3)] == [
        RecordMetadata("a", 3, 500 + index, 1_000 + index) for index in range(3)
    ]


def test_what_no_broker_said_is_not_made_up() -> None:
    result = result_of(2)
    result.resolve(-1, -1)
    assert heard(result.wait(1)) == RecordMetadata("a", 3, -1, 1_001)


def test_the_log_append_time_counts_for_all() -> None:
    result = result_of(2)
    result.resolve(5, 77)
    assert heard(result.wait(1)) == RecordMetadata("a", 3, 6, 77)


def test_each_record_of_parts_of_parts_has_its_own_outcome() -> None:
    result = result_of(7)
    three, one, others = in_parts(result)
    assert result.completed
    assert not any(result.is_done(index) for index in range(7))
    three.resolve(10, -1)
    others.resolve(20, -1)
    assert [result.is_done(index) for index in range(7)] == [True, True, True, False, True, True, True]
    one.fail(MessageTooLarge("too large"))
    assert all(result.is_done(index) for index in range(7))
    found = [heard(result.wait(index)) for index in (0, 1, 2, 4, 5, 6)]
    assert [place.offset for place in found] == [10, 11, 12, 20, 21, 22]
    assert [place.timestamp for place in found] == [1_000, 1_001, 1_002, 1_004, 1_005, 1_006]
    with pytest.raises(MessageTooLarge):
        heard(result.wait(3))
    with pytest.raises(IndexError):
        result.is_done(7)


def test_a_delivery_is_done_when_its_part_is() -> None:
    result = result_of(7)
    delivery = Delivery(result, 3)
    _, one, _ = in_parts(result)
    assert not delivery.done
    one.resolve(9, -1)
    assert delivery.done


def test_flush_tells_of_those_that_nobody_awaited() -> None:
    result, failures = result_of(7), UnreportedFailures()
    three, one, others = in_parts(result)
    for part in (three, one, others):
        part.fail(RequestTimeout("late"))
        failures.add(part)
    for index in (0, 3, 4, 4):
        with pytest.raises(RequestTimeout):
            heard(result.wait(index))
    assert (three.unawaited, one.unawaited, others.unawaited) == (2, 0, 2)
    told = failures.take()
    assert told is not None
    assert str(told).startswith("4 records not delivered")
    assert failures.take() is None


@pytest.mark.anyio
async def test_who_waited_before_the_split_is_led_to_the_right_part() -> None:
    result, places = result_of(7), dict[int, RecordMetadata]()

    async def wait(index: int) -> None:
        places[index] = await result.wait(index)

    with anyio.fail_after(SOON):
        async with anyio.create_task_group() as tasks:
            for index in range(7):
                tasks.start_soon(wait, index)
            await anyio.wait_all_tasks_blocked()
            assert result.unawaited == 0
            parts = in_parts(result)
            assert [part.unawaited for part in parts] == [0, 0, 0]
            await anyio.wait_all_tasks_blocked()
            assert places == {}
            for base, part in zip((10, 20, 30), parts, strict=True):
                part.resolve(base, -1)
    assert [places[index].offset for index in range(7)] == [10, 11, 12, 20, 30, 31, 32]


@pytest.mark.anyio
@pytest.mark.parametrize("moment", ["before the split", "with the split", "after the split"])
async def test_who_stops_waiting_leaves_its_record_to_flush(moment: str) -> None:
    result, parts = result_of(7), list[BatchResult]()
    with anyio.fail_after(SOON):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(result.wait, 5)
            await anyio.wait_all_tasks_blocked()
            if moment != "before the split":
                parts = in_parts(result)
            if moment == "after the split":
                await anyio.wait_all_tasks_blocked()
                assert parts[2].unawaited == 2
            tasks.cancel_scope.cancel()
    parts = parts or in_parts(result)
    assert parts[2].unawaited == 3


def test_a_task_that_is_cancelled_as_its_batch_is_split_leaves_its_record_to_flush() -> None:
    async def run() -> BatchResult:
        result = result_of(7)
        waiting = asyncio.create_task(result.wait(5))
        await asyncio.sleep(0)
        parts = in_parts(result)
        waiting.cancel()  # asyncio's own, of a task that is about to run
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        return parts[2]

    assert asyncio.run(run()).unawaited == 3


@pytest.mark.anyio
async def test_it_is_finished_when_every_part_is() -> None:
    result, ended = result_of(7), anyio.Event()

    async def finish() -> None:
        await result.wait_until_complete()
        ended.set()

    with anyio.fail_after(SOON):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(finish)
            await anyio.wait_all_tasks_blocked()
            three, one, others = in_parts(result)
            others.resolve(0, -1)
            one.fail(MessageTooLarge("too large"))
            await anyio.wait_all_tasks_blocked()
            assert not ended.is_set()
            three.resolve(0, -1)
    assert ended.is_set()


Told = tuple[int, RecordMetadata | None, KafkaError | None]


def test_callbacks_get_the_outcome_of_their_records() -> None:
    result, told = result_of(7), list[Told]()

    def tell(index: int, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        told.append((index, metadata, error))

    for index in (0, 3, 3, 6):
        Delivery(result, index).add_callback(partial(tell, index))
    assert result.unawaited == 4
    three, one, others = in_parts(result)
    assert told == []
    three.resolve(10, -1)
    assert told == [(0, RecordMetadata("a", 3, 10, 1_000), None)]
    refused = MessageTooLarge("too large")
    one.fail(refused)
    assert [(index, metadata, str(error)) for index, metadata, error in told[1:]] == [(3, None, str(refused))] * 2
    others.resolve(20, -1)
    assert told[3] == (6, RecordMetadata("a", 3, 22, 1_006), None)


def test_a_callback_is_called_at_once_if_the_outcome_is_known() -> None:
    result, told = result_of(7), list[Told]()
    three, _, _ = in_parts(result)
    three.resolve(10, -1)
    Delivery(result, 2).add_callback(lambda metadata, error: told.append((2, metadata, error)))
    assert told == [(2, RecordMetadata("a", 3, 12, 1_002), None)]


@pytest.mark.anyio
async def test_a_failure_that_a_callback_has_got_is_not_reported_by_flush() -> None:
    result, failures = result_of(2), UnreportedFailures()
    delivery = Delivery(result, 0)
    delivery.add_callback(lambda *_: None)
    with anyio.move_on_after(0):
        await result.wait(0)  # is cancelled
    result.fail(RequestTimeout("late"))
    result.discard_waiter(0)  # a task that is cancelled as the batch fails
    failures.add(result)
    told = failures.take()
    assert told is not None
    assert str(told).startswith("1 record not delivered")


async def _wait(*_: object) -> None:
    raise AssertionError


@pytest.mark.parametrize("callback", [None, "print", _wait])
def test_a_callback_must_be_a_plain_function(callback: Any) -> None:
    with pytest.raises(UsageError, match="a callback must be a plain function"):
        Delivery(result_of(1), 0).add_callback(callback)


@pytest.mark.parametrize("raised", [KeyError("mine"), asyncio.CancelledError()])
def test_the_exception_of_a_callback_is_logged(raised: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    result, told = result_of(2), list[Told]()

    def fail(*_: object) -> None:
        raise raised

    Delivery(result, 0).add_callback(fail)
    Delivery(result, 1).add_callback(lambda metadata, error: told.append((1, metadata, error)))
    result.resolve(5, -1)
    assert [index for index, _, _ in told] == [1]
    [record] = caplog.records
    assert record.levelname == "ERROR"
    assert record.exc_info is not None
    assert record.exc_info[1] is raised
