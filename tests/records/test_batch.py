"""Record batches: round trips, cut tails, checksums, and damage of all kinds."""

import contextlib
import random
import struct
import subprocess
import sys
from collections.abc import Sequence

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire.errors import ConfigError, CorruptBatch, UsageError
from aiokafkawire.records import layout
from aiokafkawire.records.batch import (
    IMPLEMENTATION,
    BatchBuilder,
    ConsumerRecord,
    RecordBatch,
    RecordReader,
    halve,
    record_size_bound,
    set_base_offset,
    set_log_append_time,
    split,
)
from aiokafkawire.records.compression import Codec
from aiokafkawire.types import Header, TimestampType

Content = tuple[int, bytes | None, bytes | None, tuple[Header, ...]]

SAMPLE: list[Content] = [
    (1_700_000_000_000, b"key", b"value", ()),
    (1_700_000_000_005, None, b"only a value", (("trace", b"\x01\x02"), ("empty", b""), ("null", None))),
    (1_699_999_999_000, b"tombstone", None, ()),
    (1_700_000_000_005, b"", b"", (("é", b"x" * 300),)),
    (1_700_000_900_005, b"k" * 70, b"v" * 5000, ()),
]


def build(contents: Sequence[Content], codec: Codec = Codec.NONE) -> bytes:
    builder = BatchBuilder(limit=1 << 30, codec=codec)
    for content in contents:
        builder.append(*content)
    return builder.build()


def one(batch: bytes | bytearray) -> RecordBatch:
    (parsed,) = split(memoryview(batch), "t-0")
    assert isinstance(parsed, RecordBatch)
    return parsed


def read(batch: RecordBatch, from_offset: int = 0) -> RecordReader[bytes, bytes]:
    return batch.records("t", 0, from_offset=from_offset)


def content_of(record: ConsumerRecord[bytes, bytes]) -> Content:
    return record.timestamp, record.key, record.value, record.headers


def with_checksum(batch: bytes | bytearray) -> bytes:
    """The same damage, but of the kind that a checksum does not find."""
    damaged = bytearray(batch)
    layout.UINT32.pack_into(damaged, layout.CRC_AT, crc32c.crc32c(bytes(damaged[layout.ATTRIBUTES_AT :])))
    return bytes(damaged)


def with_body(body: bytes, count: int = 1, last_offset_delta: int = 0) -> bytes:
    """A batch of a handmade body, all else well."""
    header = layout.HEADER.pack(
        100, layout.HEADER_SIZE - 12 + len(body), 7, 2, 0, 0, last_offset_delta, 1000, 2000, -1, -1, -1, count
    )
    return with_checksum(header + body)


# --- round trips ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", Codec)
def test_reading_gives_back_what_was_appended(codec: Codec) -> None:
    records = list(read(one(build(SAMPLE, codec))))
    assert [content_of(record) for record in records] == SAMPLE
    assert [record.offset for record in records] == [0, 1, 2, 3, 4]


timestamps = st.one_of(
    st.integers(min_value=-1, max_value=1 << 42), st.integers(min_value=-(1 << 61), max_value=1 << 61)
)
contents = st.tuples(
    timestamps,
    st.none() | st.binary(max_size=200),
    st.none() | st.binary(max_size=5000),
    st.lists(st.tuples(st.text(max_size=80), st.none() | st.binary(max_size=100)), max_size=4).map(tuple),
)


@given(st.lists(contents, min_size=1, max_size=70), st.sampled_from(Codec), st.integers(min_value=0, max_value=1 << 62))
def test_any_records_come_back(wanted: list[Content], codec: Codec, base_offset: int) -> None:
    batch = one(set_base_offset(build(wanted, codec), base_offset, 5))
    assert [content_of(record) for record in read(batch)] == wanted
    assert batch.header.max_timestamp == max(timestamp for timestamp, *_ in wanted)
    assert [record.offset for record in read(batch)] == list(range(base_offset, base_offset + len(wanted)))
    assert all(record.leader_epoch == 5 for record in read(batch))


