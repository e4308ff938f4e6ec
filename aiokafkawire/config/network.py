"""The settings of the network: proxies, name resolution, address mapping and rebootstrapping."""

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import unquote_to_bytes, urlsplit

import attrs

from .._lazy_classes import frozen
from ..errors import ConfigError
from ..types import Address
from .fields import choice, integer, optional_integer, secret
from .security import SecurityConfig, SecurityOptions

__all__ = ("ListenerMap", "NetworkConfig", "NetworkOptions", "Proxy", "parse_proxy")

ListenerMap: TypeAlias = Callable[[str, int], tuple[str, int]]
"""A plain function that does not block, from the host and port that a broker advertises to the ones to connect to."""

_SCHEMES: Final = ("socks5", "socks5h", "http")
_USE: Final = "use socks5://host:port or http://host:port, with name:password@ before the host if the proxy needs them"
_MAX: Final = 255  # the maximal size of a name or a password in SOCKS5, in bytes


@frozen
class Proxy:
    """The proxy of all connections. Its repr shows no password."""

    kind: Literal["socks5", "http"]
    at: Address
    username: bytes | None = attrs.field(default=None, repr=False)
    password: bytes = attrs.field(default=b"", repr=False)

    def __str__(self) -> str:
        return f"the {'SOCKS5' if self.kind == 'socks5' else 'HTTP'} proxy {self.at}"


def parse_proxy(url: str) -> Proxy:
    """Parse ``socks5://user:secret@host:1080`` or ``http://...``; special characters may be %-encoded.

    Raises:
        ConfigError: the URL is invalid. The message does not show the URL, which may contain a password.
    """
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme.lower(), parts.hostname, parts.port
    except ValueError:
        raise ConfigError(f"proxy is no URL: {_USE} (it is not shown)", setting="proxy") from None
    if scheme == "https":
        raise ConfigError(
            "proxy: TLS to the proxy is not supported (https://); with http:// TLS to brokers works", setting="proxy"
        )
    if scheme not in _SCHEMES or not host or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ConfigError(f"proxy is not understood: {_USE} (it is not shown)", setting="proxy")
    if not port:
        raise ConfigError(f"proxy needs a port: {_USE} (it is not shown)", setting="proxy")
    login = parts.netloc.rpartition("@")[0]
    name, _, password = login.partition(":")
    username, given = unquote_to_bytes(name), unquote_to_bytes(password)
    if max(len(username), len(given)) > _MAX:
        raise ConfigError(f"proxy: name and password have at most {_MAX} bytes (not shown)", setting="proxy")
    if login and (not username or (scheme != "http" and not given)):
        raise ConfigError("proxy: a login needs a name and a password (not shown)", setting="proxy")
    if scheme == "http" and b":" in username:
        raise ConfigError("proxy: the name cannot contain a colon (not shown)", setting="proxy")
    return Proxy("http" if scheme == "http" else "socks5", Address(host, port), username or None, given)


def _proxy() -> Any:
    made = secret(str, "a URL")
    made.validator(lambda _, __, value: None if value is None else parse_proxy(value))
    return made


def _function(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    if value is not None and not callable(value):
        raise ConfigError(f"{attribute.name} must be a function or None, got {value!r:.200}", setting=attribute.name)


class NetworkOptions(SecurityOptions, total=False):
    """Keyword arguments of ``Client`` about the network; :class:`NetworkConfig` describes them."""

    proxy: str | None
    client_dns_lookup: Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"]
    advertised_listeners_map: ListenerMap | None
    socket_keepalive_enable: bool
    send_buffer_bytes: int | None
    receive_buffer_bytes: int | None
    metadata_recovery_strategy: Literal["rebootstrap", "none"]
    metadata_recovery_rebootstrap_trigger_ms: int
    metadata_cluster_check_enable: bool


@frozen(kw_only=True)
class NetworkConfig(SecurityConfig):
    """The settings of connections to brokers."""

    proxy: str | None = _proxy()
    """``socks5://user:secret@host:1080`` or ``http://user:secret@host:3128``: the proxy of all connections, which also
    resolves the brokers' names. Environment variables are ignored."""
    client_dns_lookup: Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"] = choice(
        "use_all_dns_ips", "use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"
    )
    """``"resolve_canonical_bootstrap_servers_only"`` resolves each bootstrap name to the canonical names of its
    addresses, and connects to these names (KIP-235), as Kerberos may need. With both values all addresses of a name are
    tried (KIP-302)."""
    advertised_listeners_map: ListenerMap | None = attrs.field(default=None, validator=_function)
    """A function that maps advertised addresses that this client cannot reach, as behind NAT or a tunnel, to reachable
    addresses. Certificates and Kerberos principals must still be for the advertised host. Bootstrap addresses are not
    mapped."""
    socket_keepalive_enable: bool = choice(True, True, False)
    """Whether dead connections are recognized, as after a host has vanished or NAT has forgotten them. The system then
    probes a connection without traffic after 5 s (SO_KEEPALIVE), and on Linux the client closes a connection on
    which packets or probes were repeated for 5 s without an answer. Otherwise ``request_timeout_ms`` ends it."""
    send_buffer_bytes: int | None = optional_integer(minimum=1)
    """The size of the system's send buffer of each connection (SO_SNDBUF); None leaves it to the system, which adapts
    it."""
    receive_buffer_bytes: int | None = optional_integer(minimum=1)
    """The size of the system's receive buffer of each connection (SO_RCVBUF); None leaves it to the system, which
    adapts it."""
    metadata_recovery_strategy: Literal["rebootstrap", "none"] = choice("rebootstrap", "rebootstrap", "none")
    """Whether to use the bootstrap addresses again if no known broker answers, or if a broker answers
    REBOOTSTRAP_REQUIRED (KIP-899, KIP-1102)."""
    metadata_recovery_rebootstrap_trigger_ms: int = integer(300_000)
    """How long the known brokers may return no metadata before the client uses the bootstrap addresses (KIP-1102)."""
    metadata_cluster_check_enable: bool = choice(True, True, False)
    """Whether to send the cluster's id and the broker's id when connecting, so that a broker that has got the address
    of another one refuses, and the client uses the bootstrap addresses (KIP-1242). Brokers before 4.4 do not check;
    without ``metadata_recovery_strategy="rebootstrap"`` this has no effect."""

    def __attrs_post_init__(self) -> None:
        SecurityConfig.__attrs_post_init__(self)  # a class that attrs completes late has no super()
        if self.proxy is not None and self.client_dns_lookup != "use_all_dns_ips":
            raise ConfigError(
                "proxy and client_dns_lookup: names are looked up by the proxy; remove one of them",
                setting="client_dns_lookup",
            )
