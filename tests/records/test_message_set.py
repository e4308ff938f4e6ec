"""Message sets (magic 0 and 1) as they are read: made by hand, cut, damaged and hostile."""

import contextlib
import random
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable

import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.message_sets import message, wrapper
from support.rows import every_row

from aiokafkawire.errors import CorruptBatch, DeserializationError
from aiokafkawire.records.batch import AnyBatch, AnyReader, BatchBuilder, RecordBatch, set_base_offset, split
from aiokafkawire.records.compression import Codec
from aiokafkawire.records.lz4_frames import with_old_checksum, with_right_checksum, xxh32_short
from aiokafkawire.records.message_set import MessageSet
from aiokafkawire.types import TimestampType

CODECS = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4)
LOG_APPEND_TIME = 8


def sets(data: bytes) -> list[AnyBatch]:
    return list(split(memoryview(data), "t-0"))


def one(data: bytes) -> MessageSet:
    (only,) = sets(data)
    assert isinstance(only, MessageSet)
    return only


def read(batch: AnyBatch, from_offset: int = 0, check_crcs: bool = True) -> AnyReader[bytes, bytes]:
    return batch.records("t", 0, from_offset=from_offset, check_crcs=check_crcs)


def offsets(data: bytes) -> list[int]:
    return [record.offset for batch in sets(data) for record in read(batch)]


def with_checksum(data: bytes | bytearray) -> bytes:
    """The same damage to one message, but of the kind that a checksum does not find."""
    return bytes(data[:12]) + struct.pack(">I", zlib.crc32(data[16:])) + bytes(data[16:])


def with_length(data: bytes, length: int) -> bytes:
    return data[:8] + struct.pack(">i", length) + data[12:]


# --- one message ---------------------------------------------------------------------------------------------


def test_a_message_of_magic_0() -> None:
    covered = b"\x00\x00" + b"\x00\x00\x00\x01k" + b"\x00\x00\x00\x02vw"
    data = b"\0\0\0\0\0\0\0\x07" + b"\0\0\0\x11" + zlib.crc32(covered).to_bytes(4, "big") + covered
    only = one(data)
    header = only.header
    assert (header.magic, header.codec, header.size, header.crc) == (0, 0, len(data), zlib.crc32(covered))
    assert (header.base_offset, header.last_offset, header.next_offset, header.max_timestamp) == (7, 7, 8, -1)
    assert (header.producer_id, header.leader_epoch, header.is_control, header.is_transactional) == (-1, -1, 0, 0)
    (record,) = read(only)
    assert (record.topic, record.partition, record.offset) == ("t", 0, 7)
    assert (record.key, record.value, record.headers) == (b"k", b"vw", ())
    assert (record.timestamp, record.timestamp_type) == (-1, TimestampType.NO_TIMESTAMP_TYPE)
    assert record.leader_epoch is None
    assert record.detach() is record  # its bytes are its own


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [(0, TimestampType.CREATE_TIME), (LOG_APPEND_TIME, TimestampType.LOG_APPEND_TIME)],
)
def test_a_message_of_magic_1(attributes: int, kind: TimestampType) -> None:
    covered = bytes((1, attributes)) + b"\0\0\0\0\0\0\x12\x34" + b"\xff\xff\xff\xff" + b"\xff\xff\xff\xff"
    data = b"\0\0\0\0\0\0\0\x07" + b"\0\0\0\x16" + zlib.crc32(covered).to_bytes(4, "big") + covered
    only = one(data)
    assert (only.header.max_timestamp, only.header.timestamp_type) == (0x1234, kind)
    (record,) = read(only)
    assert (record.key, record.value, record.timestamp, record.timestamp_type) == (None, None, 0x1234, kind)


def test_null_is_not_empty() -> None:
    records = read(one(message(0, None, b"") + message(1, b"", None)))
    assert [(record.key, record.value) for record in records] == [(b"", None), (None, b"")]


