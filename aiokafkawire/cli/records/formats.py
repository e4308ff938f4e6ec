"""Formats of records on standard output: plain, JSON, hex, and templates."""

import json
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from ...consumer.consumer import ConsumerBatch
from ...records.batch import ConsumerRecord
from ...records.columns import join_values
from ..shell.times import iso_time

__all__ = ("FORMATS", "Formatter", "Record", "hex_formatter", "json_bytes", "json_formatter", "plain_formatter")

Record: TypeAlias = ConsumerRecord[Any, Any]

Formatter: TypeAlias = Callable[[Iterable[Record]], tuple[int, bytes]]
"""Converts records to bytes, and returns their number, too."""

FORMATS: Final = ("plain", "json", "hex")


def plain_formatter(delimiter: bytes, key_separator: bytes | None, null: bytes) -> Formatter:
    """Return a formatter that writes values as they are, each with the delimiter after it.

    Args:
        delimiter: stands after each record.
        key_separator: stands between key and value; without it keys are not written.
        null: stands for a key or value that is null.
    """
    if key_separator is None:
        return lambda records: _values(records, delimiter, null)
    return lambda records: _keys_and_values(records, delimiter, key_separator, null)


def _values(records: Iterable[Record], delimiter: bytes, null: bytes) -> tuple[int, bytes]:
    if isinstance(records, ConsumerBatch):
        return records.joined_values(delimiter, null=null)
    return join_values(records, delimiter, null)


def _keys_and_values(
    records: Iterable[Record], delimiter: bytes, key_separator: bytes, null: bytes
) -> tuple[int, bytes]:
    parts: list[bytes] = []
    for record in records:
        key, value = record.raw_key, record.raw_value
        parts += (null if key is None else key, key_separator, null if value is None else value, delimiter)
    return len(parts) // 4, b"".join(parts)


_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def json_formatter(records: Iterable[Record]) -> tuple[int, bytes]:
    """Write each record as a line of JSON, which ``produce --json`` reads.

    Keys, values and headers are strings if they are UTF-8; other bytes are ``{"base64": "..."}``, and null is null.
    """
    lines = [_encode(_json_of(record)) for record in records]
    lines.append("")
    return len(lines) - 1, "\n".join(lines).encode()


def _json_of(record: Record) -> dict[str, object]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": None if record.timestamp < 0 else record.timestamp,
        "timestamp_type": record.timestamp_type.name.lower(),
        "key": json_bytes(record.raw_key),
        "value": json_bytes(record.raw_value),
        "headers": [[name, json_bytes(value)] for name, value in record.headers],
    }


def json_bytes(data: bytes | None) -> object:
    """Return what stands for bytes in JSON: a string if they are UTF-8, or ``{"base64": "..."}``; None for None."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        import base64

        return {"base64": base64.b64encode(data).decode()}


_ROW: Final = 16
"""The number of bytes in one row of a dump."""


def hex_formatter(records: Iterable[Record]) -> tuple[int, bytes]:
    """Write a line about each record, and a dump of its key, value and headers."""
    texts = [_dump_of(record) for record in records]
    return len(texts), "".join(texts).encode("utf-8", "backslashreplace")


def _dump_of(record: Record) -> str:
    parts = [f"{record.topic}:{record.partition} offset {record.offset}, {iso_time(record.timestamp)}\n"]
    fields = [("key", record.raw_key), ("value", record.raw_value)]
    fields += [(f"header {name}", value) for name, value in record.headers]
    for name, data in fields:
        if data is None:
            parts.append(f"  {name}: null\n")
            continue
        parts.append(f"  {name}: {len(data)} {'byte' if len(data) == 1 else 'bytes'}\n")
        parts += [_dump_row(data, at) for at in range(0, len(data), _ROW)]
    return "".join(parts)


def _dump_row(data: bytes, at: int) -> str:
    row = data[at : at + _ROW]
    text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
    return f"    {at:08x}  {row.hex(' '):<{3 * _ROW - 1}}  |{text}|\n"
