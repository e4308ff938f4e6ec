"""Values that are JSON, Avro or Protobuf, as structs: their options, their decoding, and queries of Spark."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from support.schema_registries import context, finished, running_registry

from aiokafkawire import ConfigError, DeserializationError, TopicPartition, blocking
from aiokafkawire.errors import SchemaRegistryError
from aiokafkawire.schema_registry import AvroSerializer, JsonSchemaSerializer
from aiokafkawire.spark.options import read_options
from aiokafkawire.spark.value_format import ValueFormat, read_value_format

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install aiokafkawire[arrow]")

WHERE = TopicPartition("flights", 1)
FLIGHT = pa.struct(
    [
        ("carrier", pa.string()),
        ("delay", pa.int32()),
        ("stops", pa.list_(pa.string())),
        ("seats", pa.map_(pa.string(), pa.int64())),
        ("plane", pa.struct([("year", pa.int32())])),
    ]
)
SCHEMA = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "carrier", "type": "string"},
        {"name": "delay", "type": ["null", "int"]},
        {"name": "stops", "type": {"type": "array", "items": "string"}},
        {"name": "seats", "type": {"type": "map", "values": "long"}},
        {
            "name": "plane",
            "type": {"type": "record", "name": "Plane", "fields": [{"name": "year", "type": "int"}]},
        },
    ],
}
UA: dict[str, Any] = {
    "carrier": "UA",
    "delay": 7,
    "stops": ["EWR", "IAH"],
    "seats": {"first": 8},
    "plane": {"year": 1999},
}
AA: dict[str, Any] = {"carrier": "AA", "delay": None, "stops": [], "seats": {}, "plane": {"year": 2004}}


def as_row(flight: dict[str, Any]) -> dict[str, Any]:
    """The flight as Arrow returns it."""
    return {**flight, "seats": list(flight["seats"].items())}


async def decode(values: Sequence[bytes | None], struct: Any = FLIGHT, **options: str) -> list[Any]:
    from aiokafkawire.spark.value_decoder import value_decoder

    given = read_value_format(
        {"valueschema": "unused STRING", **{name.lower(): text for name, text in options.items()}}
    )
    assert given is not None
    decoder = value_decoder(given, struct, "flights")
    array = await decoder.decode(pa.array(values, pa.binary()), lambda row: (WHERE, 40 + row))
    assert array.type == struct
    rows: list[Any] = array.to_pylist()
    return rows


def decoded(values: Sequence[bytes | None], struct: Any = FLIGHT, **options: str) -> list[Any]:
    return anyio.run(partial(decode, values, struct, **options))


def test_json_becomes_structs() -> None:
    pretty = json.dumps(UA, indent=2).encode()
    values = [pretty, None, b" null", b'{"more":[1,{"x":2}],"carrier":"B6"}', b"{}", json.dumps(AA).encode()]
    nothing = dict.fromkeys(FLIGHT.names)
    b6 = {**nothing, "carrier": "B6"}
    assert decoded(values, valueFormat="json") == [as_row(UA), None, None, b6, nothing, as_row(AA)]


def test_json_has_times_decimals_and_bytes_as_text() -> None:
    struct = pa.struct(
        [
            ("day", pa.date32()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("cents", pa.decimal128(9, 2)),
            ("raw", pa.binary()),
        ]
    )
    value = b'{"day": "2026-11-28", "at": "2026-11-28T12:00:00+01:00", "cents": 7.25, "raw": "aGk="}'
    assert decoded([value], struct, valueFormat="json") == [
        {
            "day": date(2026, 11, 28),
            "at": datetime(2026, 11, 28, 11, tzinfo=UTC),
            "cents": Decimal("7.25"),
            "raw": b"hi",
        }
    ]


@pytest.mark.anyio
async def test_decimals_of_json_have_all_their_digits_with_a_registry_too() -> None:
    pytest.importorskip("jsonschema", reason="jsonschema is not installed: pip install aiokafkawire[json-schema]")
    struct, amount = pa.struct([("amount", pa.decimal128(38, 18))]), "1234567890123456.123456789012345678"
    value = f'{{"amount": {amount}}}'.encode()
    assert decoded_amounts(await decode([value], struct, valueFormat="json")) == [amount]
    async with running_registry() as (server, registry):
        serializer = JsonSchemaSerializer(registry, {"type": "object"})
        framed = await finished(serializer.serialize({}, context()))
        rows = await decode(
            [framed[: -len(b"{}")] + value, None], struct, valueFormat="json", schemaRegistry=server.url
        )
    assert rows[1] is None
    assert decoded_amounts(rows[:1]) == [amount]


def decoded_amounts(rows: list[Any]) -> list[str]:
    return [str(row["amount"]) for row in rows]


BAD = [
    b"",
    b"  ",
    b"{",
    b"[1]",
    b"7",
    b'{"a":1}{"a":2}',
    b'{"delay":"late"}',
    b"\xff",
    b'{"carrier":{"x":1}}',
    b'{"delay":1.5}',
    b'{"delay":true}',
    b'{"delay":9999999999999999999999}',
    b'{"stops":"abc"}',
    b'{"seats":[["a",1]]}',
    b'{"a":1},"b":2',
    b'{"a":1}\0',
]


@pytest.mark.parametrize("bad", BAD)
def test_json_that_is_none_is_an_error_or_null(bad: bytes) -> None:
    values = [b'{"carrier":"UA"}', b'{"carrier":"AA"}', bad, b'{"carrier":"B6"}']
    with pytest.raises(DeserializationError, match="the value of flights-1 at offset 42 cannot be decoded") as raised:
        decoded(values, valueFormat="json")
    assert (raised.value.partition, raised.value.offset, raised.value.raw_value) == (WHERE, 42, bad)
    rows = decoded(values, valueFormat="json", valueErrors="null")
    assert [row and row["carrier"] for row in rows] == ["UA", "AA", None, "B6"]


def avro(flight: dict[str, Any]) -> bytes:
    fastavro = pytest.importorskip("fastavro", reason="fastavro is not installed: pip install aiokafkawire[avro]")
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(SCHEMA), flight)
    return stream.getvalue()


def test_avro_without_a_registry_becomes_structs() -> None:
    options = {"valueFormat": "avro", "avroSchema": json.dumps(SCHEMA)}
    assert decoded([avro(UA), None, avro(AA)], **options) == [as_row(UA), None, as_row(AA)]
    for bad in (b"", avro(UA) + b"x", avro(UA)[:-1]):
        with pytest.raises(DeserializationError, match="flights-1 at offset 41"):
            decoded([avro(UA), bad], **options)
        assert decoded([bad, avro(AA)], valueErrors="null", **options) == [None, as_row(AA)]
    narrow = pa.struct([("carrier", pa.int32())])  # a type that Spark was given wrongly
    with pytest.raises(DeserializationError, match="offset 40"):
        decoded([avro(UA)], narrow, **options)
    assert decoded([avro(UA)], narrow, valueErrors="null", **options) == [None]


def test_an_avro_value_that_would_overflow_the_stack_cannot_be_decoded() -> None:
    pytest.importorskip("fastavro", reason="fastavro is not installed: pip install aiokafkawire[avro]")
    fields = [{"name": "carrier", "type": "string"}, {"name": "next", "type": ["null", "Node"]}]
    options = {"valueFormat": "avro", "avroSchema": json.dumps({"type": "record", "name": "Node", "fields": fields})}
    struct, node = pa.struct([("carrier", pa.string())]), b"\x04UA"
    assert decoded([node + b"\x02" + node + b"\0"], struct, **options) == [{"carrier": "UA"}]
    with pytest.raises(DeserializationError, match="flights-1 at offset 40"):
        decoded([(node + b"\x02") * 600 + node + b"\0"], struct, **options)
    with pytest.raises(ConfigError, match="avroSchema is not an Avro schema"):
        decoded([node], struct, valueFormat="avro", avroSchema='{"type": "recrod"}')


@pytest.mark.slow
@pytest.mark.anyio
async def test_avro_of_a_registry_becomes_structs() -> None:
    pytest.importorskip("fastavro", reason="fastavro is not installed: pip install aiokafkawire[avro]")
    async with running_registry() as (server, registry):
        serializer = AvroSerializer(registry, SCHEMA)
        values = [await finished(serializer.serialize(flight, context())) for flight in (UA, AA)]
        options = {"valueFormat": "avro", "schemaRegistry": server.url}
        assert await decode([*values, None], **options) == [as_row(UA), as_row(AA), None]
        for bad in (values[0][5:], b"\0\0\0\x7f\xff" + values[0][5:]):
            with pytest.raises(DeserializationError, match="flights-1 at offset 40"):
                await decode([bad], **options)
    with pytest.raises(SchemaRegistryError) as raised:  # not null, although it may be: the task is tried again
        await decode(values, valueErrors="null", **options)
    assert raised.value.retriable


def test_protobuf_becomes_structs() -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is not installed: pip install aiokafkawire[protobuf]")
    from google.protobuf.api_pb2 import Api

    message = Api(name="flights", version="1", syntax="SYNTAX_PROTO3")
    message.methods.add(name="board", request_streaming=True)
    struct = pa.struct(
        [
            ("name", pa.string()),
            ("syntax", pa.string()),
            ("source_context", pa.struct([("file_name", pa.string())])),
            ("methods", pa.list_(pa.struct([("name", pa.string()), ("request_streaming", pa.bool_())]))),
        ]
    )
    options = {"valueFormat": "protobuf", "protobufClass": "google.protobuf.api_pb2:Api"}
    assert decoded([message.SerializeToString(), None], struct, **options) == [
        {
            "name": "flights",
            "syntax": "SYNTAX_PROTO3",
            "source_context": None,
            "methods": [{"name": "board", "request_streaming": True}],
        },
        None,
    ]
    with pytest.raises(DeserializationError, match="offset 40"):
        decoded([b"\xff"], struct, **options)
    with pytest.raises(ConfigError, match="protobufClass must be a module and a class"):
        decoded([b""], struct, valueFormat="protobuf", protobufClass="nowhere:Order")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"valueFormat": "xml"}, "valueFormat must be one of json, avro, protobuf, got 'xml'"),
        ({"valueFormat": "json"}, "valueSchema must have the fields"),
        ({"valueSchema": "a INT"}, "valueSchema needs valueFormat"),
        ({"valueFormatt": "json", "valueSchema": "a INT"}, "'valueformatt': did you mean valueFormat?"),
        ({"valueFormat": "json", "valueSchema": "a INT", "valueErrors": "drop"}, "valueErrors must be fail or null"),
        ({"valueFormat": "json", "valueSchema": "a INT", "avroSchema": "{}"}, "avroSchema needs valueFormat=avro"),
        (
            {"valueFormat": "avro", "valueSchema": "a INT", "protobufClass": "a:B"},
            "protobufClass needs valueFormat=proto",
        ),
        ({"valueFormat": "avro", "valueSchema": "a INT"}, "needs either schemaRegistry, its URL, or avroSchema"),
        ({"valueFormat": "protobuf", "valueSchema": "a INT"}, "needs schemaRegistry, its URL, or protobufClass"),
    ],
)
def test_wrong_options_are_one_clear_error(options: dict[str, str], why: str) -> None:
    given = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "flights", **options}
    with pytest.raises(ConfigError, match=why):
        read_options(given, streaming=False)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("carrier STRING, delay INTT", "the field 'delay' has the unknown type 'INTT': did you mean INT?"),
        ("a ARRAY<STRUCT<b: text>>", "the field 'b' has the unknown type 'text': types are such as STRING"),
        ("a MAP<STRING, ITN>, b INT", "the field 'a' has the unknown type 'ITN'"),
        ("carrier", "the field 'carrier' has no type"),
        ("a: , b INT", "the field 'a' has no type"),
        ("a INT b STRING", "a comma is missing between the field 'a' and 'b'"),
        ("a INT, ", "a field's name is missing at the end"),
        ("a STRUCT<b: INT", "'>' is missing after the field 'b'"),
        ("a DECIMAL(10, 2", "')' is missing after the field 'a'"),
    ],
)
def test_a_wrong_schema_of_the_values_is_told_with_its_field(schema: str, why: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_value_format({"valueformat": "json", "valueschema": schema})
    assert str(raised.value).startswith(
        f"valueSchema must be fields like 'carrier STRING, delay INT', got {schema.strip()!r}"
    )
    assert why in str(raised.value)


GOOD_SCHEMAS = [
    "carrier STRING, delay: int NOT NULL COMMENT 'a, b INTT < c'",
    "`a``b,<` DECIMAL(10, 2), `größe` DOUBLE, `select` BINARY",
    "a ARRAY<STRUCT<b: INT COMMENT 'z', c MAP<STRING, ARRAY<INT>>>>, b INTERVAL DAY TO SECOND",
    "a STRUCT<>, b CHAR(3), c VARCHAR(5), d TIMESTAMP_NTZ, e LONG, f VOID, g VARIANT",
    "a STRING COLLATE UTF8_LCASE, date DATE, array ARRAY<SHORT>",
]


@pytest.mark.parametrize("schema", GOOD_SCHEMAS)
def test_a_schema_of_the_values_in_sparks_syntax_passes(schema: str) -> None:
    assert read_value_format({"valueformat": "json", "valueschema": schema}) is not None


@pytest.mark.spark
def test_spark_reads_the_schemas_that_pass(spark: SparkSession) -> None:
    from pyspark.sql.types import DataType

    for schema in GOOD_SCHEMAS:
        DataType.fromDDL(f"key BINARY, value STRUCT<{schema}>")


def test_the_options_are_read() -> None:
    options = {
        "valueFormat": "Avro",
        "valueSchema": " a INT ",
        "schemaRegistry": "http://r:8081",
        "valueErrors": "NULL",
    }
    found = read_value_format({name.lower(): text for name, text in options.items()})
    assert found == ValueFormat(
        kind="avro", fields="a INT", keeps_errors=True, registry="http://r:8081", avro_schema=None, protobuf_class=None
    )


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_spark_reads_values_as_structs(
    spark: SparkSession, kafka: blocking.Client, bootstrap: str, tmp_path: Any
) -> None:
    from aiokafkawire.spark import plan_ranges, read_ranges

    kafka.admin.create_topics({"flights": 1})
    with kafka.producer() as producer:
        for flight in (UA, AA):
            producer.send(
                "flights", json.dumps({**flight, "at": "2026-11-28T12:00:00Z"}).encode(), headers=[("h", b"1")]
            )
        producer.send("flights", None)
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": "flights",
        "includeHeaders": "true",
        "valueFormat": "json",
        "valueSchema": "carrier STRING, delay INT, plane STRUCT<year: INT>, at TIMESTAMP",
    }
    frame = spark.read.format("aiokafkawire").options(**options).load()
    query = "value.carrier", "value.delay", "value.plane.year", "unix_timestamp(value.at) at", "value is null gone"
    expected = [("UA", 7, 1999, 1_795_867_200, False), ("AA", None, 2004, 1_795_867_200, False), (None,) * 4 + (True,)]
    assert [tuple(row) for row in frame.orderBy("offset").selectExpr(*query).collect()] == expected
    ranged = read_ranges(spark, plan_ranges(options), options)
    assert ranged.schema == frame.schema
    assert [tuple(row) for row in ranged.orderBy("offset").selectExpr(*query).collect()] == expected
    stream = spark.readStream.format("aiokafkawire").options(startingOffsets="earliest", **options).load()
    written = stream.selectExpr("offset", *query).writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    running = written.trigger(availableNow=True).format("parquet").start(str(tmp_path / "out"))
    assert running.awaitTermination(200)
    found = spark.read.parquet(str(tmp_path / "out")).orderBy("offset").drop("offset").collect()
    assert [tuple(row) for row in found] == expected
    with kafka.producer() as producer:
        producer.send("flights", b"{")
    with pytest.raises(Exception, match="the value of flights-0 at offset 3 cannot be decoded"):
        spark.read.format("aiokafkawire").options(**options).load().collect()  # a frame keeps its ranges
    with pytest.raises(Exception, match="leave NOT NULL out"):
        spark.read.format("aiokafkawire").options(
            **{**options, "valueSchema": "a ARRAY<STRUCT<b: INT NOT NULL>>"}
        ).load().count()
    for wrong, why in (
        ({"valueSchema": "carrier STRING, delay INTT"}, "ConfigError: valueSchema must be .* unknown type 'INTT'"),
        ({"valueFormatt": "json"}, "ConfigError: unknown option 'valueformatt': did you mean valueFormat?"),
    ):
        with pytest.raises(Exception, match=why):
            spark.read.format("aiokafkawire").options(**{**options, **wrong}).load()
    with pytest.raises(Exception, match="valueSchema must have the fields"):
        spark.read.format("aiokafkawire").options(**{**options, "valueSchema": ""}).load()