# --- runs of messages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("magic", [0, 1])
def test_adjacent_messages_are_one_set(magic: int) -> None:
    data = b"".join(message(100 + 2 * n, b"%d" % n, magic=magic, timestamp=5000 - n) for n in range(10_000))
    run = one(data)
    run.check()
    assert run.view == data
    assert (run.header.base_offset, run.header.last_offset, run.header.crc) == (100, 100 + 2 * 9_999, None)
    assert run.header.max_timestamp == (5000 if magic else -1)
    assert [(record.offset, record.value) for record in read(run)] == [(100 + 2 * n, b"%d" % n) for n in range(10_000)]


def test_what_differs_begins_another_set() -> None:
    parts = [
        message(0) + message(1, attributes=0x40),  # a bit that means nothing
        message(2, attributes=LOG_APPEND_TIME) + message(3, attributes=LOG_APPEND_TIME),
        message(4, magic=0) + message(5, magic=0, attributes=LOG_APPEND_TIME),  # which means nothing in magic 0
        wrapper(6, message(0), message(1)),
        wrapper(8, message(0), message(1)),
        message(9),
        message(9) + message(10),  # as producers send them, offsets need not ascend
        message(2),
    ]
    assert [bytes(batch.view) for batch in sets(b"".join(parts))] == parts


def test_a_long_run_is_several_sets() -> None:
    data = b"".join(message(n, bytes(50_000)) for n in range(100))
    found = sets(data)
    assert 5 <= len(found) <= 6
    assert all(batch.header.size <= 1 << 20 for batch in found)
    assert offsets(data) == list(range(100))
    large = message(100, bytes(3 << 20))
    assert [batch.header.size for batch in sets(large + message(101))] == [len(large), len(message(101))]


def test_formats_may_be_mixed_in_one_buffer() -> None:
    builder = BatchBuilder(limit=10_000)
    builder.append(0, None, b"two")
    data = (
        message(0, magic=0) + message(1) + set_base_offset(builder.build(), 2, 0) + message(3) + wrapper(4, message(0))
    )
    found = sets(data)
    assert [batch.header.magic for batch in found] == [0, 1, 2, 1, 1]
    assert [isinstance(batch, RecordBatch) for batch in found] == [False, False, True, False, False]
    assert offsets(data) == [0, 1, 2, 3, 4]


# --- wrappers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    ("magic", "offset", "inner", "absolute"),
    [
        (1, 12, [0, 1, 2], [10, 11, 12]),
        (1, 20, [0, 1, 2, 10], [10, 11, 12, 20]),  # compacted
        (1, 20, [3, 5], [18, 20]),  # and at the beginning
        (1, 12, [10, 11, 12], [10, 11, 12]),  # absolute, though relative is due
        (1, 0, [0, 1, 2], [0, 1, 2]),  # as sent by producers that leave the wrapper's to the broker
        (0, 12, [10, 11, 12], [10, 11, 12]),
        (0, 20, [10, 12, 17], [10, 12, 17]),
        (0, 0, [0, 1], [0, 1]),
    ],
)
def test_offsets_inside_a_wrapper(codec: Codec, magic: int, offset: int, inner: list[int], absolute: list[int]) -> None:
    only = one(wrapper(offset, *(message(n, magic=magic) for n in inner), codec=codec, magic=magic))
    assert (only.header.codec, only.header.base_offset, only.header.last_offset) == (codec, -1, offset)
    reader = read(only)
    assert reader.next_offset == absolute[0]
    assert [record.offset for record in reader] == absolute
    assert reader.next_offset == max(offset, absolute[-1]) + 1


def test_a_wrappers_timestamps() -> None:
    inner = [message(0, timestamp=5), message(1, timestamp=7)]
    kinds = {0: TimestampType.CREATE_TIME, LOG_APPEND_TIME: TimestampType.LOG_APPEND_TIME}
    for attributes, times in ((0, [5, 7]), (LOG_APPEND_TIME, [99, 99])):
        only = one(wrapper(1, *inner, attributes=attributes, timestamp=99))
        assert (only.header.max_timestamp, only.header.timestamp_type) == (99, kinds[attributes])
        assert [record.timestamp for record in read(only)] == times
        assert {record.timestamp_type for record in read(only)} == {kinds[attributes]}


