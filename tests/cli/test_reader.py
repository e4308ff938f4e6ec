"""The demo's reader knows when it is done, and does not wait for ever."""

from collections.abc import AsyncIterator, Iterable
from typing import Any, cast

import pytest

from aiokafkawire import ConsumerRecord, TopicPartition
from aiokafkawire.cli.endings import CommandFailed
from aiokafkawire.cli.streaming import SILENCE, Reader

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
        self._batches, self._apart = batches, apart

    def assign(self, partitions: object) -> None:
        pass

    async def batches(self) -> AsyncIterator[Batch]:
        for batch in self._batches:
            await trio.sleep(self._apart)
            yield batch
        await trio.sleep_forever()


def value(sequence: int) -> bytes:
    return b'{"carrier":"UA","arr_delay":null,"sequence":%d}' % sequence


def read(reader: Reader, batches: Iterable[Batch], apart: float = 1.0) -> float:
    async def main() -> float:
        await reader.run(cast("Any", Consumer(batches, apart)))
        return float(trio.current_time())

    clock = testing.MockClock(autojump_threshold=0)
    return float(trio.run(main, clock=clock))


def test_it_ends_where_the_partitions_end() -> None:
    reader = Reader({WHERE: 0})
    reader.end_at({WHERE: 2})
    read(reader, [Batch(1, value(0)), Batch(2, value(1)), Batch(3, value(2))])
    assert reader.complete
    assert (reader.ledger.records, reader.delays.total.flights) == (2, 2)


def test_nothing_to_read_ends_at_once() -> None:
    reader = Reader({WHERE: 7})
    reader.end_at({WHERE: 7})
    read(reader, [])
    assert reader.complete


def test_it_ends_when_the_end_becomes_known_after_the_last_record() -> None:
    async def main() -> None:
        reader = Reader({WHERE: 0})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reader.run, cast("Any", Consumer([Batch(1, value(0))], 1.0)))
            await trio.sleep(SILENCE / 2)
            assert not reader.complete
            reader.end_at({WHERE: 1})
        assert trio.current_time() - SILENCE / 2 < 1 + 1e6  # it ended at all
        assert reader.complete

    trio.run(main, clock=testing.MockClock(autojump_threshold=0))


def test_silence_is_given_up_on() -> None:
    reader = Reader({WHERE: 0})
    reader.end_at({WHERE: 2})
    with pytest.raises(CommandFailed, match="heard nothing for 60 s after 1 records"):
        read(reader, [Batch(1, value(0))])


def test_slow_is_not_silent() -> None:
    reader = Reader({WHERE: 0})
    reader.end_at({WHERE: 5})
    read(reader, [Batch(number + 1, value(number)) for number in range(5)], apart=SILENCE - 1)
    assert reader.complete


@pytest.mark.parametrize(
    "damaged", [b"", b"{", b"\xff", b"1", b"[]", b"{}", b"null", b'{"sequence":"0"}', value(0)[:-1]]
)
def test_what_is_no_flight_is_unreadable(damaged: bytes) -> None:
    reader = Reader({WHERE: 0})
    reader.end_at({WHERE: 2})
    read(reader, [Batch(1, damaged), Batch(2, value(0))])
    assert (reader.ledger.records, reader.ledger.unreadable) == (2, 1)
