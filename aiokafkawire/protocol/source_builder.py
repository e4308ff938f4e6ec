"""The builder of a generated function's source, and the mapping from a failing line to its field."""

from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct, calcsize
from typing import Any, NamedTuple

import attrs

from .._lazy_classes import define
from .schema import FieldSchema, Versions, schema_of

__all__ = ("Blame", "DecodeFault", "ArrayLoop", "Unit", "locate")


class ArrayLoop(NamedTuple):
    """A generated loop over an array: local names, ``counter`` in decoders, ``array`` and ``element`` in encoders."""

    counter: str | None
    array: str = ""
    element: str = ""


class Blame(NamedTuple):
    """The field that a line of the source reads or writes; ``path`` has one ``[]`` for each loop around the line."""

    path: str
    loops: tuple[ArrayLoop, ...]
    wire: str
    shown: str | None = None
    """When encoding, the expression to show in errors."""
    packed: str | None = None
    """When encoding, the expression that the line packs for this field, to find which of several fields failed."""
    code: str | None = None


class DecodeFault(NamedTuple):
    """The field at which a compiled function failed, and the reason."""

    path: str
    reason: str

    def describe(self, name: str, version: int) -> str:
        path = f".{self.path}" if self.path else ""
        return f"{name} v{version}{path}: {self.reason}"


@define
class Unit:
    """A generated function: its source, its constants, and the fields that each line reads or writes."""

    filename: str
    direction: str
    version: int
    lines: list[str] = attrs.field(factory=list)
    constants: dict[str, Any] = attrs.field(factory=dict)
    blame: dict[int, tuple[Blame, ...]] = attrs.field(factory=dict)
    _depth: int = 0
    _names: int = 0
    _path: str = ""
    _loops: tuple[ArrayLoop, ...] = ()

    def line(self, text: str, *blame: Blame) -> None:
        self.lines.append("    " * self._depth + text)
        if blame:
            self.blame[len(self.lines)] = blame

    def name(self, prefix: str) -> str:
        """Return an unused name for a local variable; the name begins with ``prefix``."""
        self._names += 1
        return f"{prefix or 'x'}{self._names}"

    def constant(self, name: str, value: Any) -> str:
        """Define the constant ``name`` for the function, and return the name."""
        self.constants[name] = value
        return name

    def struct_method(self, codes: str, method: str) -> str:
        """Define a constant for ``method`` of a big-endian struct with these codes, and return the constant's name."""
        spelled = codes.replace("?", "t")
        return self.constant(f"{method}_{spelled}", getattr(Struct(">" + codes), method))

    @contextmanager
    def indented(self, header: str, *blame: Blame) -> Iterator[None]:
        self.line(header, *blame)
        self._depth += 1
        yield
        self._depth -= 1

    @contextmanager
    def inside(self, name: str, loop: ArrayLoop | None = None) -> Iterator[None]:
        """Enter the field ``name`` until the context ends; for an array, ``loop`` is the loop over its elements."""
        path, loops = self._path, self._loops
        self._path = f"{path}.{name}".strip(".")
        if loop is not None:
            self._path += "[]"
            self._loops = (*loops, loop)
        yield
        self._path, self._loops = path, loops

    def about(
        self, field: FieldSchema, shown: str | None = None, packed: str | None = None, code: str | None = None
    ) -> Blame:
        wire = getattr(field.kind, "value", None) or field.kind.__name__  # type: ignore[union-attr]
        # An element of an array has no name: the path identifies it.
        path = f"{self._path}.{field.name}".strip(".")
        return Blame(path, self._loops, f"array of {wire}" if field.array else wire, shown, packed, code)

    def here(self, what: str) -> Blame:
        """Return the Blame for a part of the current struct that is not a field; ``what`` names this part in errors."""
        return Blame(self._path, self._loops, what)

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def present_fields(cls: type[Any], version: int) -> tuple[list[FieldSchema], list[FieldSchema], list[FieldSchema]]:
    """Return the struct's inline fields, tagged fields, and absent fields in ``version``."""
    inline, tagged, absent = [], [], []
    for field in schema_of(cls).fields:
        if version not in field.versions:
            if field.default is attrs.NOTHING:
                raise TypeError(f"{cls.__name__}.{field.name} exists in {field.versions} only: it needs a default")
            absent.append(field)
        elif field.tag is not None:
            tagged.append(field)
        else:
            inline.append(field)
    return inline, sorted(tagged, key=lambda field: field.tag or 0), absent


def is_flexible(field: FieldSchema, flexible: Versions, version: int) -> bool:
    return version in (flexible if field.flexible is None else field.flexible)


def default_expression(unit: Unit, owner: type[Any], field: FieldSchema) -> str:
    """Return an expression for the field's default: a literal, a constant, or a call that makes a new value."""
    default = field.default
    if default is list:
        return "[]"
    name = unit.constant(f"default_{owner.__name__}_{field.name}", default)
    return f"{name}()" if callable(default) else name


def locate(unit: Unit, error: BaseException) -> DecodeFault:
    """Find the field at which the compiled function raised ``error``."""
    trace, found = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == unit.filename:
            found = trace
        trace = trace.tb_next
    blamed = unit.blame.get(found.tb_lineno, ()) if found is not None else ()
    if found is None or not blamed:
        return DecodeFault("", f"{type(error).__name__}: {error}")
    names = found.tb_frame.f_locals
    if unit.direction == "decode":
        blame, at = _first_beyond(blamed, names["p"], names["size"])
        return DecodeFault(_fill_in(blame, names), f"no {blame.wire} at byte {at} of {names['size']} ({error})")
    blame = next((candidate for candidate in blamed if _fails_alone(unit, candidate, names)), blamed[0])
    path = _fill_in(blame, names)
    try:
        value = _value(unit, blame.shown, names)
    except Exception:  # the value is not such a struct and lacks this field
        return DecodeFault(path, str(error))
    if value is None and blame.shown is not None:
        return DecodeFault(path, f"must not be null in version {unit.version}")
    return DecodeFault(path, f"{_elided(value)} is no {blame.wire} ({error})")


def _first_beyond(blamed: tuple[Blame, ...], position: int, size: int) -> tuple[Blame, int]:
    """Return the first of ``blamed``, fields read by one ``unpack``, that ends beyond the data, and its position."""
    for blame in blamed:
        width = calcsize(">" + blame.code) if blame.code else 0
        if position + width > size:
            return blame, position
        position += width
    return blamed[0], position


def _fails_alone(unit: Unit, blame: Blame, names: dict[str, Any]) -> bool:
    if blame.code is None:
        return False
    try:
        Struct(">" + blame.code).pack(_value(unit, blame.packed, names))
    except Exception:  # the user's object may raise any error
        return True
    return False


def _value(unit: Unit, expression: str | None, names: dict[str, Any]) -> Any:
    if expression is None:
        return None
    return eval(expression, dict(unit.constants), names)  # noqa: S307  # our own generated expression


def _fill_in(blame: Blame, names: dict[str, Any]) -> str:
    path = blame.path
    for loop in blame.loops:
        if loop.counter is not None:
            index = names.get(loop.counter, "?")
        else:
            index = next((i for i, item in enumerate(names[loop.array]) if item is names[loop.element]), "?")
        path = path.replace("[]", f"[{index}]", 1)
    return path


def _elided(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