def test_magics_may_differ_inside_as_java_reads_them() -> None:
    old, new = message(0, magic=0), message(1, timestamp=5)
    none = TimestampType.NO_TIMESTAMP_TYPE
    first, second = read(one(wrapper(11, old, new, attributes=LOG_APPEND_TIME, timestamp=99)))
    assert (first.offset, first.timestamp, first.timestamp_type) == (10, -1, none)
    assert (second.offset, second.timestamp, second.timestamp_type) == (11, 99, TimestampType.LOG_APPEND_TIME)
    first, second = read(one(wrapper(1, old, new, magic=0)))
    assert (first.offset, first.timestamp, first.timestamp_type) == (0, -1, none)
    assert (second.offset, second.timestamp, second.timestamp_type) == (1, 5, none)


def test_a_wrapper_may_have_a_key() -> None:
    packed = zlib.compress(message(0), wbits=31)
    assert offsets(message(5, packed, b"key", attributes=Codec.GZIP)) == [5]


# --- LZ4 before magic 1 --------------------------------------------------------------------------------------


def test_xxh32() -> None:
    assert [xxh32_short(data) for data in (b"", b"a", b"abc")] == [0x02CC5D05, 0x550D7456, 0x32D153FF]


@pytest.mark.parametrize("store_size", [False, True])
def test_the_right_checksum_is_what_the_library_writes(store_size: bool) -> None:
    for level in range(20):
        frame = lz4.frame.compress(bytes(level), block_size=4 + level % 4, store_size=store_size)
        at = 14 if store_size and level else 6
        wrong = bytearray(frame)
        wrong[at] ^= 0x55
        assert with_right_checksum(memoryview(wrong)) == frame
        assert with_right_checksum(memoryview(frame)) == frame


def test_what_is_no_frame_is_left_to_the_library() -> None:
    frame = lz4.frame.compress(b"content")
    for data in (b"", frame[:5], frame[:8], b"x" + frame):
        assert with_right_checksum(memoryview(data)) == data


def lz4_wrapper(magic: int, change: Callable[[bytes], bytes]) -> bytes:
    frame = lz4.frame.compress(message(0, magic=magic), store_size=False)
    return message(0, change(frame), magic=magic, attributes=Codec.LZ4)


def test_magic_0_is_read_with_any_header_checksum_and_magic_1_with_the_right_one() -> None:
    right, old = lz4_wrapper(0, bytes), lz4_wrapper(0, with_old_checksum)
    assert right != old
    assert offsets(right) == offsets(old) == offsets(lz4_wrapper(0, lambda f: f[:6] + b"\x99" + f[7:])) == [0]
    assert offsets(lz4_wrapper(1, bytes)) == [0]
    with pytest.raises(CorruptBatch, match="lz4 data"):
        offsets(lz4_wrapper(1, with_old_checksum))


# --- reading on ----------------------------------------------------------------------------------------------


def as_batch(codec: Codec) -> bytes:
    builder = BatchBuilder(limit=10_000, codec=codec)
    for number in range(5):
        builder.append(1000, b"k", b"%d" % number)
    return set_base_offset(builder.build(), 100, 0)


def as_messages(codec: Codec, magic: int) -> bytes:
    base = 0 if codec and magic else 100
    inner = [message(base + number, b"%d" % number, b"k", magic=magic) for number in range(5)]
    return wrapper(104, *inner, codec=codec, magic=magic) if codec else b"".join(inner)


