"""The orders of Java's strings and hash maps."""

from __future__ import annotations

import pytest

from aiokafkawire.group.java_hash_order import HashOrder, hash_ordered, partition_hash, sort_key, string_hash
from aiokafkawire.types import TopicPartition


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", 0x80000000), ("é", 0xE9), ("\U0001f600", 1772899)],
)
def test_the_hash_of_a_string_is_javas(text: str, expected: int) -> None:
    assert string_hash(text) == expected


def test_a_partitions_hash_goes_by_its_topic_and_index() -> None:
    assert partition_hash(TopicPartition("a", 2), string_hash("a")) == 31 * (31 + 2) + 97


def test_strings_sort_by_utf_16_units() -> None:
    """What is beyond 16 bits is two units, which are smaller than the last ones of one unit."""
    assert sorted(["￼", "\U0001f600", "a"], key=sort_key) == ["a", "\U0001f600", "￼"]


def test_keys_are_listed_by_bucket_and_those_of_one_as_they_came() -> None:
    order: HashOrder[str] = HashOrder()
    for key, bucket in [("late", 3), ("first", 0), ("early", 17), ("later", 3 + 16)]:
        order.add(key, bucket)
    assert list(order) == ["first", "early", "late", "later"]
    assert order.first() == "first"
    order.remove("late")
    order.add("late", 3)
    assert list(order) == ["first", "early", "later", "late"]
    assert len(order) == 4


def test_a_table_of_more_than_three_quarters_is_doubled() -> None:
    order: HashOrder[int] = HashOrder()
    order.add(16, 16)
    for key in range(1, 12):
        order.add(key, key)
    assert order.first() == 16  # in the first of 16 buckets
    order.add(12, 12)
    assert order.first() == 1  # 16 has a bucket of its own, of 32


def test_a_small_table_is_doubled_as_well_when_a_bucket_has_more_than_eight_keys() -> None:
    order: HashOrder[int] = HashOrder()
    for key in (*range(0, 16 * 8, 16), 1):
        order.add(key, key)
    assert list(order) == [*range(0, 16 * 8, 16), 1]
    order.add(16 * 8, 16 * 8)
    assert list(order) == [*range(0, 16 * 9, 32), 1, *range(16, 16 * 8, 32)]


def test_the_upper_half_of_a_hash_counts_in_a_small_table() -> None:
    order: HashOrder[str] = HashOrder()
    order.add("high", 5 << 16)
    order.add("low", 4)
    assert list(order) == ["low", "high"]


def test_a_name_given_twice_is_listed_once() -> None:
    assert hash_ordered(["b", "a", "b"]) == ["a", "b"]
