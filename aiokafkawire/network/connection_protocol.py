"""The protocol of one connection without I/O: encodes requests into frames, and matches responses to requests.

A broker answers the requests of a connection in order, so the next response is that of the oldest request. If that
response has another request's correlation id, the stream cannot be trusted any more. After the first failure, all
pending requests fail in order, and no request can be sent.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from ..errors import ConnectionLost, KafkaError, SecurityMismatch, WireError, copy_for_reraise
from ..notes import ConnectionApi
from ..observe import Observers
from ..protocol.api import RequestHeader, ResponseHeader, request_header_version, response_header_version
from ..protocol.compiler import decode_prefix, encode, encode_into
from ..protocol.primitives import Buffer
from ..protocol.schema import Request
from ._implementation import Frame

__all__ = ("LARGE_PART", "ConnectionProtocol", "RequestNotes", "ResponseHandler")

_INT32: Final = Struct(">i")
_CORRELATION_IDS: Final = 2**31
_CORRELATION_ID_SIZE: Final = 4
_NO_TAGS: Final = b"\0"
_BEFORE: Final = 4
"""The offset of the correlation id in a request's header: the size of the API key and the version before it."""
_GUESS_SIZE: Final = 64
"""The number of received bytes by which another protocol is recognized."""
LARGE_PART: Final = 64 * 1024
"""The least size of a part of a request that is written as it is, and not copied, in bytes."""
_FIRST: Final = 16 * 1024
"""The size of the buffer for the beginning of a frame, in bytes. The rest of a longer frame has its own buffer."""


class ResponseHandler(Protocol):
    """An object that receives the response to one request, or the error that prevents it."""

    def resolve(self, frame: bytes, position: int) -> None:
        """Receive the response: its body begins at ``position`` of ``frame``."""

    def fail(self, error: KafkaError) -> None:
        """Receive the error that ended the pipeline before the response came."""


class RequestNotes(Protocol):
    """An object that takes notes of requests, each when it ends."""

    @property
    def observers(self) -> Observers: ...

    """What gets the notes."""

    def kind(self, request: type[Request[Any]], spoken: int) -> ConnectionApi:
        """Return what all requests of this type and version have in common."""

    def resolve(
        self,
        kind: ConnectionApi,
        sent_bytes: int,
        sent_at: float,
        handler: ResponseHandler,
        frame: bytes,
        position: int,
    ) -> None:
        """Pass a response on, and take a note of its request."""

    def fail(
        self, kind: ConnectionApi, sent_bytes: int, sent_at: float, handler: ResponseHandler, error: KafkaError
    ) -> None:
        """Pass the error of a request on, and take a note of it."""


def _pieces(parts: Iterable[Buffer]) -> list[bytes]:
    """Return a frame with its large parts as they are, and the small ones between them joined."""
    pieces, small = list[bytes](), list[Buffer]()
    for part in parts:
        if len(part) < LARGE_PART:
            small.append(part)
        else:
            pieces += (b"".join(small), bytes(part))  # of bytes this is no copy
            small.clear()
    return [*pieces, b"".join(small)] if small else pieces


class _Form(NamedTuple):
    """The header fields that all requests of one type and version have in common."""

    before: bytes
    """The encoded fields before the correlation id."""
    behind: bytes
    """The encoded fields after the correlation id."""
    response_header: int
    """The version of the responses' header."""
    name: str
    kind: ConnectionApi | None = None
    """What notes say of such requests; None without notes."""

    @property
    def is_login(self) -> bool:
        """Whether requests with this header are part of SASL authentication."""
        return self.name.startswith("Sasl") or self is _BARE


_BARE: Final = _Form(before=b"", behind=b"", response_header=-1, name="a SASL token")
"""The form of frames without a header, whose responses have no header either."""


_Waiting: TypeAlias = tuple[int, _Form, ResponseHandler, int, float | None]
"""The correlation id, the form, the handler, the size of the frame in bytes, and when the frame was made, if notes
tell so."""


