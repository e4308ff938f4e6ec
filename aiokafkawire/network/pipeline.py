"""One connection's protocol without the connection: frames out, frames in, answers to those who asked.

A broker answers one connection strictly in order, so the oldest request that waits is the one answered next. A
correlation id that says otherwise means that the two sides disagree about the stream, and nothing on it can be
trusted any more: the first failure poisons the pipeline, and every waiter hears of it in order.
"""

from collections import deque
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, Final, NamedTuple, Protocol

from ..errors import ConnectionLost, KafkaError, SecurityMismatch, WireError, copy_for_reraise
from ..protocol.api import RequestHeader, ResponseHeader, request_header_version, response_header_version
from ..protocol.compiler import decode_prefix, encode, encode_into
from ..protocol.primitives import Buffer
from ..protocol.schema import Request
from ._implementation import Frame

__all__ = ("Pipeline", "ResponseHandler")

_INT32: Final = Struct(">i")
_CORRELATION_IDS: Final = 2**31
_CORRELATION_ID_SIZE: Final = 4
_NO_TAGS: Final = b"\0"
_BEFORE: Final = 4
"""Where a request's header has the correlation id: behind the API key and the version."""
_TELLING: Final = 64
"""So many bytes tell what speaks another protocol."""
_FIRST: Final = 16 * 1024
"""How much is read before the size of a frame is known; what is longer goes into a place of its own at once."""


class ResponseHandler(Protocol):
    """A place in line for an answer."""

    def resolve(self, frame: bytes, position: int) -> None:
        """Take the answer: its body begins at ``position`` of ``frame``."""

    def fail(self, error: KafkaError) -> None:
        """Hear why no answer will come."""


class _Form(NamedTuple):
    """What the frames of all requests of one type and version have in common."""

    before: bytes
    """Their header as far as the correlation id."""
    behind: bytes
    """And from there on."""
    answered: int
    """The version of the header before their answers."""
    name: str

    @property
    def is_login(self) -> bool:
        """Whether they are part of a login."""
        return self.name.startswith("Sasl") or self is _BARE


_BARE: Final = _Form(before=b"", behind=b"", answered=-1, name="a SASL token")
"""Of frames that have no header, and whose answers have none."""


