"""The client's side of SASL. A mechanism is a generator that yields steps; the caller sends the result of each step
into the generator.

A step is ``bytes`` to send to the broker (the result is the broker's response), a :class:`RunInThread` (the result is
that of the function) or a :class:`Need` (the result is the needed object). When the generator returns, authentication
has succeeded. After an invalid response of the broker, the generator raises AuthenticationFailed.
"""

import json
import re
from collections.abc import Callable, Generator, Mapping
from enum import Enum, auto
from typing import Any, Final, TypeAlias

import attrs

from .. import _printable
from .._lazy_classes import frozen
from ..errors import AuthenticationFailed, ConfigError
from ..types import OAuthBearerToken, RandomSource

__all__ = (
    "Exchange",
    "Need",
    "RunInThread",
    "check_extensions",
    "check_token",
    "oauthbearer",
    "plain",
    "printable",
    "renew_after",
)


@frozen
class RunInThread:
    """A slow function to call on a thread."""

    function: Callable[[], Any] = attrs.field(repr=False)


class Need(Enum):
    """An object that a mechanism needs from the client, such as a token."""

    TOKEN = auto()
    """An :class:`~aiokafkawire.types.OAuthBearerToken`."""
    AWS_CREDENTIALS = auto()
    """An :class:`~aiokafkawire.types.AwsCredentials`."""


Exchange: TypeAlias = Generator[bytes | RunInThread | Need, Any, None]
"""The steps of one authentication."""


_MAX_PRINTED: Final = 500
_MAX_LIFETIME_MS: Final = 7 * 86_400_000


def renew_after(lifetime_ms: int, chance: RandomSource) -> float | None:
    """Return the seconds until a session must be reauthenticated (KIP-368); None if its lifetime is unlimited (0).

    The result leaves time for the round trips, and is random, so that not all connections reauthenticate at once.
    """
    if lifetime_ms <= 0:
        return None
    # Brokers refuse to reauthenticate within a second. The maximum keeps a hostile broker from overflowing timers.
    return max(1.0, min(lifetime_ms, _MAX_LIFETIME_MS) / 1000 * chance.uniform(0.85, 0.95))


def printable(text: str) -> str:
    """Return a short text from a server for an error or a log line: truncated, and without control characters."""
    return _printable.printable(text, _MAX_PRINTED).strip()


def plain(username: str, password: str) -> Exchange:
    """Authenticate with PLAIN (RFC 4616): name and password are not encrypted, so use TLS."""
    yield b"\0".join((b"", username.encode(), password.encode()))


_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_EXTENSION_NAME: Final = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]+")
_SHOWN: Final = 200  # the number of characters of a broker's message that errors show


def check_extensions(extensions: Mapping[str, str]) -> None:
    """Raise ConfigError unless the names and values of the SASL extensions can be sent (KIP-342)."""
    for name, value in extensions.items():
        if not _EXTENSION_NAME.fullmatch(name) or name == "auth":
            raise ConfigError(f"the SASL extension {name!r} must have a name of letters, other than 'auth'")
        if not _EXTENSION_VALUE.fullmatch(value):
            raise ConfigError(f"the SASL extension {name!r} has an empty value, or characters that cannot be sent")


def check_token(token: OAuthBearerToken) -> None:
    """Raise ConfigError if the token or an extension is empty, or could inject fields into the message."""
    if not _TOKEN.fullmatch(token.value):
        raise ConfigError("the token for OAUTHBEARER is empty, or has invalid characters (RFC 6750)")
    check_extensions(token.extensions)


def oauthbearer(extensions: Mapping[str, str]) -> Exchange:
    """Authenticate with OAUTHBEARER (RFC 7628, KIP-255). ``extensions`` are sent with those of the token (KIP-342)."""
    token = yield Need.TOKEN
    answer = yield _bearer_message(token, {**extensions, **token.extensions})
    if not answer:
        return
    # The broker has sent the reason why it refuses, and waits for an acknowledgement.
    yield b"\x01"
    raise AuthenticationFailed(f"the broker refused the token: {_refusal(answer)}")


def _bearer_message(token: OAuthBearerToken, extensions: Mapping[str, str]) -> bytes:
    pairs = [f"auth=Bearer {token.value}", *(f"{name}={value}" for name, value in extensions.items())]
    return ("n,,\x01" + "\x01".join(pairs) + "\x01\x01").encode()


def _refusal(answer: bytes) -> str:
    """Return the reason in RFC 7628's JSON, or the answer's text if it is no JSON; truncated and printable."""
    text = answer.decode(errors="replace")
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    if isinstance(parsed, dict):
        known = [f"{name} {parsed[name]!r}" for name in ("status", "scope", "openid-configuration") if name in parsed]
        return ", ".join(known)[:_SHOWN] or "it gives no reason"
    return repr(text[:_SHOWN])
