"""Writes the text of a .proto file from its descriptor."""

from collections.abc import Iterator
from typing import Any, Final

try:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto
    from google.protobuf.unknown_fields import UnknownFieldSet
except ImportError as _missing:
    raise ImportError("Protobuf needs protobuf: pip install 'aiokafkawire[protobuf]'") from _missing

__all__ = ("proto_text",)

_SCALARS: Final = {
    getattr(FieldDescriptorProto, f"TYPE_{name.upper()}"): name
    for name in (
        "double",
        "float",
        "int64",
        "uint64",
        "int32",
        "fixed64",
        "fixed32",
        "bool",
        "string",
        "bytes",
        "uint32",
        "sfixed32",
        "sfixed64",
        "sint32",
        "sint64",
    )
}
_LABELS: Final = {
    FieldDescriptorProto.LABEL_OPTIONAL: "optional ",
    FieldDescriptorProto.LABEL_REQUIRED: "required ",
    FieldDescriptorProto.LABEL_REPEATED: "repeated ",
}
_LAST_NUMBER: Final = 2**29 - 1
_LAST_ENUM_NUMBER: Final = 2**31 - 1
_INDENT: Final = "  "


class _NotExpressible(Exception):
    """The descriptor has parts that this module does not write."""


def proto_text(file: Any) -> str | None:
    """Return a FileDescriptorProto as text, without comments.

    None if it has custom options, extensions, groups, or an edition, which this function does not write.
    """
    try:
        return "\n".join(_file(file)) + "\n"
    except _NotExpressible:
        return None


def _file(file: Any) -> Iterator[str]:
    if file.syntax not in ("", "proto2", "proto3") or file.extension:
        raise _NotExpressible
    syntax = file.syntax or "proto2"
    yield f'syntax = "{syntax}";'
    if file.package:
        yield f"package {file.package};"
    public, weak = set(file.public_dependency), set(file.weak_dependency)
    for index, name in enumerate(file.dependency):
        kind = "public " if index in public else "weak " if index in weak else ""
        yield f"import {kind}{_quoted(name)};"
    for option in _options(file.options):
        yield f"option {option};"
    scope = f".{file.package}" if file.package else ""
    for message in file.message_type:
        yield from _message(message, syntax == "proto3", "", scope)
    for enum in file.enum_type:
        yield from _enum(enum, "")
    for service in file.service:
        yield from _service(service)


def _message(message: Any, is_proto3: bool, indent: str, scope: str) -> Iterator[str]:
    if message.extension or message.extension_range:
        raise _NotExpressible
    inner = indent + _INDENT
    scope = f"{scope}.{message.name}"
    maps = {f"{scope}.{nested.name}": nested for nested in message.nested_type if nested.options.map_entry}
    yield f"{indent}message {message.name} {{"
    for option in _options(message.options):
        yield f"{inner}option {option};"
    yield from _reserved(message, inner, [(one.start, one.end - 1) for one in message.reserved_range], _LAST_NUMBER)
    written: set[int] = set()
    for field in message.field:
        if not field.HasField("oneof_index") or field.proto3_optional:
            yield f"{inner}{_field(field, is_proto3, maps)}"
        elif field.oneof_index not in written:
            written.add(field.oneof_index)
            yield from _oneof(message, field.oneof_index, is_proto3, inner)
    for nested in message.nested_type:
        if not nested.options.map_entry:
            yield from _message(nested, is_proto3, inner, scope)
    for enum in message.enum_type:
        yield from _enum(enum, inner)
    yield f"{indent}}}"


def _oneof(message: Any, index: int, is_proto3: bool, indent: str) -> Iterator[str]:
    yield f"{indent}oneof {message.oneof_decl[index].name} {{"
    for option in _options(message.oneof_decl[index].options):
        yield f"{indent}{_INDENT}option {option};"
    for field in message.field:
        if field.HasField("oneof_index") and field.oneof_index == index:
            yield f"{indent}{_INDENT}{_field(field, is_proto3, {}, in_oneof=True)}"
    yield f"{indent}}}"


