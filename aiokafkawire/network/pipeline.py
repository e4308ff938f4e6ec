"""One connection's protocol without the connection: frames out, frames in, answers to those who asked.

A broker answers one connection strictly in order, so the oldest request that waits is the one answered next. A
correlation id that says otherwise means that the two sides disagree about the stream, and nothing on it can be
trusted any more: the first failure poisons the pipeline, and every waiter hears of it in order.
"""

from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import Any, Final, Protocol

from ..errors import KafkaError, SecurityMismatch, WireError, again
from ..protocol.api import RequestHeader, ResponseHeader, request_header_version, response_header_version
from ..protocol.compiler import decode_prefix, encode_into
from ..protocol.primitives import Buffer
from ..protocol.schema import Request

__all__ = ("Pipeline", "Slot")

_SIZE: Final = Struct(">i")
_CORRELATION_IDS: Final = 2**31
_CORRELATION_ID_SIZE: Final = 4
_BARE: Final = -1
"""The header version of an answer that has none."""


class Slot(Protocol):
    """A place in line for an answer."""

    def resolve(self, frame: bytes, position: int) -> None:
        """Take the answer: its body begins at ``position`` of ``frame``."""

    def fail(self, error: KafkaError) -> None:
        """Hear why no answer will come."""


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
        self._waiting: deque[tuple[int, int, str, Slot]] = deque()
        # Those whose frames are to go out later, behind those that go ahead meanwhile.
        self._held_back: deque[tuple[int, int, str, Slot]] | None = None
        self._on_idle: Callable[[], None] | None = None
        # Received and not yet consumed; joined only when a whole frame is there.
        self._chunks: list[bytes] = []
        self._held = 0
        self._frame_size: int | None = None
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
    def next_answered(self) -> tuple[str, Slot] | None:
        """The name of the request that waits longest, and its slot; None if none waits."""
        return self._waiting[0][2:] if self._waiting else None

    def hold(self, on_idle: Callable[[], None]) -> None:
        """Requests from now on are for later, unless they go ahead; ``on_idle`` hears when nothing else waits."""
        self._held_back, self._on_idle = deque(), on_idle
        if not self._waiting:
            on_idle()

    def release(self) -> None:
        """The frames that were held back go out now, in their order."""
        self._waiting.extend(self._held_back or ())
        self._held_back = self._on_idle = None

    def send_bare(self, token: bytes, slot: Slot) -> bytes:
        """The frame of a SASL token without a header, as after SaslHandshake v0; the answer has none either."""
        if self.failure is not None:
            raise again(self.failure)
        self._waiting.append((_BARE, _BARE, "a SASL token", slot))
        return _SIZE.pack(len(token)) + token

    def send(self, request: Request[Any], version: int, slot: Slot | None, *, ahead: bool = False) -> bytes:
        """The frame of a request, whose answer will go to ``slot``; None where the broker will not answer.

        Frames must reach the wire in the order in which they were made; but those that go ``ahead`` come before those
        that are held back.

        Raises:
            InvalidMessage, UnsupportedVersion: nothing was sent, and the pipeline is as before.
        """
        if self.failure is not None:
            raise again(self.failure)
        header = RequestHeader(
            request_api_key=request.api_key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=self._client_id,
        )
        parts: list[Buffer] = [b""]
        encode_into(header, request_header_version(type(request), version), parts)
        encode_into(request, version, parts)
        parts[0] = _SIZE.pack(sum(map(len, parts)))
        frame = b"".join(parts)
        if slot is not None:
            headed = response_header_version(type(request), version)
            waiting = self._waiting if ahead or self._held_back is None else self._held_back
            waiting.append((self._correlation_id, headed, type(request).__name__, slot))
        self._correlation_id = (self._correlation_id + 1) % _CORRELATION_IDS
        return frame

    def receive(self, data: bytes) -> None:
        """Take bytes as they come, and resolve every slot whose answer is whole.

        Raises:
            WireError: the bytes are not a broker's answers; the pipeline is poisoned.
        """
        if self.failure is not None:
            raise again(self.failure)
        self._chunks.append(data)
        self._held += len(data)
        if self._held < (self._frame_size or _SIZE.size):
            return
        try:
            self._consume(b"".join(self._chunks) if len(self._chunks) > 1 else data)
        except WireError as error:
            self.fail(error)
            raise

    def _consume(self, data: bytes) -> None:
        position, size = 0, self._frame_size
        while True:
            if size is None:
                if len(data) - position < _SIZE.size:
                    break
                size = self._checked_size(data, position)
                position += _SIZE.size
            if len(data) - position < size:
                break
            self._answer(data[position : position + size])
            position, size = position + size, None
        rest = data[position:]
        self._frame_size, self._held, self._chunks = size, len(rest), [rest] if rest else []

    def _checked_size(self, data: bytes, position: int) -> int:
        size: int = _SIZE.unpack_from(data, position)[0]
        bare = bool(self._waiting) and self._waiting[0][1] == _BARE
        if (0 if bare else _CORRELATION_ID_SIZE) <= size <= self._max_frame:
            if not self._waiting:  # before it is gathered
                raise WireError(f"{self._where} sent a frame of {size} bytes that nothing asked for")
            return size
        guess = _what_it_is(data[position:])
        allowed = f"{_CORRELATION_ID_SIZE} to {self._max_frame} (receive_message_max_bytes)"
        told = f"a frame of {size} bytes, allowed are {allowed}"
        raise (SecurityMismatch if guess == _TLS else WireError)(f"{self._where} sent {guess or told}")

    def _answer(self, frame: bytes) -> None:
        expected, header_version, name, slot = self._waiting[0]
        if header_version == _BARE:
            self._answered(slot, frame, 0)
            return
        try:
            header, position = decode_prefix(ResponseHeader, header_version, frame)
        except WireError as error:
            raise WireError(f"{self._where} answered {name} with a broken header: {error}") from error
        if header.correlation_id != expected:
            raise WireError(
                f"{self._where} answered correlation id {header.correlation_id} where {expected} ({name}) was next"
            )
        self._answered(slot, frame, position)

    def _answered(self, slot: Slot, frame: bytes, position: int) -> None:
        self._waiting.popleft()
        slot.resolve(frame, position)
        if self._on_idle is not None and not self._waiting:
            self._on_idle()

    def fail(self, error: KafkaError) -> None:
        """Poison the pipeline: all who wait hear ``error``, and so does every later call. Only the first counts."""
        if self.failure is not None:
            return
        self.failure = error
        self._chunks.clear()
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
