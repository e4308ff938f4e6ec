"""Arrow arrays of all types, slices and chunks become the records that their Python values are."""

import datetime as dt
from array import array
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire.errors import UsageError
from aiokafkawire.producer.many_records import many_records

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install aiokafkawire[arrow]")

BYTES: list[Callable[[], Any]] = [
    pa.binary,
    pa.large_binary,
    pa.binary_view,
    lambda: pa.dictionary(pa.int8(), pa.binary()),
    lambda: pa.dictionary(pa.int32(), pa.large_binary()),
]
TEXTS: list[Callable[[], Any]] = [
    pa.string,
    pa.large_string,
    pa.string_view,
    lambda: pa.dictionary(pa.int16(), pa.string()),
]
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class Capsule:
    """An array of another library, which has the Arrow PyCapsule interface and nothing else."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._array.__arrow_c_stream__(requested_schema)


def rows(values: Any, keys: Any = None, partition: Any = None, timestamp_ms: Any = None, headers: Any = ()) -> Any:
    """The records of columns, taken at most three at a time."""
    records = many_records(values, keys, partition, timestamp_ms, headers, raw=True)
    found: list[Any] = []
    while len(found) < len(records):
        part = records.rows(len(found), 3)
        assert 0 < part.count <= 3
        found += (tuple(part.record(index)) for index in range(part.count))
    return found


def shaped(items: list[Any], kind: Any, cuts: list[int], start: int) -> Any:
    """A chunked array of ``items`` from ``start`` on, whose chunks are slices of longer arrays."""
    bounds = [0, *sorted(min(cut, len(items)) for cut in cuts), len(items)]
    chunks = [array_of([None, *items[first:end]], kind).slice(1) for first, end in pairwise(bounds)]
    return pa.chunked_array(chunks, kind).slice(start)


def array_of(items: list[Any], kind: Any) -> Any:
    if pa.types.is_dictionary(kind):  # releases of pyarrow before 25 do not make one of large binaries
        encoded = pa.array(items, kind.value_type).dictionary_encode()
        return pa.DictionaryArray.from_arrays(encoded.indices.cast(kind.index_type), encoded.dictionary)
    return pa.array(items, kind)


@pytest.mark.parametrize("kind", [*BYTES, *TEXTS])
@given(
    st.lists(st.none() | st.text(max_size=20), max_size=9), st.lists(st.integers(0, 9), max_size=3), st.integers(0, 3)
)
def test_all_types_slices_and_chunks_are_read(
    kind: Callable[[], Any], texts: list[str | None], cuts: list[int], start: int
) -> None:
    raw = [None if text is None else text.encode() for text in texts]
    column = shaped(raw if kind in BYTES else texts, kind(), cuts, start)
    assert [row[0] for row in rows(column)] == raw[start:]
    assert [row[0] for row in rows(Capsule(column))] == raw[start:]
    assert [row[:2] for row in rows(pa.nulls(len(column)), column)] == [(None, key) for key in raw[start:]]


def test_fixed_sizes_and_nulls_are_read() -> None:
    assert [row[0] for row in rows(pa.array([b"ab", None, b"cd"], pa.binary(2)))] == [b"ab", None, b"cd"]
    assert [row[0] for row in rows(pa.nulls(4).slice(1))] == [None] * 3
    views = pa.DictionaryArray.from_arrays(
        pa.array([1, None, 0, 1], pa.uint32()), pa.array(["a", "b"], pa.string_view())
    )
    assert [row[0] for row in rows(views.slice(1))] == [None, b"a", b"b"]
    assert rows(pa.array([], pa.binary())) == rows(pa.chunked_array([], pa.string())) == []


def test_partitions_timestamps_and_headers_are_columns() -> None:
    values = pa.array([b"1", b"2", b"3", b"4"])
    moments = [dt.datetime(2026, 1, 2, 3, 4, 5, 6789, dt.UTC), None]
    times = pa.array([*moments, *moments], pa.timestamp("us", tz="UTC"))
    lists = [[("a", b"1"), ("b", None)], None, [], [("c", b"")]]
    found = rows(values, None, pa.array([2, None, 0, 1], pa.uint8()), times, pa.array(lists, HEADERS))
    assert [row[2] for row in found] == [2, None, 0, 1]
    assert [row[3] for row in found] == [1767323045006, None] * 2
    assert [row[4] for row in found] == [(("a", b"1"), ("b", None)), (), (), (("c", b""),)]
    found = rows(
        values, None, 7, pa.chunked_array([pa.array([1, 2, 3], pa.int32()), pa.array([4], pa.int32())]), {"h": b"x"}
    )
    assert [row[2:] for row in found] == [(7, time, (("h", b"x"),)) for time in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"values": pa.array([1])}, "values must be binary or text, got an Arrow array of int64"),
        ({"keys": pa.array([1.5])}, "keys must be binary or text, got an Arrow array of double"),
        ({"keys": pa.array([b"1", b"2"])}, "1 values and 2 keys"),
        ({"partition": pa.array(["0"])}, "partition must be integers, got an Arrow array of string"),
        ({"partition": pa.array([-1])}, "partition must not be negative, got -1"),
        ({"partition": pa.array([0, 0])}, "1 values and 2 partition"),
        ({"timestamp_ms": pa.array([0.5])}, "timestamp_ms must be integers or times"),
        ({"timestamp_ms": pa.array([-5])}, "timestamp_ms must not be negative, got -5"),
        ({"timestamp_ms": pa.array([2**64 - 1], pa.uint64())}, "timestamp_ms must be integers of 64 bits"),
        ({"timestamp_ms": -1}, "timestamp_ms must be a non-negative integer"),
        ({"headers": pa.array([b"h"])}, "headers must be an Arrow array of list"),
        ({"headers": pa.array([[(None, b"")]], HEADERS)}, "headers must have a name each"),
        ({"headers": {"a": 1}}, "a header must be a string and bytes"),
        ({"values": pa.table({"a": [1]})}, "values must be binary or text, got an Arrow array of struct"),
    ],
)
def test_unsuitable_columns_are_refused(columns: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        rows(**({"values": pa.array([b"v"])} | columns))


def test_a_damaged_array_is_refused() -> None:
    ends = pa.py_buffer(array("i", [0, 9, 1]))
    damaged = pa.Array.from_buffers(pa.binary(), 2, [None, ends, pa.py_buffer(b"v")])
    with pytest.raises(UsageError, match="offsets are outside of its data"):
        rows(damaged)
