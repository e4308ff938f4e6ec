"""Avro schemas as types, which are checked, and compared for compatibility."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

__all__ = ("NAMED", "PRIMITIVES", "AvroType", "InvalidAvro", "full_name", "parse_avro_types")

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NAMED: Final = ("record", "error", "enum", "fixed")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FULL_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_ORDERS: Final = ("ascending", "descending", "ignore")


class InvalidAvro(Exception):
    """A schema is not valid Avro."""


@attrs.define(eq=False)
class AvroField:
    """A field of a record."""

    name: str
    aliases: tuple[str, ...]
    type: "AvroType"
    has_default: bool
    default: Any


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


def parse_avro_types(text: str, references: Mapping[str, str]) -> AvroType:
    """Parse a schema.

    Args:
        text: the schema.
        references: the texts of the schemas that it references, each after those that it references itself.

    Raises:
        InvalidAvro: one of them is not valid.
    """
    names: dict[str, AvroType] = {}
    try:
        for reference in references.values():
            _Parser(names).parse(_loads(reference), "")
        return _Parser(names).parse(_loads(text), "")
    except RecursionError:
        raise InvalidAvro("it is nested too deeply") from None


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise InvalidAvro("it is not JSON") from None


class _Parser:
    def __init__(self, names: dict[str, AvroType]) -> None:
        self._names = names

    def parse(self, schema: Any, namespace: str) -> AvroType:
        if isinstance(schema, str):
            return self._named(schema, namespace)
        if isinstance(schema, list):
            return self._union(schema, namespace)
        kind = schema.get("type") if isinstance(schema, dict) else None
        if not isinstance(kind, str):
            raise InvalidAvro(f"it has no type: {json.dumps(schema):.100}")
        if kind in NAMED:
            return self._declare(schema, kind, namespace)
        if kind in ("array", "map"):
            inner = "items" if kind == "array" else "values"
            if inner not in schema:
                raise InvalidAvro(f"{kind} without {inner}")
            return AvroType(kind, branches=[self.parse(schema[inner], namespace)])
        if kind in PRIMITIVES:
            return AvroType(kind)
        return self._named(kind, namespace)

    def _named(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        known = self._names.get(full_name(name, namespace)) or self._names.get(name)
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
        if not isinstance(name, str) or not _FULL_NAME.fullmatch(name):
            raise InvalidAvro(f"illegal name: {name!r}")
        name = full_name(name, schema.get("namespace", namespace))
        if not _FULL_NAME.fullmatch(name) or name in PRIMITIVES:
            raise InvalidAvro(f"illegal name: {name!r}")
        namespace = name.rpartition(".")[0]
        if name in self._names:
            raise InvalidAvro(f"can't redefine: {name}")
        aliases = tuple(full_name(alias, namespace) for alias in _aliases(schema))
        declared = self._names[name] = AvroType("record" if kind == "error" else kind, name, aliases)
        if kind == "enum":
            declared.symbols, declared.has_default = _symbols(schema, name), isinstance(schema.get("default"), str)
        elif kind == "fixed":
            size = schema.get("size")
            if not isinstance(size, int) or isinstance(size, bool) or size < 0:
                raise InvalidAvro(f"fixed {name} has no size, or one below 0")
            declared.size = size
        else:
            fields = schema.get("fields")
            if not isinstance(fields, list):
                raise InvalidAvro(f"record {name} has no fields")
            declared.fields = [self._field(one, name, namespace) for one in fields]
            _refuse_twice([field.name for field in declared.fields], f"record {name} has the field")
        return declared

    def _field(self, field: Any, record: str, namespace: str) -> AvroField:
        if not isinstance(field, dict) or not isinstance(field.get("name"), str) or "type" not in field:
            raise InvalidAvro(f"a field of record {record} has no name or no type")
        name, order = field["name"], field.get("order", "ascending")
        if not _NAME.fullmatch(name):
            raise InvalidAvro(f"illegal name of a field: {name!r}")
        if not isinstance(order, str) or order.lower() not in _ORDERS:
            raise InvalidAvro(f"illegal order of field {name}: {order!r}")
        kind, default = self.parse(field["type"], namespace), field.get("default")
        if kind.kind in ("float", "double") and isinstance(default, str):
            default = _number(default)
        if "default" in field and not _is_default(kind, default):
            raise InvalidAvro(f"invalid default for field {name}: {json.dumps(default):.100}")
        return AvroField(name, _aliases(field), kind, "default" in field, default)


def _aliases(declared: Mapping[str, Any]) -> tuple[str, ...]:
    aliases = declared.get("aliases")
    if aliases is None:
        return ()
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise InvalidAvro(f"aliases are not an array of names: {json.dumps(aliases):.100}")
    return tuple(aliases)


def _symbols(schema: Mapping[str, Any], name: str) -> tuple[str, ...]:
    symbols, default = schema.get("symbols"), schema.get("default")
    if not isinstance(symbols, list) or not all(isinstance(one, str) for one in symbols):
        raise InvalidAvro(f"enum {name} without symbols")
    for symbol in symbols:
        if not _NAME.fullmatch(symbol):
            raise InvalidAvro(f"illegal symbol of enum {name}: {symbol!r}")
    _refuse_twice(symbols, f"enum {name} has the symbol")
    if isinstance(default, str) and default not in symbols:
        raise InvalidAvro(f"the default of enum {name} is none of its symbols: {default:.100}")
    return tuple(symbols)


def _number(text: str) -> float | str:
    """Return the number in a string, as which the defaults of floats may be written."""
    try:
        return float(text)
    except ValueError:
        return text


def _refuse_twice(names: Sequence[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidAvro(f"{what} {name!r} twice")
        seen.add(name)


def _is_default(wanted: AvroType, value: Any) -> bool:
    """Return whether a value may be the default of a field, as Avro's library for Java judges."""
    match wanted.kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            limit = 2**31 if wanted.kind == "int" else 2**63
            return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "array":
            return isinstance(value, list) and all(_is_default(wanted.branches[0], one) for one in value)
        case "map":
            return isinstance(value, dict) and all(_is_default(wanted.branches[0], one) for one in value.values())
        case "union":
            return any(_is_default(branch, value) for branch in wanted.branches)
        case "record":
            return isinstance(value, dict) and all(_has_default(field, value) for field in wanted.fields)
    return isinstance(value, str)


def _has_default(field: AvroField, values: Mapping[str, Any]) -> bool:
    if field.name in values:
        return _is_default(field.type, values[field.name])
    return field.has_default and _is_default(field.type, field.default)


def full_name(name: str, namespace: object) -> str:
    """Return a name with its namespace, unless it has one already."""
    return name if "." in name or not namespace else f"{namespace}.{name}"
