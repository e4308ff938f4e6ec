"""The options of a source whose values are JSON, Avro or Protobuf, and become a column of structs."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias, cast

import attrs

from ..errors import ConfigError
from .value_schema import check_value_schema

__all__ = ("VALUE_OPTIONS", "ValueFormat", "read_value_format")

VALUE_OPTIONS: Final = (
    "valueFormat",
    "valueSchema",
    "valueErrors",
    "schemaRegistry",
    "avroSchema",
    "protobufClass",
)

_Kind: TypeAlias = Literal["json", "avro", "protobuf"]
_KINDS: Final = ("json", "avro", "protobuf")


@attrs.frozen(kw_only=True)
class ValueFormat:
    """How values become structs."""

    kind: _Kind
    fields: str
    """The fields of the column ``value`` in Spark's DDL: ``carrier STRING, delay INT``."""
    keeps_errors: bool
    """Whether a value that cannot be decoded becomes null; otherwise it fails the query."""
    registry: str | None
    """The URL of the schema registry whose ids precede the values; None for values without an id."""
    avro_schema: str | None
    protobuf_class: str | None
    """The generated class of the messages, such as ``flights_pb2:Flight``."""


def read_value_format(given: Mapping[str, str]) -> ValueFormat | None:
    """Read the options that have names in lower case; return None without ``valueFormat``.

    Raises:
        ConfigError: an option is wrong, missing, or has no meaning beside the others.
    """
    kind = given.get("valueformat", "").strip().lower()
    if not kind:
        _refuse(given, VALUE_OPTIONS[1:], "valueFormat")
        return None
    if kind not in _KINDS:
        raise ConfigError(f"valueFormat must be one of {', '.join(_KINDS)}, got {given['valueformat']!r}")
    errors = given.get("valueerrors", "fail").strip().lower()
    if errors not in ("fail", "null"):
        raise ConfigError(f"valueErrors must be fail or null, got {given['valueerrors']!r}")
    fields = given.get("valueschema", "").strip()
    if not fields:
        raise ConfigError("valueSchema must have the fields of the values, such as 'carrier STRING, delay INT'")
    check_value_schema(fields)
    if kind != "avro":
        _refuse(given, ("avroSchema",), "valueFormat=avro")
    if kind != "protobuf":
        _refuse(given, ("protobufClass",), "valueFormat=protobuf")
    registry = given.get("schemaregistry", "").strip() or None
    if kind == "avro" and (registry is None) == ("avroschema" not in given):
        raise ConfigError("valueFormat=avro needs either schemaRegistry, its URL, or avroSchema, the values' schema")
    if kind == "protobuf" and registry is None and "protobufclass" not in given:
        raise ConfigError(
            "valueFormat=protobuf needs schemaRegistry, its URL, or protobufClass, such as orders_pb2:Order"
        )
    return ValueFormat(
        kind=cast("_Kind", kind),
        fields=fields,
        keeps_errors=errors == "null",
        registry=registry,
        avro_schema=given.get("avroschema"),
        protobuf_class=given.get("protobufclass"),
    )


def _refuse(given: Mapping[str, str], names: Iterable[str], needed: str) -> None:
    for name in names:
        if name.lower() in given:
            raise ConfigError(f"{name} needs {needed}")
