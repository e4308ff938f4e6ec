"""What is shown of a message, before it becomes lines or JSON: values in the order of the wire, and their meaning."""

from typing import TypeAlias
from uuid import UUID

import attrs

__all__ = ("Array", "NamedValue", "Hidden", "Leaf", "Scalar", "Shown", "Struct")


@attrs.frozen
class Hidden:
    """Bytes or text that may be a secret, and is not shown."""

    length: int


Scalar: TypeAlias = bool | int | float | str | UUID | bytes | Hidden | None


@attrs.frozen
class Leaf:
    """One value."""

    value: Scalar
    meaning: str = ""
    """What a number stands for, in words."""
    holds: "Shown | None" = None
    """What bytes are, where they could be read."""


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
    """Named values; ``title`` says the whole in a line, and has told those named in ``told``."""

    entries: tuple[NamedValue, ...]
    title: str = ""
    told: frozenset[str] = frozenset()


Shown: TypeAlias = Leaf | Array | Struct
