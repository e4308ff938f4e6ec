"""Settings of a client, and its bootstrap servers."""

from collections.abc import Sequence
from typing import Final

import attrs

from ..errors import ConfigError
from ..types import Address
from .fields import choice, text, whole
from .network import NetworkConfig, NetworkOptions

__all__ = ("ClientConfig", "ClientOptions", "parse_servers")

DEFAULT_PORT: Final = 9092
_FRAME: Final = 128 * 1024 * 1024


class ClientOptions(NetworkOptions, total=False):
    """Keyword arguments of ``Client``; :class:`ClientConfig` describes them, :class:`~.network.NetworkConfig`
    those of the way to the brokers, and :class:`~.security.SecurityConfig` those of TLS and SASL."""

    client_id: str
    request_timeout_ms: int
    default_api_timeout_ms: int
    bootstrap_timeout_ms: int
    socket_connection_setup_timeout_ms: int
    api_version_request_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    metadata_max_age_ms: int
    metadata_max_idle_ms: int
    topic_metadata_propagation_max_ms: int
    connections_max_idle_ms: int
    receive_message_max_bytes: int
    allow_auto_create_topics: bool


@attrs.frozen(kw_only=True)
class ClientConfig(NetworkConfig):
    """What every part of a client shares. Times are in ms, as in Kafka's own properties."""

    client_id: str = text("aiokafkawire")
    """The name that brokers log and apply quotas to."""
    request_timeout_ms: int = whole(30_000, least=1)
    """How long one request waits for its answer; a broker silent for longer loses its connection."""
    default_api_timeout_ms: int = whole(60_000, least=1)
    """How long a call may take in all, with its retries."""
    bootstrap_timeout_ms: int = whole(10_000, least=1)
    """How long opening a client tries the bootstrap addresses before NoBrokerReachable."""
    socket_connection_setup_timeout_ms: int = whole(10_000, least=1)
    """How long one connection may take to open and to agree on versions."""
    api_version_request_timeout_ms: int = whole(1_000, least=1)
    """After how long without an answer a broker that was never reached before is asked whether it is one of Kafka 0.9,
    which keeps silent on ApiVersions, and again after that; at most a quarter of what a connection may take to open.
    The question stays open."""
    retry_backoff_ms: int = whole(100)
    """The first wait before a retry; it doubles up to ``retry_backoff_max_ms`` (KIP-580)."""
    retry_backoff_max_ms: int = whole(1_000)
    """The longest wait before a retry."""
    reconnect_backoff_ms: int = whole(50)
    """The first wait before a broker that failed is dialled again; it doubles."""
    reconnect_backoff_max_ms: int = whole(1_000)
    """The longest wait before a broker is dialled again."""
    metadata_max_age_ms: int = whole(300_000, least=1)
    """How old metadata may grow before it is asked for again, though nothing failed."""
    metadata_max_idle_ms: int = whole(300_000, least=1)
    """How long a topic that nobody uses stays in the metadata that is asked for (KIP-526)."""
    topic_metadata_propagation_max_ms: int = whole(10_000)
    """How long ``send`` and a consumer without a group wait for a topic that the cluster says does not exist, before
    TopicNotReady: a topic that was created just now is unknown to some brokers for a moment. Shorter limits
    (``max_block_ms``, ``default_api_timeout_ms``) hold as well."""
    connections_max_idle_ms: int = whole(540_000, least=1)
    """How long a connection may stay unused before it is closed."""
    receive_message_max_bytes: int = whole(_FRAME, least=1024)
    """The largest frame that is accepted from a broker; a larger one closes the connection."""
    allow_auto_create_topics: bool = choice(False, True, False)
    """Whether asking for an unknown topic may create it, where the brokers allow that too."""


def parse_servers(servers: str | Sequence[str]) -> tuple[Address, ...]:
    """Read bootstrap servers: ``"host:port,host:port"`` or a sequence of ``"host:port"``; IPv6 as ``"[::1]:9092"``.

    Raises:
        ConfigError: there is none, or one is not an address.
    """
    texts = servers.split(",") if isinstance(servers, str) else servers
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise ConfigError(f"bootstrap servers are a string or a sequence of strings, got {servers!r}")
    named = [text.strip() for text in texts if text.strip()]
    if not named:
        raise ConfigError("bootstrap servers are needed, such as 'localhost:9092'")
    return tuple(_parse_server(text) for text in named)


def _parse_server(text: str) -> Address:
    host, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
    if not colon:
        host, port = text, str(DEFAULT_PORT)
    if not port.isdecimal() or len(port) > 5 or not 1 <= int(port) <= 65535:
        raise ConfigError(f"bootstrap server {text!r}: the port must be a number from 1 to 65535, got {port!r}")
    if "//" in host or "/" in host or " " in host:
        raise ConfigError(f"bootstrap server {text!r}: give host:port, without a scheme or a path")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ConfigError(f"bootstrap server {text!r}: write an IPv6 address in brackets, such as '[::1]:9092'")
    if not host:
        raise ConfigError(f"bootstrap server {text!r}: the host is missing")
    return Address(host, int(port))
