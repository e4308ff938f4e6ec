"""Ranges split up, and micro-batches limited: nothing is lost, nothing is read twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire import TopicPartition
from aiokafkawire.spark.admission import Admission, lost_between, ranges_between
from aiokafkawire.spark.offsets import OffsetRange, parse_offsets, read_offsets, write_offsets
from aiokafkawire.spark.planning import backlog, limited, split_up

PARTITIONS = [TopicPartition(topic, index) for topic in ("delays", "flights") for index in range(3)]
SIZES = st.lists(st.integers(0, 5_000), min_size=1, max_size=6)
OFFSETS = st.dictionaries(st.sampled_from(PARTITIONS), st.integers(0, 2**62), max_size=6)


def ranges_of(sizes: list[int]) -> list[OffsetRange]:
    return [OffsetRange(*where, 7, 7 + size) for where, size in zip(PARTITIONS, sizes, strict=False)]


@given(SIZES, st.none() | st.integers(1, 40), st.none() | st.integers(1, 900))
def test_the_parts_are_the_ranges_in_order_without_gaps(sizes: list[int], least: int | None, most: int | None) -> None:
    ranges = ranges_of(sizes)
    parts = split_up(ranges, min_partitions=least, max_records=most)
    for one in ranges:
        cuts = [(part.start, part.end) for part in parts if part.where == one.where]
        assert [place for cut in cuts for place in range(*cut)] == list(range(one.start, one.end))
    assert all(part.size and (most is None or part.size <= most) for part in parts)


def test_long_ranges_are_divided_and_short_ones_are_left() -> None:
    ranges = ranges_of([10, 1000, 1000])
    assert [part.size for part in split_up(ranges, min_partitions=5)] == [10, 500, 500, 500, 500]
    assert [part.size for part in split_up(ranges, min_partitions=3)] == [10, 1000, 1000]
    assert [part.size for part in split_up(ranges, max_records=400)] == [10, 333, 333, 334, 333, 333, 334]


@given(SIZES, st.integers(1, 6_000))
def test_a_limit_is_shared_out_and_batch_after_batch_reaches_the_end(sizes: list[int], most: int) -> None:
    start = dict.fromkeys(PARTITIONS[: len(sizes)], 7)
    end = {where: 7 + size for where, size in zip(start, sizes, strict=True)}
    for _ in range(sum(sizes) + 1):
        reached = limited(start, end, most)
        assert all(start[where] <= reached[where] <= end[where] for where in end)
        assert backlog(start, reached) <= most + len(end)
        if backlog(start, end):
            assert backlog(start, reached) > 0
        start = reached
        if start == end:
            return
    raise AssertionError(f"it stopped at {start}")


def test_shares_are_in_proportion() -> None:
    zero, one = PARTITIONS[:2]
    assert limited({zero: 0, one: 100}, {zero: 900, one: 200}, 100) == {zero: 90, one: 110}
    assert limited({zero: 0, one: 0}, {zero: 9_999, one: 1}, 100) == {zero: 99, one: 1}


def test_a_batch_waits_for_enough_but_not_for_ever() -> None:
    zero = PARTITIONS[0]
    admission = Admission(50, 10, 60.0)
    assert admission.reach({zero: 0}, {zero: 0}, 0.0) == {zero: 0}
    assert admission.reach({zero: 0}, {zero: 9}, 1.0) == {zero: 0}
    assert admission.reach({zero: 0}, {zero: 10}, 2.0) == {zero: 10}
    assert admission.reach({zero: 10}, {zero: 11}, 61.9) == {zero: 10}
    assert admission.reach({zero: 10}, {zero: 11}, 62.0) == {zero: 11}
    assert admission.reach({zero: 11}, {zero: 100}, 62.0) == {zero: 61}


def test_the_first_batch_of_a_query_does_not_wait_for_a_minimum() -> None:
    zero = PARTITIONS[0]
    admission = Admission(None, 10, 60.0)
    assert admission.reach({zero: 0}, {zero: 9}, 1.0) == {zero: 9}
    assert admission.reach({zero: 9}, {zero: 12}, 2.0) == {zero: 9}


def test_what_is_lost_is_told_by_partition() -> None:
    zero, one, two, new = PARTITIONS[:4]
    told = lost_between({zero: 5, one: 6, two: 7}, {new: 3}, {zero: 4, two: 7, new: 9})
    assert [sentence.split(",")[0] for sentence in told] == [
        "delays-1 was deleted",
        "delays-0 ends at 4",
        "flights-0 is new",
    ]
    assert lost_between({zero: 5}, {new: 0}, {zero: 5, new: 9}) == []


def test_ranges_are_of_partitions_with_something_to_read() -> None:
    zero, one, two = PARTITIONS[:3]
    assert ranges_between({zero: 1, one: 4}, {zero: 3, one: 4, two: 9}) == [OffsetRange("delays", 0, 1, 3)]


@given(OFFSETS)
def test_offsets_go_into_a_checkpoint_and_come_back(offsets: dict[TopicPartition, int]) -> None:
    import json

    text = json.dumps(write_offsets(offsets))
    assert read_offsets(json.loads(text), "here") == offsets
    assert parse_offsets(text, "startingOffsets") == offsets
