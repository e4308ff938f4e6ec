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
    first = sticky.choose("a", 5)
    assert {sticky.choose("a", 5) for _ in range(20)} == {first}
    sticky.move_on("a", 5)
    assert sticky.choose("a", 5) != first


def test_over_time_every_partition_has_its_turn() -> None:
    sticky, seen = Sticky(Random(7)), set()
    for _ in range(100):
        sticky.move_on("a", 4)
        seen.add(sticky.choose("a", 4))
    assert seen == {0, 1, 2, 3}


def test_a_single_partition_has_nowhere_to_move() -> None:
    sticky = Sticky(Random(7))
    sticky.move_on("a", 1)
    assert sticky.choose("a", 1) == 0