def _field(field: Any, is_proto3: bool, maps: dict[str, Any], *, in_oneof: bool = False) -> str:
    options = list(_options(field.options))
    if field.HasField("default_value"):
        options.insert(0, f"default = {_default(field)}")
    if field.json_name and field.json_name != _json_name(field.name):
        options.append(f"json_name = {_quoted(field.json_name)}")
    ending = f" [{', '.join(options)}];" if options else ";"
    entry = maps.get(field.type_name)
    if entry is not None:
        key, value = entry.field
        return f"map<{_type(key)}, {_type(value)}> {field.name} = {field.number}{ending}"
    label = _LABELS[field.label]
    is_implicit = is_proto3 and field.label == FieldDescriptorProto.LABEL_OPTIONAL and not field.proto3_optional
    if in_oneof or is_implicit:
        label = ""
    return f"{label}{_type(field)} {field.name} = {field.number}{ending}"


def _type(field: Any) -> str:
    if field.type == FieldDescriptorProto.TYPE_GROUP:
        raise _NotExpressible
    name: str = _SCALARS.get(field.type) or field.type_name
    return name


def _default(field: Any) -> str:
    if field.type == FieldDescriptorProto.TYPE_STRING:
        return _quoted(field.default_value)
    if field.type == FieldDescriptorProto.TYPE_BYTES:  # it is escaped already
        return f'"{field.default_value}"'
    return str(field.default_value)


def _enum(enum: Any, indent: str) -> Iterator[str]:
    inner = indent + _INDENT
    yield f"{indent}enum {enum.name} {{"
    for option in _options(enum.options):
        yield f"{inner}option {option};"
    yield from _reserved(enum, inner, [(one.start, one.end) for one in enum.reserved_range], _LAST_ENUM_NUMBER)
    for value in enum.value:
        options = ", ".join(_options(value.options))
        yield f"{inner}{value.name} = {value.number}{f' [{options}]' if options else ''};"
    yield f"{indent}}}"


def _reserved(declared: Any, indent: str, ranges: list[tuple[int, int]], last: int) -> Iterator[str]:
    for start, end in ranges:
        if start == end:
            yield f"{indent}reserved {start};"
        else:
            yield f"{indent}reserved {start} to {'max' if end >= last else end};"
    for name in declared.reserved_name:
        yield f"{indent}reserved {_quoted(name)};"


def _service(service: Any) -> Iterator[str]:
    yield f"service {service.name} {{"
    for option in _options(service.options):
        yield f"{_INDENT}option {option};"
    for method in service.method:
        received = f"{'stream ' if method.client_streaming else ''}{method.input_type}"
        returned = f"{'stream ' if method.server_streaming else ''}{method.output_type}"
        options = "".join(f" option {option};" for option in _options(method.options))
        yield f"{_INDENT}rpc {method.name} ({received}) returns ({returned}){f' {{{options} }}' if options else ';'}"
    yield "}"


def _options(options: Any) -> Iterator[str]:
    """Yield the standard options as ``name = value``."""
    if len(UnknownFieldSet(options)):
        raise _NotExpressible
    for field, value in options.ListFields():
        if field.name == "map_entry":
            continue
        if field.is_extension or field.message_type is not None or isinstance(value, list) or not _is_single(value):
            raise _NotExpressible
        if field.enum_type is not None:
            yield f"{field.name} = {field.enum_type.values_by_number[value].name}"
        elif isinstance(value, bool):
            yield f"{field.name} = {str(value).lower()}"
        else:
            yield f"{field.name} = {_quoted(value) if isinstance(value, str) else value}"


def _is_single(value: object) -> bool:
    return isinstance(value, bool | int | float | str)


def _quoted(text: str) -> str:
    """Return a string literal.

    Characters beyond ASCII are written as they are: parsers read the octal escapes of their UTF-8 in different ways.
    """
    escaped = "".join(
        f"\\{ord(character):03o}" if character < " " or character in '"\\\x7f' else character for character in text
    )
    return f'"{escaped}"'


def _json_name(name: str) -> str:
    """Return the JSON name that a field has by default."""
    first, *words = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in words)
