"""Reads and writes values by parsed Avro schemas, through fastavro."""

import io
import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

try:
    import fastavro
    from fastavro.validation import ValidationError, validate
except ImportError as _missing:
    raise ImportError("Avro needs fastavro: pip install 'aiokafkawire[avro]'") from _missing

from .._printable import printable
from ..errors import SchemaMismatch
from .avro_limits import check_limits, is_unlimited
from .schemas import Schema

__all__ = ("AvroSchema", "parse_avro", "read_avro", "write_avro")

_TEXT: Final = 300


@attrs.frozen
class AvroSchema:
    """A parsed schema.

    Attributes:
        parsed: the schema as fastavro reads and writes by it.
        name: the full name of its type; for a primitive type its name.
        is_bytes: whether it is ``bytes``, whose values are written as they are, without their length.
        named: the named types by their full names, if few bytes may stand for many values or for deep ones; else None.
    """

    parsed: Any
    name: str | None
    is_bytes: bool
    named: Mapping[str, Any] | None = None


def parse_avro(schema: Schema, references: Mapping[str, Schema], *, has_defaults: bool = True) -> AvroSchema:
    """Parse a schema.

    Args:
        schema: the schema.
        references: the schemas that it references, each after those that it references itself.
        has_defaults: whether defaults matter: those of a writer's schema do not, and may be wrong, since its records
            have all fields.

    Raises:
        SchemaMismatch: one of them is not valid.
    """
    named: dict[str, Any] = {}
    for name, reference in references.items():
        _parse(reference.text, f"the referenced schema {name!r}", named, has_defaults)
    parsed = _parse(schema.text, "the schema", named, has_defaults)
    if references:
        parsed = _with_types(parsed, named)
    own = parsed.get("name") or parsed.get("type") if isinstance(parsed, dict) else parsed
    plain = parsed.get("type") if isinstance(parsed, dict) and "logicalType" not in parsed else parsed
    unlimited = plain != "bytes" and is_unlimited(parsed, named)
    return AvroSchema(parsed, own if isinstance(own, str) else None, plain == "bytes", named if unlimited else None)


def _parse(text: str, source: str, named: dict[str, Any], has_defaults: bool) -> Any:
    try:
        return fastavro.parse_schema(_loads(text, has_defaults), named_schemas=named)
    except Exception as error:  # fastavro raises what a strange schema leads to, such as KeyError
        raise SchemaMismatch(f"{source} is not valid Avro: {_said(error)}") from error


def _with_types(parsed: Any, named: dict[str, Any]) -> Any:
    """Return a parsed schema with the named types that it uses, as fastavro itself returns records alone."""
    if isinstance(parsed, list):
        return [_with_types(branch, named) for branch in parsed]
    found = named.get(parsed) if isinstance(parsed, str) else parsed
    return parsed if found is None else {**found, "__fastavro_parsed": True, "__named_schemas": named}


def _loads(text: str, has_defaults: bool) -> Any:
    try:
        return json.loads(text, object_hook=None if has_defaults else _without_default)
    except ValueError:
        if text.isidentifier():  # the name of a primitive type without quotation marks
            return text
        raise


def _without_default(part: dict[str, Any]) -> dict[str, Any]:
    part.pop("default", None)
    return part


def write_avro(schema: AvroSchema, value: object, *, strict: bool) -> bytes:
    """Return the bytes of a value.

    Args:
        schema: the schema.
        value: the value, as fastavro takes it.
        strict: whether fields that the schema does not have are errors.

    Raises:
        SchemaMismatch: the value does not fit the schema.
    """
    if schema.is_bytes and isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    stream = io.BytesIO()
    try:
        fastavro.schemaless_writer(stream, schema.parsed, value, strict_allow_default=strict)
    except Exception as error:  # fastavro raises what a value leads to
        raise SchemaMismatch(f"the value does not fit the Avro schema: {_why(schema, value, error)}") from error
    return stream.getvalue()


def _why(schema: AvroSchema, value: Any, error: Exception) -> str:
    """Return the field that does not fit, which only a validation finds."""
    try:
        validate(value, schema.parsed, raise_errors=True)
    except ValidationError as found:
        return printable("; ".join(str(one) for one in found.errors), _TEXT)
    except Exception:
        return _said(error)
    return _said(error)


def read_avro(data: bytes, writer: AvroSchema, reader: AvroSchema | None) -> Any:
    """Return the value of bytes that were written by the schema ``writer``, in the form of ``reader``.

    Raises:
        SchemaMismatch: the bytes are truncated, or not what the schema says, or stand for values that nest too deeply
            or are too many, or the reader's schema cannot read them.
    """
    if writer.is_bytes:
        return data
    if writer.named is not None:
        check_limits(writer.parsed, writer.named, data)
    stream = io.BytesIO(data)
    try:
        value = fastavro.schemaless_reader(stream, writer.parsed, None if reader is None else reader.parsed)
    except Exception as error:  # fastavro raises what strange bytes lead to
        raise SchemaMismatch(f"{len(data)} bytes cannot be read by the Avro schema: {_said(error)}") from error
    if stream.tell() != len(data):
        raise SchemaMismatch(
            f"{len(data) - stream.tell()} of {len(data)} bytes are left after the value of the Avro schema: they were "
            "written by another schema"
        )
    return value


def _said(error: Exception) -> str:
    text = printable(str(error), _TEXT)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
