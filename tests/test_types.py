"""The small values that users hold."""

import pytest

from aiokafkawire.errors import UsageError
from aiokafkawire.types import Address, IsolationLevel, OffsetSpec, TimestampType, TopicPartition, check_topic_name


def test_offset_specs_are_the_timestamps_that_brokers_know() -> None:
    assert OffsetSpec.LATEST.timestamp == -1
    assert OffsetSpec.EARLIEST.timestamp == -2
    assert OffsetSpec.MAX_TIMESTAMP.timestamp == -3
    assert OffsetSpec.at(0).timestamp == 0
    assert OffsetSpec.at(1_700_000_000_000) == OffsetSpec(1_700_000_000_000)
    assert len({OffsetSpec.LATEST, OffsetSpec(-1), OffsetSpec.EARLIEST}) == 2


@pytest.mark.parametrize("timestamp", [-1, -2, -3, -(10**12)])
def test_a_time_to_look_up_is_not_negative(timestamp: int) -> None:
    with pytest.raises(ValueError, match=f"not be negative .*, got {timestamp}$"):
        OffsetSpec.at(timestamp)


@pytest.mark.parametrize("name", ["a", "flights", "A.b_c-1", "...", "..a", "_", "-", "x" * 249, "__consumer_offsets"])
def test_names_that_brokers_take(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "ü", "a\n", "a:b", "a\0"])
def test_names_that_no_broker_takes(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be a topic's name: names have 1 to 249 of the letters"):
        check_topic_name(name)


@pytest.mark.parametrize("name", [None, 5, b"flights", ["flights"]])
def test_what_is_no_string_is_no_name(name: object) -> None:
    with pytest.raises(UsageError, match="a topic's name must be a string, got"):
        check_topic_name(name)


def test_a_long_wrong_name_is_cut_in_the_error() -> None:
    with pytest.raises(UsageError) as caught:
        check_topic_name("x" * 10_000)
    assert len(str(caught.value)) < 500


def test_values_print_as_kafka_prints_them() -> None:
    assert str(TopicPartition("flights", 3)) == "flights-3"
    assert str(Address("localhost", 9092)) == "localhost:9092"
    assert str(Address("::1", 9092)) == "[::1]:9092"
    assert str(Address("a\r\nb\x1b[2J", 1)) == "a??b?[2J:1"
    assert str(Address("x" * 32_767, -1)) == "x" * 255 + ":-1"


def test_partitions_sort_by_topic_and_number() -> None:
    partitions = [TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 2)]
    assert sorted(partitions) == [TopicPartition("a", 2), TopicPartition("a", 10), TopicPartition("b", 0)]


def test_numbers_of_the_wire() -> None:
    assert list(IsolationLevel) == [0, 1]
    assert list(TimestampType) == [-1, 0, 1]