def test_thousands_of_records_come_back() -> None:
    wanted: list[Content] = [(index * 7, b"%d" % index, None, ()) for index in range(20_000)]
    records = list(read(one(build(wanted, Codec.ZSTD))))
    assert [content_of(record) for record in records] == wanted


# --- the builder ---------------------------------------------------------------------------------------------


def test_an_empty_builder() -> None:
    builder = BatchBuilder(limit=1000)
    assert (builder.count, builder.size, builder.base_timestamp, builder.max_timestamp) == (0, 61, -1, -1)
    with pytest.raises(UsageError):
        builder.build()


def test_append_gives_offsets_and_keeps_count() -> None:
    builder = BatchBuilder(limit=1000)
    assert [builder.append(timestamp, None, b"v", ()) for timestamp in (50, 40, 60)] == [0, 1, 2]
    assert (builder.count, builder.base_timestamp, builder.max_timestamp) == (3, 50, 60)
    assert builder.size == len(builder.build())


def test_records_are_appended_until_the_limit_and_not_beyond() -> None:
    filled = BatchBuilder(limit=1 << 20)
    for _ in range(10):
        filled.append(0, b"k", b"v" * 50, ())
    for limit, fitting in ((filled.size, 10), (filled.size - 1, 9), (filled.size + 1, 10)):
        builder = BatchBuilder(limit=limit)
        assert [builder.append(0, b"k", b"v" * 50, ()) for _ in range(11)] == [*range(fitting), *[-1] * (11 - fitting)]
        assert builder.size <= limit
        assert len(list(read(one(builder.build())))) == fitting


def test_a_smaller_record_still_fits_where_a_larger_one_did_not() -> None:
    builder = BatchBuilder(limit=200)
    assert builder.append(0, None, b"v" * 50, ()) == 0
    assert builder.append(0, None, b"v" * 500, ()) == -1
    assert builder.append(0, None, b"v" * 20, ()) == 1


def test_the_first_record_always_fits() -> None:
    builder = BatchBuilder(limit=1)
    assert builder.append(0, None, b"v" * 1000, ()) == 0
    assert builder.append(0, None, b"", ()) == -1


def test_a_refused_value_leaves_the_batch_as_it_was() -> None:
    builder = BatchBuilder(limit=1000)
    builder.append(5, None, b"v", ())
    before = builder.build()
    with pytest.raises(TypeError):
        builder.append(9, None, "text", ())  # type: ignore[arg-type]
    with pytest.raises(UnicodeEncodeError):
        builder.append(9, None, b"v", (("\ud800", b""),))
    assert builder.build() == before
    assert (builder.count, builder.max_timestamp) == (1, 5)


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_may_be_built_again_and_go_on(codec: Codec) -> None:
    builder = BatchBuilder(limit=1000, codec=codec)
    builder.append(1, None, b"first", ())
    assert builder.build() == builder.build()
    retried = one(builder.build(producer_id=9, producer_epoch=2, base_sequence=77, transactional=True))
    retried.check()
    header = retried.header
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, 77)
    assert header.is_transactional
    assert not header.is_control
    assert builder.append(2, None, b"second", ()) == 1
    assert [record.value for record in read(one(builder.build()))] == [b"first", b"second"]


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_that_was_built_never_changes(codec: Codec) -> None:
    builder = BatchBuilder(limit=100_000, codec=codec)
    builder.append(1, None, b"first", ())
    built = [builder.build(base_sequence=1), builder.build(base_sequence=2)]
    before = [bytes(bytearray(each)) for each in built]
    for number in range(3_000):  # it grows
        builder.append(number, b"key", b"value", ())
    assert len(list(read(one(builder.build(producer_id=7))))) == 3_001
    assert built == before
    assert built[0] != built[1]