class ConnectionProtocol:
    """The pipeline of a connection: the requests that wait for their responses, in order.

    Args:
        client_id: the client id in every request's header.
        broker: the broker's name in errors.
        max_frame: the largest frame to accept, in bytes.
        notes: takes notes of requests.
    """

    def __init__(self, *, client_id: str, broker: str, max_frame: int, notes: RequestNotes | None = None) -> None:
        self._client_id, self._broker, self._max_frame = client_id, broker, max_frame
        self._correlation_id = 0
        self._notes = notes
        self._waiting: deque[_Waiting] = deque()
        self._forms: dict[tuple[type[Request[Any]], int], _Form] = {}
        # The incomplete frame, if there is one, and the received bytes of an incomplete size.
        self._frame: Frame | None = None
        self._size_begun = b""
        self._first: bytearray | None = None
        # The requests that hold() delays, while those of authentication are sent ahead; None at other times.
        self._held_back: deque[_Waiting] | None = None
        self._on_idle: Callable[[], None] | None = None
        self.failure: KafkaError | None = None

    @property
    def in_flight(self) -> int:
        """The number of requests that wait for their responses."""
        return len(self._waiting) + len(self._held_back or ())

    @property
    def answered(self) -> int:
        """The number of requests that were answered or need no response, since correlation ids last started at 0."""
        return self._correlation_id - self.in_flight

    @property
    def next_answered(self) -> tuple[str, ResponseHandler] | None:
        """The name and the handler of the oldest pending request, which is answered next; None if none is pending."""
        return (self._waiting[0][1].name, self._waiting[0][2]) if self._waiting else None

    def hold(self, on_idle: Callable[[], None]) -> None:
        """Delay requests until :meth:`release`, except ``ahead`` ones. Call ``on_idle`` when no request is pending."""
        self._held_back, self._on_idle = deque(), on_idle
        if not self._waiting:
            on_idle()

    def release(self) -> None:
        """Add the requests that :meth:`hold` delayed to the pending requests, since the caller sends them now."""
        self._waiting.extend(self._held_back or ())
        self._held_back = self._on_idle = None

    def send_bare(self, token: bytes, handler: ResponseHandler) -> bytes:
        """Return the frame of a SASL token. As after SaslHandshake v0, frame and response have no header."""
        if self.failure is not None:
            raise copy_for_reraise(self.failure)
        self._waiting.append((-1, _BARE, handler, 0, None))
        return _INT32.pack(len(token)) + token

    def send(
        self,
        request: Request[Any],
        version: int,
        handler: ResponseHandler | None,
        *,
        ahead: bool = False,
        now: float | None = None,
    ) -> bytes:
        """Return the frame of a request. ``handler`` receives the response; None if the broker sends no response.

        With ``now``, the time in seconds, the request may be noted when it ends.

        Frames must be sent in the order in which they were made, except that frames made with ``ahead`` are sent before
        those that :meth:`hold` delays.

        Raises:
            InvalidMessage, UnsupportedVersion: the request cannot be encoded; the pipeline is unchanged.
        """
        if self.failure is not None:
            raise copy_for_reraise(self.failure)
        body: list[Buffer] = []
        encode_into(request, version, body)
        return b"".join(self.send_encoded(type(request), version, body, handler, ahead=ahead, now=now))

    def send_encoded(
        self,
        request: type[Request[Any]],
        version: int,
        body: Sequence[Buffer],
        handler: ResponseHandler | None,
        *,
        ahead: bool = False,
        now: float | None = None,
    ) -> Sequence[bytes]:
        """Return as :meth:`send` the frame of a request whose ``body`` the caller has encoded.

        The frame has several pieces if the body has large parts, which are not copied. The first piece has the header.
        """
        if self.failure is not None:
            raise copy_for_reraise(self.failure)
        form = self._forms.get((request, version)) or self._form(request, version)
        number = self._correlation_id
        size = len(form.before) + _CORRELATION_ID_SIZE + len(form.behind) + sum(map(len, body))
        parts = (_INT32.pack(size), form.before, _INT32.pack(number), form.behind, *body)
        frame = (b"".join(parts),) if size < LARGE_PART else _pieces(parts)
        if handler is not None:
            waiting = self._waiting if ahead or self._held_back is None else self._held_back
            waiting.append((number, form, handler, _INT32.size + size, now))
        self._correlation_id = (number + 1) % _CORRELATION_IDS
        return frame

    def _form(self, request: type[Request[Any]], version: int) -> "_Form":
        header = RequestHeader(
            request_api_key=request.api_key,
            request_api_version=version,
            correlation_id=0,
            client_id=self._client_id,
        )
        encoded = encode(header, request_header_version(request, version))
        form = _Form(
            encoded[:_BEFORE],
            encoded[_BEFORE + _CORRELATION_ID_SIZE :],
            response_header_version(request, version),
            request.__name__,
            None if self._notes is None else self._notes.kind(request, version),
        )
        self._forms[request, version] = form
        return form

    def buffer(self) -> memoryview:
        """Return a buffer for the next bytes. Use it once; report the number of received bytes to :meth:`filled`."""
        if self._frame is not None:
            return self._frame.buffer()
        if self._first is None:
            self._first = bytearray(_FIRST)
        return memoryview(self._first)

    def filled(self, count: int) -> None:
        """Process the first ``count`` bytes in the buffer, and resolve the handlers of all complete responses.

        Raises:
            WireError: the bytes are not a broker's responses; the pipeline has failed.
        """
        if self.failure is not None:
            raise copy_for_reraise(self.failure)
        if self._frame is None:
            assert self._first is not None
            self._begin(memoryview(self._first)[:count])
            return
        frame = self._frame.filled(count)
        if frame is not None:
            self._frame = None
            self._read(frame)

    def receive(self, data: Buffer) -> None:
        """Process received bytes that are not in :meth:`buffer`. Raises as :meth:`filled`."""
        if self.failure is not None:
            raise copy_for_reraise(self.failure)
        view = memoryview(data)
        while self._frame is not None and view:
            buffer = self._frame.buffer()
            count = min(len(buffer), len(view))
            buffer[:count] = view[:count]
            buffer.release()
            self.filled(count)
            view = view[count:]
        if view:
            self._begin(view)

    def _begin(self, data: memoryview) -> None:
        """Process bytes that begin where a frame begins; the last frame in them may be incomplete."""
        position = 0
        if self._size_begun:
            data, self._size_begun = memoryview(self._size_begun + data), b""
        while self.failure is None and position < len(data):
            if len(data) - position < _INT32.size:
                self._size_begun = data[position:].tobytes()
                return
            size = self._checked_size(data, position)
            position += _INT32.size
            if len(data) - position < size:
                self._frame = Frame(size, data[position:])
                return
            self._read(data[position : position + size].tobytes())
            position += size

    def _read(self, frame: bytes) -> None:
        try:
            self._answer(frame)
        except KafkaError as error:
            self.fail(error)
            raise

    def _checked_size(self, data: memoryview, position: int) -> int:
        size: int = _INT32.unpack_from(data, position)[0]
        bare = bool(self._waiting) and self._waiting[0][1] is _BARE
        if (0 if bare else _CORRELATION_ID_SIZE) <= size <= self._max_frame:
            if self._waiting:  # checked before the rest of the frame is received
                return size
            error: KafkaError = WireError(f"{self._broker} sent a frame of {size} bytes that answers no request")
        else:
            guess = _guess_protocol(data[position : position + _GUESS_SIZE].tobytes())
            allowed = f"{_CORRELATION_ID_SIZE} to {self._max_frame} (receive_message_max_bytes)"
            error_type = SecurityMismatch if guess == _TLS else WireError
            error = error_type(f"{self._broker} sent {guess or f'a frame of {size} bytes, allowed are {allowed}'}")
        self.fail(error)
        raise error

    def _answer(self, frame: bytes) -> None:
        expected, form, handler, sent_bytes, sent_at = self._waiting[0]
        position = 0
        if form is not _BARE:
            correlation_id, position = _INT32.unpack_from(frame)[0], _INT32.size
            if form.response_header == 1 and frame[position : position + 1] == _NO_TAGS:  # as nearly always
                position += 1
            elif form.response_header:
                position = self._behind_header(form, frame)
            if correlation_id != expected:
                raise WireError(
                    f"{self._broker} answered correlation id {correlation_id} when {expected} ({form.name}) was next"
                )
        self._waiting.popleft()
        if (
            sent_at is None
            or form.kind is None
            or (notes := self._notes) is None
            or notes.observers.note_request is None
        ):
            handler.resolve(frame, position)
        else:
            notes.resolve(form.kind, sent_bytes, sent_at, handler, frame, position)
        if self._on_idle is not None and not self._waiting:
            self._on_idle()

    def _behind_header(self, form: _Form, frame: bytes) -> int:
        try:
            return decode_prefix(ResponseHeader, form.response_header, frame)[1]
        except WireError as error:
            raise WireError(f"{self._broker} answered {form.name} with a broken header: {error}") from error

    def connection_closed(self) -> None:
        """Fail the pipeline, since the broker has closed the connection."""
        # Before the login a listener with SASL answers only ApiVersions, which may take two requests.
        early = 1 <= self.answered <= 2 and self.in_flight == 1 and not self._waiting[0][1].is_login
        hint = " (does this listener require SASL? see security_protocol)" if early else ""
        self.fail(ConnectionLost(f"{self._broker} closed the connection{hint}"))

    def fail(self, error: KafkaError) -> None:
        """Fail the pipeline, unless it has failed already: pending and later requests fail with ``error``."""
        if self.failure is not None:
            return
        self.failure = error
        self._frame = None
        self.release()
        while self._waiting:
            _, form, handler, sent_bytes, sent_at = self._waiting.popleft()
            if sent_at is None or form.kind is None or (notes := self._notes) is None:
                handler.fail(error)
            else:
                notes.fail(form.kind, sent_bytes, sent_at, handler, error)


_TLS: Final = "a TLS record: this listener speaks TLS, and the client speaks plaintext to it"


def _guess_protocol(data: bytes) -> str | None:
    """Describe what a server of another protocol sent; return None if the bytes are of no known protocol."""
    if data.startswith(b"HTTP/"):
        line = data.split(b"\r\n", 1)[0][:60].decode("ascii", "replace")
        return f"an HTTP answer ({line!r}): this port is a web server's, not a Kafka listener"
    if data[:2] in (b"\x15\x03", b"\x16\x03"):
        return _TLS
    if len(data) >= 4 and all(32 <= byte < 127 or byte in b"\r\n\t" for byte in data[:16]):
        return f"text ({data[:40].decode('ascii', 'replace')!r}), not Kafka's protocol"
    return None
