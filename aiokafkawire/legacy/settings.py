"""The settings of clients of Kafka 0.6 and 0.7. Sizes are in bytes, times in ms."""

from typing import Any, Final, Literal, TypedDict

import attrs

from ..errors import ConfigError

__all__ = ("LegacyConfig", "LegacyOptions")

_INT32: Final = 2**31 - 1
_CODECS: Final = ("none", "gzip", "snappy")


def _whole(default: int, *, least: int = 1) -> Any:
    def check(_: object, attribute: "attrs.Attribute[int]", value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _INT32:
            raise ConfigError(f"{attribute.name} must be a whole number from {least} to {_INT32}, got {value!r:.200}")

    return attrs.field(default=default, validator=check)


def _check_codec(_: object, attribute: "attrs.Attribute[str]", value: object) -> None:
    if value not in _CODECS:
        raise ConfigError(f"{attribute.name} must be one of {', '.join(_CODECS)}, got {value!r:.200}")


class LegacyOptions(TypedDict, total=False):
    """Keyword arguments of ``LegacyClient``; :class:`LegacyConfig` describes them."""

    request_timeout_ms: int
    socket_connection_setup_timeout_ms: int
    compression_type: Literal["none", "gzip", "snappy"]
    fetch_size: int
    fetch_size_max: int
    inflate_max_bytes: int
    backoff_ms: int
    backoff_max_ms: int


@attrs.frozen(kw_only=True)
class LegacyConfig:
    """The settings of a client's connections, fetches and messages."""

    request_timeout_ms: int = _whole(30_000)
    """How long a request may take before it fails and the connection is closed."""
    socket_connection_setup_timeout_ms: int = _whole(10_000)
    """How long a connection may take to open."""
    compression_type: Literal["none", "gzip", "snappy"] = attrs.field(default="none", validator=_check_codec)
    """The codec that compresses the messages of one call together. Kafka 0.6 supports only "none"."""
    fetch_size: int = _whole(300 * 1024)
    """The number of bytes that a fetch requests."""
    fetch_size_max: int = _whole(16 * 1024 * 1024)
    """The largest number of bytes that a fetch requests after an answer without a complete message."""
    inflate_max_bytes: int = _whole(128 * 1024 * 1024)
    """The largest decompressed size of one compressed message, which contains other messages."""
    backoff_ms: int = _whole(100)
    """The first wait of a reader at the end of the log, where brokers of 0.7 answer at once. The wait doubles each
    time."""
    backoff_max_ms: int = _whole(1_000)
    """The longest wait of a reader at the end of the log."""

    def __attrs_post_init__(self) -> None:
        if self.fetch_size_max < self.fetch_size:
            raise ConfigError(f"fetch_size_max ({self.fetch_size_max}) is less than fetch_size ({self.fetch_size})")