class Pipeline:
    """Matches answers to requests.

    Args:
        client_id: goes into every request's header.
        where: the broker's name in errors.
        max_frame: the largest frame to accept, in bytes.
    """

    def __init__(self, *, client_id: str, where: str, max_frame: int) -> None:
        self._client_id, self._where, self._max_frame = client_id, where, max_frame
        self._correlation_id = 0
        self._waiting: deque[tuple[int, _Form, ResponseHandler]] = deque()
        self._forms: dict[tuple[type[Request[Any]], int], _Form] = {}
        # What is neither whole nor lost: a frame, or the first bytes of its size.
        self._frame: Frame | None = None
        self._size_begun = b""
        self._first: bytearray | None = None
        # Those whose frames are to go out later, behind those that go ahead meanwhile.
        self._held_back: deque[tuple[int, _Form, ResponseHandler]] | None = None
        self._on_idle: Callable[[], None] | None = None
        self.failure: KafkaError | None = None

    @property
    def in_flight(self) -> int:
        """How many requests wait for their answers."""
        return len(self._waiting) + len(self._held_back or ())

    @property
    def answered(self) -> int:
        """How many requests were answered, until the correlation ids begin anew; those without an answer count, too."""
        return self._correlation_id - self.in_flight

    @property
    def next_answered(self) -> tuple[str, ResponseHandler] | None:
        """The name of the request that waits longest, and its slot; None if none waits."""
        return (self._waiting[0][1].name, self._waiting[0][2]) if self._waiting else None

    def hold(self, on_idle: Callable[[], None]) -> None:
        """Requests from now on are for later, unless they go ahead; ``on_idle`` hears when nothing else waits."""
        self._held_back, self._on_idle = deque(), on_idle
        if not self._waiting:
            on_idle()

    def release(self) -> None:
        """The frames that were held back go out now, in their order."""
        self._waiting.extend(self._held_back or ())
        self._held_back = self._on_idle = None

    def send_bare(self, token: bytes, slot: ResponseHandler) -> bytes:
        """The frame of a SASL token without a header, as after SaslHandshake v0; the answer has none either."""
        if self.failure is not None:
            raise copy_for_reraise(self.failure)
        self._waiting.append((-1, _BARE, slot))
        return _INT32.pack(len(token)) + token

    def send(self, request: Request[Any], version: int, slot: ResponseHandler | None, *, ahead: bool = False) -> bytes:
        """The frame of a request, whose answer will go to ``slot``; None where the broker will not answer.

        Frames must reach the wire in the order in which they were made; but those that go ``ahead`` come before those
        that are held back.

        Raises:
            InvalidMessage, UnsupportedVersion: nothing was sent, and the pipeline is as before.
        """
        if self.failure is not None:
            raise copy_for_reraise(self.failure)
        body: list[Buffer] = []
        encode_into(request, version, body)
        return self.send_encoded(type(request), version, body, slot, ahead=ahead)

    def send_encoded(
        self,
        kind: type[Request[Any]],
        version: int,
        body: Sequence[Buffer],
        slot: ResponseHandler | None,
        *,
        ahead: bool = False,
    ) -> bytes:
        """As :meth:`send`, of a request of that ``kind`` that is encoded already: the parts of its ``body``."""
        if self.failure is not None:
            raise copy_for_reraise(self.failure)
        form = self._forms.get((kind, version)) or self._form(kind, version)
        number = self._correlation_id
        size = len(form.before) + _CORRELATION_ID_SIZE + len(form.behind) + sum(map(len, body))
        frame = b"".join((_INT32.pack(size), form.before, _INT32.pack(number), form.behind, *body))
        if slot is not None:
            waiting = self._waiting if ahead or self._held_back is None else self._held_back
            waiting.append((number, form, slot))
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
        )
        self._forms[request, version] = form
        return form

    def room(self) -> memoryview:
        """Where bytes may be put as they come; :meth:`filled` hears how many. It is asked for anew each time."""
        if self._frame is not None:
            return self._frame.room()
        if self._first is None:
            self._first = bytearray(_FIRST)
        return memoryview(self._first)

    def filled(self, count: int) -> None:
        """So many bytes came into the room. Every slot whose answer is whole is resolved.

        Raises:
            WireError: the bytes are not a broker's answers; the pipeline is poisoned.
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
        """Take bytes as they come, as with :meth:`room` and :meth:`filled`.

        Raises:
            WireError: the bytes are not a broker's answers; the pipeline is poisoned.
        """
        if self.failure is not None:
            raise copy_for_reraise(self.failure)
        view = memoryview(data)
        while self._frame is not None and view:
            room = self._frame.room()
            count = min(len(room), len(view))
            room[:count] = view[:count]
            room.release()
            self.filled(count)
            view = view[count:]
        if view:
            self._begin(view)

    def _begin(self, data: memoryview) -> None:
        """Take frames from their beginnings on; the last of them may be cut."""
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
            if self._waiting:  # before it is gathered
                return size
            error: KafkaError = WireError(f"{self._where} sent a frame of {size} bytes that nothing asked for")
        else:
            guess = _what_it_is(data[position : position + _TELLING].tobytes())
            allowed = f"{_CORRELATION_ID_SIZE} to {self._max_frame} (receive_message_max_bytes)"
            kind = SecurityMismatch if guess == _TLS else WireError
            error = kind(f"{self._where} sent {guess or f'a frame of {size} bytes, allowed are {allowed}'}")
        self.fail(error)
        raise error

    def _answer(self, frame: bytes) -> None:
        expected, form, slot = self._waiting[0]
        position = 0
        if form is not _BARE:
            told, position = _INT32.unpack_from(frame)[0], _INT32.size
            if form.answered == 1 and frame[position : position + 1] == _NO_TAGS:  # as nearly always
                position += 1
            elif form.answered:
                position = self._behind_header(form, frame)
            if told != expected:
                raise WireError(f"{self._where} answered correlation id {told} where {expected} ({form.name}) was next")
        self._waiting.popleft()
        slot.resolve(frame, position)
        if self._on_idle is not None and not self._waiting:
            self._on_idle()

    def _behind_header(self, form: _Form, frame: bytes) -> int:
        try:
            return decode_prefix(ResponseHeader, form.answered, frame)[1]
        except WireError as error:
            raise WireError(f"{self._where} answered {form.name} with a broken header: {error}") from error

    def hung_up(self) -> None:
        """The broker has closed the connection."""
        # A listener that wants a login answers ApiVersions, which may take two questions, and nothing else.
        early = 1 <= self.answered <= 2 and self.in_flight == 1 and not self._waiting[0][1].is_login
        hint = " (does this listener ask for a SASL login? see security_protocol)" if early else ""
        self.fail(ConnectionLost(f"{self._where} closed the connection{hint}"))

    def fail(self, error: KafkaError) -> None:
        """Poison the pipeline: all who wait hear ``error``, and so does every later call. Only the first counts."""
        if self.failure is not None:
            return
        self.failure = error
        self._frame = None
        self.release()
        while self._waiting:
            *_, slot = self._waiting.popleft()
            slot.fail(error)


_TLS: Final = "a TLS record: this listener speaks TLS, and the client speaks plaintext to it"


def _what_it_is(data: bytes) -> str | None:
    """A guess at who answers, if it is plainly not Kafka."""
    if data.startswith(b"HTTP/"):
        line = data.split(b"\r\n", 1)[0][:60].decode("ascii", "replace")
        return f"an HTTP answer ({line!r}): this port is a web server's, not a Kafka listener"
    if data[:2] in (b"\x15\x03", b"\x16\x03"):
        return _TLS
    if len(data) >= 4 and all(32 <= byte < 127 or byte in b"\r\n\t" for byte in data[:16]):
        return f"text ({data[:40].decode('ascii', 'replace')!r}), not Kafka's protocol"
    return None
