"""Message sets (magic 0 and 1) as they are written, and batches converted to them for old brokers and clients."""

from typing import Any

import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.message_sets import message, wrapper

from aiokafkawire.errors import ConfigError, CorruptBatch, UnsupportedVersion, UsageError
from aiokafkawire.records.batch import AnyBatch, AnyReader, BatchBuilder, set_base_offset, set_log_append_time, split
from aiokafkawire.records.compression import Codec
from aiokafkawire.records.message_set_writer import Content, down_convert, encode_message_set
from aiokafkawire.types import TimestampType

CODECS = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)
SAMPLE: list[Content] = [
    (1_700_000_000_000, b"key", b"value", ()),
    (1_700_000_900_005, None, b"v" * 5000, ()),
    (1_699_999_999_000, b"tombstone", None, ()),
    (-1, b"", b"", ()),
]


def read(data: bytes | memoryview) -> list[tuple[int, int, bytes | None, bytes | None]]:
    readers: list[AnyReader[bytes, bytes]] = [one.records("t", 0) for one in split(memoryview(data), "t-0")]
    return [(record.offset, record.timestamp, record.key, record.value) for reader in readers for record in reader]


def only(data: bytes) -> AnyBatch:
    (batch,) = split(memoryview(data), "t-0")
    return batch


def expected(magic: int, offsets: list[int], time: int | None = None) -> list[object]:
    return [
        (offset, (timestamp if time is None else time) if magic else -1, key, value)
        for offset, (timestamp, key, value, _) in zip(offsets, SAMPLE, strict=True)
    ]


# --- writing -------------------------------------------------------------------------------------------------


def test_messages_follow_one_another_with_offsets_from_0() -> None:
    assert encode_message_set([(5, b"k", b"v", ()), (6, None, None, ())], 1) == (
        message(0, b"v", b"k", timestamp=5) + message(1, None, timestamp=6)
    )
    assert encode_message_set([(5, b"k", b"v", ())], 0) == message(0, b"v", b"k", magic=0)


def test_a_wrapper_has_the_last_offset_and_the_newest_timestamp() -> None:
    contents: list[Content] = [(5, None, b"a", ()), (9, None, b"b", ()), (6, None, b"c", ())]
    inner = [message(n, value, timestamp=time) for n, (time, _, value, _) in enumerate(contents)]
    assert encode_message_set(contents, 1, Codec.GZIP) == wrapper(2, *inner, timestamp=9)
    inner = [message(n, value, magic=0) for n, (_, _, value, _) in enumerate(contents)]
    assert encode_message_set(contents, 0, Codec.GZIP) == wrapper(2, *inner, magic=0)


def test_offsets_inside_are_relative_in_magic_1_only() -> None:
    contents: list[Content] = [(5, None, b"a", ()), (5, None, b"b", ())]
    for magic, inner in ((1, (0, 10)), (0, (70, 80))):
        written = encode_message_set(contents, magic, Codec.SNAPPY, offsets=[70, 80])
        parts = [message(n, value, magic=magic, timestamp=5) for n, value in zip(inner, (b"a", b"b"), strict=True)]
        assert written == wrapper(80, *parts, codec=Codec.SNAPPY, magic=magic, timestamp=5)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_reading_gives_back_what_was_written(magic: int, codec: Codec) -> None:
    for offsets in ([0, 1, 2, 3], [1 << 40, (1 << 40) + 1, (1 << 40) + 5, (1 << 62)]):
        written = encode_message_set(SAMPLE, magic, codec, offsets=offsets)
        batch = only(written)
        batch.check()
        assert batch.header.max_timestamp == (1_700_000_900_005 if magic else -1)
        assert read(written) == expected(magic, offsets)


