"""Generates the source of decoders: ``decode(data, p)`` reads a message at ``p``, and returns it and its end."""

import struct
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from uuid import UUID

import attrs

from .primitives import STRUCT_CODES, WireType, decode_tags, finish_uvarint
from .schema import FieldSchema, Message, Versions
from .source_builder import ArrayLoop, Blame, Unit, default_expression, is_flexible, present_fields

__all__ = ("emit_decoder",)

_NO = Versions.parse("none")


def emit_decoder(cls: type[Message], version: int) -> Unit:
    """Generate the source of the decoder of one message in one version."""
    unit = Unit(f"<aiokafkawire {cls.__name__} v{version} decode>", "decode", version)
    unit.constants |= {
        "decode_tags": decode_tags,
        "finish_uvarint": finish_uvarint,
        "unpack_from": struct.unpack_from,
        "UUID": UUID,
    }
    _Decoder(unit, cls, version).function()
    return unit


class _Decoder:
    def __init__(self, unit: Unit, cls: type[Message], version: int) -> None:
        self.unit, self.cls, self.version = unit, cls, version
        self.flexible = version in cls.flexible
        # Consecutive fixed-width values, to unpack in one call: the local name of each, and its field.
        self.run: list[tuple[str, Blame]] = []

    def function(self) -> None:
        with self.unit.indented("def decode(data, p):"):
            self.unit.line("size = len(data)")
            self.unit.line("view = memoryview(data)")
            built = self.struct(self.cls)
            self.unit.line(f"return {built}, p")

    def struct(self, cls: type[Any]) -> str:
        """Emit code that reads a struct's fields into local variables; return the expression that builds the struct."""
        inline, tagged, _ = present_fields(cls, self.version)
        names = {field.name: self.value(field) for field in inline}
        self.flush()
        if self.flexible:
            for field in tagged:
                names[field.name] = self.unit.name(field.name)
                self.unit.line(f"{names[field.name]} = {default_expression(self.unit, cls, field)}")
            names["unknown_tagged_fields"] = self.tags(tagged, names)
        arguments = ", ".join(f"{field}={local}" for field, local in names.items())
        return f"{self.unit.constant(cls.__name__, cls)}({arguments})"

    def value(self, field: FieldSchema) -> str:
        """Emit code that reads one field; return the local name of the field's value."""
        if field.array:
            return self.array(field)
        if isinstance(field.kind, WireType):
            return self.primitive(field, field.kind)
        name = self.unit.name(field.name)
        if self.version not in field.nullable:
            with self.unit.inside(field.name):
                self.flush()
                built = self.struct(field.kind)
                self.unit.line(f"{name} = {built}")
            return name
        marker = self.fixed(field, "b")
        self.flush()
        self.unit.line(f"{name} = None")
        with self.unit.indented(f"if {marker} >= 0:"), self.unit.inside(field.name):
            built = self.struct(field.kind)
            self.unit.line(f"{name} = {built}")
        return name

    def primitive(self, field: FieldSchema, wire: WireType) -> str:
        if wire in STRUCT_CODES:
            return self.fixed(field, STRUCT_CODES[wire])
        name, about = self.unit.name(field.name), self.unit.about(field)
        if wire is WireType.UUID:
            self.flush()
            self.unit.line(f"{name} = UUID(bytes=data[p:p + 16])", about)
            self.unit.line("p += 16")
            return name
        count = self.length(field)
        read = f"{name} = data[p:p + {count}].decode()" if wire is WireType.STRING else f"{name} = view[p:p + {count}]"
        with self.unless_null(field, name, count):
            self.unit.line(read, about)
            self.unit.line(f"p += {count}")
        return name

    def array(self, field: FieldSchema) -> str:
        name, about = self.unit.name(field.name), self.unit.about(field)
        count = self.length(field)
        with self.unless_null(field, name, count):
            if isinstance(field.kind, WireType) and field.kind in STRUCT_CODES:
                code = STRUCT_CODES[field.kind]
                self.unit.line(f"{name} = list(unpack_from(f'>{{{count}}}{code}', data, p))", about)
                self.unit.line(f"p += {count} * {struct.calcsize('>' + code)}")
                return name
            index, add = self.unit.name("i"), self.unit.name("add")
            self.unit.line(f"{name} = []")
            self.unit.line(f"{add} = {name}.append")
            with self.unit.indented(f"for {index} in range({count}):"):
                with self.unit.inside(field.name, ArrayLoop(index)):
                    if isinstance(field.kind, WireType):
                        built = self.primitive(attrs.evolve(field, name="", array=False, nullable=_NO), field.kind)
                    else:
                        built = self.struct(field.kind)
                    self.flush()
                self.unit.line(f"{add}({built})")
        return name

    def unless_null(self, field: FieldSchema, name: str, count: str) -> AbstractContextManager[None]:
        """Emit checks for null and for lengths beyond the data.

        Code that reads the value must be emitted inside the returned context. ``name`` is the local name of the value,
        and ``count`` that of its length.
        """
        about = self.unit.about(field)
        if self.version in field.nullable:
            self.unit.line(f"{name} = None")
        else:
            with self.unit.indented(f"if {count} < 0:"):
                self.unit.line("raise ValueError('it is null')", about)
        with self.unit.indented(f"if {count} > size - p:"):
            self.unit.line(f"raise ValueError(f'its length is {{{count}}}, and {{size - p}} bytes are left')", about)
        return self.unit.indented(f"if {count} >= 0:") if self.version in field.nullable else nullcontext()

    def length(self, field: FieldSchema) -> str:
        """Emit code that reads a length or count, negative for null; return the number's local name."""
        if not is_flexible(field, self.cls.flexible, self.version):
            name = self.fixed(field, "h" if field.kind is WireType.STRING and not field.array else "i")
            self.flush()
            return name
        self.flush()
        name = self.uvarint(self.unit.about(field), string=field.kind is WireType.STRING and not field.array)
        self.unit.line(f"{name} -= 1")
        return name

    def uvarint(self, blame: Blame, *, string: bool = False) -> str:
        name = self.unit.name("n")
        self.unit.line(f"{name} = data[p]", blame)
        self.unit.line("p += 1")
        with self.unit.indented(f"if {name} > 127:"):
            self.unit.line(f"{name}, p = finish_uvarint(data, p, {name})", blame)
            if string:  # the compact form allows longer strings, but Kafka does not
                with self.unit.indented(f"if {name} > 32768:"):
                    text = f"its length is {{{name} - 1}}, at most 32767 bytes are allowed"
                    self.unit.line(f"raise ValueError(f'{text}')", blame)
        return name

    def fixed(self, field: FieldSchema, code: str) -> str:
        name = self.unit.name(field.name)
        self.run.append((name, self.unit.about(field, code=code)))
        return name

    def flush(self) -> None:
        """Emit a call that unpacks the collected fixed-width values."""
        if not self.run:
            return
        run, self.run = self.run, []
        codes = "".join(blame.code or "" for _, blame in run)
        method = self.unit.struct_method(codes, "unpack_from")
        targets = ", ".join(name for name, _ in run)
        self.unit.line(f"{targets}{',' if len(run) == 1 else ''} = {method}(data, p)", *(blame for _, blame in run))
        self.unit.line(f"p += {struct.calcsize('>' + codes)}")

    def tags(self, tagged: list[FieldSchema], names: dict[str, str]) -> str:
        """Emit code that reads known tagged fields into their locals; return the local name of the unknown fields."""
        unknown, count, about = self.unit.name("unknown"), self.unit.name("n"), self.unit.here("tagged fields")
        self.unit.line(f"{unknown} = None")
        if not tagged:
            self.unit.line(f"{count} = data[p]", about)
            self.unit.line("p += 1")
            with self.unit.indented(f"if {count}:"):
                self.unit.line(f"{unknown}, p = decode_tags(data, p - 1)", about)
                self.unit.line(f"{unknown} = {unknown} or None")
            return unknown
        with self.unit.indented(f"for _ in range({self.uvarint(about)}):"):
            tag, length, end = self.uvarint(about), self.uvarint(about), self.unit.name("end")
            self.unit.line(f"{end} = p + {length}")
            word = "if"
            for field in tagged:
                with self.unit.indented(f"{word} {tag} == {field.tag}:"):
                    self.known_tag(field, names[field.name], length, end)
                word = "elif"
            with self.unit.indented("else:"):
                with self.unit.indented(f"if {end} > size:"):
                    text = f"tagged field {{{tag}}} ends at byte {{{end}}} of {{size}}"
                    self.unit.line(f"raise ValueError(f'{text}')", about)
                with self.unit.indented(f"if {unknown} is None:"):
                    self.unit.line(f"{unknown} = {{}}")
                self.unit.line(f"{unknown}[{tag}] = data[p:{end}]")
                self.unit.line(f"p = {end}")
        return unknown

    def known_tag(self, field: FieldSchema, target: str, length: str, end: str) -> None:
        self.unit.line(f"{target} = {self.value_now(field)}")
        with self.unit.indented(f"if p != {end}:"):
            self.unit.line(
                f"raise ValueError(f'its length is {{{length}}}, not what it takes')", self.unit.about(field)
            )

    def value_now(self, field: FieldSchema) -> str:
        name = self.value(field)
        self.flush()
        return name
