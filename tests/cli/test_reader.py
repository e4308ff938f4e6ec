"""The demo's reader knows when it is done, and does not wait for ever."""

from collections.abc import Iterable
from typing import Any, Self, cast

import pytest

from aiokafkawire import ConsumerRecord, TopicPartition
from aiokafkawire.cli.exit_status import CommandFailed
from aiokafkawire.cli.streaming import SILENCE, TopicReader

trio = pytest.importorskip("trio")
testing = pytest.importorskip("trio.testing")

WHERE = TopicPartition("flights", 0)


class Batch:
    def __init__(self, next_offset: int, *values: bytes) -> None:
        self.topic, self.partition = WHERE
        self.next_offset = next_offset
        self._values = values

    def __iter__(self) -> Any:
        return iter([ConsumerRecord("flights", 0, 0, raw_key=b"UA1", raw_value=value) for value in self._values])


class Consumer:
    """Hands out some batches, ``apart`` seconds from one another, and then nothing more."""

    def __init__(self, batches: Iterable[Batch], apart: float) -> None:
        self._batches, self._apart = iter(batches), apart

    def assign(self, partitions: object) -> None:
        pass

    def batches(self) -> Self:
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch:
        batch = next(self._batches, None)
        if batch is None:
            await trio.sleep_forever()
            raise AssertionError
        await trio.sleep(self._apart)
        return batch


def value(sequence: int) -> bytes:
    return b'{"carrier":"UA","arr_delay":null,"sequence":%d}' % sequence


def read(batches: Iterable[Batch], *, start: int = 0, end: int, apart: float = 1.0) -> TopicReader:
    """What a reader makes of these batches, on a clock that jumps."""

    async def main() -> TopicReader:
        reader = TopicReader({WHERE: start})
        reader.end_at({WHERE: end})
        await reader.run(cast("Any", Consumer(batches, apart)))
        return reader

    return cast("TopicReader", trio.run(main, clock=testing.MockClock(autojump_threshold=0)))


def test_it_ends_where_the_partitions_end() -> None:
    reader = read([Batch(1, value(0)), Batch(2, value(1)), Batch(3, value(2))], end=2)
    assert reader.complete
    assert (reader.ledger.records, reader.delays.total.flights) == (2, 2)


def test_nothing_to_read_ends_at_once() -> None:
    assert read([], start=7, end=7).complete


def test_it_ends_when_the_end_becomes_known_after_the_last_record() -> None:
    async def main() -> float:
        reader = TopicReader({WHERE: 0})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reader.run, cast("Any", Consumer([Batch(1, value(0))], 1.0)))
            await trio.sleep(SILENCE / 2)
            assert not reader.complete
            reader.end_at({WHERE: 1})
        assert reader.complete
        return float(trio.current_time())

    clock = testing.MockClock(autojump_threshold=0)
    began = clock.current_time()
    assert trio.run(main, clock=clock) - began == SILENCE / 2


def test_silence_is_given_up_on() -> None:
    with pytest.raises(CommandFailed, match="received no records for 60 s, after 1 records"):
        read([Batch(1, value(0))], end=2)


def test_slow_is_not_silent() -> None:
    assert read([Batch(number + 1, value(number)) for number in range(5)], end=5, apart=SILENCE - 1).complete


@pytest.mark.parametrize(
    "damaged", [b"", b"{", b"\xff", b"1", b"[]", b"{}", b"null", b'{"sequence":"0"}', value(0)[:-1]]
)
def test_what_is_no_flight_is_unreadable(damaged: bytes) -> None:
    reader = read([Batch(1, damaged), Batch(2, value(0))], end=2)
    assert (reader.ledger.records, reader.ledger.unreadable) == (2, 1)