@pytest.mark.parametrize("codec", CODECS)
def test_log_append_time(codec: Codec) -> None:
    batch = only(encode_message_set(SAMPLE, 1, codec, log_append_time=77))
    assert (batch.header.timestamp_type, batch.header.max_timestamp) == (TimestampType.LOG_APPEND_TIME, 77)
    assert read(batch.view) == expected(1, [0, 1, 2, 3], 77)
    none = only(encode_message_set(SAMPLE, 0, codec, log_append_time=77))
    assert none.header.timestamp_type is TimestampType.NO_TIMESTAMP_TYPE
    assert none.view == encode_message_set(SAMPLE, 0, codec)


def test_levels_are_kept_and_checked() -> None:
    contents: list[Content] = [(0, None, b" ".join(b"%d" % (n * n % 997) for n in range(5000)), ())]
    assert len(encode_message_set(contents, 1, Codec.GZIP, 9)) < len(encode_message_set(contents, 1, Codec.GZIP, 1))
    with pytest.raises(ConfigError, match="1 to 9"):
        encode_message_set(contents, 1, Codec.GZIP, 10)


def test_lz4_frames_of_magic_0_have_the_old_checksum() -> None:
    old, new = (bytes(only(encode_message_set(SAMPLE, magic, Codec.LZ4)).view) for magic in (0, 1))
    assert old[26:33] == b"\x04\x22\x4d\x18\x60\x40\x1a"
    assert new[34:41] == b"\x04\x22\x4d\x18\x60\x40\x82"
    with pytest.raises(RuntimeError, match="headerChecksum_invalid"):
        lz4.frame.decompress(old[26:])
    assert lz4.frame.decompress(new[34:])


times = st.integers(min_value=-1, max_value=1 << 62)
fields = st.none() | st.binary(max_size=300)


@given(
    st.lists(
        st.tuples(st.integers(0, 1 << 62), times, fields, fields), min_size=1, max_size=40, unique_by=lambda r: r[0]
    ),
    st.sampled_from(CODECS),
    st.integers(0, 1),
)
def test_any_records_come_back(
    records: list[tuple[int, int, bytes | None, bytes | None]], codec: Codec, magic: int
) -> None:
    records.sort(key=lambda record: record[0])
    contents: list[Content] = [(timestamp, key, value, ()) for _, timestamp, key, value in records]
    written = encode_message_set(contents, magic, codec, offsets=[record[0] for record in records])
    wanted = [(offset, timestamp if magic else -1, key, value) for offset, timestamp, key, value in records]
    assert read(written) == wanted


def test_what_the_formats_cannot_hold_is_refused() -> None:
    headers: list[Content] = [(0, None, b"v", ()), (0, None, b"v", (("name", b""),))]
    with pytest.raises(UnsupportedVersion, match=r"^record 1 has headers, which need Kafka 0\.11 .*format v1"):
        encode_message_set(headers, 1)
    with pytest.raises(
        UnsupportedVersion, match=r"format v0, of Kafka 0\.8 and 0\.9, does not support zstd.*gzip, snappy"
    ):
        encode_message_set(SAMPLE, 0, Codec.ZSTD)
    for magic in (-1, 2):
        with pytest.raises(UsageError, match=f"not {magic}"):
            encode_message_set(SAMPLE, magic)
    with pytest.raises(UsageError, match="without records"):
        encode_message_set([], 1)
    with pytest.raises(UsageError, match="3 offsets for 4 records"):
        encode_message_set(SAMPLE, 1, offsets=[1, 2, 3])
    for offsets in ([0, 1, 1, 2], [3, 2, 1, 0], [-1, 0, 1, 2]):
        with pytest.raises(UsageError, match="offsets must ascend"):
            encode_message_set(SAMPLE, 1, offsets=offsets)


# --- down-conversion -----------------------------------------------------------------------------------------


def batch(codec: Codec = Codec.NONE, *, headers: bool = False, **state: Any) -> AnyBatch:
    builder = BatchBuilder(limit=1 << 20, codec=codec)
    for index, (timestamp, key, value, _) in enumerate(SAMPLE):
        builder.append(timestamp, key, value, (("name", b"x"),) if headers and index == 2 else ())
    return only(set_base_offset(builder.build(**state), 100, 7))


