"""Avro schemas as types, which are checked, and compared for compatibility."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

__all__ = ("AvroType", "InvalidAvro", "parse_avro_types")

_PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")


class InvalidAvro(Exception):
    """A schema is not valid Avro."""


@attrs.define(eq=False)
class AvroField:
    """A field of a record."""

    name: str
    aliases: tuple[str, ...]
    type: "AvroType"
    has_default: bool


@attrs.define(eq=False)
class AvroType:
    """A type; ``kind`` is the name of a primitive or complex type, and the other attributes are those of some kinds."""

    kind: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    fields: list[AvroField] = attrs.field(factory=list)
    symbols: tuple[str, ...] = ()
    has_default: bool = False
    size: int = 0
    branches: list["AvroType"] = attrs.field(factory=list)
    """The branches of a union; the one type of an array's items or of a map's values."""
    decimal: tuple[int, int] | None = None
    """The precision and scale of a decimal."""


def parse_avro_types(text: str, references: Mapping[str, str]) -> AvroType:
    """Parse a schema.

    Args:
        text: the schema.
        references: the texts of the schemas that it references, each after those that it references itself.

    Raises:
        InvalidAvro: one of them is not valid.
    """
    names: dict[str, AvroType] = {}
    for reference in references.values():
        _Parser(names).parse(_loads(reference), "")
    return _Parser(names).parse(_loads(text), "")


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if text in _PRIMITIVES:
            return text
        raise InvalidAvro("it is not JSON") from None


class _Parser:
    def __init__(self, names: dict[str, AvroType]) -> None:
        self._names = names

    def parse(self, schema: Any, namespace: str) -> AvroType:
        if isinstance(schema, str):
            return self._named(schema, namespace)
        if isinstance(schema, list):
            return self._union(schema, namespace)
        if not isinstance(schema, dict) or "type" not in schema:
            raise InvalidAvro(f"it has no type: {json.dumps(schema):.100}")
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.parse(kind, namespace)
        if kind in ("record", "error", "enum", "fixed"):
            return self._declare(schema, kind, namespace)
        if kind in ("array", "map"):
            inner = "items" if kind == "array" else "values"
            if inner not in schema:
                raise InvalidAvro(f"{kind} without {inner}")
            return AvroType(kind, branches=[self.parse(schema[inner], namespace)])
        if kind in _PRIMITIVES:
            return AvroType(kind, decimal=_decimal(schema))
        return self._named(kind, namespace)

    def _named(self, name: str, namespace: str) -> AvroType:
        if name in _PRIMITIVES:
            return AvroType(name)
        known = self._names.get(_full(name, namespace)) or self._names.get(name)
        if known is None:
            raise InvalidAvro(f"undefined name: {name!r}")
        return known

    def _union(self, branches: list[Any], namespace: str) -> AvroType:
        parsed = [self.parse(branch, namespace) for branch in branches]
        kinds = [branch.name or branch.kind for branch in parsed]
        if len(set(kinds)) != len(kinds) or any(branch.kind == "union" for branch in parsed):
            raise InvalidAvro("a union has a type twice, or another union")
        return AvroType("union", branches=parsed)

    def _declare(self, schema: dict[str, Any], kind: str, namespace: str) -> AvroType:
        name = schema.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidAvro(f"illegal name: {name!r}")
        name = _full(name, schema.get("namespace", namespace))
        namespace = name.rpartition(".")[0]
        if name in self._names:
            raise InvalidAvro(f"can't redefine: {name}")
        aliases = tuple(_full(alias, namespace) for alias in schema.get("aliases", ()))
        declared = self._names[name] = AvroType("record" if kind == "error" else kind, name, aliases)
        if kind == "enum":
            symbols = schema.get("symbols")
            if not isinstance(symbols, list) or not all(isinstance(one, str) for one in symbols):
                raise InvalidAvro(f"enum {name} without symbols")
            declared.symbols, declared.has_default = tuple(symbols), "default" in schema
        elif kind == "fixed":
            if not isinstance(schema.get("size"), int):
                raise InvalidAvro(f"fixed {name} without a size")
            declared.size, declared.decimal = schema["size"], _decimal(schema)
        else:
            fields = schema.get("fields")
            if not isinstance(fields, list):
                raise InvalidAvro(f"record {name} has no fields")
            declared.fields = [self._field(one, name, namespace) for one in fields]
        return declared

    def _field(self, field: Any, record: str, namespace: str) -> AvroField:
        if not isinstance(field, dict) or not isinstance(field.get("name"), str) or "type" not in field:
            raise InvalidAvro(f"a field of record {record} has no name or no type")
        aliases = tuple(field.get("aliases", ()))
        return AvroField(field["name"], aliases, self.parse(field["type"], namespace), "default" in field)


def _decimal(schema: dict[str, Any]) -> tuple[int, int] | None:
    if schema.get("logicalType") != "decimal" or not isinstance(schema.get("precision"), int):
        return None
    return schema["precision"], schema.get("scale", 0)


def _full(name: str, namespace: object) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"
