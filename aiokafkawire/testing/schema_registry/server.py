"""The schema registry for tests: its port, its faults and its log of requests."""

import base64
import json
import ssl
from collections.abc import Collection, Mapping
from http.client import responses
from types import TracebackType
from typing import Any, Final, Self

import anyio
import attrs
from anyio.abc import ByteStream, SocketAttribute
from anyio.streams.tls import TLSListener, TLSStream

try:
    import h11
except ImportError as _missing:
    raise ImportError(
        "The schema registry for tests needs h11: pip install 'aiokafkawire[schema-registry]'"
    ) from _missing

from ...argument_checks import check_flag, check_integer, check_text
from ...errors import UsageError
from ...runtime import Owner
from .rest_api import RegistryRequest, RestApi
from .subject_store import SubjectStore

__all__ = ("SchemaRegistryServer",)

_MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_CHUNK: Final = 65_536
_MAX_BODY: Final = 64 * 1024 * 1024
_LAST_PORT: Final = 65_535


@attrs.define
class _Failure:
    status: int
    body: dict[str, Any]
    times: int


class SchemaRegistryServer:
    """A schema registry in memory, over HTTP, for tests: Confluent's REST API with its statuses and error codes.

    Use it as ``async with SchemaRegistryServer() as server: SchemaRegistry(server.url)``. It begins without subjects,
    and the level of compatibility is BACKWARD.

    Args:
        port: the port; 0 for any free one.
        host: the address to listen at.
        users: the passwords of users, for basic authentication; None for no authentication.
        bearer_tokens: the tokens that are accepted; None for no authentication by tokens.
        ssl_context: the server's certificate, for https; None for http.
        gives_guids: whether schemas have GUIDs, as from Confluent Platform 8.0 on.

    Raises:
        UsageError: an argument is wrong.
    """

    def __init__(
        self,
        port: int = 0,
        *,
        host: str = "127.0.0.1",
        users: Mapping[str, str] | None = None,
        bearer_tokens: Collection[str] | None = None,
        ssl_context: ssl.SSLContext | None = None,
        gives_guids: bool = True,
    ) -> None:
        check_integer("port", port, 0, _LAST_PORT)
        check_text("host", host)
        check_flag("gives_guids", gives_guids)
        self._port, self._host, self._tls = port, host, ssl_context
        self._accepted = _accepted(users, bearer_tokens)
        self._api = RestApi(SubjectStore(), gives_guids=gives_guids)
        self._owner = Owner()
        self._failures: list[_Failure] = []
        self._thawed: anyio.Event | None = None
        self.requests: list[str] = []
        """The requests so far, such as ``"GET /schemas/ids/1"``, in order; tests may clear it."""

    @property
    def url(self) -> str:
        """The registry's URL."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'http' if self._tls is None else 'https'}://{host}:{self._port}"

    async def __aenter__(self) -> Self:
        await self._owner.open()
        try:
            listener = await anyio.create_tcp_listener(local_host=self._host, local_port=self._port)
        except BaseException:
            await self._owner.close()
            raise
        self._port = listener.extra(SocketAttribute.local_port)  # noqa: S610  # not Django's extra
        if self._tls is not None:
            self._owner.spawn(self._listen, TLSListener(listener, self._tls))
        else:
            self._owner.spawn(self._listen, listener)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._owner.close()

    # --- faults ------------------------------------------------------------------------------------------------

    def fail(self, status: int, *, error_code: int | None = None, message: str = "", times: int = 1) -> None:
        """Answer the next requests with an error.

        Args:
            status: the HTTP status.
            error_code: the registry's error code; None for the status.
            message: the error's text.
            times: how many requests fail.

        Raises:
            UsageError: an argument is wrong.
        """
        check_integer("status", status, 400, 599)
        check_integer("times", times, 1)
        if error_code is not None:
            check_integer("error_code", error_code)
        message = message or responses.get(status, f"HTTP status {status}")
        body = {"error_code": error_code or status, "message": message}
        self._failures.append(_Failure(status, body, times))

    def freeze(self) -> None:
        """Answer no request until :meth:`thaw`."""
        if self._thawed is None:
            self._thawed = anyio.Event()

    def thaw(self) -> None:
        """Answer the waiting requests, and the next ones."""
        if self._thawed is not None:
            self._thawed.set()
            self._thawed = None

    # --- connections -------------------------------------------------------------------------------------------

    async def _listen(self, listener: Any) -> None:
        async with listener:
            await listener.serve(self._serve)

    async def _serve(self, stream: ByteStream) -> None:
        if isinstance(stream, TLSStream):
            stream.standard_compatible = False
        connection = h11.Connection(h11.SERVER)
        try:
            async with stream:
                while True:
                    await self._serve_request(stream, connection)
                    if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                        break
                    connection.start_next_cycle()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, h11.RemoteProtocolError):
            pass  # the client has gone, or sends something else than HTTP

    async def _serve_request(self, stream: ByteStream, connection: h11.Connection) -> None:
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                try:
                    connection.receive_data(await stream.receive(_CHUNK))
                except anyio.EndOfStream:
                    connection.receive_data(b"")
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > _MAX_BODY:
                    raise anyio.BrokenResourceError
            elif isinstance(event, h11.EndOfMessage):
                break
            else:
                raise anyio.EndOfStream
        assert head is not None
        request = RegistryRequest(head.method.decode(), head.target.decode(), bytes(body))
        status, answer = await self._answer(request, dict(head.headers).get(b"authorization", b""))
        content = json.dumps(answer).encode()
        headers = [("Content-Type", _MEDIA_TYPE), ("Content-Length", str(len(content)))]
        response = h11.Response(status_code=status, headers=headers, reason=responses.get(status, ""))
        sent = b"" if head.method == b"HEAD" else content
        for part in (response, h11.Data(data=sent), h11.EndOfMessage()):
            await stream.send(connection.send(part) or b"")

    async def _answer(self, request: RegistryRequest, authorization: bytes) -> tuple[int, Any]:
        self.requests.append(f"{request.method} {request.target}")
        if self._thawed is not None:
            await self._thawed.wait()
        if self._failures:
            failure = self._failures[0]
            failure.times -= 1
            if not failure.times:
                del self._failures[0]
            return failure.status, failure.body
        if self._accepted is not None and authorization.decode("latin-1") not in self._accepted:
            return 401, {"error_code": 401, "message": "Unauthorized"}
        return self._api.answer(request)


def _accepted(users: Mapping[str, str] | None, tokens: Collection[str] | None) -> frozenset[str] | None:
    """Return the values of the header Authorization that are accepted; None for all."""
    if users is None and tokens is None:
        return None
    if isinstance(tokens, str):
        raise UsageError("bearer_tokens must be a collection of tokens, got a single str (not shown)")
    logins = [base64.b64encode(f"{user}:{password}".encode()).decode() for user, password in (users or {}).items()]
    return frozenset([*(f"Basic {login}" for login in logins), *(f"Bearer {token}" for token in tokens or ())])