AT_100 = [100, 101, 102, 103]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("lossy", [False, True])
def test_offsets_and_codec_are_kept(magic: int, codec: Codec, lossy: bool) -> None:
    converted = down_convert(batch(codec), magic, lossy=lossy)
    assert (only(converted).header.magic, only(converted).header.codec) == (magic, codec)
    assert only(converted).header.last_offset == 103
    assert read(converted) == expected(magic, AT_100)
    assert converted == encode_message_set(SAMPLE, magic, codec, offsets=AT_100)


@pytest.mark.parametrize("codec", CODECS)
def test_the_brokers_time_is_kept(codec: Codec) -> None:
    converted = down_convert(only(set_log_append_time(batch(codec).view, 55)), 1)
    assert only(converted).header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert read(converted) == expected(1, AT_100, 55)
    assert read(down_convert(only(set_log_append_time(batch(codec).view, 55)), 0)) == expected(0, AT_100)


@pytest.mark.parametrize("codec", CODECS)
def test_message_sets_are_converted_too_and_what_is_old_enough_stays(codec: Codec) -> None:
    newer = encode_message_set(SAMPLE, 1, codec, offsets=AT_100)
    older = encode_message_set(SAMPLE, 0, codec, offsets=AT_100)
    assert down_convert(only(newer), 0) == older
    assert down_convert(only(newer), 1) == newer
    assert down_convert(only(older), 1) == older


def test_a_producer_is_told_what_would_get_lost() -> None:
    with pytest.raises(UnsupportedVersion, match=r"the record at offset 102 has headers.* leave them out"):
        down_convert(batch(headers=True), 1)
    with pytest.raises(
        UnsupportedVersion, match=r"format v0, of Kafka 0\.8 and 0\.9, does not support idempotence, which"
    ):
        down_convert(batch(producer_id=5, producer_epoch=0, base_sequence=0), 0)
    with pytest.raises(UnsupportedVersion, match="does not support transactions"):
        down_convert(batch(producer_id=5, producer_epoch=0, base_sequence=0, transactional=True), 1)
    with pytest.raises(UnsupportedVersion, match="does not support control batches"):
        down_convert(batch(producer_id=5, producer_epoch=0, transactional=True, control=True), 1)
    with pytest.raises(UsageError, match="not -1"):
        down_convert(batch(), -1)


def test_an_old_fetcher_gets_what_can_be_sent() -> None:
    assert read(down_convert(batch(headers=True), 1, lossy=True)) == expected(1, AT_100)
    state: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
    assert read(down_convert(batch(**state, transactional=True), 0, lossy=True)) == expected(0, AT_100)
    assert down_convert(batch(**state, transactional=True, control=True), 1, lossy=True) == b""


@pytest.mark.parametrize("lossy", [False, True])
def test_zstd_is_never_converted(lossy: bool) -> None:
    with pytest.raises(UnsupportedVersion, match=r"format v1, of Kafka 0\.10, does not support zstd"):
        down_convert(batch(Codec.ZSTD), 1, lossy=lossy)


def test_records_before_the_asked_offset_are_left_out_of_uncompressed_sets_only() -> None:
    assert read(down_convert(batch(), 1, from_offset=102)) == expected(1, AT_100)[2:]
    assert down_convert(batch(), 1, from_offset=104) == b""
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
        assert read(down_convert(batch(codec), 1, from_offset=102)) == expected(1, AT_100)


def test_damage_and_limits_are_told() -> None:
    damaged = bytearray(batch().view)
    damaged[-1] ^= 1
    with pytest.raises(CorruptBatch, match="CRC32C"):
        down_convert(only(bytes(damaged)), 1)
    with pytest.raises(CorruptBatch, match="more than the limit"):
        down_convert(batch(Codec.GZIP), 1, limit=100)
