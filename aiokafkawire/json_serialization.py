"""Keys and values as JSON: a serializer and a deserializer for producers and consumers."""

import json
from collections.abc import Callable
from typing import Any, Never

__all__ = ("JsonDeserializer", "JsonSerializer")


class JsonSerializer:
    """Converts values to JSON in UTF-8, without spaces: equal values have equal bytes, if their keys have one order.

    NaN and infinities, which JSON does not have, raise ValueError.

    Args:
        dumps: a function that returns JSON, such as ``orjson.dumps``, instead of Python's; libraries differ in the
            bytes of some numbers, so keep to one for keys.
    """

    def __init__(self, dumps: Callable[[Any], str | bytes] | None = None) -> None:
        self._dumps: Callable[[Any], str | bytes] = _dumps if dumps is None else dumps

    def __call__(self, value: Any) -> bytes:
        """Return the JSON of a value."""
        found = self._dumps(value)
        return found.encode() if isinstance(found, str) else found


class JsonDeserializer:
    """Converts JSON to values; bytes that are not JSON raise ValueError, which becomes DeserializationError.

    Args:
        loads: a function that reads JSON, such as ``orjson.loads`` or ``msgspec.json.Decoder(Order).decode``, instead
            of Python's.
    """

    def __init__(self, loads: Callable[[bytes], Any] | None = None) -> None:
        self._loads: Callable[[bytes], Any] = _loads if loads is None else loads

    def __call__(self, data: bytes) -> Any:
        """Return the value of JSON."""
        return self._loads(data)


_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _dumps(value: Any) -> str:
    return _encoder.encode(value)


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is not JSON")


def _loads(data: bytes) -> Any:
    return json.loads(data, parse_constant=_refuse)
