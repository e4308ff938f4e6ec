"""The view model of a message, for rendering as text or JSON: values in encoded order, with their meanings."""

from typing import TypeAlias
from uuid import UUID

import attrs

__all__ = ("Array", "NamedValue", "Hidden", "Leaf", "Scalar", "Shown", "Struct")


@attrs.frozen
class Hidden:
    """Bytes or text that may be a secret and is not shown."""

    length: int


Scalar: TypeAlias = bool | int | float | str | UUID | bytes | Hidden | None


@attrs.frozen
class Leaf:
    """One value."""

    value: Scalar
    meaning: str = ""
    """The meaning of a number."""
    holds: "Shown | None" = None
    """The decoded bytes, if they could be decoded."""


@attrs.frozen
class Array:
    """Values of one type."""

    items: "tuple[Shown, ...]"


@attrs.frozen
class NamedValue:
    """A named value in a struct."""

    name: str
    shown: "Shown"
    is_default: bool = False
    tag: int | None = None
    """Its number among the tagged fields."""


@attrs.frozen
class Struct:
    """Named values; ``title`` summarizes them in a line, which includes the values named in ``in_title``."""

    entries: tuple[NamedValue, ...]
    title: str = ""
    in_title: frozenset[str] = frozenset()


Shown: TypeAlias = Leaf | Array | Struct
