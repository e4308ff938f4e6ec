"""Sends requests to schema registries over HTTP: to the next one if one fails, and again after a pause."""

import random
import ssl
import time
from contextlib import aclosing
from inspect import isawaitable
from typing import Any, Final

import anyio

try:
    import httpx2
except ImportError as _missing:
    raise ImportError("The schema registry needs httpx2: pip install 'aiokafkawire[schema-registry]'") from _missing

from .._printable import printable
from ..errors import SchemaRegistryError
from ..event_log import EventLog
from ..network.tls_context import make_context
from ..runtime import was_cancelled
from .attempts import RequestAttempts
from .rest_messages import MEDIA_TYPE, RestRequest, is_retriable, parse_error, parse_json
from .settings import SchemaRegistryConfig, is_bearer_token

__all__ = ("HttpTransport",)

_log = EventLog("aiokafkawire.schema_registry")

_MAX_RESPONSE: Final = 64 * 1024 * 1024
_ACCEPT: Final = f"{MEDIA_TYPE}, application/vnd.schemaregistry+json, application/json"


class HttpTransport:
    """Requests to the registries of one cluster.

    A connection is open during its request only: after the first records, schemas come from caches. So a registry needs
    no closing, and serves any event loop.

    Args:
        urls: the registries' URLs, without logins.
        config: the settings.
        login: ``"user:password"`` from a URL.

    Raises:
        ConfigError: a certificate or key is wrong.
    """

    def __init__(self, urls: tuple[str, ...], config: SchemaRegistryConfig, login: str | None) -> None:
        self._urls, self._config = urls, config
        self._preferred = 0
        self._chance = random.Random()  # noqa: S311  # spreads retries
        self._auth = self._basic(config.basic_auth_user_info or login)
        self._tls: ssl.SSLContext | bool = False
        if any(url.startswith("https:") for url in urls):
            given = config.ssl_context
            self._tls = make_context(config.security()) if given is None else given

    @staticmethod
    def _basic(login: str | None) -> httpx2.BasicAuth | None:
        if login is None:
            return None
        user, _, password = login.partition(":")
        return httpx2.BasicAuth(user, password)

    async def send(self, request: RestRequest) -> Any:
        """Send a request, and return the JSON of the response.

        Raises:
            SchemaRegistryError: no registry has answered, or one has refused the request.
        """
        config = self._config
        attempts = RequestAttempts(
            self._urls, self._preferred, config.max_retries, config.retries_wait_ms, config.retries_max_wait_ms
        )
        with anyio.move_on_after(config.default_api_timeout_ms / 1000):
            return await self._attempt(request, attempts)
        ending = f", until default_api_timeout_ms={config.default_api_timeout_ms} had passed"
        raise attempts.error(ending) or SchemaRegistryError(
            f"{request} at {attempts.url}: no response within default_api_timeout_ms={config.default_api_timeout_ms}",
            retriable=True,
        )

    async def _attempt(self, request: RestRequest, attempts: RequestAttempts) -> Any:
        while True:
            index = attempts.index
            try:
                answer = await self._exchange(request, attempts.url)
            except _AttemptFailed as failed:
                pause = attempts.fail(failed.error, self._chance.random()) if failed.can_retry else None
                if pause is None:
                    error = (failed.can_retry and attempts.error()) or failed.error
                    raise error from failed.error.__cause__
                _log.debug("retrying in %(delay).3f s: %(error)s", delay=pause, error=failed.error)
                await anyio.sleep(pause)
            else:
                self._preferred = index
                return answer

    async def _exchange(self, request: RestRequest, url: str) -> Any:
        """Make one attempt."""
        source = f"{request} at {url}"
        limit = self._config.request_timeout_ms
        began = time.monotonic()
        headers = await self._headers(request, source)
        try:
            with anyio.fail_after(limit / 1000):
                status, content = await self._round_trip(request, url, headers)
        except TimeoutError:
            error = SchemaRegistryError(f"{source}: no response within request_timeout_ms={limit}", retriable=True)
            raise _AttemptFailed(error, request.can_repeat) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as cause:
            error = SchemaRegistryError(f"{source}: {_reason(cause)}", retriable=True)
            error.__cause__ = cause
            was_sent = not isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout)
            raise _AttemptFailed(error, request.can_repeat or not was_sent) from None
        _log.debug(
            "%(request)s: HTTP status %(status)d in %(elapsed).3f s",
            text={"request": source, "status": status},
            elapsed=time.monotonic() - began,
        )
        if not 200 <= status < 300:
            raise _AttemptFailed(parse_error(content, source, status), is_retriable(status) and request.can_repeat)
        return parse_json(content, source, status) if content else None

    async def _round_trip(self, request: RestRequest, url: str, headers: dict[str, str]) -> tuple[int, bytes]:
        async with (
            httpx2.AsyncClient(verify=self._tls, trust_env=False, proxy=self._config.proxy, timeout=None) as client,
            client.stream(
                request.method, f"{url}/{request.target}", content=request.content, headers=headers, auth=self._auth
            ) as response,
        ):
            content = bytearray()
            async with aclosing(response.aiter_bytes()) as chunks:
                async for chunk in chunks:
                    content += chunk
                    if len(content) > _MAX_RESPONSE:
                        raise httpx2.ReadError(f"the response has more than {_MAX_RESPONSE} bytes")
            return response.status_code, bytes(content)

    async def _headers(self, request: RestRequest, source: str) -> dict[str, str]:
        headers = {"Accept": _ACCEPT, "Connection": "close"}
        if request.body is not None:
            headers["Content-Type"] = MEDIA_TYPE
        token: object = self._config.bearer_auth_token
        provider = self._config.bearer_auth_token_provider
        if provider is not None:
            try:
                token = provider()
                if isawaitable(token):
                    token = await token
            except (Exception, anyio.get_cancelled_exc_class()) as cause:
                if not isinstance(cause, Exception) and was_cancelled():
                    raise  # and otherwise the provider has awaited something else that was cancelled
                # The error's text may contain a secret, so only the ``__cause__`` has that text.
                refused = f"{source}: bearer_auth_token_provider has failed with {type(cause).__name__}"
                error = SchemaRegistryError(refused, retriable=True)
                error.__cause__ = cause
                raise _AttemptFailed(error, True) from None
            if not is_bearer_token(token):
                # It may return one later, as once the file that has it is written.
                wanted = "a token, a str without blanks and ends of lines (not shown)"
                raise SchemaRegistryError(f"bearer_auth_token_provider must return {wanted}", retriable=True)
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return headers


class _AttemptFailed(Exception):
    def __init__(self, error: SchemaRegistryError, can_retry: bool) -> None:
        super().__init__(error)
        self.error, self.can_retry = error, can_retry


def _reason(cause: Exception) -> str:
    """Return why an attempt failed; the text may be that of an error's cause, as for TLS on trio."""
    known: BaseException | None = cause
    while known is not None and not str(known):
        known = known.__cause__ or known.__context__
    text = printable(str(known)) if known is not None else type(cause).__name__
    if isinstance(cause, httpx2.ConnectError):
        return f"cannot connect: {text}"
    if isinstance(cause, httpx2.RemoteProtocolError):
        return f"the response is not a schema registry's: {text}; check the URL"
    return text
