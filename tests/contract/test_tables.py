"""Tables are written and read whole: ``write_table``, ``read_table``, and columns of ``enqueue_many``."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest

from aiokafkawire import Client, OffsetSpec, TopicPartition, UsageError
from aiokafkawire.producer.partitioner import partition_for_key

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install aiokafkawire[arrow]")

pytestmark = pytest.mark.anyio

PARTITIONS = 3
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class Frame:
    """A table of another library, which has the Arrow PyCapsule interface and nothing else."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


async def test_a_table_comes_back_as_it_was_written(kafka: Client, topic: str) -> None:
    keys = [b"%d" % (number % 50) for number in range(5_000)]
    values = [None if number % 7 == 0 else b"%d" % number for number in range(5_000)]
    table = pa.table(
        {
            "id": pa.array(keys).dictionary_encode(),
            "payload": pa.chunked_array([values[:1], values[1:3_500], values[3_500:]], pa.large_binary()),
            "at": pa.array(range(5_000), pa.timestamp("ms", tz="UTC")),
        }
    )
    written = await kafka.write_table(topic, Frame(table), key="id", value="payload", timestamp="at", batch_size=2_000)
    assert written == 5_000
    found = await kafka.read_table(topic, columns=["value", "timestamp", "partition", "key"])
    assert found.column_names == ["value", "timestamp", "partition", "key"]
    assert found["partition"].to_pylist() == [partition_for_key(key, PARTITIONS) for key in found["key"].to_pylist()]
    told = sorted(
        zip(
            found["timestamp"].cast("int64").to_pylist(),
            found["key"].to_pylist(),
            found["value"].to_pylist(),
            strict=False,
        )
    )
    assert told == list(zip(range(5_000), keys, values, strict=True))


async def test_partitions_and_headers_are_columns(kafka: Client, topic: str) -> None:
    lists = [[("a", b"1"), ("b", None)], [], None, [("c", b"")]]
    columns = {"v": ["w", "x", "y", "z"], "p": pa.array([2, 0, 2, 1], pa.int8()), "h": pa.array(lists, HEADERS)}
    batch = pa.record_batch(columns)
    assert await kafka.write_table(topic, batch, value="v", partition="p", headers="h") == 4
    found = await kafka.read_table(topic)
    told = sorted(zip(*(found[name].to_pylist() for name in ("value", "partition", "offset")), strict=True))
    assert told == [(b"w", 2, 0), (b"x", 0, 0), (b"y", 2, 1), (b"z", 1, 0)]
    headers = dict(zip(found["value"].to_pylist(), found["headers"].to_pylist(), strict=True))
    assert [headers[name] for name in (b"x", b"y", b"z")] == [[], [], [{"key": "c", "value": b""}]]
    assert headers[b"w"] == [{"key": "a", "value": b"1"}, {"key": "b", "value": None}]
    await kafka.write_table(topic, found, value="value", partition="partition", headers="headers")
    start = {TopicPartition(topic, 2): 2}
    assert (await kafka.read_table(topic, start=start, columns=["value"])).to_pydict() == {"value": [b"w", b"y"]}


async def test_rows_become_json(kafka: Client, topic: str) -> None:
    table = pa.table(
        {
            "id": ["a", "b"],
            "amount": [Decimal("1.50"), None],
            "day": [dt.date(2026, 1, 2), None],
            "tags": [["x"], []],
            "p": [1, 1],
        }
    )
    await kafka.write_table(topic, table, key="id", value_format="json", partition="p")
    found = await kafka.read_table(topic)
    assert [json.loads(value) for value in found["value"].to_pylist()] == [
        {"id": "a", "amount": "1.50", "day": "2026-01-02", "tags": ["x"]},
        {"id": "b", "amount": None, "day": None, "tags": []},
    ]
    assert found["key"].to_pylist() == [b"a", b"b"]


async def test_an_empty_read_has_the_columns(kafka: Client, topic: str) -> None:
    assert await kafka.write_table(topic, pa.table({"v": pa.array([], pa.string())}), value="v") == 0
    found = await kafka.read_table(topic, start=OffsetSpec.LATEST, columns=["offset", "value"])
    assert (found.num_rows, found.column_names) == (0, ["offset", "value"])


TWICE = pa.array([[("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int32()))


@pytest.mark.parametrize(
    ("table", "options", "told"),
    [
        ({"v": [b"x"]}, {}, "either value, the name of a column, or value_format"),
        ({"v": [b"x"]}, {"value": "v", "value_format": "json"}, "either value"),
        ({"v": [b"x"]}, {"value_format": "xml"}, "value_format must be 'json', got 'xml'"),
        ({"v": [b"x"]}, {"value": "w"}, "value: the table has no column 'w', only v"),
        ({"v": [b"x"], "k": [1]}, {"value": "v", "key": "k"}, "keys must be binary or text, got .* int64"),
        ({"v": [b"x"]}, {"value_format": "json"}, "a bytes cannot be converted"),
        ({"v": [float("nan")]}, {"value_format": "json"}, "no JSON"),
        ({"v": TWICE}, {"value_format": "json"}, "no JSON: a map has a key twice"),
        ({"v": [b"x"], "p": [PARTITIONS]}, {"value": "v", "partition": "p"}, "has 3 partitions, no 3"),
    ],
)
async def test_mistakes_are_refused(
    kafka: Client, topic: str, table: dict[str, Any], options: dict[str, Any], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        await kafka.write_table(topic, pa.table(table), **options)


@pytest.mark.parametrize("options", [{"key": "a", "value": "v"}, {"value": "a"}, {"value_format": "json"}])
async def test_columns_of_one_name_are_refused_where_they_are_used(
    kafka: Client, topic: str, options: dict[str, Any]
) -> None:
    table = pa.table([["1"], ["2"], ["v"]], names=["a", "a", "v"])
    with pytest.raises(UsageError, match="the table has 2 columns 'a': rename all but one"):
        await kafka.write_table(topic, table, **options)
    assert await kafka.write_table(topic, table, value="v") == 1


async def test_what_is_no_table_is_refused(kafka: Client, topic: str) -> None:
    with pytest.raises(UsageError, match="a table must be Arrow data"):
        await kafka.write_table(topic, [{"v": 1}], value="v")  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{}, {"value_serializer": lambda value: str(value).encode()}])
async def test_columns_pass_through_a_small_buffer_and_through_serializers(
    kafka: Client, topic: str, options: dict[str, Any]
) -> None:
    numbers = list(range(3_000))
    values = pa.array(numbers) if options else pa.array([b"%d" % number for number in numbers])
    partitions = pa.array([number % PARTITIONS for number in numbers])
    async with kafka.producer(buffer_memory=20_000, batch_size=2_000, **options) as producer:
        assert await producer.enqueue_many(topic, values, partition=partitions, timestamp_ms=5) == len(numbers)
    found = await kafka.read_table(topic)
    assert sorted(map(int, found["value"].to_pylist())) == numbers
    assert all(int(row["value"]) % PARTITIONS == row["partition"] for row in found.to_pylist())
    assert set(found["timestamp"].cast("int64").to_pylist()) == {5}
