"""The view model of a message, for rendering as text or JSON: values in encoded order, with their meanings."""

from typing import TypeAlias
from uuid import UUID

import attrs

__all__ = ("Array", "NamedValue", "Hidden", "Leaf", "Scalar", "Shown", "Struct")


@attrs.frozen
class Hidden:
    """A placeholder for bytes or text of this length, which may be a secret and is not shown."""

    length: int


Scalar: TypeAlias = bool | int | float | str | UUID | bytes | Hidden | None


@attrs.frozen
class Leaf:
    """A single value, such as a number, a string or bytes."""

    value: Scalar
    meaning: str = ""
    """The meaning of the value, such as an error's name; empty if none is known."""
    holds: "Shown | None" = None
    """The decoded contents of bytes, if these could be decoded."""


@attrs.frozen
class Array:
    """An array of values of one type."""

    items: "tuple[Shown, ...]"


@attrs.frozen
class NamedValue:
    """A field of a struct: its name and its value, and whether the value is the default."""

    name: str
    shown: "Shown"
    is_default: bool = False
    tag: int | None = None
    """The tag of a tagged field; None for other values."""


@attrs.frozen
class Struct:
    """Named values. ``title`` is their summary in one line; it includes the values whose names are in ``in_title``."""

    entries: tuple[NamedValue, ...]
    title: str = ""
    in_title: frozenset[str] = frozenset()


Shown: TypeAlias = Leaf | Array | Struct
