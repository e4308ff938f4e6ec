"""Limits of the values that bytes may stand for in Avro: how deep they nest, and how many of them take no bytes.

fastavro has neither limit: it reads nested values by recursion in C, which overflows the stack, and a few bytes can
stand for any number of nulls in an array.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..errors import SchemaMismatch

__all__ = ("check_limits", "is_unlimited")

_MAX_DEPTH: Final = 500
"""The largest number of records, unions, arrays and maps one inside the other; stacks have room for thousands."""
_MAX_EMPTY: Final = 100_000
"""The largest number of values that take no bytes."""
_INT64: Final = 2**63
_MAX_SHIFT: Final = 63
"""The shift of the last byte of a number of 64 bits."""

_SIZES: Final = {"boolean": 1, "float": 4, "double": 8}
_RECORDS: Final = ("record", "error")
_PLAIN: Final = ("null", *_SIZES, "int", "long", "enum", "bytes", "string", "fixed")
_KINDS: Final = frozenset((*_PLAIN, *_RECORDS, "array", "map"))


def is_unlimited(schema: Any, named: Mapping[str, Any]) -> bool:
    """Return whether few bytes may stand for values that nest deeply, or for many values.

    Args:
        schema: a schema that fastavro has parsed.
        named: the named types, by their full names.

    Raises:
        SchemaMismatch: the schema itself nests too deeply.
    """
    known: set[str] = set()
    path: list[tuple[str | None, Iterator[Any]]] = [(None, iter((schema,)))]
    while path:
        if (part := next(path[-1][1], None)) is None:
            path.pop()
            continue
        kind, one = _resolved(part, named)
        if _is_empty(kind, one):
            return True
        name = one["name"] if kind in _RECORDS else None
        if name is not None and any(name == above for above, _ in path):
            return True
        if kind not in _PLAIN and name not in known:
            path.append((name, _parts(kind, one)))
            known |= set() if name is None else {name}
        if len(path) > _MAX_DEPTH:
            raise SchemaMismatch(f"the Avro schema has more than {_MAX_DEPTH} types one inside the other")
    return False


def check_limits(schema: Any, named: Mapping[str, Any], data: bytes) -> None:
    """Raise SchemaMismatch if the bytes stand for values that nest too deeply, or for too many that take no bytes.

    Bytes that are truncated, or not what the schema says, are left to fastavro. Arguments as of :func:`is_unlimited`.
    """
    source, empty = _Source(data), 0
    path: list[Iterator[Any]] = [iter((schema,))]
    while path and source.position <= len(data):
        if (part := next(path[-1], None)) is None:
            path.pop()
            continue
        kind, one = _resolved(part, named)
        if kind in _PLAIN:
            source.skip(kind, one)
        else:
            path.append(source.parts(kind, one))
        empty += _is_empty(kind, one)
        if empty > _MAX_EMPTY:
            raise SchemaMismatch(f"{len(data)} bytes stand for more than {_MAX_EMPTY} Avro values that take none")
        if len(path) > _MAX_DEPTH:
            raise SchemaMismatch(f"the Avro value has more than {_MAX_DEPTH} values one inside the other")


def _resolved(schema: Any, named: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the kind of a schema, and the schema itself in place of its name."""
    while not isinstance(schema, list):
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, str) and kind in _KINDS:
            return kind, schema
        schema = named[kind] if isinstance(kind, str) else kind
    return "union", schema


def _is_empty(kind: str, schema: Any) -> bool:
    """Return whether a value takes no bytes, and contains none."""
    return kind == "null" or (kind == "fixed" and schema["size"] == 0) or (kind in _RECORDS and not schema["fields"])


def _parts(kind: str, schema: Any) -> Iterator[Any]:
    """Yield the schemas in a schema. The null of a union is left out: its branch takes a byte."""
    if kind == "union":
        return (branch for branch in schema if branch not in ("null", {"type": "null"}))
    if kind in _RECORDS:
        return (field["type"] for field in schema["fields"])
    return iter((schema["items" if kind == "array" else "values"],))


class _Source:
    """Bytes, and the position of the next value in them."""

    def __init__(self, data: bytes) -> None:
        self._data, self.position = data, 0

    def skip(self, kind: str, schema: Any) -> None:
        """Skip a value that contains no others."""
        if kind in ("bytes", "string"):
            size = self._long()
            self.position += max(0, size)
        elif kind in ("int", "long", "enum"):
            self._long()
        else:
            self.position += schema["size"] if kind == "fixed" else _SIZES.get(kind, 0)

    def parts(self, kind: str, schema: Any) -> Iterator[Any]:
        """Yield the schemas of the values that a value contains, each when the one before it has been read."""
        if kind == "union":
            branch = self._long()
            if not 0 <= branch < len(schema):
                raise SchemaMismatch(f"the Avro union has {len(schema)} branches, and no branch {branch}")
            yield from _parts(kind, schema[branch : branch + 1])
        elif kind in _RECORDS:
            yield from _parts(kind, schema)
        else:
            yield from self._items(kind, schema)

    def _items(self, kind: str, schema: Any) -> Iterator[Any]:
        while count := self._long():
            if count <= -_INT64:
                raise SchemaMismatch(f"{count} is no number of Avro values")
            if count < 0:
                self._long()  # the block's size in bytes
            for _ in range(abs(count)):
                if kind == "map":
                    self.skip("string", None)
                yield from _parts(kind, schema)

    def _long(self) -> int:
        """Return a number; 0 if the bytes end. Refuse a number that fastavro would read as another one."""
        value = shift = 0
        while self.position < len(self._data):
            byte = self._data[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            if value >> 64 or shift > _MAX_SHIFT:
                raise SchemaMismatch("the Avro value has a number of more than 64 bits")
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
        self.position = len(self._data) + 1
        return 0
