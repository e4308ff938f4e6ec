"""Values become columns of a type: JSON, and what a deserializer returns; and a bar shows the progress."""

from __future__ import annotations

import datetime as dt
import sys
from typing import Any

import anyio.lowlevel
import pytest

from aiokafkawire import Client, ConfigError, DeserializationError, OffsetSpec, TopicPartition, UsageError, blocking
from aiokafkawire.serialization import SerializationContext
from aiokafkawire.testing import BackgroundBroker

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install aiokafkawire[arrow]")

pytestmark = pytest.mark.anyio

FLIGHT = pa.schema({"carrier": pa.string(), "delay": pa.int32(), "at": pa.timestamp("us", tz="UTC")})
FIRST = {"carrier": "UA", "delay": 7, "at": dt.datetime(2013, 1, 1, 5, tzinfo=dt.UTC)}
SECOND = {"carrier": None, "delay": None, "at": None}


class Lengths:
    """A deserializer that awaits, knows the record, and returns its length and its headers."""

    async def deserialize(self, data: bytes, context: SerializationContext) -> dict[str, Any]:
        return {"length": len(data), "topic": context.topic, "headers": [name for name, _ in context.headers]}


async def test_json_comes_back_as_the_table_that_was_written(kafka: Client, topic: str) -> None:
    table = pa.Table.from_pylist([FIRST, SECOND], schema=FLIGHT)
    await kafka.write_table(topic, table.append_column("p", [[1, 1]]), value_format="json", partition="p")
    found = await kafka.read_table(topic, value_format="json", value_type=FLIGHT, columns=["value", "offset"])
    assert found.column_names == ["value", "offset"]
    assert found["value"].to_pylist() == [FIRST, SECOND]
    assert found["value"].type == pa.struct(list(FLIGHT))


async def test_maps_come_back_from_json_as_they_were_written(kafka: Client, topic: str) -> None:
    counts = pa.map_(pa.string(), pa.int32())
    schema = pa.schema(
        {"counts": counts, "inside": pa.struct({"list": pa.list_(counts)}), "of maps": pa.map_(pa.string(), counts)}
    )
    row = {"counts": [("a", 1), ("b", None)], "inside": {"list": [[("c", 3)], None]}, "of maps": [("d", [("e", 5)])]}
    rows = [row, {"counts": [], "inside": {"list": None}, "of maps": None}]
    await kafka.write_table(topic, pa.Table.from_pylist(rows, schema=schema), value_format="json")
    assert (await kafka.read_table(topic))["value"][0].as_py().startswith(b'{"counts":{"a":1,"b":null},')
    found = await kafka.read_table(topic, value_format="json", value_type=schema)
    assert found["value"].to_pylist() == rows


async def test_an_empty_topic_has_the_typed_column(kafka: Client, topic: str) -> None:
    found = await kafka.read_table(topic, value_format="json", value_type=FLIGHT)
    assert found.schema.field("value").type == pa.struct(list(FLIGHT))
    assert (await kafka.read_table(topic, value_format="json", value_type=FLIGHT, columns=["key"])).num_rows == 0


async def test_a_deserializer_gives_the_values_and_knows_the_headers(kafka: Client, topic: str) -> None:
    where = TopicPartition(topic, 0)
    async with kafka.producer() as producer:
        await producer.send(topic, b"abc", partition=0, headers=[("h", b"1")])
        await producer.send(topic, None, partition=0)
        await producer.send(topic, b"de", partition=0)
    kind = pa.struct([("length", pa.int64()), ("topic", pa.string()), ("headers", pa.list_(pa.string()))])
    found = await kafka.read_table(topic, value_deserializer=Lengths(), value_type=kind, start={where: 0})
    assert found["value"].to_pylist() == [
        {"length": 3, "topic": topic, "headers": ["h"]},
        None,
        {"length": 2, "topic": topic, "headers": []},
    ]
    assert found["headers"].to_pylist()[0] == [{"key": "h", "value": b"1"}]
    numbers = await kafka.read_table(topic, value_deserializer=len, value_type=pa.int8(), columns=["value"])
    assert numbers["value"].to_pylist() == [3, None, 2]


