"""Records land where Kafka's Java client and librdkafka would put them."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from aiokafkawire.config import PartitionerName, ProducerConfig
from aiokafkawire.errors import UsageError
from aiokafkawire.producer.partitioner import Choose, fnv1a, make_partitioner, murmur2, partition_for_key
from aiokafkawire.types import TopicPartition

EVERY_BYTE = bytes(range(256))


class Idle:
    """Nothing waits, and no batch is open: every record begins one."""

    def has_room(self, partition: TopicPartition, size: int) -> bool:
        return False

    def queue_lengths(self, topic: str) -> Mapping[int, int]:
        return {}

    def unavailable(self, topic: str) -> Collection[int]:
        return ()

    def leaders_in_rack(self, topic: str, rack: str) -> Collection[int]:
        return ()


def partitioner(partitioner: Any = "default", **settings: Any) -> Choose:
    return make_partitioner(ProducerConfig(partitioner=partitioner, **settings), Random(7), Idle()).choose


def chosen(choose: Choose, key: bytes | None, available: Sequence[int], count: int, times: int = 200) -> Counter[int]:
    """How often each partition is chosen for records that fill a batch each."""
    return Counter(choose("t", key, available, count, 20_000) for _ in range(times))


# --- hashes --------------------------------------------------------------------------------------------


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
        # What kafka-clients 4.3.1 said: every number of bytes after whole words, and bytes that Java has as negative.
        (b"", 275646681),
        (b"\xff", -311467685),
        (b"\xff\xff", -1642832928),
        (b"\xff\xff\xff", 1548199422),
        (b"\xff\xff\xff\xff", 644171429),
        (b"\x80\0\0", -2010535404),
        (b"\x80\0\0\0", -65415266),
        (b"key-1", 193331640),
        (EVERY_BYTE, -1948347274),
    ],
)
def test_murmur2_is_javas(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed % 2**32


def test_the_sign_bit_is_dropped_before_the_modulus() -> None:
    assert partition_for_key(b"21", 7) == (-973932308 & 0x7FFFFFFF) % 7


@pytest.mark.parametrize(
    ("key", "value"),
    [
        # Sarama's, that librdkafka holds itself to.
        (b"kafka", 0xD33C4E1),
        (b"giberish123456789", 0x77A58295),
        (b"1234", 0x23BDD03),
        (b"PreAmbleWillBeRemoved,ThePrePartThatIs", 0x65CBD69C),
        (b"", 0x7EE3623B),
        (b";K$25", 0x80000000),  # it has no absolute value in 32 bits
    ],
)
def test_fnv1a_is_saramas(key: bytes, value: int) -> None:
    assert fnv1a(key) == value


KEYS = (None, b"", b"k", b"\xff", b"key-1", b"1234567", b"\x80\0\x80\0", EVERY_BYTE, b";K$25", b"kafka")


@pytest.mark.parametrize(
    ("name", "of_13", "of_1000"),
    [
        # What librdkafka 2.16.0 chose for KEYS.
        ("consistent", [0, 0, 8, 8, 2, 10, 8, 1, 8, 2], [0, 0, 621, 80, 538, 927, 844, 491, 800, 399]),
        ("murmur2", [11, 11, 11, 2, 8, 9, 12, 8, 7, 12], [681, 681, 912, 963, 640, 222, 112, 374, 144, 580]),
        ("fnv1a", [6, 6, 11, 12, 10, 7, 7, 9, 11, 10], [35, 35, 886, 606, 238, 663, 845, 563, 648, 545]),
    ],
)
def test_keys_go_where_librdkafka_puts_them(name: str, of_13: list[int], of_1000: list[int]) -> None:
    for count, expected in ((13, of_13), (1000, of_1000)):
        choose = partitioner(name)
        assert [choose("t", key, range(count), count, 100) for key in KEYS] == expected
        choose = partitioner(f"{name}_random")
        assert [choose("t", key, range(count), count, 100) for key in KEYS[2:]] == expected[2:]


# --- names ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [b"", b"k", b"kafka"])
def test_by_default_a_key_goes_where_java_puts_it(key: bytes) -> None:
    assert chosen(partitioner(), key, range(13), 13).keys() == {partition_for_key(key, 13)}


@pytest.mark.parametrize("name", ["default", "consistent_random", "murmur2_random", "fnv1a_random"])
def test_without_a_key_every_partition_has_its_turn(name: str) -> None:
    assert chosen(partitioner(name), None, (0, 2, 4), 5).keys() == {0, 2, 4}


@pytest.mark.parametrize(
    ("name", "partitions"),
    [("default", 1), ("consistent_random", 5), ("murmur2_random", 1), ("fnv1a_random", 1), ("consistent", 1)],
)
def test_an_empty_key_is_none_for_consistent_random_alone(name: str, partitions: int) -> None:
    assert len(chosen(partitioner(name), b"", range(5), 5)) == partitions


def test_a_key_goes_to_its_partition_though_that_has_no_leader() -> None:
    for name in ("default", "consistent", "murmur2_random"):
        whole = chosen(partitioner(name), b"kafka", range(13), 13)
        (its,) = whole
        assert chosen(partitioner(name), b"kafka", [one for one in range(13) if one != its], 13) == whole


def test_keys_can_be_ignored() -> None:
    assert chosen(partitioner(partitioner_ignore_keys=True), b"k", range(4), 4).keys() == {0, 1, 2, 3}
    # Who names a hash wants it.
    assert len(chosen(partitioner("murmur2_random", partitioner_ignore_keys=True), b"k", range(4), 4)) == 1


@pytest.mark.parametrize("key", [None, b"k"])
def test_random_looks_at_each_record_by_itself(key: bytes | None) -> None:
    choose = partitioner("random")
    found = [choose("t", key, (1, 3), 4, 10) for _ in range(100)]
    assert set(found) == {1, 3}
    assert any(one == other for one, other in pairwise(found))


def test_round_robin_goes_through_what_is_available_for_each_topic() -> None:
    choose = partitioner("round_robin")
    assert [choose("a", b"k", (1, 3, 5), 6, 10) for _ in range(5)] == [1, 3, 5, 1, 3]
    assert choose("b", None, (1, 3, 5), 6, 10) == 1
    assert [choose("a", None, (), 6, 10) for _ in range(3)] == [5, 0, 1]


@pytest.mark.parametrize("name", get_args(PartitionerName))
@settings(max_examples=examples(40))
@given(data=st.data())
def test_what_is_chosen_is_there_and_available_if_any_is(name: str, data: st.DataObject) -> None:
    settings = {"partitioner_ignore_keys": data.draw(st.booleans()), "batch_size": data.draw(st.integers(1, 500))}
    choose = partitioner(name, **settings)
    fixed = name in ("consistent", "murmur2", "fnv1a")
    for _ in range(data.draw(st.integers(1, 8))):
        count = data.draw(st.integers(1, 20))
        available = sorted(data.draw(st.sets(st.integers(0, count - 1))))
        for key in data.draw(st.lists(st.none() | st.binary(max_size=6), max_size=5)):
            partition = choose("t", key, available, count, data.draw(st.integers(36, 400)))
            assert 0 <= partition < count
            if key is None and not fixed and available:
                assert partition in available


# --- the user's own ------------------------------------------------------------------------------------


def test_a_function_hears_of_the_record_and_its_answer_counts() -> None:
    heard: list[object] = []

    def own(topic: str, key: bytes | None, available: Sequence[int], every: Sequence[int]) -> int:
        heard.append((topic, key, list(available), list(every)))
        return 2

    assert partitioner(own)("t", b"k", (0, 2), 3, 10) == 2
    assert heard == [("t", b"k", [0, 2], [0, 1, 2])]


@pytest.mark.parametrize("value", [3, -1, None, "1", 1.0, True, 2**40])
def test_what_is_no_partition_is_refused_by_name(value: object) -> None:
    def by_region(*_: object) -> object:
        return value

    with pytest.raises(UsageError) as refused:
        partitioner(by_region)("t", None, (0, 1), 3, 10)
    assert "by_region" in str(refused.value)
    assert f"returned {value!r}, and topic 't' has partitions 0 to 2" in str(refused.value)


def test_an_object_without_a_name_is_told_by_what_it_shows() -> None:
    class Mine:
        def __call__(self, *_: object) -> int:
            return 9

        def __repr__(self) -> str:
            return "<Mine>"

    with pytest.raises(UsageError, match="<Mine> returned 9"):
        partitioner(Mine())("t", None, (0,), 1, 10)


def test_what_a_function_raises_goes_on_as_it_is() -> None:
    fault = LookupError("no such region")

    def own(*_: object) -> int:
        raise fault

    with pytest.raises(LookupError) as raised:
        partitioner(own)("t", None, (0,), 1, 10)
    assert raised.value is fault