@every_row("from_offset", range(95, 110))
@pytest.mark.parametrize("codec", [Codec.NONE, *CODECS])
@pytest.mark.parametrize("magic", [0, 1])
def test_reading_from_an_offset_is_as_with_a_record_batch(magic: int, codec: Codec, from_offset: int) -> None:
    traces = []
    for data in (as_batch(codec), as_messages(codec, magic)):
        (batch,) = sets(data)
        reader = read(batch, from_offset)
        trace: list[object] = [reader.next_offset]
        for record in reader:
            trace += [record.offset, record.value, record.key, reader.next_offset]
        traces.append([*trace, reader.next_offset, list(reader)])
    assert traces[0] == traces[1]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_iteration_goes_on_after_a_deserializer_failed(codec: Codec) -> None:
    parts = [message(n, value, b"key%d" % n) for n, value in enumerate((b"0", b"one", None, b"3"))]
    only = one(wrapper(3, *parts, codec=codec) if codec else b"".join(parts))
    reader: AnyReader[str, int] = only.records("flights", 7, key_deserializer=bytes.decode, value_deserializer=int)
    first = next(reader)
    assert (first.key, first.value, first.raw_key, first.raw_value) == ("key0", 0, b"key0", b"0")
    with pytest.raises(DeserializationError, match=r"^flights-7, offset 1: the value could not be") as caught:
        next(reader)
    assert isinstance(caught.value.__cause__, ValueError)
    assert (caught.value.partition, caught.value.offset, caught.value.failed) == (("flights", 7), 1, "value")
    assert (caught.value.raw_key, caught.value.raw_value, caught.value.headers) == (b"key1", b"one", ())
    assert reader.next_offset == 2
    assert [(record.key, record.value) for record in reader] == [("key2", None), ("key3", 3)]
    refusing: AnyReader[int, bytes] = only.records("t", 0, key_deserializer=int)
    with pytest.raises(DeserializationError, match="t-0, offset 0: the key could not be"):
        next(refusing)


def test_errors_of_a_deserializer_are_never_taken_for_damage_or_the_end() -> None:
    def stop(_: bytes) -> int:
        raise StopIteration

    reader: AnyReader[bytes, int] = one(message(0)).records("t", 0, value_deserializer=stop)
    with pytest.raises(DeserializationError):
        next(reader)


# --- cut -----------------------------------------------------------------------------------------------------


def test_a_cut_tail_is_left_out_without_a_word() -> None:
    parts = [message(0), message(1, magic=0), message(2), message(3), wrapper(5, message(0), message(1))]
    data = b"".join(parts)
    ends = [sum(map(len, parts[:count])) for count in range(1, 6)]
    for size in range(len(data) + 1):
        whole = sum(end <= size for end in ends)
        assert offsets(data[:size]) == list(range(6 if whole == 5 else whole))


@pytest.mark.parametrize("magic", [0, 1])
def test_a_cut_tail_inside_a_wrapper_is_damage(magic: int) -> None:
    inner = message(0, magic=magic) + message(1, magic=magic)
    for size in range(len(inner)):
        if size == len(inner) // 2:
            assert offsets(wrapper(0, inner[:size], magic=magic)) == [0]
            continue
        with pytest.raises(CorruptBatch, match=r"cut short|with [0-9]+ left|without messages"):
            offsets(wrapper(1, inner[:size], magic=magic))


# --- damage --------------------------------------------------------------------------------------------------


def test_a_damaged_message_is_found_when_it_is_reached_and_again() -> None:
    good, size = message(0), len(message(0))
    damaged = bytearray(good + message(1) + message(2))
    damaged[-1 - size] ^= 1  # in the second value
    run = one(bytes(damaged))
    reader = read(run)
    assert next(reader).offset == 0
    for _ in range(3):
        with pytest.raises(CorruptBatch) as caught:
            next(reader)
        assert reader.next_offset == 1
    place = rf"t-0: message set at byte 0 (offset 0), message at byte {size} (offset 1): CRC-32 is 0x"
    assert str(caught.value).startswith(place)
    with pytest.raises(CorruptBatch, match=rf"t-0, message set at byte 0 .*, message at byte {size} \(offset 1\): CRC"):
        run.check()
    assert [record.offset for record in read(run, from_offset=2)] == [2]
    assert len(list(read(run, check_crcs=False))) == 3


@pytest.mark.parametrize("length", [-(1 << 31), -40, -12, 0, 13, 21])
def test_a_length_that_cannot_be_ends_a_run_and_is_told_next(length: int) -> None:
    good = message(0) + message(1)
    batches = split(memoryview(good + with_length(message(2), length) + message(3)), "t-0")
    assert next(batches).view == good
    with pytest.raises(CorruptBatch, match=rf"^t-0, .* at byte {len(good)}.*: a length of {length}"):
        next(batches)


def test_a_damaged_wrapper_is_not_inflated() -> None:
    damaged = bytearray(message(9) + wrapper(11, message(0), message(1)))
    damaged[-3] ^= 1
    _, broken = sets(bytes(damaged))
    with pytest.raises(CorruptBatch, match=rf"^t-0, message set at byte {len(message(9))} \(offset 11\).*CRC-32 is"):
        read(broken)