def test_a_batch_as_producers_send_it() -> None:
    header = one(build(SAMPLE)).header
    assert (header.base_offset, header.leader_epoch, header.magic) == (0, -1, 2)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert (header.count, header.last_offset_delta, header.next_offset) == (5, 4, 5)
    assert (header.base_timestamp, header.max_timestamp) == (1_700_000_000_000, 1_700_000_900_005)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_the_halves_of_a_batch_have_all_records_though_their_deltas_are_longer(codec: Codec) -> None:
    builder, newest = BatchBuilder(limit=16_384, codec=codec), (1 << 63) - 1
    while builder.append(0, None, None) >= 0:
        pass
    middle = builder.count // 2
    whole = BatchBuilder(limit=16_400, codec=codec)
    for index in range(builder.count):
        whole.append(newest if index == middle else 0, None, None)
    halves = halve(whole)
    assert [half.count for half in halves] == [middle, builder.count - middle]
    found = [record.timestamp for half in halves for record in read(one(half.build()))]
    assert found == [newest if index == middle else 0 for index in range(builder.count)]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_batch_of_any_size_can_be_halved(codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {**(RecordBatch.records.__kwdefaults__ or {}), "limit": 1000}  # or it would take 128 MiB
    monkeypatch.setattr(RecordBatch.records, "__kwdefaults__", limits)
    builder = BatchBuilder(limit=10_000, codec=codec)
    for _ in range(3):
        builder.append(0, None, bytes(1000))
    assert [half.count for half in halve(builder)] == [1, 2]


def test_a_level_out_of_range_is_refused() -> None:
    builder = BatchBuilder(limit=1000, codec=Codec.GZIP, level=12)
    builder.append(0, None, b"v", ())
    with pytest.raises(ConfigError):
        builder.build()


@given(contents, contents)
def test_no_record_takes_more_than_its_bound(first: Content, second: Content) -> None:
    builder = BatchBuilder(limit=1 << 30)
    for content in (first, second):
        before = builder.size
        builder.append(*content)
        _, key, value, headers = content
        assert builder.size - before <= record_size_bound(key, value, headers)


# --- what brokers change -------------------------------------------------------------------------------------


def test_base_offset_and_leader_epoch_are_not_in_the_checksum() -> None:
    sent = build(SAMPLE)
    batch = one(set_base_offset(sent, 1 << 40, 12))
    batch.check()
    assert (batch.header.base_offset, batch.header.leader_epoch) == (1 << 40, 12)
    assert batch.header.last_offset == (1 << 40) + 4
    assert batch.view[16:] == sent[16:]
    assert [(record.offset - (1 << 40), record.leader_epoch) for record in read(batch)] == [(n, 12) for n in range(5)]


@pytest.mark.parametrize("codec", Codec)
def test_with_log_append_time_every_record_has_the_brokers_time(codec: Codec) -> None:
    batch = one(set_log_append_time(build(SAMPLE, codec), 123_456))
    batch.check()
    assert batch.header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert batch.header.codec == codec
    for record in read(batch):
        assert (record.timestamp, record.timestamp_type) == (123_456, TimestampType.LOG_APPEND_TIME)


# --- many batches --------------------------------------------------------------------------------------------


def fetched() -> tuple[bytes, list[int]]:
    parts = [set_base_offset(build(SAMPLE, codec), 10 * codec, 0) for codec in Codec]
    ends = [sum(map(len, parts[: count + 1])) for count in range(len(parts))]
    return b"".join(parts), ends


def test_a_cut_tail_is_left_out_without_a_word() -> None:
    data, ends = fetched()
    for size in range(0, len(data) + 1, 3):
        whole = list(split(memoryview(data)[:size]))
        assert len(whole) == sum(end <= size for end in ends)
        assert sum(batch.header.size for batch in whole) == max([0, *(end for end in ends if end <= size)])


def test_batches_are_split_as_they_are_asked_for() -> None:
    data, ends = fetched()
    damaged = bytearray(data)
    damaged[ends[1] + layout.MAGIC_AT] = 9
    batches = split(memoryview(damaged), "t-0")
    assert [next(batches).header.base_offset for _ in range(2)] == [0, 10]
    with pytest.raises(CorruptBatch, match=rf"t-0, batch at byte {ends[1]}: unknown message format \(magic 9\)"):
        next(batches)


@pytest.mark.parametrize("magic", [0, 1])
def test_older_formats_are_no_record_batches(magic: int) -> None:
    batch = bytearray(build(SAMPLE))
    batch[layout.MAGIC_AT] = magic
    with pytest.raises(CorruptBatch, match=f"message format v{magic}, from before Kafka 0.11"):
        RecordBatch.parse(memoryview(batch))


@pytest.mark.parametrize("length", [-(1 << 31), -1, 0, 13, 48])
def test_a_length_that_cannot_be_is_corrupt(length: int) -> None:
    batch = bytearray(build(SAMPLE))
    layout.INT32.pack_into(batch, layout.LENGTH_AT, length)
    with pytest.raises(CorruptBatch, match="length"):
        one(batch)
    with pytest.raises(CorruptBatch):
        RecordBatch.parse(memoryview(batch))


def test_parse_wants_a_whole_batch() -> None:
    data = build(SAMPLE)
    for end in (0, 16, 60, 61, len(data) - 1):
        with pytest.raises(CorruptBatch):
            RecordBatch.parse(memoryview(data)[:end], 0, "t-0")
    for position in (-1, 1, len(data), len(data) + 5):
        with pytest.raises(CorruptBatch):
            RecordBatch.parse(memoryview(data), position)
    assert RecordBatch.parse(memoryview(b"..." + data), 3).header.count == 5


# --- damage --------------------------------------------------------------------------------------------------


def test_the_checksum_finds_every_flipped_bit_that_it_covers() -> None:
    data = build(SAMPLE[:3])
    for position in range(layout.CRC_AT, len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        with pytest.raises(CorruptBatch):
            one(damaged).records("t", 0)


def test_checksums_may_be_left_unchecked() -> None:
    damaged = bytearray(build(SAMPLE))
    damaged[layout.CRC_AT] ^= 1
    with pytest.raises(CorruptBatch, match=r"t-0, batch at byte 0 \(offset 0\): CRC32C is 0x"):
        one(damaged).records("t", 0)
    reader: RecordReader[bytes, bytes] = one(damaged).records("t", 0, check_crcs=False)
    assert len(list(reader)) == 5


@pytest.mark.parametrize("codec", Codec)
def test_inflating_has_a_limit(codec: Codec) -> None:
    batch = one(build([(0, None, bytes(100_000), ())], codec))
    with pytest.raises(CorruptBatch, match=r"t-0, batch at byte 0 .*more than the limit"):
        batch.records("t", 0, limit=99_999)
    reader: RecordReader[bytes, bytes] = batch.records("t", 0, limit=100_100)
    assert len(list(reader)) == 1


def test_an_unknown_codec_is_corrupt() -> None:
    damaged = bytearray(build(SAMPLE))
    damaged[layout.ATTRIBUTES_AT + 1] |= 6
    with pytest.raises(CorruptBatch, match="unknown compression codec 6"):
        one(with_checksum(damaged)).records("t", 0)


def read_all(batch: bytes) -> int | None:
    """How many records there are; None for CorruptBatch, which must come again and again."""
    try:
        reader = read(one(batch))
        count = 0
        for record in reader:
            assert record.key is None or len(record.key) < len(batch)
            repr(record)
            count += 1
    except CorruptBatch:
        return None
    return count


def test_every_truncation_of_a_body_is_noticed() -> None:
    data = build(SAMPLE)
    for end in range(layout.HEADER_SIZE, len(data)):
        cut = bytearray(data[:end])
        layout.INT32.pack_into(cut, layout.LENGTH_AT, end - layout.LOG_OVERHEAD)
        assert read_all(with_checksum(cut)) is None


@pytest.mark.parametrize("codec", Codec)
def test_every_damaged_byte_gives_records_or_corrupt_batch(codec: Codec) -> None:
    data = build(SAMPLE[:4], codec)
    outcomes = set()
    for position in range(layout.ATTRIBUTES_AT, len(data)):
        for byte in (0, 1, 0x7F, 0x80, 0xFF, data[position] ^ 1, data[position] ^ 0x80):
            damaged = bytearray(data)
            damaged[position] = byte
            outcomes.add(read_all(with_checksum(damaged)))
    assert outcomes <= {None, 4}  # a count that changed must have been noticed
    assert None in outcomes


@given(st.randoms(use_true_random=False), st.sampled_from(Codec))
def test_random_damage_gives_records_or_corrupt_batch(chance: random.Random, codec: Codec) -> None:
    damaged = bytearray(build(SAMPLE, codec))
    for _ in range(chance.randrange(1, 8)):
        damaged[chance.randrange(layout.ATTRIBUTES_AT, len(damaged))] = chance.randrange(256)
    read_all(with_checksum(damaged))


@given(st.binary(max_size=300), st.integers(min_value=0, max_value=40))
def test_random_bodies_give_records_or_corrupt_batch(body: bytes, count: int) -> None:
    read_all(with_body(body, count, last_offset_delta=1 << 30))


@given(st.binary(max_size=300))
def test_random_buffers_give_batches_or_corrupt_batch(data: bytes) -> None:
    with contextlib.suppress(CorruptBatch):
        assert all(batch.header.size == len(batch.view) for batch in split(memoryview(data)))


WELL = b"\x0c\0\0\0\x01\x01\0"  # a record of nulls: 6 bytes, no attributes, deltas 0, null key, null value, no headers


def test_the_handmade_body_is_read() -> None:
    (record,) = read(one(with_body(WELL)))
    assert (record.offset, record.timestamp, record.key, record.value, record.headers) == (100, 1000, None, None, ())


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"\x0c\0\0\0\x01\x01", "1 records in 6 bytes"),
        (WELL + b"\0", "1 bytes after the last record"),
        (WELL + WELL, "7 bytes after the last record"),
        (b"\x0e" + WELL[1:], "a record of 7 bytes, with 6 left"),
        (b"\x01" + WELL[1:], "a record of -1 bytes"),
        (b"\x00" + WELL[1:], "a record of 0 bytes"),
        (b"\x0a" + WELL[1:], "fields that end at 7"),
        (b"\x0e" + WELL[1:] + b"\0", "ends at byte 8, with fields that end at 7"),
        (b"\xff\xff\xff\xff\xff\x0f\0\0\0", "more than 32 bits"),
        (b"\xff\xff\xff\xff\x7f\0\0\0", "more than 32 bits"),
        (b"\xff" * 8, "more than 32 bits"),
        (b"\x0c\0\0\0\x03\x01\0", "a key of -2 bytes"),
        (b"\x0c\0\0\0\x01\x03\0", "a value of -2 bytes"),
        (b"\x0c\0\0\0\x7e\x01\0", "cut short"),
        (b"\x0c\0\0\0\x01\x7e\0", "cut short"),
        (b"\x0c\0\0\x02\x01\x01\0", "offset delta 1 after -1, with 0 the last"),
        (b"\x0c\0\0\x01\x01\x01\0", "offset delta -1 after -1"),
        (b"\x0c\0\0\0\x01\x01\x02", "1 headers, with 0 bytes left"),
        (b"\x0e\0\0\0\x01\x01\x01\0", "-1 headers"),
        (b"\x10\0\0\0\x01\x01\x02\x01\x01", "a header name of -1 bytes"),
        (b"\x10\0\0\0\x01\x01\x02\x02\x01", "cut short"),
        (b"\x10\0\0\0\x01\x01\x02\0\x03", "a header of -2 bytes"),
        (b"\x10\0\0\0\x01\x01\x02\0\x02", "a header of 1 bytes, with 0 left"),
        (b"\x1e\0" + b"\xff" * 9 + b"\x01\0\x01\x01\0", "a timestamp of -"),
        (b"\x20\0" + b"\xff" * 10 + b"\x01\0\x01\x01\0", "more than 64 bits"),
    ],
)
def test_damage_is_named_with_its_place(body: bytes, what: str) -> None:
    batch = with_body(body)
    if "timestamp" in what:  # its delta is the least there is, and the base makes it less
        changed = bytearray(batch)
        layout.INT64.pack_into(changed, 27, -5)
        batch = with_checksum(changed)
    with pytest.raises(CorruptBatch) as caught:
        list(read(one(batch)))
    assert str(caught.value).startswith("t-0: batch at offset 100, record at byte ")
    assert what in str(caught.value)


