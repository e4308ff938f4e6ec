"""SASL on the client's side. A mechanism is a generator: it yields what to do next and is sent what came of it.

It yields ``bytes`` for the broker, and is sent the broker's answer; or an :class:`RunInThread`, and is sent what the
function returned; or a :class:`Need`, and is sent what was needed. When it returns, the client is content. It raises
AuthenticationFailed, and nothing else, whatever the broker says.
"""

import json
import re
from collections.abc import Callable, Generator, Mapping
from enum import Enum, auto
from typing import Any, Final, TypeAlias

import attrs

from ..errors import AuthenticationFailed, ConfigError
from ..types import OAuthBearerToken, Random

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


@attrs.frozen
class RunInThread:
    """Something that takes its time: a thread is to call it."""

    function: Callable[[], Any] = attrs.field(repr=False)


class Need(Enum):
    """What the user's functions give."""

    TOKEN = auto()
    """An :class:`~aiokafkawire.types.OAuthBearerToken`."""
    AWS_CREDENTIALS = auto()
    """An :class:`~aiokafkawire.types.AwsCredentials`."""


Exchange: TypeAlias = Generator[bytes | RunInThread | Need, Any, None]
"""One login under way."""


_SAID: Final = 500
_LONGEST_MS: Final = 7 * 86_400_000


def renew_after(lifetime_ms: int, chance: Random) -> float | None:
    """In how many seconds to log in again, after a login that holds for so many ms; None: never (KIP-368).

    A part of the time is left for the way to the broker, and not all connections do it at once.
    """
    if lifetime_ms <= 0:
        return None
    # Brokers do not take a login again within a second; and no clock waits for as long as a hostile broker could say.
    return max(1.0, min(lifetime_ms, _LONGEST_MS) / 1000 * chance.uniform(0.85, 0.95))


def printable(text: str) -> str:
    """What another side says, as it may stand in an error or a log: cut, and without what moves a cursor."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:_SAID]).strip()


def plain(username: str, password: str) -> Exchange:
    """PLAIN (RFC 4616): name and password as they are, so for TLS or a line that nobody else is on."""
    yield b"\0".join((b"", username.encode(), password.encode()))


_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_EXTENSION_NAME: Final = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]+")
_SHOWN: Final = 200  # characters of what a broker says inside of a mechanism


def check_extensions(extensions: Mapping[str, str]) -> None:
    """Whether they can be said (KIP-342).

    Raises:
        ConfigError: one cannot.
    """
    for name, value in extensions.items():
        if not _EXTENSION_NAME.fullmatch(name) or name == "auth":
            raise ConfigError(f"the SASL extension {name!r} must have a name of letters, other than 'auth'")
        if not _EXTENSION_VALUE.fullmatch(value):
            raise ConfigError(f"the SASL extension {name!r} has letters in its value that cannot be sent, or none")


def check_token(token: OAuthBearerToken) -> None:
    """Whether it can be sent: another letter in it could say more than the token.

    Raises:
        ConfigError: it cannot.
    """
    if not _TOKEN.fullmatch(token.value):
        raise ConfigError("the token for OAUTHBEARER is empty, or has letters that no token has (RFC 6750)")
    check_extensions(token.extensions)


def oauthbearer(extensions: Mapping[str, str]) -> Exchange:
    """OAUTHBEARER (RFC 7628, KIP-255) with a token that is asked for, and extensions beside its own (KIP-342)."""
    token = yield Need.TOKEN
    said = {**extensions, **token.extensions}
    pairs = [f"auth=Bearer {token.value}", *(f"{name}={value}" for name, value in said.items())]
    answer = yield ("n,,\x01" + "\x01".join(pairs) + "\x01\x01").encode()
    if not answer:
        return
    # The broker has said why it refuses, and waits to be told that this was understood.
    yield b"\x01"
    raise AuthenticationFailed(f"the broker refused the token: {_refusal(answer)}")


def _refusal(answer: bytes) -> str:
    """The status in RFC 7628's JSON, or the text as it is; always short and printable."""
    text = answer.decode(errors="replace")
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = None
    if isinstance(told, dict):
        known = [f"{name} {told[name]!r}" for name in ("status", "scope", "openid-configuration") if name in told]
        return ", ".join(known)[:_SHOWN] or "it did not say why"
    return repr(text[:_SHOWN])