def test_a_damaged_message_inside_a_wrapper_is_found_as_java_finds_it() -> None:
    inner = bytearray(message(0) + message(1))
    inner[-1] ^= 1
    reader = read(one(wrapper(11, bytes(inner))))
    assert next(reader).offset == 10
    for _ in range(2):
        with pytest.raises(CorruptBatch, match=r"\(offset 11\), inner message at byte 39 \(offset 11\): CRC-32 is"):
            next(reader)
    assert len(list(read(one(wrapper(11, bytes(inner))), check_crcs=False))) == 2


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (with_length(message(0), 13), "a length of 13, but the minimum is 14"),
        (with_length(message(0), -1), "a length of -1"),
        (with_length(message(0), -(1 << 31)), "a length of -"),
        (with_length(message(0), 21), "a length of 21"),  # a message v1 has 22
        (message(-1), "the offset is out of range"),
        (message(2**63 - 1), "the offset is out of range"),
        (message(0, magic=3), "unknown message format (magic 3)"),
        (message(0, attributes=5), "unknown compression codec 5"),
        (message(0, attributes=7), "unknown compression codec 7"),
        (message(0, attributes=4), "zstd, which message format v1 does not have"),
        (message(0, attributes=4, magic=0), "zstd, which message format v0 does not have"),
        (message(0, None, attributes=1), "a compressed message with a null value"),
        (message(0, b"", attributes=1), "gzip data: no bytes"),
        (message(0, b"garbage", attributes=1), "gzip data"),
        (wrapper(0, b""), "without messages inside"),
        (wrapper(0, b"\0" * 25), "cut short, 25 bytes are left"),
        (wrapper(5, message(0), message(10)), "its offset is below that of its last message, 10"),
        (wrapper(5, message(0, magic=0), message(10, magic=0), magic=0), "below that of its last message, 10"),
        (wrapper(5, message(1), message(1)), "offset 1 after 1"),
        (wrapper(5, message(1), message(0)), "offset 0 after 1"),
        (wrapper(5, message(-3), message(0)), "offset -3 after -1"),
        (wrapper(5, with_length(message(0), 13)), "a length of 13, with 27 left"),
        (wrapper(5, with_length(message(0), 28)), "a length of 28, with 27 left"),
        (wrapper(5, with_length(message(0), (1 << 31) - 1)), "a length of 2147483647, with 27 left"),
        (wrapper(5, message(0, magic=2)), "unknown message format (magic 2)"),
        (wrapper(5, message(0, magic=255)), "unknown message format (magic 255)"),
        (wrapper(5, wrapper(0, message(0))), "compressed inside a compressed message"),
        (message(0, tail=b"x"), "1 bytes after the value"),
    ],
)
def test_damage_is_named_with_its_place(data: bytes, what: str) -> None:
    with pytest.raises(CorruptBatch) as caught:
        offsets(data)
    assert str(caught.value).startswith("t-0")
    assert " at byte 0" in str(caught.value)
    assert what in str(caught.value)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(
    ("at", "length", "what"),
    [
        (26, -2, "a key of -2 bytes"),
        (26, 99, "a key of 99 bytes, with 7 left"),
        (26, 4, "cut short before its value"),
        (26, (1 << 31) - 1, "a key of 2147483647 bytes"),
        (30, -2, "a value of -2 bytes"),
        (30, 4, "a value of 4 bytes, with 3 left"),
        (30, 2, "1 bytes after the value"),
        (30, -1, "3 bytes after the value"),
    ],
)
def test_lengths_that_lie_inside_a_message(at: int, length: int, what: str, inside: bool) -> None:
    data = bytearray(message(7, b"abc"))
    struct.pack_into(">i", data, at, length)
    lying = with_checksum(data)
    if inside:
        lying = wrapper(7, lying)
    with pytest.raises(CorruptBatch, match=rf"^t-0: .*message at byte 0 \(offset 7\): {what}"):
        offsets(lying)