async def test_an_iteration_continues_after_the_record_that_does_not_fit(kafka: Client, topic: str) -> None:
    async with kafka.producer() as producer:
        for value in (b'{"delay": 1}', b'{"delay": "late"}', b"{", b'{"delay": 2}'):
            await producer.send(topic, value, partition=2)
    read: list[Any] = []
    failed: list[Any] = []
    async with kafka.read_batches(topic, value_format="json", value_type=FLIGHT, columns=["value"]) as batches:
        for _ in range(4):
            try:
                async for batch in batches:
                    read += [row["delay"] for row in batch["value"].to_pylist()]
            except DeserializationError as error:
                failed.append((error.partition, error.offset))
    assert (read, failed) == ([1, 2], [((topic, 2), 1), ((topic, 2), 2)])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"value_type": FLIGHT}, "value_format='json' or a value_deserializer"),
        ({"value_type": FLIGHT, "value_format": "json", "value_deserializer": len}, "value_format='json' or"),
        ({"value_format": "json"}, "value_type must be the type of the values, .* got None"),
        ({"value_format": "json", "value_type": {"carrier": "string"}}, "value_type must be the type"),
        ({"value_format": "avro", "value_type": FLIGHT}, "value_format must be 'json', got 'avro'"),
        ({"progress": "yes"}, "progress must be True or False, got 'yes'"),
    ],
)
async def test_mistakes_are_refused(kafka: Client, topic: str, options: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        await kafka.read_table(topic, **options)


async def test_a_bar_shows_the_progress(kafka: Client, topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich", reason="rich is not installed: pip install aiokafkawire[demo]")
    values = pa.table({"v": [b"x"] * 3_000})
    assert await kafka.write_table(topic, values, value="v", progress=True) == 3_000
    assert (await kafka.read_table(topic, progress=True)).num_rows == 3_000
    shown = capsys.readouterr()
    assert shown.out == ""
    whole = [line for line in shown.err.splitlines() if line.startswith(topic) and "100%" in line]
    assert ["3,000 rows" in whole[0], "3,000 offsets" in whole[-1]] == [True, True]


async def test_a_bar_without_rich_says_what_to_install(
    kafka: Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(ImportError, match=r"a progress bar needs rich: pip install aiokafkawire\[demo\]"):
        await kafka.read_table(topic, progress=True)


async def test_a_reader_knows_its_progress(kafka: Client, topic: str) -> None:
    await kafka.write_table(topic, pa.table({"v": [b"x"] * 50, "p": [0] * 50}), value="v", partition="p")
    async with kafka.read_records(topic, end={TopicPartition(topic, 0): 40}) as records:
        assert records.progress == (0, 0)
        done = [records.progress async for _ in records]
    assert done[-1] == (40, 40)
    assert {total for _, total in done} == {40}


class Registry:
    """A deserializer that awaits what answers only the first time, and again after ``outage`` calls."""

    def __init__(self, outage: int) -> None:
        self._calls, self._outage = 0, outage

    async def deserialize(self, data: bytes, context: SerializationContext) -> int:
        self._calls += 1
        await anyio.lowlevel.checkpoint()
        if 1 < self._calls <= 1 + self._outage:
            raise ConnectionError("nobody answers")
        return int(data)


async def test_an_outage_of_what_a_deserializer_needs_loses_no_record(kafka: Client, topic: str) -> None:
    async with kafka.producer() as producer:
        for number in range(3):
            await producer.send(topic, b"%d" % number, partition=0)
    read: list[int] = []
    failures = 0
    async with kafka.read_batches(topic, value_deserializer=Registry(2), value_type=pa.int64()) as batches:
        while len(read) < 3:
            try:
                read += (await anext(batches))["value"].to_pylist()
            except DeserializationError as error:
                failures += error.retriable
    assert (read, failures) == ([0, 1, 2], 2)


async def test_tasks_cannot_share_a_reader(kafka: Client, topic: str) -> None:
    await kafka.write_table(topic, pa.table({"v": ["1"] * 10, "p": [0] * 10}), value="v", partition="p")
    async with kafka.read_batches(topic, value_deserializer=Registry(0), value_type=pa.int64()) as batches:
        rows: list[int] = []

        async def read() -> None:
            try:
                rows.append((await anext(batches)).num_rows)
            except UsageError:
                rows.append(0)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            tasks.start_soon(read)
    assert sorted(rows)[0] == 0


async def test_an_error_has_the_whole_record(kafka: Client, topic: str) -> None:
    async with kafka.producer() as producer:
        await producer.send(topic, b"{}", partition=0)
        await producer.send(topic, b"{", key=b"k", partition=0, headers=[("h", b"1")], timestamp_ms=5)
    batches = kafka.read_batches(topic, value_format="json", value_type=FLIGHT, columns=["value"])
    async with batches:
        assert (await anext(batches)).num_rows == 1
        with pytest.raises(DeserializationError) as caught:
            await anext(batches)
    error = caught.value
    assert (error.raw_key, error.raw_value, error.headers, error.timestamp) == (b"k", b"{", (("h", b"1"),), 5)


async def test_a_column_may_be_asked_for_twice(kafka: Client, topic: str) -> None:
    await kafka.write_table(topic, pa.table({"v": ["{}"]}), value="v")
    for count in (1, 0):
        start = OffsetSpec.EARLIEST if count else OffsetSpec.LATEST
        table = await kafka.read_table(
            topic, start=start, value_format="json", value_type=FLIGHT, columns=["value", "value"]
        )
        assert (table.num_rows, table.schema.types) == (count, [pa.struct(list(FLIGHT))] * 2)


async def test_handlers_of_errors_are_refused(kafka: Client, topic: str) -> None:
    with pytest.raises(ConfigError, match="on_error must be left out"):
        kafka.read_batches(topic, value_format="json", value_type=FLIGHT, on_error="skip")


def test_a_blocking_iteration_continues_after_the_record_that_does_not_fit() -> None:
    with BackgroundBroker() as broker, blocking.Client(broker.bootstrap) as kafka:
        kafka.admin.create_topics({"t": 1})
        with kafka.producer() as producer:
            for value in (b"1", b"x", b"2"):
                producer.send("t", value)
        batches = kafka.read_batches("t", value_format="json", value_type=pa.int64())
        assert next(batches)["value"].to_pylist() == [1]
        with pytest.raises(DeserializationError):
            next(batches)
        assert next(batches)["value"].to_pylist() == [2]
        assert list(batches) == []
