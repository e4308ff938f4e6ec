"""Renders the view model as JSON.

Bytes become base64, and UUIDs strings. If the meaning of field ``NAME`` is known, ``NAME_means`` has this meaning: the
name of a number, an object if bytes contain a message, or a list of batches if they contain records.
"""

import base64
import math
from typing import Any
from uuid import UUID

from .view_model import Array, Hidden, Leaf, Scalar, Shown, Struct

__all__ = ("json_of",)


def json_of(struct: Struct, *, brief: bool = False) -> dict[str, Any]:
    """Convert a struct to a dict for :func:`json.dumps`; ``brief`` omits fields with their default value."""
    out: dict[str, Any] = {}
    for entry in struct.entries:
        if brief and entry.is_default:
            continue
        out[entry.name] = _json(entry.shown, brief)
        means = _means(entry.shown, brief)
        if means is not None:
            out[f"{entry.name}_means"] = means
    return out


def _json(shown: Shown, brief: bool) -> Any:
    if isinstance(shown, Struct):
        return json_of(shown, brief=brief)
    if isinstance(shown, Array):
        return [_json(item, brief) for item in shown.items]
    return _scalar(shown.value)


def _means(shown: Shown, brief: bool) -> Any:
    if isinstance(shown, Struct):
        return None
    if isinstance(shown, Array):
        meanings = [item.meaning for item in shown.items if isinstance(item, Leaf)]
        return meanings if any(meanings) else None
    if isinstance(shown.holds, Struct):
        return {"message": shown.holds.title, "fields": json_of(shown.holds, brief=brief)}
    if isinstance(shown.holds, Array):
        return _json(shown.holds, brief)
    return shown.meaning or None


def _scalar(value: Scalar) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, UUID):
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    if isinstance(value, Hidden):
        return f"<hidden, {value.length} long>"
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)  # JSON has no infinity and no NaN
    return value