def test_a_short_message_of_magic_1_inside_is_damage() -> None:
    short = with_checksum(with_length(message(0, None), 14)[:26])  # what would do for magic 0
    with pytest.raises(CorruptBatch, match="a length of 14, but the minimum is 22"):
        offsets(wrapper(0, short))


def test_parse_wants_a_whole_message() -> None:
    data = message(3)
    for end in (0, 16, 25, len(data) - 1):
        with pytest.raises(CorruptBatch, match=r"^t-0, message set at byte 0"):
            MessageSet.parse(memoryview(data)[:end], 0, "t-0")
    for position in (-1, 1, len(data)):
        with pytest.raises(CorruptBatch):
            MessageSet.parse(memoryview(data), position)
    assert MessageSet.parse(memoryview(b"..." + data), 3).header.last_offset == 3
    with pytest.raises(CorruptBatch, match="magic 2 is not message format v0 or v1"):
        MessageSet.parse(memoryview(as_batch(Codec.NONE)))


@pytest.mark.parametrize("codec", [Codec.NONE, *CODECS])
@pytest.mark.parametrize("magic", [0, 1])
def test_inflating_has_a_limit(codec: Codec, magic: int) -> None:
    inner = message(0, bytes(100_000), magic=magic)
    only = one(wrapper(0, inner, codec=codec, magic=magic) if codec else inner)
    with pytest.raises(CorruptBatch, match=r"^t-0, message set at byte 0 .*more than the limit"):
        only.records("t", 0, limit=len(inner) - 1)
    reader: AnyReader[bytes, bytes] = only.records("t", 0, limit=len(inner))
    assert len(list(reader)) == 1


def test_preparing_is_done_once() -> None:
    only = one(wrapper(1, message(0), message(1)))
    assert only.prepare() is only.prepare()
    assert [record.offset for record in read(only)] == [record.offset for record in read(only)] == [0, 1]


# --- damage of all kinds -------------------------------------------------------------------------------------


def read_all(data: bytes, check_crcs: bool = False) -> int | None:
    """How many records there are; None for CorruptBatch, which must come again and again."""
    count = 0
    reader: AnyReader[bytes, bytes] | None = None
    try:
        for batch in sets(data):
            reader = None
            reader = read(batch, check_crcs=check_crcs)
            for record in reader:
                repr(record)
                assert record.offset < reader.next_offset
                count += 1
    except CorruptBatch:
        if reader is not None:
            with pytest.raises(CorruptBatch, match=r"^t-0: "):
                next(reader)
        return None
    return count


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, *CODECS])
def test_every_damaged_byte_is_noticed(magic: int, codec: Codec) -> None:
    data = as_messages(codec, magic)
    size = len(data) if codec else len(data) // 5
    for position in range(len(data)):
        if position % size < 8:
            continue  # no checksum covers an offset
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        found = read_all(bytes(damaged), check_crcs=True)
        # A message that seems longer than what is left is taken for a cut tail.
        assert found is None or (position % size in range(8, 12) and found == position // size)


@given(st.randoms(use_true_random=False), st.sampled_from([Codec.NONE, *CODECS]), st.integers(0, 1), st.booleans())
def test_random_damage_gives_records_or_corrupt_batch(
    chance: random.Random, codec: Codec, magic: int, inside: bool
) -> None:
    damaged = bytearray(as_messages(Codec.NONE if inside else codec, magic))
    for _ in range(chance.randrange(1, 8)):
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    read_all(wrapper(104, bytes(damaged), codec=codec, magic=magic) if inside and codec else bytes(damaged))


@given(st.binary(max_size=200), st.integers(0, 1), st.sampled_from(CODECS))
def test_random_bytes_inside_give_records_or_corrupt_batch(data: bytes, magic: int, codec: Codec) -> None:
    read_all(wrapper(3, data, magic=magic, codec=codec))
    with contextlib.suppress(CorruptBatch):
        MessageSet.parse(memoryview(data)).check()


# --- imports -------------------------------------------------------------------------------------------------


def test_programs_that_meet_no_message_set_do_not_load_what_reads_them() -> None:
    program = (
        "import sys, aiokafkawire.records.batch\n"
        "sys.exit(any('message' in name for name in sys.modules if name.startswith('aiokafkawire.records')))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
