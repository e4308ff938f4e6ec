"""pyarrow reads a column of JSON objects as Python reads them one by one, or leaves it to Python."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import time
from decimal import Decimal
from typing import Any

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aiokafkawire import DeserializationError, TopicPartition, UsageError

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install aiokafkawire[arrow]")

from aiokafkawire.records.json_values import json_column  # noqa: E402
from aiokafkawire.records.typed_values import TypedValues, read_json  # noqa: E402

WHERE = TopicPartition("a", 0)
STRUCT = pa.struct(
    [
        ("n", pa.int32()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("l", pa.list_(pa.struct([("n", pa.int64())]))),
        ("o", pa.struct([("n", pa.int8()), ("s", pa.string())])),
    ]
)

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.datetimes().map(str)
_ANYTHING = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("nxsbqlo"), inner, max_size=3),
    max_leaves=6,
)
_FITTING = st.fixed_dictionaries(
    {},
    optional={
        "n": st.none() | st.integers(-(2**31), 2**31 - 1),
        "x": st.none() | st.floats() | st.integers(-(2**60), 2**60),
        "s": st.none() | st.text(),
        "b": st.none() | st.booleans(),
        "at": st.none() | st.datetimes().map(lambda at: at.isoformat()),
        "l": st.none() | st.lists(st.none() | st.fixed_dictionaries({}, optional={"n": st.integers(-9, 9)})),
        "o": st.none() | st.fixed_dictionaries({}, optional={"n": st.integers(-128, 127), "s": st.text()}),
        "q": _ANYTHING,
    },
)
_VALUES = st.none() | (_FITTING | _ANYTHING).map(lambda value: json.dumps(value).encode())
_FRAGMENTS = st.lists(
    st.sampled_from(["{", "}", "[", "]", ",", ":", '"', "\n", "null", '"n"', "1", "{}", '{"n":1}', '"s"', " ", "\\"])
).map(lambda parts: "".join(parts).encode())


def one_by_one(data: bytes, headers: object = ()) -> Any:
    """Read as ``read_json``, which TypedValues does not know."""
    return read_json(data)


def decoded(read: Any, values: Sequence[bytes | None], *, keeps_errors: bool) -> list[Any]:
    decoder = TypedValues(read, STRUCT, keeps_errors=keeps_errors)

    async def decode() -> list[Any]:
        found = await decoder.decode(pa.array(values, pa.binary()), lambda row: (WHERE, row))
        assert found.type == STRUCT
        rows: list[Any] = found.to_pylist()
        return rows

    return anyio.run(decode)


def comparable(value: Any) -> Any:
    """The value, with a NaN that equals another NaN."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


@given(st.lists(_VALUES | _FRAGMENTS, max_size=4))
@example([b"null"])
@example([b'{"n":1}null{"n":2}', b'{"n":3}'])
@example([b'{"l":[{}', b"{}]}", b"{}{}"])
@example([b'{"s":"}', b'{"}', b"{}{}"])
@example([b'{"n":1,"n":2}'])
@example([b'{"q":"\xff"}'])
@example([b'\xef\xbb\xbf{"n":1}'])
@example([b'{"x":1e400}'])
@example([b'{"n":1.0}', None])
@example([b"{" + b"[" * 100_000])
def test_a_column_is_what_its_values_are(values: list[bytes | None]) -> None:
    try:
        expected = decoded(one_by_one, values, keeps_errors=True)
    except RecursionError:
        return
    found = decoded(read_json, values, keeps_errors=True)
    assert [row and {name: comparable(value) for name, value in row.items()} for row in found] == [
        row and {name: comparable(value) for name, value in row.items()} for row in expected
    ]


def test_pyarrow_reads_what_it_can() -> None:
    values = pa.array([None, b'{"n": 1,\n "q": [2]}\n', None, b'{"s": "\\u00e9"}'], pa.binary())
    found = json_column(values, STRUCT)
    nothing = dict.fromkeys(STRUCT.names)
    assert found is not None
    assert found.to_pylist() == [None, {**nothing, "n": 1}, None, {**nothing, "s": "é"}]
    for rows in ([None], []):
        found = json_column(pa.array(rows, pa.binary()), STRUCT)
        assert found is not None
        assert found.to_pylist() == rows


@pytest.mark.parametrize("kind", [pa.binary(), pa.date32(), pa.decimal128(5, 1), pa.list_(pa.binary())])
def test_types_that_arrow_reads_in_another_way_are_left_to_python(kind: Any) -> None:
    assert json_column(pa.array([b'{"v": null}'], pa.binary()), pa.struct([("v", kind)])) is None


def test_an_error_names_the_record() -> None:
    told = "the value of a-0 at offset 1 cannot be decoded: field 'n': a str instead of"
    with pytest.raises(DeserializationError, match=told):
        decoded(read_json, [b"{}", b'{"n": "1"}'], keeps_errors=False)


@pytest.mark.parametrize(
    ("kind", "data", "value"),
    [
        (pa.large_string(), b'"a"', "a"),
        (pa.large_list(pa.int32()), b"[1]", [1]),
        (pa.list_view(pa.int32()), b"[1]", [1]),
        (pa.list_(pa.int32(), 1), b"[1]", [1]),
        (pa.large_binary(), b'"YWI="', b"ab"),
        (pa.binary(2), b'"YWI="', b"ab"),
        (pa.time64("us"), b'"12:30:00"', time(12, 30)),
        (pa.decimal128(38, 2), b"12345678901234567890.12", Decimal("12345678901234567890.12")),
        (pa.map_(pa.string(), pa.decimal128(5, 1)), b'{"a": 1.5}', [("a", Decimal("1.5"))]),
    ],
)
def test_a_value_becomes_each_type(kind: Any, data: bytes, value: Any) -> None:
    values = TypedValues(read_json, kind)
    found = anyio.run(values.decode, pa.array([data], pa.binary()), lambda row: (WHERE, row))
    assert found.to_pylist() == [value]


@pytest.mark.parametrize("data", [b"[1.5]", b'"ab"', b"[true]", b'["1"]'])
@pytest.mark.parametrize("kind", [pa.large_list(pa.int32()), pa.list_view(pa.int32()), pa.list_(pa.int32(), 1)])
def test_no_list_converts_its_items(kind: Any, data: bytes) -> None:
    with pytest.raises(DeserializationError, match="instead of"):
        anyio.run(TypedValues(read_json, kind).decode, pa.array([data], pa.binary()), lambda row: (WHERE, row))


@pytest.mark.parametrize(
    "kind",
    [
        pa.float16(),
        pa.uuid(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.struct([]),
        pa.struct([("a", pa.int8()), ("a", pa.int8())]),
        pa.list_(pa.duration("s")),
    ],
)
def test_other_types_are_refused_at_once(kind: Any) -> None:
    with pytest.raises(UsageError, match="values cannot become"):
        TypedValues(read_json, kind)


def test_a_required_field_must_be_there() -> None:
    kind = pa.struct([pa.field("n", pa.int8(), nullable=False)])
    values = TypedValues(read_json, kind)
    found = anyio.run(values.decode, pa.array([b'{"n": 1}', None], pa.binary()), lambda row: (WHERE, row))
    assert found.to_pylist() == [{"n": 1}, None]
    for data in (b"{}", b'{"n": null}'):
        with pytest.raises(DeserializationError, match="field 'n': it is missing or null"):
            anyio.run(values.decode, pa.array([data], pa.binary()), lambda row: (WHERE, row))
