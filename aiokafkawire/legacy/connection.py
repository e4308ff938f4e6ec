"""A connection to a broker of Kafka 0.6 or 0.7, which answers requests in their order.

Answers have no correlation id, so they are matched with requests by their order alone. The first failure ends the
connection for all callers.
"""

from collections import deque
from struct import Struct
from typing import Final

import anyio
from anyio.abc import ByteStream

from ..errors import ConnectionLost, KafkaError, RequestTimeout, WireError, copy_for_reraise
from ..runtime import Owner
from .decoding import decode_answer
from .requests import Answer, MultiProduce, Produce, Request, describe, encode_request, largest_answer

__all__ = ("LegacyConnection",)

_SIZE: Final = Struct(">i")
_SMALLEST_ANSWER: Final = 2
_READ: Final = 256 * 1024


class _Reply:
    """The pending answer to a request that was sent."""

    __slots__ = ("answer", "error", "event", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.event = anyio.Event()
        self.answer: Answer | None = None
        self.error: KafkaError | None = None


class LegacyConnection:
    """A connection to a broker on an open byte stream.

    Attributes:
        failure: the error that closed the connection; None while it is open.
        answered: the number of received answers.
        unproven: the number of produce requests sent after the last answered request. The broker may have stored their
            messages, or refused them by closing the connection.
    """

    def __init__(self, stream: ByteStream, where: str, timeout: float) -> None:
        self.where: str = where
        self.failure: KafkaError | None = None
        self.answered: int = 0
        self.unproven: int = 0
        self._stream, self._timeout = stream, timeout
        self._writing = anyio.Lock()
        self._waiting: deque[_Reply] = deque()
        self._buffer = bytearray()
        self._proven_by: deque[int] = deque()  # for each waiting request, the number of produce requests sent before it
        self._produced = self._proven = 0

    async def start(self, owner: Owner) -> None:
        """Start the task that reads answers."""
        owner.spawn(self._run)

    async def ask(self, request: Request) -> Answer | None:
        """Send a request, and return its answer; None for produce requests, which have no answer.

        If the caller is cancelled, the answer is discarded when it arrives.

        Raises:
            ConnectionLost: the connection broke, or the broker closed it.
            RequestTimeout: no answer came in time; the connection is closed, since later answers would have to wait for
                the missing answer.
            WireError: the answer violates the protocol of Kafka 0.7.
            UsageError: the request cannot be encoded; nothing was sent.
        """
        frame = encode_request(request)
        reply: _Reply | None = None
        with anyio.move_on_after(self._timeout):
            async with self._writing:
                self._require_open()
                if isinstance(request, Produce | MultiProduce):
                    self._produced += 1
                    self.unproven += 1
                else:
                    reply = _Reply(request)
                    self._waiting.append(reply)
                    self._proven_by.append(self._produced)
                await self._send(frame)
            if reply is None:
                return None
            await reply.event.wait()
            if reply.error is not None:
                raise copy_for_reraise(reply.error)
            return reply.answer
        late = f"no answer from {self.where} to {describe(request)} within {self._timeout:g} s"
        await self.close(ConnectionLost(f"{self.where} left a request unanswered for {self._timeout:g} s"))
        raise RequestTimeout(late)

    def _require_open(self) -> None:
        if self.failure is not None:
            raise copy_for_reraise(self.failure)

    async def _send(self, frame: bytes) -> None:
        try:
            # A partial frame would corrupt the stream, so a cancelled caller finishes its frame first.
            with anyio.CancelScope(deadline=anyio.current_time() + self._timeout, shield=True) as in_time:
                await self._stream.send(frame)
        except anyio.BrokenResourceError as cause:  # the task that reads has not received the end of the stream yet
            await self.close(_lost(f"{self.where} hung up{self._perhaps()}", cause))
        except Exception as cause:  # a custom stream may raise any error, after writing a part of the frame
            await self.close(_lost(f"the connection to {self.where} broke: {cause!r}", cause))
        if in_time.cancelled_caught:
            message = f"{self.where} did not take {len(frame)} bytes within {self._timeout:g} s"
            await self.close(ConnectionLost(message))
        self._require_open()

    async def _run(self) -> None:
        try:
            while self.failure is None:
                self._buffer += await self._stream.receive(_READ)
                self._take_answers()
        except anyio.EndOfStream:
            self._fail(ConnectionLost(f"{self.where} hung up{self._perhaps()}"))
        except WireError as error:
            self._fail(error)
        except Exception as cause:  # a custom stream may raise anything
            self._fail(_lost(f"the connection to {self.where} broke: {cause.__cause__ or cause or repr(cause)}", cause))
        finally:
            self._fail(ConnectionLost(f"the connection to {self.where} was closed"))
            with anyio.CancelScope(shield=True):
                await self._stream.aclose()

    def _perhaps(self) -> str:
        """Return a guess why the broker closed the connection, or an empty text: the broker itself gives no reason."""
        unproven = self._proven_by[0] - self._proven if self._waiting else self.unproven
        if unproven:
            sent = "a produce request" if unproven == 1 else f"one of {unproven} produce requests"
            return f" after {sent}: it was refused, or the broker ended"
        if self._waiting:
            asked = describe(self._waiting[0].request)
            return f" instead of answering {asked} (as brokers do at a partition that they do not have)"
        return ""

    def _take_answers(self) -> None:
        position, data = 0, self._buffer
        while len(data) - position >= _SIZE.size:
            (size,) = _SIZE.unpack_from(data, position)
            if not self._waiting:
                raise WireError(f"{self.where} sent {size} bytes that nothing asked for")
            reply = self._waiting[0]
            largest = largest_answer(reply.request)
            if not _SMALLEST_ANSWER <= size <= largest:
                message = f"{self.where} answered {describe(reply.request)} with a frame of {size} bytes"
                raise WireError(
                    f"{message}, where {_SMALLEST_ANSWER} to {largest} can be: is it a broker of Kafka 0.7?"
                )
            end = position + _SIZE.size + size
            if len(data) < end:
                break
            self._answer(reply, bytes(data[position + _SIZE.size : end]))
            position = end
        del data[:position]

    def _answer(self, reply: _Reply, frame: bytes) -> None:
        try:
            reply.answer = decode_answer(reply.request, frame)
        except WireError as error:
            raise WireError(f"{self.where}: {error}") from None
        self._waiting.popleft()
        self.answered += 1
        self._proven = self._proven_by.popleft()
        self.unproven = self._produced - self._proven
        reply.event.set()

    def _fail(self, error: KafkaError) -> None:
        if self.failure is not None:
            return
        self.failure = error
        self._buffer.clear()
        for reply in self._waiting:
            reply.error = error
            reply.event.set()
        self._waiting.clear()

    async def close(self, reason: KafkaError | None = None) -> None:
        """Close the stream; waiting callers fail with ``reason``. Calling it again has no effect."""
        self._fail(reason or ConnectionLost(f"the connection to {self.where} was closed by this client"))
        with anyio.CancelScope(shield=True):
            await self._stream.aclose()


def _lost(message: str, cause: Exception) -> ConnectionLost:
    lost = ConnectionLost(message)
    lost.__cause__ = cause
    return lost
