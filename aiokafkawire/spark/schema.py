"""The columns of the JVM source as an Arrow schema."""

from typing import Final

try:
    import pyarrow as pa
except ImportError as _missing:
    raise ImportError("Kafka in Spark needs pyarrow: pip install aiokafkawire[spark]") from _missing

__all__ = ("HEADERS", "arrow_schema")

_PAIR: Final = pa.struct([("key", pa.string()), ("value", pa.binary())])
HEADERS: Final = pa.list_(pa.field("element", _PAIR))
"""The type of the column ``headers``."""
_FIELDS: Final = (
    ("key", pa.binary()),
    ("value", pa.binary()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", pa.timestamp("us", tz="UTC")),
    ("timestampType", pa.int32()),
)


def arrow_schema(*, headers: bool, value: "pa.DataType | None" = None) -> "pa.Schema":
    """Return the record batches' Arrow schema, which must match the data source's Spark schema exactly.

    ``value`` is the type of the values, by default binary.
    """
    fields = [*_FIELDS, ("headers", HEADERS)] if headers else _FIELDS
    return pa.schema([(name, value if name == "value" and value is not None else kind) for name, kind in fields])
