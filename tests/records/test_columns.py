"""Batches as columns: the same as their records, in buffers that Arrow takes as they are."""

from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire import TopicPartition
from aiokafkawire.consumer.consumer_batch import ConsumerBatch
from aiokafkawire.errors import CorruptBatch, UsageError
from aiokafkawire.records import layout
from aiokafkawire.records.batch import BatchBuilder, RecordBatch
from aiokafkawire.records.columns import LEFT_OUT, Columns, join_values
from aiokafkawire.records.interfaces import AnyReader
from aiokafkawire.types import Header

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install aiokafkawire[arrow]")

Content = tuple[int, bytes | None, bytes | None, Sequence[Header]]
contents = st.tuples(
    st.integers(0, 1 << 41),
    st.none() | st.binary(max_size=20),
    st.none() | st.binary(max_size=200),
    st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=2),
)


def batch_of(records: Sequence[Content]) -> RecordBatch:
    builder = BatchBuilder(limit=1 << 20)
    for record in records:
        builder.append(*record)
    return RecordBatch.parse(memoryview(builder.build()))


def columns_of(records: Sequence[Content], **options: Any) -> Columns:
    return batch_of(records).records("t", 3, **options).columns()


@given(st.lists(contents, min_size=1, max_size=40), st.integers(0, 5))
def test_an_arrow_batch_has_what_the_records_have(records: list[Content], skipped: int) -> None:
    from aiokafkawire.records.arrow import SCHEMA, record_batch

    made = record_batch(columns_of(records, from_offset=skipped), "t", 3)
    made.validate(full=True)
    assert made.schema == SCHEMA
    rows = [
        {
            "key": key,
            "value": value,
            "topic": "t",
            "partition": 3,
            "offset": offset,
            "timestamp": timestamp,
            "headers": [{"key": name, "value": content} for name, content in headers],
        }
        for offset, (timestamp, key, value, headers) in enumerate(records)
        if offset >= skipped
    ]
    plain = made.set_column(5, "timestamp", made.column("timestamp").cast(pa.int64()))
    assert plain.to_pylist() == rows


def test_no_timestamp_is_null() -> None:
    from aiokafkawire.records.arrow import record_batch

    columns = columns_of([(5, None, b"a", ()), (6, None, b"b", ())])
    without = Columns(
        columns.count, columns.offsets, b"\xff" * 8 + columns.timestamps[8:], columns.keys, columns.values, None
    )
    timestamps = record_batch(without, "t", 3).column("timestamp")
    assert timestamps.null_count == 1
    assert timestamps.cast(pa.int64()).to_pylist() == [None, 6]


def test_where_nothing_is_null_there_is_no_bitmap() -> None:
    columns = columns_of([(5, None, b"a", ()), (6, None, b"", ())])
    assert (columns.keys.nulls, columns.keys.validity) == (2, b"\0")
    assert (columns.values.nulls, columns.values.validity) == (0, None)
    assert columns.headers is None


def test_keys_and_values_may_be_left_out() -> None:
    records: list[Content] = [(5, b"k", b"a", ()), (6, None, None, [("h", b"1")])]

    def reader() -> AnyReader[bytes, bytes]:
        return batch_of(records).records("t", 3)

    whole = reader().columns()
    assert reader().columns(with_keys=False) == attrs.evolve(whole, keys=LEFT_OUT)
    assert reader().columns(with_values=False) == attrs.evolve(whole, values=LEFT_OUT)
    from aiokafkawire.records.arrow import record_batch

    made = record_batch(reader().columns(with_keys=False, with_values=False), "t", 3, ("offset", "headers"))
    assert made.to_pylist() == [{"offset": 0, "headers": []}, {"offset": 1, "headers": [{"key": "h", "value": b"1"}]}]


def test_a_damaged_batch_gives_no_columns_and_says_why() -> None:
    data = bytearray(batch_of([(5, None, b"a" * 10, ()), (6, None, b"b" * 10, ())]).view)
    data[layout.HEADER_SIZE + 20] ^= 0x7F  # in the second record's length
    reader: AnyReader[bytes, bytes] = RecordBatch.parse(memoryview(bytes(data))).records("t", 3, check_crcs=False)
    with pytest.raises(CorruptBatch, match=r"^t-3: batch at offset 0"):
        reader.columns()


def test_deserializers_are_left_out() -> None:
    def refuse(raw: bytes) -> str:
        raise AssertionError(raw)

    reader = batch_of([(5, b"k", b"v", ())]).records("t", 3, key_deserializer=refuse, value_deserializer=refuse)
    columns = reader.columns()
    assert (columns.keys.data, columns.values.data) == (b"k", b"v")


@given(st.lists(contents, min_size=1, max_size=40), st.integers(0, 5), st.binary(max_size=2), st.binary(max_size=4))
def test_joined_values_are_those_of_the_records(
    records: list[Content], skipped: int, delimiter: bytes, null: bytes
) -> None:
    values = [null if value is None else value for _, _, value, _ in records[skipped:]]
    expected = len(values), b"".join(value + delimiter for value in values)
    reader: AnyReader[bytes, bytes] = batch_of(records).records("t", 3, from_offset=skipped)
    assert reader.joined_values(delimiter, null) == expected
    assert reader.next_offset == max(len(records), skipped)
    again: AnyReader[bytes, bytes] = batch_of(records).records("t", 3, from_offset=skipped)
    assert join_values(again, delimiter, null) == expected


def test_joined_values_begin_after_the_records_that_were_read() -> None:
    reader: AnyReader[bytes, bytes] = batch_of([(5, None, value, ()) for value in (b"a", None, b"c")]).records("t", 3)
    assert next(reader).value == b"a"
    assert reader.joined_values(b";", b"-") == (2, b"-;c;")
    assert reader.joined_values(b";", b"-") == (0, b"")


def test_a_damaged_batch_has_no_joined_values_and_says_why() -> None:
    data = bytearray(batch_of([(5, None, b"a" * 10, ()), (6, None, b"b" * 10, ())]).view)
    data[layout.HEADER_SIZE + 20] ^= 0x7F  # in the second record's length
    reader: AnyReader[bytes, bytes] = RecordBatch.parse(memoryview(bytes(data))).records("t", 3, check_crcs=False)
    with pytest.raises(CorruptBatch, match=r"^t-3: batch at offset 0"):
        reader.joined_values(b"\n", b"")


@pytest.mark.parametrize(("arguments", "named"), [({"delimiter": "\n"}, "delimiter"), ({"null": None}, "null")])
def test_joined_values_take_bytes_alone(arguments: dict[str, Any], named: str) -> None:
    reader: AnyReader[bytes, bytes] = batch_of([(5, None, b"a", ())]).records("t", 3)
    batch = ConsumerBatch(TopicPartition("t", 3), reader, 1)
    with pytest.raises(UsageError, match=f"{named} must be bytes, got "):
        batch.joined_values(**arguments)
    assert batch.joined_values() == (1, b"a\n")
