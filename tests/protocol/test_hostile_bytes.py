"""Whatever bytes come: a decoder gives a message or a WireError, in few steps, and without much memory.

``tests/fuzz`` looks for more of the same, for as long as one likes; what it finds becomes a test here.
"""

import tracemalloc
from collections.abc import Iterator
from random import Random
from struct import calcsize
from typing import Any

import pytest
from fuzz.seeds import seeds
from fuzz.steps import lines_run
from fuzz.targets import TARGETS, read_message
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.mutating import mutated_bytes
from support.rows import every_row
from support.shapes import Shapes, Tagged, with_tags
from support.vectors import declared_messages, vectors

from aiokafkawire.errors import WireError
from aiokafkawire.protocol.compiler import DECODERS, decode, encode
from aiokafkawire.protocol.messages.group import HeartbeatRequest
from aiokafkawire.protocol.primitives import STRUCT_CODES, Array, Int32, WireType, encode_uvarint
from aiokafkawire.protocol.schema import FieldSchema, Message, field, message, nested, schema_of

MESSAGES: dict[str, type[Message]] = {**declared_messages(), "Shapes": Shapes, "Tagged": Tagged}
VERSIONS = [(cls, version) for cls in MESSAGES.values() for version in range(cls.versions.first, cls.versions.last + 1)]
HOSTILE = (
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    b"\0\x7f\xff\xff",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x7f",
    b"\xff\xff\x03",
    b"\x7f\xff",
)
"""Lengths and counts that no message can hold, plain and compact."""


def longest_vectors() -> dict[tuple[str, int], bytes]:
    """The longest golden message of each class and version, up to a length that keeps the tests short."""
    found = {("Shapes", version): encode(Shapes(), version) for version in range(3)}
    found["Tagged", 0] = encode(with_tags(Tagged(fifth=1), {1: b"a"}), 0)
    for name in ("request", "response", "header", "data"):
        for vector in vectors(name):
            key, data = (vector["name"], vector["version"]), bytes.fromhex(vector["hex"])
            if len(found.get(key, b"")) <= len(data) < 600:
                found[key] = data
    return found


GOLDEN = longest_vectors()
EVERY_MESSAGE = every_row("name", sorted(MESSAGES))


def golden(name: str) -> list[tuple[int, bytes]]:
    """The oldest version, the newest, and those on both sides of compact forms: the others are put together alike."""
    cls = MESSAGES[name]
    wanted = {cls.versions.first, cls.versions.last, cls.flexible.first - 1, cls.flexible.first}
    return [(version, GOLDEN[name, version]) for version in sorted(wanted) if version in cls.versions]


def is_read(cls: type[Message], version: int, data: bytes) -> bool:
    try:
        decode(cls, version, data)
    except WireError:
        return False
    return True


def test_there_is_a_golden_message_for_every_decoder() -> None:
    assert set(GOLDEN) == {(cls.__name__, version) for cls, version in VERSIONS}


@pytest.mark.parametrize("target", ["messages", "embedded"])
def test_the_fuzzer_begins_with_what_its_targets_read(target: str) -> None:
    assert all(TARGETS[target](seed) for seed in seeds(target))


@pytest.mark.slow
@EVERY_MESSAGE
def test_a_message_cut_short_at_any_byte_is_refused(name: str) -> None:
    for version, data in golden(name):
        assert is_read(MESSAGES[name], version, data)
        for end in range(len(data)):
            assert not is_read(MESSAGES[name], version, data[:end]), end


@EVERY_MESSAGE
def test_a_byte_too_many_is_refused(name: str) -> None:
    for version, data in golden(name):
        with pytest.raises(WireError, match="1 bytes left over"):
            decode(MESSAGES[name], version, data + b"\0")


@pytest.mark.slow
@EVERY_MESSAGE
def test_lengths_and_counts_beyond_the_message_cost_no_memory(name: str) -> None:
    cls, random = MESSAGES[name], Random(5)
    for version, data in golden(name):
        decode(cls, version, data)
        is_read(cls, version, data[:-1])  # now both decoders are made
        places = random.sample(range(len(data)), min(len(data), 4))
        tracemalloc.start()
        try:
            for place in places:
                for lie in HOSTILE:
                    is_read(cls, version, data[:place] + lie + data[place + len(lie) :])
                    is_read(cls, version, data[:place] + lie)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 200_000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Shapes", "FetchResponse", "MetadataResponse", "StreamsGroupHeartbeatRequest"])
