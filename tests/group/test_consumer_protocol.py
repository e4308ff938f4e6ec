"""What members tell one another, as bytes."""

from __future__ import annotations

import pytest

from aiokafkawire.errors import UnsupportedVersion, WireError
from aiokafkawire.group.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from aiokafkawire.types import TopicPartition

B0, A2, A1 = TopicPartition("b", 0), TopicPartition("a", 2), TopicPartition("a", 1)
FULL = Subscription(("b", "a"), b"ud", (B0, A2, A1), 7, "r", "i")
V0 = b"\0\0\0\2\0\1a\0\1b\0\0\0\2ud"
V1 = V0 + b"\0\0\0\2\0\1a\0\0\0\2\0\0\0\1\0\0\0\2\0\1b\0\0\0\1\0\0\0\0"
V2 = V1 + b"\0\0\0\7"
V3 = V2 + b"\0\1r"


@pytest.mark.parametrize(("version", "body"), [(0, V0), (1, V1), (2, V2), (3, V3)])
def test_a_subscription_is_written_sorted_in_every_version(version: int, body: bytes) -> None:
    assert encode_subscription(FULL, version) == bytes([0, version]) + body


@pytest.mark.parametrize(
    ("version", "body", "owned", "generation", "rack"),
    [
        (0, V0, (), -1, None),
        (1, V1, (A1, A2, B0), -1, None),
        (2, V2, (A1, A2, B0), 7, None),
        (3, V3, (A1, A2, B0), 7, "r"),
    ],
)
def test_a_subscription_says_what_its_version_has(
    version: int, body: bytes, owned: tuple[TopicPartition, ...], generation: int, rack: str | None
) -> None:
    read = decode_subscription(bytes([0, version]) + body, "i")
    assert read == Subscription(("a", "b"), b"ud", owned, generation, rack, "i")


def test_the_newest_version_is_written_unless_told_otherwise() -> None:
    assert encode_subscription(FULL)[:2] == encode_assignment(Assignment(()))[:2] == b"\0\3"


def test_what_a_newer_version_adds_is_left_alone() -> None:
    assert decode_subscription(b"\0\x09" + V3 + b"more").rack_id == "r"
    newer = b"\0\x09" + encode_assignment(Assignment((B0,), b"ud"))[2:] + b"more"
    assert decode_assignment(newer) == Assignment((B0,), b"ud")


def test_an_assignment_keeps_its_order_but_that_topics_stay_together() -> None:
    data = encode_assignment(Assignment((B0, A2, A1)))
    assert data == b"\0\3\0\0\0\2\0\1b\0\0\0\1\0\0\0\0\0\1a\0\0\0\2\0\0\0\2\0\0\0\1\xff\xff\xff\xff"
    assert decode_assignment(encode_assignment(Assignment((A2, B0, A1)))) == Assignment((A2, A1, B0))


def test_no_user_data_is_not_empty_user_data() -> None:
    for user_data in (None, b""):
        assert decode_assignment(encode_assignment(Assignment((), user_data))).user_data == user_data
        assert decode_subscription(encode_subscription(Subscription((), user_data))).user_data == user_data


def test_an_empty_rack_is_none_and_an_unknown_generation_is_minus_one() -> None:
    read = decode_subscription(encode_subscription(Subscription((), rack_id="", generation_id=-5)))
    assert (read.rack_id, read.generation_id) == (None, -1)


def test_a_subscription_of_version_1_may_lack_owned_partitions_as_those_of_kafka_go_do() -> None:
    assert decode_subscription(b"\0\1" + V0) == Subscription(("a", "b"), b"ud")
    for version in (2, 3):  # which no client sends without the fields
        with pytest.raises(WireError):
            decode_subscription(bytes([0, version]) + V0)


def test_an_assignment_without_such_a_partition_is_refused() -> None:
    with pytest.raises(WireError, match="a partition has a negative number"):
        decode_assignment(encode_assignment(Assignment((B0, TopicPartition("a", -1)))))


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\xff\xff" + V0, b"\0\3" + V3[:-1], b"\0\1" + V1[:-1], b"\0\0\xff\xff\xff\xff"]
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        decode_subscription(data)
    with pytest.raises(WireError):
        decode_assignment(data)


def test_a_version_that_is_not_known_is_not_written() -> None:
    with pytest.raises(UnsupportedVersion):
        encode_subscription(FULL, 4)
