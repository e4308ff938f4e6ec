"""The settings of a client, and the parser of its bootstrap servers."""

from collections.abc import Sequence
from typing import Final

import attrs

from .._lazy_classes import frozen
from ..argument_checks import shown
from ..errors import ConfigError
from ..types import Address
from .fields import choice, integer, text
from .network import NetworkConfig, NetworkOptions

__all__ = ("ClientConfig", "ClientOptions", "parse_servers")

DEFAULT_PORT: Final = 9092
_FRAME: Final = 128 * 1024 * 1024


class ClientOptions(NetworkOptions, total=False):
    """Keyword arguments of ``Client``.

    :class:`ClientConfig` and its base classes :class:`~.network.NetworkConfig` (network) and
    :class:`~.security.SecurityConfig` (TLS and SASL) describe the arguments.
    """

    bootstrap_controllers: str | Sequence[str] | None
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
    enable_metrics_push: bool
    stall_report_ms: int


@frozen(kw_only=True)
class ClientConfig(NetworkConfig):
    """The settings that all parts of a client share. Times are in ms, as in Kafka's properties."""

    bootstrap_controllers: str | Sequence[str] | None = attrs.field(default=None)
    """Controllers of a KRaft cluster, to which the client speaks instead of brokers (KIP-919, Kafka 3.7 and later):
    ``"host:port,host:port"`` or a sequence of ``"host:port"``. The admin then does what controllers serve, such as
    features and the quorum, even while no broker runs; producers and consumers need ``bootstrap_servers``."""
    client_id: str = text("aiokafkawire")
    """The client's name in the brokers' logs and quotas."""
    request_timeout_ms: int = integer(30_000, minimum=1)
    """How long a request may wait for its response; then it fails, and the connection is closed."""
    default_api_timeout_ms: int = integer(60_000, minimum=1)
    """How long a call without its own timeout may take, including its retries."""
    bootstrap_timeout_ms: int = integer(10_000, minimum=1)
    """How long opening the client may take to reach a bootstrap server before it raises NoBrokerReachable."""
    socket_connection_setup_timeout_ms: int = integer(10_000, minimum=1)
    """How long a connection may take to open, including the negotiation of versions and the authentication."""
    api_version_request_timeout_ms: int = integer(1_000, minimum=1)
    """How long a broker may take to answer ApiVersions before the client also sends requests that detect Kafka 0.9 and
    older, which do not know ApiVersions; at most a quarter of ``socket_connection_setup_timeout_ms``."""
    retry_backoff_ms: int = integer(100)
    """The wait before the first retry. The wait doubles with each retry, up to ``retry_backoff_max_ms`` (KIP-580)."""
    retry_backoff_max_ms: int = integer(1_000)
    """The longest wait before a retry. Each wait is up to a fifth longer or shorter, by chance."""
    reconnect_backoff_ms: int = integer(50)
    """The first wait before reconnecting to a broker that failed. The wait doubles, up to
    ``reconnect_backoff_max_ms``."""
    reconnect_backoff_max_ms: int = integer(1_000)
    """The longest wait before reconnecting to a broker. Each wait is up to a fifth longer or shorter, by chance."""
    metadata_max_age_ms: int = integer(300_000, minimum=1)
    """The age at which metadata is refreshed even if no error requires it."""
    metadata_max_idle_ms: int = integer(300_000, minimum=1)
    """How long an unused topic stays in the metadata (KIP-526)."""
    topic_metadata_propagation_max_ms: int = integer(10_000)
    """How long ``send``, or a consumer without a group, waits for a topic that does not exist before it raises
    TopicNotReady. Some brokers do not know a new topic at once. Shorter limits (``max_block_ms``,
    ``default_api_timeout_ms``) apply as well."""
    connections_max_idle_ms: int = integer(540_000, minimum=1)
    """How long a connection may stay unused before it is closed."""
    receive_message_max_bytes: int = integer(_FRAME, minimum=1024)
    """The largest frame to accept from a broker; a larger frame closes the connection."""
    allow_auto_create_topics: bool = choice(False, True, False)
    """Whether a request for the metadata of an unknown topic may create the topic, if the brokers allow that too."""
    enable_metrics_push: bool = choice(False, True, False)
    """Whether the client pushes those of its metrics to which the brokers' operators subscribe (KIP-714, brokers since
    3.7 with a plugin that receives them). The default in Java is true."""
    stall_report_ms: int = integer(30_000, minimum=1)
    """How long a record may wait in a producer, or a partition of a consumer may bring no records although it has some,
    before it is stalled: for a producer's health, and for the observers' event ``partition_stalled``."""

    @bootstrap_controllers.validator
    def _check_controllers(self, _: object, controllers: str | Sequence[str] | None) -> None:
        if controllers is None:
            return
        is_text = isinstance(controllers, str) and controllers.strip(", ")
        is_list = isinstance(controllers, list | tuple) and all(isinstance(one, str) for one in controllers)
        if not is_text and not (is_list and controllers):
            known = "'host:port,host:port', a list of 'host:port', or None"
            raise ConfigError(
                f"bootstrap_controllers must be {known}, got {shown(controllers)}", setting="bootstrap_controllers"
            )
        parse_servers(controllers, setting="bootstrap_controllers")


def parse_servers(servers: str | Sequence[str], *, setting: str = "") -> tuple[Address, ...]:
    """Parse bootstrap servers: ``"host:port,host:port"`` or a sequence of ``"host:port"``; IPv6 as ``"[::1]:9092"``.

    ``setting`` is the setting that they are of, for errors.

    Raises:
        ConfigError: there is no server, or an address is invalid.
    """
    try:
        return _parse_servers(servers)
    except ConfigError as error:
        raise ConfigError(f"{setting}: {error}" if setting else str(error), setting=setting or None) from None


def _parse_servers(servers: str | Sequence[str]) -> tuple[Address, ...]:
    texts = servers.split(",") if isinstance(servers, str) else servers
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise ConfigError(f"bootstrap servers are a string or a sequence of strings, got {servers!r}")
    named = [text.strip() for text in texts if text.strip()]
    if not named:
        raise ConfigError("bootstrap servers are needed, such as 'localhost:9092'")
    return tuple(_parse_server(text) for text in named)


def _parse_server(text: str) -> Address:
    if "@" in text:
        raise ConfigError(
            "bootstrap servers are host:port, without a name and a password (not shown): set sasl_username"
        )
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