@pytest.mark.parametrize("count", [-1, 2, 1_000_000, (1 << 31) - 1])
def test_a_count_that_cannot_be_is_refused_at_once(count: int) -> None:
    with pytest.raises(CorruptBatch, match="records"):
        one(with_body(WELL, count)).records("t", 0)


def test_a_million_headers_are_not_walked() -> None:
    body = b"\x14\0\0\0\x01\x01" + b"\xfe\xff\xff\xff\x0f"
    with pytest.raises(CorruptBatch, match="2147483647 headers"):
        list(read(one(with_body(body))))


def test_offsets_only_ascend() -> None:
    second = b"\x0c\0\0\x02\x01\x01\0"
    assert [record.offset for record in read(one(with_body(WELL + second, 2, 5)))] == [100, 101]
    for body in (WELL + WELL, second + WELL, second + second):
        with pytest.raises(CorruptBatch, match="offset delta"):
            list(read(one(with_body(body, 2, 5))))


def test_a_damaged_record_is_found_again_and_those_before_it_are_given() -> None:
    reader = read(one(with_body(WELL + b"\x0c\0\0\x02\x03\x01\0", 2, 1)))
    assert next(reader).offset == 100
    for _ in range(3):
        with pytest.raises(CorruptBatch, match=r"record at byte 7 \(offset 101 or later\): a key of -2 bytes"):
            next(reader)
    assert reader.next_offset == 101


