"""Fetches tokens from an OpenID Connect token endpoint (KIP-768), in a blocking call."""

import io
import json
import re
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final

from ..config.security import SecurityConfig
from ..errors import AuthenticationFailed, ConnectionLost, KafkaError
from ..types import OAuthBearerToken
from .oauth_assertions import make_assertion
from .oauth_requests import TokenRequest, token_request
from .sasl import printable

__all__ = ("fetch_token",)

_SECONDS: Final = 10.0
"""The timeout of a request to the token endpoint, in seconds."""
_MAX_SIZE: Final = 1024 * 1024
_TRANSIENT: Final = (408, 425, 429)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A handler that follows no redirect, since a redirect would send the client's secret to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _Timed(io.RawIOBase):
    """The input of a socket, with a deadline for all reads, since the socket's own timeout restarts with every read."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase, deadline: float) -> None:
        self._sock, self._raw, self._deadline = sock, raw, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left(self._deadline))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedResponse(HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, deadline: float, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        self.fp = io.BufferedReader(_Timed(sock, self.fp.detach(), deadline))


class _Http(urllib.request.HTTPHandler):
    def __init__(self, deadline: float) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(_timed, HTTPConnection, self._deadline), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, deadline: float) -> None:
        super().__init__()
        self._deadline = deadline

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(_timed, HTTPSConnection, self._deadline), req)


def _timed(connection_type: type[HTTPConnection], deadline: float, host: str, **more: Any) -> HTTPConnection:
    response: Any = partial(_TimedResponse, deadline=deadline)
    connection: Any = connection_type(host, **more)
    connection.response_class = response
    connection._create_connection = partial(_connect, deadline)
    return connection  # type: ignore[no-any-return]


def _connect(deadline: float, at: tuple[str, int], *_unused: object) -> socket.socket:
    """Connect to the first of a host's addresses that accepts; each gets an equal share of the time that is left."""
    found = socket.getaddrinfo(*at, type=socket.SOCK_STREAM)
    failure = OSError(f"{at[0]} has no address")
    for count, (family, kind, protocol, _, address) in zip(range(len(found), 0, -1), found, strict=True):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(_left(deadline) / count)
            sock.connect(address)
            sock.settimeout(_left(deadline))
        except OSError as error:
            failure = error
            sock.close()
        else:
            return sock
    try:
        raise failure
    finally:  # or the error would keep itself alive, by its traceback
        del failure


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError(f"no complete response within {_SECONDS:g} s")
    return left


def fetch_token(config: SecurityConfig) -> OAuthBearerToken:
    """Request a token from the endpoint in the settings.

    Raises:
        ConfigError: the assertion cannot be made, as :func:`.oauth_assertions.make_assertion` says.
        AuthenticationFailed: the endpoint refuses, answers without a token, or has a certificate that is not trusted.
        ConnectionLost: the endpoint cannot be reached, is too slow, or has an internal error.
    """
    endpoint = f"the token endpoint {_url(config).partition('?')[0]}"
    began = time.time_ns() // 1_000_000
    asked = token_request(config, make_assertion(config, began // 1000) if config.sends_assertions else None)
    try:
        answer = _exchange(_http_request(_url(config), asked))
    except urllib.error.HTTPError as refusal:
        with refusal:
            raise _refused(endpoint, refusal, asked) from None
    except (OSError, HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(cause, ssl.SSLCertVerificationError):
            how = "trusted are the system's authorities, or those in SSL_CERT_FILE"
            raise AuthenticationFailed(
                f"{endpoint}: its certificate is not trusted: {cause.verify_message} ({how})"
            ) from None
        raise ConnectionLost(f"{endpoint} cannot be reached: {_shown(str(cause), asked)}") from None
    return _token(endpoint, answer, began)


def _url(config: SecurityConfig) -> str:
    """Return the endpoint's URL. Its query may contain a key, which the variables of tracebacks must not show."""
    return str(config.sasl_oauthbearer_token_endpoint_url)


def _http_request(url: str, asked: TokenRequest) -> urllib.request.Request:
    form = None if asked.form is None else urllib.parse.urlencode(asked.form).encode()
    return urllib.request.Request(url, form, dict(asked.headers))  # noqa: S310


def _exchange(request: urllib.request.Request) -> bytes:
    deadline = time.monotonic() + _SECONDS
    opener = urllib.request.build_opener(_NoRedirect, _Http(deadline), _Https(deadline))
    with opener.open(request, timeout=_SECONDS) as response:
        body: bytes = response.read(_MAX_SIZE + 1)
    if len(body) > _MAX_SIZE:
        raise ValueError(f"its response is larger than {_MAX_SIZE} bytes")
    return body


def _refused(endpoint: str, refusal: urllib.error.HTTPError, asked: TokenRequest) -> KafkaError:
    reason = ""
    try:
        answer = json.loads(refusal.read(65536))
        reason = ": " + " ".join(str(answer[name]) for name in ("error", "error_description") if answer.get(name))
    except (OSError, HTTPException, ValueError, AttributeError, RecursionError):
        reason = f": {refusal.reason}"
    message = f"{endpoint} answered {refusal.code}{_shown(reason, asked)}"
    if refusal.code >= 500 or refusal.code in _TRANSIENT:
        return ConnectionLost(message)
    return AuthenticationFailed(f"{message} (see {asked.settings})")


def _shown(reason: str, asked: TokenRequest) -> str:
    """Return what an endpoint or a proxy says, without the secrets in the request."""
    for secret in asked.secrets:
        reason = reason.replace(secret, "***")
    return printable(reason)


def _token(endpoint: str, answer: bytes, began_ms: int) -> OAuthBearerToken:
    try:
        parsed = json.loads(answer)
    except (ValueError, RecursionError):
        parsed = None
    value = parsed.get("access_token") if isinstance(parsed, dict) else None
    if not isinstance(value, str) or not value:
        raise AuthenticationFailed(f"{endpoint} answered without an access_token: is it a token endpoint?")
    assert isinstance(parsed, dict)
    seconds = parsed.get("expires_in")
    if isinstance(seconds, str) and re.fullmatch("[0-9]{1,10}", seconds):
        seconds = int(seconds)  # the metadata service of Azure answers so
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1e10:
        return OAuthBearerToken(value)
    return OAuthBearerToken(value, began_ms + int(seconds * 1000))