def test_lengths_and_counts_beyond_the_message_cost_no_time(name: str) -> None:
    cls = MESSAGES[name]
    for version, data in golden(name):
        whole = lines_run(lambda: DECODERS["pure"](cls, version, data, 0))  # noqa: B023  # called at once
        for place in range(len(data)):
            for lie in HOSTILE:
                lied = data[:place] + lie + data[place + len(lie) :]
                taken = lines_run(lambda: DECODERS["pure"](cls, version, lied, 0))  # noqa: B023  # called at once
                assert taken <= whole + 10 * len(lied)


@pytest.mark.slow
@EVERY_MESSAGE
def test_random_bytes_are_read_or_refused(name: str) -> None:
    random = Random(7)
    for version, _ in golden(name):
        for size in range(0, 120, 2):
            is_read(MESSAGES[name], version, random.randbytes(size))
            # Small numbers make more sense as lengths and counts: these get further.
            read_message(MESSAGES[name], version, bytes(random.choices((0, 0, 0, 1, 1, 2, 3, 255), k=size)))


@st.composite
def mutated(draw: st.DrawFn) -> tuple[type[Message], int, bytes]:
    """A golden message with pieces replaced, left out, repeated or put in."""
    name, version = draw(st.sampled_from(sorted(GOLDEN)))
    return MESSAGES[name], version, draw(mutated_bytes(GOLDEN[name, version], HOSTILE))


@pytest.mark.slow
@settings(max_examples=examples(1000), deadline=None, derandomize=True)
@given(mutated())
def test_mutated_messages_are_read_the_same_everywhere_or_refused(case: tuple[type[Message], int, bytes]) -> None:
    read_message(*case)


@settings(max_examples=examples(500), deadline=None, derandomize=True)
@given(st.sampled_from(VERSIONS), st.binary(max_size=300))
def test_any_bytes_are_read_the_same_everywhere_or_refused(decoder: tuple[type[Message], int], data: bytes) -> None:
    read_message(*decoder, data)


# --- what the declarations must be like ------------------------------------------------------------------------


@nested
class Hollow:
    """A struct that takes no byte in version 0."""

    later: Int32 = field("1+", default=0)


@message(versions="0-2", flexible="2+")
class Hollows(Message):
    items: Array[Hollow] = field("0+")
    inside: Hollow | None = field("0+", nullable="0+")


def least_bytes(cls: type[Any], of: type[Message], version: int) -> int:
    """The fewest bytes that a struct takes in a version of the message that it is in."""
    inline = [one for one in schema_of(cls).fields if version in one.versions and one.tag is None]
    return sum(least_bytes_of(one, of, version) for one in inline) + (version in of.flexible)


def least_bytes_of(one: FieldSchema, of: type[Message], version: int) -> int:
    compact = version in (of.flexible if one.flexible is None else one.flexible)
    if one.array or one.kind in (WireType.BYTES, WireType.RECORDS):
        return 1 if compact else 4
    if not isinstance(one.kind, WireType):
        return 1 if version in one.nullable else least_bytes(one.kind, of, version)
    if one.kind is WireType.STRING:
        return 1 if compact else 2
    return 16 if one.kind is WireType.UUID else calcsize(STRUCT_CODES[one.kind])


def elements(cls: type[Any], version: int, *above: type[Any]) -> Iterator[type[Any]]:
    """The structs that are elements of arrays, however deep; none may hold itself."""
    assert cls not in above, "a struct in itself: messages could be nested as deep as one likes"
    for one in schema_of(cls).fields:
        if version in one.versions and not isinstance(one.kind, WireType):
            if one.array:
                yield one.kind
            yield from elements(one.kind, version, cls, *above)


def test_an_element_of_an_array_takes_two_bytes_at_least() -> None:
    # Of elements that take none, a message of five bytes could hold 2**31.
    least = [least_bytes(one, cls, version) for cls, version in VERSIONS for one in elements(cls, version)]
    assert len(least) > 1000
    assert min(least) == 2
    assert [least_bytes(Hollow, Hollows, version) for version in range(3)] == [0, 4, 5]
    assert [least_bytes(Hollows, Hollows, version) for version in range(3)] == [5, 5, 3]


@EVERY_MESSAGE
def test_no_message_is_shorter_than_its_fields(name: str) -> None:
    for version, data in golden(name):
        assert len(data) >= least_bytes(MESSAGES[name], MESSAGES[name], version)


# --- how much memory a byte can cost ---------------------------------------------------------------------------


def with_elements(head: bytes, element: bytes, tail: bytes, count: int = 20_000) -> bytes:
    return head + encode_uvarint(count + 1) + element * count + tail