def test_a_header_name_that_is_no_utf8_is_read_as_kafka_reads_it() -> None:
    (record,) = read(one(with_body(b"\x14\0\0\0\x01\x01\x02\x02\xff\x02x")))
    assert record.headers == (("\ufffd", b"x"),)


# --- reading from an offset ----------------------------------------------------------------------------------


@pytest.mark.parametrize("from_offset", range(95, 110))
def test_records_below_the_asked_offset_are_skipped(from_offset: int) -> None:
    batch = one(set_base_offset(build(SAMPLE), 100, 0))
    reader = read(batch, from_offset)
    assert reader.next_offset == max(100, from_offset)
    seen = []
    for record in reader:
        seen.append(record.offset)
        assert reader.next_offset == (105 if record.offset == 104 else record.offset + 1)
    assert seen == [offset for offset in range(100, 105) if offset >= from_offset]
    assert reader.next_offset == max(105, from_offset)


def test_the_next_offset_goes_past_what_compaction_removed() -> None:
    reader = read(one(with_body(WELL, 1, 9)))
    assert [record.offset for record in reader] == [100]
    assert reader.next_offset == 110


def test_a_batch_that_compaction_emptied() -> None:
    reader = read(one(with_body(b"", 0, 9)))
    assert list(reader) == []
    assert reader.next_offset == 110
    with pytest.raises(CorruptBatch, match="after the last record"):
        list(read(one(with_body(b"\0", 0, 9))))
    compressed = bytearray(with_body(b"", 0, 9))
    compressed[layout.ATTRIBUTES_AT + 1] |= Codec.ZSTD
    assert list(read(one(with_checksum(compressed)))) == []


