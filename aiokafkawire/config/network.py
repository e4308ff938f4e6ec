"""Settings of the way to the brokers: proxies, names, and what to do when all known brokers are gone."""

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import unquote_to_bytes, urlsplit

import attrs

from ..errors import ConfigError
from ..types import Address
from .fields import choice, secret, whole
from .security import SecurityConfig, SecurityOptions

__all__ = ("ListenerMap", "NetworkConfig", "NetworkOptions", "Proxy", "parse_proxy")

ListenerMap: TypeAlias = Callable[[str, int], tuple[str, int]]
"""Is given host and port as a broker advertises them, and gives those to dial; a plain function that does not block."""

_KINDS: Final = ("socks5", "socks5h", "http")
_WRITE: Final = "write socks5://host:port or http://host:port, with name:password@ before the host if it wants a login"
_MOST: Final = 255  # bytes of a name or a password, as SOCKS5 counts them


@attrs.frozen
class Proxy:
    """A proxy that connections go through; its repr shows no password."""

    kind: Literal["socks5", "http"]
    at: Address
    username: bytes | None = attrs.field(default=None, repr=False)
    password: bytes = attrs.field(default=b"", repr=False)

    def __str__(self) -> str:
        return f"the {'SOCKS5' if self.kind == 'socks5' else 'HTTP'} proxy {self.at}"


def parse_proxy(url: str) -> Proxy:
    """Read ``socks5://user:secret@host:1080`` or ``http://...``; what is not a letter or digit may be %-encoded.

    Raises:
        ConfigError: it is no such URL. The message does not show it, for it may hold a password.
    """
    try:
        parts = urlsplit(url)
        kind, host, port = parts.scheme.lower(), parts.hostname, parts.port
    except ValueError:
        raise ConfigError(f"proxy is no URL: {_WRITE} (it is not shown)") from None
    if kind == "https":
        raise ConfigError("proxy: TLS to the proxy itself is not spoken, so no https://; http:// carries TLS inside")
    if kind not in _KINDS or not host or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ConfigError(f"proxy is not understood: {_WRITE} (it is not shown)")
    if not port:
        raise ConfigError(f"proxy needs a port: {_WRITE} (it is not shown)")
    login = parts.netloc.rpartition("@")[0]
    name, _, password = login.partition(":")
    username, given = unquote_to_bytes(name), unquote_to_bytes(password)
    if max(len(username), len(given)) > _MOST:
        raise ConfigError(f"proxy: name and password are of {_MOST} bytes at most (not shown)")
    if login and (not username or (kind != "http" and not given)):
        raise ConfigError("proxy: a login needs a name and a password (not shown)")
    if kind == "http" and b":" in username:
        raise ConfigError("proxy: the name of a login cannot hold a colon (not shown)")
    return Proxy("http" if kind == "http" else "socks5", Address(host, port), username or None, given)


def _proxy() -> Any:
    made = secret(str, "a URL")
    made.validator(lambda _, __, value: None if value is None else parse_proxy(value))
    return made


def _function(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    if value is not None and not callable(value):
        raise ConfigError(f"{attribute.name} must be a function or None, got {value!r:.200}")


class NetworkOptions(SecurityOptions, total=False):
    """Keyword arguments of ``Client`` about the way to the brokers; :class:`NetworkConfig` describes them."""

    proxy: str | None
    client_dns_lookup: Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"]
    advertised_listeners_map: ListenerMap | None
    socket_keepalive_enable: bool
    metadata_recovery_strategy: Literal["rebootstrap", "none"]
    metadata_recovery_rebootstrap_trigger_ms: int


@attrs.frozen(kw_only=True)
class NetworkConfig(SecurityConfig):
    """How brokers are reached."""

    proxy: str | None = _proxy()
    """``socks5://user:secret@host:1080`` or ``http://user:secret@host:3128``: all connections go through it, and it
    looks up the brokers' names. No environment variable is looked at."""
    client_dns_lookup: Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"] = choice(
        "use_all_dns_ips", "use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"
    )
    """All addresses of a name are tried in any case (KIP-302). With the second value each address of a bootstrap name
    is looked up in reverse, and the names that it is found under are dialled (KIP-235), as Kerberos may need."""
    advertised_listeners_map: ListenerMap | None = attrs.field(default=None, validator=_function)
    """Where to dial brokers whose advertised addresses lead nowhere from here, as behind NAT or in a tunnel. The
    certificate, and Kerberos, are still to be of the advertised host. Bootstrap addresses are dialled as given."""
    socket_keepalive_enable: bool = choice(True, True, False)
    """Whether the system asks on idle connections if the other side is still there (SO_KEEPALIVE)."""
    metadata_recovery_strategy: Literal["rebootstrap", "none"] = choice("rebootstrap", "rebootstrap", "none")
    """Whether to begin again from the bootstrap addresses when no known broker answers, or one says to (KIP-899,
    KIP-1102)."""
    metadata_recovery_rebootstrap_trigger_ms: int = whole(300_000)
    """How long known brokers are asked in vain before the bootstrap addresses at the latest (KIP-1102)."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.proxy is not None and self.client_dns_lookup != "use_all_dns_ips":
            raise ConfigError("proxy and client_dns_lookup: names are looked up by the proxy; leave one of them out")
