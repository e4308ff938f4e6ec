"""Converts what a client reports of itself into plain values, as JSON and logs need them, and into sentences."""

import math
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Any

import attrs

__all__ = ("as_plain", "error_text", "example_of", "sentence")


def as_plain(value: object) -> Any:
    """Return an attrs object as a dict, with the objects in it; JSON can encode the result.

    Named tuples, such as partitions and addresses, become their texts; so do all objects of other types. Enums become
    their names. A number that is not finite becomes None, since JSON has none of these.
    """
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Enum):
        return value.name
    kind: type[Any] = type(value)
    if attrs.has(kind):
        return {field.name: as_plain(getattr(value, field.name)) for field in attrs.fields(kind)}
    if isinstance(value, Mapping):
        return {str(key): as_plain(one) for key, one in value.items()}
    if isinstance(value, Collection) and not hasattr(value, "_fields") and not isinstance(value, bytes):
        return [as_plain(one) for one in value]
    return str(value)


def error_text(error: Exception | None) -> str | None:
    """Return an error's class and message; None without an error."""
    return f"{type(error).__name__}: {error}" if error is not None else None


def example_of(partitions: Sequence[object]) -> str:
    """Return the name of the first partition, with the number of the others."""
    others = len(partitions) - 1
    more = f" and {others} other {'partition' if others == 1 else 'partitions'}" if others else ""
    return f"{partitions[0]}{more}"


def sentence(reasons: Sequence[str], limit: int = 5) -> str | None:
    """Return the first reasons as one sentence, with the number of the others; None if there are none."""
    if not reasons:
        return None
    more = f"; and {len(reasons) - limit} more" if len(reasons) > limit else ""
    return "; ".join(reasons[:limit]) + more