# --- the choice of the twin ----------------------------------------------------------------------------------


def run(choice: str, program: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", program]
    environment = {"AIOKAFKAWIRE_RECORDS": choice, "PYTHONPATH": ":".join(filter(None, sys.path))}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_implementation_says_its_name() -> None:
    assert IMPLEMENTATION in ("pure", "cython")


def test_the_pure_twin_can_be_asked_for() -> None:
    done = run("pure", "from aiokafkawire.records.batch import IMPLEMENTATION; print(IMPLEMENTATION)")
    assert (done.returncode, done.stdout) == (0, "pure\n")


def test_a_twin_asked_for_and_absent_is_an_import_error() -> None:
    absent = "import sys; sys.modules['aiokafkawire.records._hot'] = None; import aiokafkawire.records.batch"
    done = run("cython", absent)
    assert "ImportError: AIOKAFKAWIRE_RECORDS=cython: no such implementation can be loaded" in done.stderr
    told = run("", absent)
    assert (told.returncode, told.stderr.count("runs in plain Python")) == (0, 1)
    assert "must be one of cython, pure" in run("rust", "import aiokafkawire.records.batch").stderr


def test_the_header_is_61_bytes() -> None:
    assert layout.HEADER_SIZE == 61
    assert struct.calcsize(layout.HEADER.format) == layout.COUNT_AT + 4
