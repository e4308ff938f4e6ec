"""What is shown, as JSON.

Bytes are base64 and UUIDs strings. What the value of a field stands for or holds, where that is known, is beside it as
``NAME_means``: the words for a number, the object for bytes that are a message, the list of batches for records.
"""

import base64
import math
from typing import Any
from uuid import UUID

from .view_model import Array, Hidden, Leaf, Scalar, Shown, Struct

__all__ = ("json_of",)


def json_of(struct: Struct, *, brief: bool = False) -> dict[str, Any]:
    """The struct as :func:`json.dumps` takes it; ``brief`` leaves out what is at its default."""
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
        return [_json(one, brief) for one in shown.items]
    return _scalar(shown.value)


def _means(shown: Shown, brief: bool) -> Any:
    if isinstance(shown, Struct):
        return None
    if isinstance(shown, Array):
        words = [one.meaning for one in shown.items if isinstance(one, Leaf)]
        return words if any(words) else None
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
        return repr(value)  # JSON has no such numbers
    return value
