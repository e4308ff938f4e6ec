"""Reads the compression levels of Java's clients and of librdkafka."""

from collections.abc import Mapping
from typing import Any, Final

from ..errors import ConfigError
from .property_values import whole_number

__all__ = ("CODECS", "java_level", "librdkafka_level")

CODECS: Final[Mapping[str, tuple[int, int]]] = {"gzip": (1, 9), "lz4": (1, 17), "zstd": (-131072, 22)}
"""The codecs that have levels; for each, the lowest and the highest."""

_DEFAULT: Final = -1
"""The codec's default: for librdkafka with each codec, for Java with gzip alone."""
_LIBRDKAFKA: Final = (-1, 12)
"""The levels that librdkafka takes, whatever the codec."""


def java_level(codec: str, value: Any, key: str) -> int | None:
    """Return the level of a setting such as ``compression.gzip.level``; None for the codec's default.

    Raises:
        ConfigError: the codec has no such level.
    """
    level = whole_number(value, key)
    lowest, highest = CODECS[codec]
    if codec == "gzip" and level == _DEFAULT:
        return None
    if not lowest <= level <= highest:
        default = f", or {_DEFAULT} for the default" if codec == "gzip" else ""
        raise ConfigError(f"{key} must be a whole number from {lowest} to {highest}{default}, got {level}")
    return level


def librdkafka_level(codec: str, value: Any, key: str) -> int | None:
    """Return the level of ``compression.level``, at most the codec's highest; None for the codec's default.

    Args:
        codec: the ``compression.type``. One that is not in :data:`CODECS` has no use for the level.
        value: the given level.
        key: the property under which it was given.

    Raises:
        ConfigError: neither librdkafka nor the codec has such a level.
    """
    level = whole_number(value, key)
    lowest, highest = CODECS.get(codec, _LIBRDKAFKA)
    least, most = min(lowest, _LIBRDKAFKA[0]), max(highest, _LIBRDKAFKA[1])
    if not least <= level <= most:
        raise ConfigError(f"{key} must be a whole number from {least} to {most}, got {level}")
    if level == _DEFAULT or (codec == "lz4" and level == 0):
        return None  # in librdkafka 0 is the default of lz4
    return min(max(level, lowest), highest)
