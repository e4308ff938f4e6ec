"""Generates the source of encoders: ``encode(m, parts)`` appends a message's bytes to a list."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs

from ..errors import UnsupportedVersion
from .primitives import STRUCT_CODES, WireType, as_bytes, as_list, encode_tags, encode_uvarint
from .schema import FieldSchema, Message
from .source_builder import ArrayLoop, Blame, Unit, default_expression, is_flexible, present_fields

__all__ = ("emit_encoder",)


def emit_encoder(cls: type[Message], version: int) -> Unit:
    """Generate the source of the encoder of one message in one version."""
    unit = Unit(f"<aiokafkawire {cls.__name__} v{version} encode>", "encode", version)
    unit.constants |= {
        "encode_uvarint": encode_uvarint,
        "encode_tags": encode_tags,
        "as_bytes": as_bytes,
        "as_list": as_list,
        "pack": struct.pack,
    }
    _Encoder(unit, cls, version).function()
    return unit


class _Encoder:
    def __init__(self, unit: Unit, cls: type[Message], version: int) -> None:
        self.unit, self.cls, self.version = unit, cls, version
        self.flexible = version in cls.flexible
        # Consecutive fixed-width values, to pack in one call.
        self.run: list[Blame] = []
        self.sink = "add"

    def function(self) -> None:
        with self.unit.indented("def encode(m, parts):"):
            self.unit.line("add = parts.append")
            self.struct(self.cls, "m")

    def struct(self, cls: type[Any], expression: str) -> None:
        inline, tagged, absent = present_fields(cls, self.version)
        for field in absent:
            if not field.ignorable:
                self.refuse(cls, field, expression)
        for field in inline:
            self.value(field, f"{expression}.{field.name}")
        self.flush()
        if self.flexible:
            self.tags(cls, tagged, expression)

    def refuse(self, cls: type[Any], field: FieldSchema, expression: str) -> None:
        """Emit a check that raises UnsupportedVersion if a field that this version lacks differs from its default."""
        default = default_expression(self.unit, cls, field)
        self.unit.constants["UnsupportedVersion"] = UnsupportedVersion
        text = (
            f"{cls.__name__}.{field.name} needs version {field.versions} of {self.cls.__name__}, this is {self.version}"
        )
        value = f"{expression}.{field.name}"
        with self.unit.indented(f"if {value} != {default}:", self.unit.about(field, value)):
            self.unit.line(f"raise UnsupportedVersion({text!r})")

    def value(self, field: FieldSchema, expression: str) -> None:
        if self.version not in field.nullable:
            self.present(field, expression)
            return
        self.flush()
        name = self.unit.name("v")
        self.unit.line(f"{name} = {expression}")
        with self.branch(f"if {name} is None:"):
            self.unit.line(f"{self.sink}({self.null(field)})")
        with self.branch("else:"):
            if not field.array and not isinstance(field.kind, WireType):
                self.unit.line(f"{self.sink}(b'\\x01')")
            self.present(field, name)

    def present(self, field: FieldSchema, expression: str) -> None:
        if field.array:
            self.array(field, expression)
        elif isinstance(field.kind, WireType):
            self.primitive(field, field.kind, expression)
        else:
            name = self.unit.name("e")
            self.flush()
            self.unit.line(f"{name} = {expression}")
            with self.unit.inside(field.name):
                self.struct(field.kind, name)

    def primitive(self, field: FieldSchema, wire: WireType, expression: str) -> None:
        if wire in STRUCT_CODES:
            self.fixed(field, _code(wire), expression, expression)
        elif wire is WireType.UUID:
            self.flush()
            self.unit.line(f"{self.sink}({expression}.bytes)", self.unit.about(field, expression))
        else:
            name = self.unit.name("s")
            convert = f"{expression}.encode()" if wire is WireType.STRING else f"as_bytes({expression})"
            self.unit.line(f"{name} = {convert}", self.unit.about(field, expression))
            self.length(field, name, expression)
            self.flush()
            self.unit.line(f"{self.sink}({name})")

    def array(self, field: FieldSchema, expression: str) -> None:
        name = self.unit.name("a")
        about = self.unit.about(field, expression)
        # A string is also a sequence of strings, and must not be accepted as an array of strings.
        self.unit.line(
            f"{name} = as_list({expression})" if field.kind is WireType.STRING else f"{name} = {expression}", about
        )
        self.length(field, name, name)
        self.flush()
        if isinstance(field.kind, WireType) and field.kind in STRUCT_CODES:
            code = _code(field.kind)
            self.unit.line(f"{self.sink}(pack(f'>{{len({name})}}{code}', *{name}))", about)
            return
        element = self.unit.name("e")
        with (
            self.unit.indented(f"for {element} in {name}:", about),
            self.unit.inside(field.name, ArrayLoop(None, name, element)),
        ):
            if isinstance(field.kind, WireType):
                self.primitive(attrs.evolve(field, name="", array=False), field.kind, element)
            else:
                self.struct(field.kind, element)
            self.flush()

    def length(self, field: FieldSchema, name: str, shown: str) -> None:
        """Emit code that writes the length of the local ``name``; a fixed-width length is packed with neighbours.

        ``shown`` is the expression of the value, for errors.
        """
        about = self.unit.about(field, shown)
        if not is_flexible(field, self.cls.flexible, self.version):
            code = "h" if field.kind is WireType.STRING and not field.array else "i"
            self.fixed(field, code, f"len({name})", shown)
        else:
            self.flush()
            if field.kind is WireType.STRING and not field.array:
                # The compact form allows longer strings, but brokers reject them.
                with self.unit.indented(f"if len({name}) > 32767:"):
                    self.unit.line("raise ValueError('at most 32767 bytes are allowed')", about)
            self.unit.line(f"{self.sink}(encode_uvarint(len({name}) + 1))", about)

    def null(self, field: FieldSchema) -> str:
        if not field.array and not isinstance(field.kind, WireType):
            return "b'\\xff'"
        if is_flexible(field, self.cls.flexible, self.version):
            return "b'\\0'"
        return "b'\\xff\\xff'" if field.kind is WireType.STRING and not field.array else "b'\\xff\\xff\\xff\\xff'"

    def fixed(self, field: FieldSchema, code: str, packed: str, shown: str) -> None:
        self.run.append(self.unit.about(field, shown, packed, code))

    def flush(self) -> None:
        """Emit a call that packs the collected fixed-width values."""
        if not self.run:
            return
        run, self.run = self.run, []
        method = self.unit.struct_method("".join(blame.code or "" for blame in run), "pack")
        values = ", ".join(blame.packed or "" for blame in run)
        self.unit.line(f"{self.sink}({method}({values}))", *run)

    def tags(self, cls: type[Any], tagged: list[FieldSchema], expression: str) -> None:
        """Emit code that writes, sorted by tag, unknown tagged fields and known ones that differ from the default."""
        name, about = self.unit.name("t"), self.unit.here("tagged fields")
        self.unit.line(f"{name} = {expression}.unknown_tagged_fields", about)
        for field in tagged:
            default = default_expression(self.unit, cls, field)
            with self.unit.indented(f"if {expression}.{field.name} != {default}:"):
                data = self.unit.name("d")
                self.unit.line(f"{data} = []")
                outer, self.sink = self.sink, f"{data}.append"
                self.value(field, f"{expression}.{field.name}")
                self.flush()
                self.sink = outer
                self.unit.line(
                    f"{name} = {{**({name} or {{}}), {field.tag}: b''.join({data})}}", self.unit.about(field)
                )
        self.unit.line(f"{self.sink}(encode_tags({name}) if {name} else b'\\0')", about._replace(shown=name))

    @contextmanager
    def branch(self, header: str) -> Iterator[None]:
        """Emit a branch that begins with the line ``header``, and at its end a call that packs the branch's values."""
        with self.unit.indented(header):
            yield
            self.flush()


def _code(wire: WireType) -> str:
    # "?" packs the truth value of any object; "b" packs bool and rejects None and strings.
    return "b" if wire is WireType.BOOL else STRUCT_CODES[wire]