AMPLIFIED = {
    ("AlterClientQuotasRequest", 1): with_elements(b"", b"\1\1\1\1\0", b"\0\0"),
    ("DescribeClientQuotasResponse", 1): with_elements(b"\0\0\0\0\0\0\0", b"\1\1\0", b"\0"),
    ("ListConfigResourcesResponse", 0): with_elements(b"\0\0\0\0\0\0", b"\1\0", b"\0"),
    ("DescribeUserScramCredentialsRequest", 0): with_elements(b"", b"\1\1\1\0", b"\0"),
    ("ProduceResponse", 9): with_elements(b"", b"\1\1\1\1\0", b"\0\0\0\0\0"),
}


@pytest.mark.slow
@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize(("name", "version"), AMPLIFIED)
def test_a_byte_costs_a_hundred_at_most(name: str, version: int, decoder: str) -> None:
    data, read = AMPLIFIED[name, version], DECODERS[decoder]
    read(MESSAGES[name], version, data, 0)
    tracemalloc.start()
    try:
        kept, end = read(MESSAGES[name], version, data, 0)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert end == len(data)
    assert kept
    assert held <= peak < 100 * len(data)


@pytest.mark.parametrize(("name", "head"), [("Tagged", b"\7"), ("RequestHeader", bytes(10))])
def test_many_tagged_fields_take_steps_in_proportion(name: str, head: bytes) -> None:
    def lines(count: int) -> int:
        fields = b"".join(encode_uvarint(tag) + b"\1x" for tag in range(400, 400 + count))
        cls, data = MESSAGES[name], head + encode_uvarint(count) + fields
        return lines_run(lambda: DECODERS["pure"](cls, cls.versions.last, data, 0))

    assert 9 < lines(10_000) / lines(1000) < 11


# --- what Kafka's own classes read, too ----------------------------------------------------------------------


def shapes(fields: bytes) -> Any:
    """Shapes v0 from its first bytes on; what follows is a default message's."""
    default = encode(Shapes(), 0)
    return decode(Shapes, 0, fields + default[len(fields) :])


def test_a_bool_is_true_unless_it_is_zero() -> None:
    assert [shapes(bytes((byte,))).flag for byte in (0, 1, 2, 0x80, 0xFF)] == [False, True, True, True, True]
    assert encode(shapes(b"\2"), 0)[0] == 1


@pytest.mark.parametrize("length", [-1, -2, -(1 << 15)])
def test_every_negative_length_is_null(length: int) -> None:
    default = encode(Shapes(), 0)
    text = default.index(b"\0\0\xff\xff")  # an empty text, and none
    data = bytearray(default)
    data[text + 2 : text + 4] = length.to_bytes(2, "big", signed=True)
    assert decode(Shapes, 0, bytes(data)) == Shapes()
    data[text : text + 2] = length.to_bytes(2, "big", signed=True)
    with pytest.raises(WireError, match=r"^Shapes v0\.text: .*it is null"):
        decode(Shapes, 0, bytes(data))


@pytest.mark.parametrize("marker", range(0, 256, 17))
def test_a_struct_that_may_be_null_is_null_if_its_marker_is_negative(marker: int) -> None:
    point = encode_uvarint(300) + b"\5" + bytes((marker,)) + b"\0\3\0\0"
    if marker < 128:
        assert decode(Tagged, 0, b"\7\1" + point).point.x == 3  # type: ignore[union-attr]
    else:
        with pytest.raises(WireError, match=r"^Tagged v0\.point: .*its length is 5, not what it takes"):
            decode(Tagged, 0, b"\7\1" + point)


def test_the_last_of_tagged_fields_with_the_same_tag_counts() -> None:
    fields = b"\5\4\0\0\0\1\1\1a\5\4\0\0\0\2\1\1b"
    read = decode(Tagged, 0, b"\7\4" + fields)
    assert read == with_tags(Tagged(fifth=2), {1: b"b"})
    assert encode(read, 0) == b"\7\2\1\1b\5\4\0\0\0\2"


def test_a_varint_may_be_longer_than_it_must() -> None:
    assert decode(Tagged, 0, b"\7\x80\x80\x80\x80\0") == Tagged()


def test_a_string_that_is_no_utf8_is_refused() -> None:
    with pytest.raises(WireError, match=r"^HeartbeatRequest v4\.group_id: .*invalid"):
        decode(HeartbeatRequest, 4, b"\3\xc3\x28\0\0\0\1\1\0\0")


# --- found by the fuzzer ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_string_longer_than_can_be_written_is_refused(decoder: str) -> None:
    rest = encode(HeartbeatRequest(group_id="", generation_id=1, member_id=""), 4)[1:]
    read, _ = DECODERS[decoder](HeartbeatRequest, 4, encode_uvarint(32768) + b"a" * 32767 + rest, 0)
    assert encode(read, 4)
    with pytest.raises(WireError, match="at most 32767 bytes are allowed"):
        DECODERS[decoder](HeartbeatRequest, 4, encode_uvarint(32769) + b"a" * 32768 + rest, 0)
