"""The token endpoint of OpenID Connect: a token for a client's id and secret (KIP-768); blocking, so for a thread."""

import base64
import io
import json
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
from .sasl import printable

__all__ = ("fetch_token",)

_SECONDS: Final = 10.0
"""How long the endpoint may take."""
_LARGEST: Final = 1024 * 1024
_TRANSIENT: Final = (408, 425, 429)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Whoever is redirected to would be shown the secret."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _Timed(io.RawIOBase):
    """What comes over a socket until a deadline. A socket's own timeout begins anew with every byte."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase, deadline: float) -> None:
        self._sock, self._raw, self._deadline = sock, raw, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"no whole answer within {_SECONDS:g} s")
        self._sock.settimeout(left)
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


def _timed(kind: type[HTTPConnection], deadline: float, host: str, **more: Any) -> HTTPConnection:
    response: Any = partial(_TimedResponse, deadline=deadline)
    made = kind(host, **more)
    made.response_class = response
    return made


def fetch_token(config: SecurityConfig) -> OAuthBearerToken:
    """Ask the endpoint for a token.

    Raises:
        AuthenticationFailed: it refuses, answers with no token, or its certificate is not trusted.
        ConnectionLost: it cannot be reached, is too slow, or has trouble of its own.
    """
    url, client_id = config.sasl_oauthbearer_token_endpoint_url, config.sasl_oauthbearer_client_id
    secret = config.sasl_oauthbearer_client_secret
    assert url is not None
    assert secret is not None
    form = {"grant_type": "client_credentials"}
    if config.sasl_oauthbearer_scope:
        form["scope"] = config.sasl_oauthbearer_scope
    # As Java and librdkafka do it by default: id and secret are not URL-encoded before.
    known = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
    headers = {
        "Authorization": f"Basic {known}",
        "Accept": "application/json",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    where = f"the token endpoint {url.partition('?')[0]}"
    began = time.time_ns() // 1_000_000
    try:
        request = urllib.request.Request(url, urllib.parse.urlencode(form).encode(), headers)  # noqa: S310
        answer = _exchange(request)
    except urllib.error.HTTPError as refusal:
        with refusal:
            raise _refused(where, refusal, (secret, known)) from None
    except (OSError, HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(cause, ssl.SSLCertVerificationError):
            how = "the system's authorities are trusted, or those of SSL_CERT_FILE"
            raise AuthenticationFailed(f"{where}: its certificate is refused: {cause.verify_message} ({how})") from None
        raise ConnectionLost(f"{where} cannot be reached: {cause}") from None
    return _token(where, answer, began)


def _exchange(request: urllib.request.Request) -> bytes:
    deadline = time.monotonic() + _SECONDS
    opener = urllib.request.build_opener(_NoRedirect, _Http(deadline), _Https(deadline))
    with opener.open(request, timeout=_SECONDS) as response:
        gathered: bytes = response.read(_LARGEST + 1)
    if len(gathered) > _LARGEST:
        raise ValueError(f"its answer is larger than {_LARGEST} bytes")
    return gathered


def _refused(where: str, refusal: urllib.error.HTTPError, secrets: tuple[str, ...]) -> KafkaError:
    told = ""
    try:
        answer = json.loads(refusal.read(65536))
        told = ": " + " ".join(str(answer[name]) for name in ("error", "error_description") if answer.get(name))
    except (OSError, HTTPException, ValueError, AttributeError, RecursionError):
        told = f": {refusal.reason}"
    for secret in secrets:
        told = told.replace(secret, "***")
    message = f"{where} answered {refusal.code}{printable(told)}"
    if refusal.code >= 500 or refusal.code in _TRANSIENT:
        return ConnectionLost(message)
    return AuthenticationFailed(f"{message} (see sasl_oauthbearer_client_id, _client_secret and _scope)")


def _token(where: str, answer: bytes, began_ms: int) -> OAuthBearerToken:
    try:
        told = json.loads(answer)
    except (ValueError, RecursionError):
        told = None
    value = told.get("access_token") if isinstance(told, dict) else None
    if not isinstance(value, str) or not value:
        raise AuthenticationFailed(f"{where} answered without an access_token: is it a token endpoint?")
    assert isinstance(told, dict)
    seconds = told.get("expires_in")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1e10:
        return OAuthBearerToken(value)
    return OAuthBearerToken(value, began_ms + int(seconds * 1000))
