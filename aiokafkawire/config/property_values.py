"""Converts the values of other clients' settings to those of this client."""

import math
import re
from functools import cache
from typing import Any, Final, get_type_hints

from ..argument_checks import INT32, INT64
from ..errors import ConfigError
from .property_names import LONGS, MEANINGS

__all__ = ("converted", "whole_number")

_RESETS: Final = {
    "smallest": "earliest",
    "beginning": "earliest",
    "largest": "latest",
    "end": "latest",
    "error": "none",
}
"""librdkafka's other names for values of ``auto.offset.reset``."""
_ANY_CASE: Final = ("group_protocol", "metadata_recovery_strategy", "share_acquire_mode")
"""Settings whose values Java reads in any case."""
_TRUE: Final = ("true", "t", "1")
_FALSE: Final = ("false", "f", "0")
"""The words of a boolean; Java knows the first of each alone, and librdkafka all."""
_FRACTION: Final = re.compile(r"\d{1,9}\.\d{0,9}")
"""A number of ms as librdkafka has it for ``linger.ms``."""
_STRATEGIES: Final = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}


def converted(config: Any, name: str, value: Any, key: str) -> Any:
    """Convert a value to the type of a setting, which checks the result.

    Args:
        config: the config class that has the setting.
        name: the setting's name.
        value: the value, as text or as Python has it.
        key: the property under which the value was given.

    Raises:
        ConfigError: the text is no value of that type; the message names the property.
    """
    made = _of_type(config, name, value, key)
    if isinstance(made, bool) or not isinstance(made, int):
        return made
    if key in LONGS and INT32 < made <= INT64:
        return INT32
    return MEANINGS.get(key, {}).get(made, made)


def whole_number(value: Any, key: str) -> int:
    """Return the whole number of a value, which may be text.

    Raises:
        ConfigError: the value is no whole number; the message names the property.
    """
    try:
        if isinstance(value, str):
            return int(value.strip())
    except ValueError:
        pass
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"{key} must be a whole number, got {value!r:.200}")
    return value


def _of_type(config: Any, name: str, value: Any, key: str) -> Any:
    if name in ("send_buffer_bytes", "receive_buffer_bytes"):
        number = whole_number(value, key) if isinstance(value, str) else value
        return None if number in (-1, 0) else number  # the system's size is -1 in Java, and 0 in librdkafka
    if not isinstance(value, str):
        return value
    if name == "auto_offset_reset":
        return _RESETS.get(value, value)
    if name in _ANY_CASE:
        return value.lower()
    if name == "linger_ms" and _FRACTION.fullmatch(value.strip()):
        return math.ceil(float(value))
    if name == "acks":
        return value if value == "all" else whole_number(value, key)
    if name == "partition_assignment_strategy":
        parts = (part.strip().rpartition(".")[2] for part in value.split(","))
        return tuple(_STRATEGIES.get(part, part) for part in parts)
    if name == "ssl_enabled_protocols":
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if name == "sasl_oauthbearer_extensions":
        return _extensions(value, key)
    setting_type = _types(config)[name]
    if setting_type is int:
        return whole_number(value, key)
    if setting_type is float:
        return _fraction(value, key)
    if setting_type is bool:
        lowered = value.strip().lower()
        if lowered not in (*_TRUE, *_FALSE):
            raise ConfigError(f"{key} must be true or false, got {value!r:.200}")
        return lowered in _TRUE
    return value


def _extensions(text: str, key: str) -> dict[str, str]:
    """Return librdkafka's pairs ``name=value``, which commas separate."""
    pairs = [part.strip().partition("=") for part in text.split(",") if part.strip()]
    if not all(name and equals for name, equals, _ in pairs):
        raise ConfigError(f"{key} must be name=value,name=value (the given text is not shown)")
    return {name: value for name, _, value in pairs}


def _fraction(value: str, key: str) -> float:
    try:
        return float(value.strip())
    except ValueError:
        raise ConfigError(f"{key} must be a number, got {value!r:.200}") from None


def _type(hint: Any) -> type | None:
    for candidate in (bool, int, float):
        if hint is candidate or candidate in getattr(hint, "__args__", ()):
            return candidate
    return None


@cache
def _types(config: type) -> dict[str, type | None]:
    return {name: _type(hint) for name, hint in get_type_hints(config).items()}
