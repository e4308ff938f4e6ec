"""The token endpoint of OpenID Connect: a token for a client's id and secret (KIP-768); blocking, so for a thread."""

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException
from typing import Any, Final

from ..config_security import SecurityConfig
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


def fetch_token(config: SecurityConfig) -> OAuthBearerToken:
    """Ask the endpoint for a token.

    Raises:
        AuthenticationFailed: it refuses, or answers with no token.
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
        raise ConnectionLost(f"{where} cannot be reached: {cause}") from None
    return _token(where, answer, began)


def _exchange(request: urllib.request.Request) -> bytes:
    deadline = time.monotonic() + _SECONDS
    with urllib.request.build_opener(_NoRedirect).open(request, timeout=_SECONDS) as response:
        gathered = b""
        while data := response.read1(65536):
            gathered += data
            if len(gathered) > _LARGEST:
                raise ValueError(f"its answer is larger than {_LARGEST} bytes")
            if time.monotonic() > deadline:
                raise TimeoutError(f"no whole answer within {_SECONDS:g} s")
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
