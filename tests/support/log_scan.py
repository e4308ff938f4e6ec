"""Looks into all that a test run logs for the secrets that its tests give to clients.

What is a secret nobody has to say: whatever a client is given as a password, a key or a token is one from then on.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from aiokafkawire.config.network import parse_proxy
from aiokafkawire.config.security import SecurityConfig
from aiokafkawire.event_log import FIELDS
from aiokafkawire.types import AwsCredentials, OAuthBearerToken

__all__ = ("LogScan", "forms_of", "secrets_of")

_SETTINGS = (
    "sasl_oauthbearer_client_secret",
    "sasl_password",
    "ssl_key_password",
    "ssl_key_pem",
    "ssl_keystore_password",
    "ssl_truststore_password",
    "sasl_oauthbearer_assertion_private_key_passphrase",
    "sasl_oauthbearer_assertion_private_key_pem",
)
_LEAST = 6  # letters; a shorter one is in many a word


class LogScan(logging.Handler):
    """Hears what every logger lets through, and finds the secrets in it."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.count = 0
        self.secrets: set[str] = set()
        self._heard: list[str] = []
        self._undo: list[Callable[[], None]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.count += 1
        fields = " ".join(str(value) for name, value in vars(record).items() if name in FIELDS)
        self._heard.append(f"{record.name}: {self.format(record)} {fields}".rstrip())

    def learn(self, secrets: Iterable[str]) -> None:
        """From now on these are looked for, as they are and in base64."""
        for secret in secrets:
            self.secrets.update(forms_of(secret))

    def leaks(self) -> list[str]:
        """What was logged since the last call and holds a secret."""
        heard, self._heard = self._heard, []
        return [text for text in heard if any(secret in text for secret in self.secrets)]

    def begin(self) -> None:
        """Listen to all loggers, and learn what clients are given."""
        logging.getLogger().addHandler(self)
        for kind, method in ((SecurityConfig, "__attrs_post_init__"), (OAuthBearerToken, "__init__")):
            self._listen_to(kind, method)
        self._listen_to(AwsCredentials, "__init__")

    def end(self) -> None:
        """Leave everything as it was."""
        logging.getLogger().removeHandler(self)
        while self._undo:
            self._undo.pop()()

    def _listen_to(self, kind: Any, method: str) -> None:
        original = getattr(kind, method)

        def made(this: Any, *args: Any, **more: Any) -> None:
            original(this, *args, **more)
            self.learn(secrets_of(this))

        setattr(kind, method, made)
        self._undo.append(lambda: setattr(kind, method, original))


def secrets_of(given: object) -> Iterator[str]:
    """The secrets in settings, a token or credentials."""
    if isinstance(given, OAuthBearerToken):
        yield given.value
    elif isinstance(given, AwsCredentials):
        yield from (one for one in (given.secret_access_key, given.session_token) if one)
    elif isinstance(given, SecurityConfig):
        yield from (value for name in _SETTINGS if (value := getattr(given, name)) is not None)
        proxy = getattr(given, "proxy", None)
        if proxy is not None:
            yield parse_proxy(proxy).password.decode(errors="replace")


def forms_of(secret: object) -> Iterator[str]:
    """What to look for: the lines of a secret, and what base64 makes of them wherever they begin."""
    if not isinstance(secret, str):
        return
    for line in secret.splitlines():
        # One of letters alone could be a word of any message.
        if len(line) < _LEAST or line.isalpha() or len(set(line)) < 4 or line.startswith("-----"):
            continue
        yield line
        data = line.encode(errors="replace")
        for before in range(3):
            coded = base64.b64encode(bytes(before) + data).decode()
            # The letters at both ends hold bits of what stands beside it.
            whole = (before + len(data)) * 8 // 6
            yield coded[-(-before * 8 // 6) : whole]
