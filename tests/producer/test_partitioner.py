"""Records land where Kafka's Java client would put them."""

from random import Random

import pytest

from aiokafkawire.producer.partitioner import Sticky, murmur2, partition_for_key


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        # The values that Kafka's own tests hold.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_javas(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed % 2**32


def test_the_sign_bit_is_dropped_before_the_modulus() -> None:
    assert partition_for_key(b"21", 7) == (-973932308 & 0x7FFFFFFF) % 7


def test_a_sticky_partition_stays_until_it_moves_on() -> None:
    sticky = Sticky(Random(7))
    assert sticky.current("a") is None
    first = sticky.move_on("a", range(5))
    assert sticky.current("a") == first
    assert sticky.move_on("a", range(5)) != first


def test_over_time_every_partition_has_its_turn() -> None:
    sticky = Sticky(Random(7))
    assert {sticky.move_on("a", range(4)) for _ in range(100)} == {0, 1, 2, 3}


def test_only_available_partitions_are_chosen() -> None:
    sticky = Sticky(Random(7))
    assert {sticky.move_on("a", (1, 3)) for _ in range(20)} == {1, 3}


def test_a_single_partition_has_nowhere_to_move() -> None:
    sticky = Sticky(Random(7))
    assert [sticky.move_on("a", (0,)) for _ in range(3)] == [0, 0, 0]
