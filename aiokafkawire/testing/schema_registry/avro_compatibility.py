"""Whether data of one Avro schema can be read by another, by the rules of Avro's schema resolution."""

from collections.abc import Mapping
from typing import Final

from .avro_types import AvroField, AvroType

__all__ = ("avro_differences",)

_PROMOTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}


def avro_differences(reader: AvroType, writer: AvroType) -> tuple[str, ...]:
    """Return why a reader cannot read the data of a writer; nothing if it can."""
    return tuple(_Comparison().compare(reader, writer, "/"))


class _Comparison:
    """One comparison. A pair of records that is being compared already, as in recursive types, counts as compatible."""

    def __init__(self) -> None:
        self._begun: set[tuple[int, int]] = set()

    def compare(self, reader: AvroType, writer: AvroType, path: str) -> list[str]:
        if writer.kind == "union":
            return [found for branch in writer.branches for found in self.compare(reader, branch, path)]
        if reader.kind == "union":
            if any(not self._compare_in_union(branch, writer) for branch in reader.branches):
                return []
            return [f"MISSING_UNION_BRANCH at {path}: the reader's union has no branch for {_shown(writer)}"]
        if reader.kind != writer.kind:
            if writer.kind in _PROMOTIONS.get(reader.kind, ()):
                return []
            return [f"TYPE_MISMATCH at {path}: the reader's type {_shown(reader)} cannot read {_shown(writer)}"]
        match reader.kind:
            case "record":
                return self._compare_records(reader, writer, path)
            case "array" | "map":
                return self.compare(reader.branches[0], writer.branches[0], f"{path}{reader.kind}/")
            case "enum":
                return self._compare_enums(reader, writer, path)
            case "fixed" if reader.size != writer.size:
                return [f"FIXED_SIZE_MISMATCH at {path}: expected {writer.size}, found {reader.size}"]
            case "fixed":
                return _compare_names(reader, writer, path)
        return []

    def _compare_in_union(self, branch: AvroType, writer: AvroType) -> list[str]:
        return _Comparison._with(self._begun).compare(branch, writer, "/")

    @classmethod
    def _with(cls, begun: set[tuple[int, int]]) -> "_Comparison":
        comparison = cls()
        comparison._begun = set(begun)
        return comparison

    def _compare_records(self, reader: AvroType, writer: AvroType, path: str) -> list[str]:
        if (id(reader), id(writer)) in self._begun:
            return []
        self._begun.add((id(reader), id(writer)))
        found = _compare_names(reader, writer, path)
        fields = {field.name: field for field in writer.fields}
        for field in reader.fields:
            place = f"{path}fields/{field.name}/"
            written = _written(field, fields)
            if written is not None:
                found += self.compare(field.type, written.type, place)
            elif not field.has_default:
                found.append(
                    f"READER_FIELD_MISSING_DEFAULT_VALUE at {place}: the field {field.name!r} has no default value, "
                    "and the writer does not have it"
                )
        return found

    def _compare_enums(self, reader: AvroType, writer: AvroType, path: str) -> list[str]:
        found = _compare_names(reader, writer, path)
        missing = [symbol for symbol in writer.symbols if symbol not in reader.symbols]
        if missing and not reader.has_default:
            found.append(f"MISSING_ENUM_SYMBOLS at {path}: the reader's enum lacks {', '.join(missing)}")
        return found


def _written(field: AvroField, fields: Mapping[str, AvroField]) -> AvroField | None:
    return next((fields[name] for name in (field.name, *field.aliases) if name in fields), None)


def _compare_names(reader: AvroType, writer: AvroType, path: str) -> list[str]:
    # Avro compares names without their namespaces, and the reader's aliases with them.
    if reader.name.rpartition(".")[2] == writer.name.rpartition(".")[2] or writer.name in reader.aliases:
        return []
    return [f"NAME_MISMATCH at {path}: expected {writer.name}, found {reader.name}"]


def _shown(shown: AvroType) -> str:
    return shown.name or shown.kind
