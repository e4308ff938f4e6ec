"""A session with ZooKeeper: one connection at a time, to any of its servers, and answers in the order of calls."""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from struct import Struct
from typing import Any, Final, TypeVar

import anyio
import attrs
from anyio.abc import ByteStream

from ..errors import ConnectionLost, KafkaError, RequestTimeout, UsageError, WireError, as_kafka_error, copy_for_reraise
from ..network.connector import Connector
from ..runtime import Owner, Runtime
from ..types import Address
from . import jute
from .errors import NoNode, SessionExpired, zookeeper_error
from .jute import Op, Reader, Xid
from .watches import Watch, Watches

__all__ = ("Session",)

T = TypeVar("T")

_SIZE: Final = Struct(">i")
_LARGEST_FRAME: Final = 64 * 1024 * 1024
_READ: Final = 64 * 1024
_XIDS: Final = 2**31 - 1
_PAUSE_SECONDS: Final = 0.1
_LONGEST_MS: Final = 60_000
_CLOSE_SECONDS: Final = 2.0


@attrs.define(eq=False)
class _Call:
    """A request that waits for its answer."""

    xid: int
    op: Op
    path: str
    watch: Watch | None
    decode: Callable[[Reader], Any]
    event: anyio.Event = attrs.field(factory=anyio.Event)
    value: Any = None
    error: KafkaError | None = None

    def resolve(self, value: Any, error: KafkaError | None = None) -> None:
        self.value, self.error = value, error
        self.event.set()


class Session:
    """Goes on, over connections that break, until it is closed or has expired.

    Args:
        servers: any of them will do.
        root: what stands before every path on the wire, and is left out of events.
        session_timeout_ms: what to ask the servers for; they may decide on another.
        limit: how long a call may take, in seconds.
    """

    def __init__(
        self,
        servers: Sequence[Address],
        root: str,
        session_timeout_ms: int,
        limit: float,
        connector: Connector,
        runtime: Runtime,
    ) -> None:
        self.root: str = root
        self.limit: float = limit
        self.id: int = 0
        self.failure: KafkaError | None = None
        """Why it is over; None while it is not."""
        self.timeout: float = session_timeout_ms / 1000
        """After how many seconds of silence it has expired, as far as is known."""
        self._servers, self._asked_ms = servers, session_timeout_ms
        self._connector, self._runtime = connector, runtime
        self._owner = Owner()
        self._watches = Watches()
        self._password, self._zxid, self._xid = bytes(16), 0, 0
        self._stream: ByteStream | None = None
        self._buffer = bytearray()
        self._where = self._last_cause = ""
        self._connected = anyio.Event()
        self._sending = anyio.Lock()
        self._calls: deque[_Call] = deque()

    async def open(self) -> None:
        """Find a server, and begin.

        Raises:
            ConnectionLost: none was found in time that gave a session and held the connection.
        """
        await self._owner.open()
        try:
            self._owner.spawn(self._run)
            with anyio.move_on_after(self.limit):
                while self._stream is None and self.failure is None:
                    await self._connected.wait()
            self._require_alive()
            if self._stream is None:
                told = ", ".join(map(str, self._servers))
                raise ConnectionLost(f"no ZooKeeper server of {told} within {self.limit:g} s: {self._last_cause}")
        except BaseException:
            await self._owner.close()
            raise

    async def close(self) -> None:
        """End the session, so that its ephemeral nodes go at once. May be called again."""
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True), suppress(KafkaError):  # else it will expire
            if self._stream is not None and self.failure is None:
                await self.call(Op.CLOSE_SESSION, "", lambda xid: jute.bare_request(xid, Op.CLOSE_SESSION))
        self._fail(UsageError("this ZooKeeper session is closed"))
        await self._owner.close()

    async def call(
        self,
        op: Op,
        path: str,
        encode: Callable[[int], bytes],
        decode: Callable[[Reader], T] = lambda reader: None,  # type: ignore[assignment,return-value]
        watch: Watch | None = None,
        deadline: float | None = None,
    ) -> T:
        """Ask once.

        Raises:
            ConnectionLost, RequestTimeout, ZooKeeperError, UsageError: see ``ZooKeeper``.
        """
        self._owner.require_open()
        deadline = anyio.current_time() + self.limit if deadline is None else deadline
        with anyio.move_on_after(deadline - anyio.current_time()):
            while True:
                await self._connected.wait()
                async with self._sending:
                    self._require_alive()
                    stream = self._stream
                    if stream is None:
                        continue
                    self._xid = self._xid % _XIDS + 1
                    call = _Call(self._xid, op, path, watch, decode)
                    data = encode(call.xid)
                    self._calls.append(call)
                    await self._send(stream, data)
                break
            await call.event.wait()
            if call.error is not None:
                raise copy_for_reraise(call.error)
            return call.value  # type: ignore[no-any-return]
        raise RequestTimeout(f"no answer from ZooKeeper to {_named(op, path)} within {self.limit:g} s")

    def _require_alive(self) -> None:
        if self.failure is not None:
            raise copy_for_reraise(self.failure)

    async def _send(self, stream: ByteStream, data: bytes) -> None:
        """Send a whole frame, or lose the connection; whoever waits hears it from the reading side."""
        try:
            with anyio.CancelScope(deadline=anyio.current_time() + self.timeout, shield=True) as in_time:
                await stream.send(data)
            if not in_time.cancelled_caught:
                return
        except Exception:  # noqa: S110 - a stream may fail in a way of its own
            pass
        with anyio.CancelScope(shield=True):
            await stream.aclose()

    # --- connections ----------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while self.failure is None:
                stream = await self._dial()
                try:
                    await self._serve(stream)
                finally:
                    self._stream, self._connected = None, anyio.Event()
                    with anyio.CancelScope(shield=True):
                        await stream.aclose()
                await anyio.sleep(_PAUSE_SECONDS)  # a server that greets and hangs up is not to be dialled for ever
        except SessionExpired as expired:
            self._fail(expired)
        except Exception as fault:  # a watch of the user's may raise anything
            self._fail(as_kafka_error(fault, "a session with ZooKeeper"))
        finally:
            self._fail(UsageError("this ZooKeeper session is closed"))

    def _fail(self, error: KafkaError) -> None:
        """The session is over."""
        if self.failure is not None:
            return
        self.failure = error
        self._drop_calls(error)
        self._connected.set()
        if isinstance(error, SessionExpired):
            self._watches.expire()

    def _drop_calls(self, error: KafkaError) -> None:
        while self._calls:
            self._calls.popleft().resolve(None, error)

    async def _dial(self) -> ByteStream:
        """A connection on which a server goes on with the session.

        Raises:
            SessionExpired: it says no, or none was reached for as long as the servers keep a session.
        """
        deadline = anyio.current_time() + self.timeout
        order = list(self._servers)
        self._runtime.chance.shuffle(order)
        patience = max(self.timeout / 3, 0.01)
        while True:
            for address in order:
                stream: ByteStream | None = None
                try:
                    with anyio.fail_after(patience):
                        stream = await self._connector(*address)
                        if await self._greet(stream, str(address)):
                            return stream
                except (Exception, anyio.get_cancelled_exc_class()) as cause:
                    if stream is not None:
                        with anyio.CancelScope(shield=True):
                            await stream.aclose()
                    if not isinstance(cause, Exception) or isinstance(cause, SessionExpired):
                        raise
                    self._last_cause = f"{address}: {cause or type(cause).__name__}"
                if self.id and anyio.current_time() >= deadline:
                    told = f"no ZooKeeper server was reached for {self.timeout:g} s"
                    raise SessionExpired(f"{told}, so the session counts as expired: {self._last_cause}")
            await anyio.sleep(min(_PAUSE_SECONDS, patience))

    async def _greet(self, stream: ByteStream, where: str) -> bool:
        await stream.send(jute.connect_request(self._asked_ms, self._zxid, self.id, self._password))
        buffer = bytearray()
        while True:
            buffer += await stream.receive(_READ)
            found = _first_frame(buffer, where)
            if found is not None:
                break
        answer = jute.read_connect_answer(found)
        given = answer.session_id if answer.timeout_ms > 0 else 0
        if not given and not self.id:
            raise ConnectionLost(f"{where} gave no session")
        if self.id not in (0, given):
            raise SessionExpired(f"{where} says that the session has expired")
        self.id, self._password, self._where = given, answer.password, where
        # A server that promises more is looked after, and left if it is silent, no less often.
        self.timeout = min(answer.timeout_ms, max(self._asked_ms, _LONGEST_MS)) / 1000
        watches = self._watches.again(self.root)
        if watches is not None:
            await stream.send(jute.set_watches_request(self._zxid, watches))
        self._buffer = buffer
        return True

    async def _serve(self, stream: ByteStream) -> None:
        """Read until the connection is lost, and ping meanwhile."""
        told = f"the connection to {self._where} was lost"
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._ping, stream)
                self._stream = stream
                self._connected.set()
                self._last_cause = told = await self._read(stream)
                tasks.cancel_scope.cancel()
        finally:
            self._drop_calls(ConnectionLost(f"{told}; a change that was asked for may have been made"))

    async def _ping(self, stream: ByteStream) -> None:
        while True:
            await anyio.sleep(self.timeout / 3)
            async with self._sending:
                await self._send(stream, jute.bare_request(Xid.PING, Op.PING))

    async def _read(self, stream: ByteStream) -> str:
        """Take answers; what ended the connection."""
        try:
            while True:
                while (found := _first_frame(self._buffer, self._where)) is not None:
                    self._take(found)
                with anyio.fail_after(2 * self.timeout / 3):
                    self._buffer += await _received(stream)
        except TimeoutError:
            return f"{self._where} was silent for {2 * self.timeout / 3:g} s"
        except anyio.EndOfStream:
            return f"{self._where} hung up"
        except (_StreamFailed, WireError) as cause:
            return f"the connection to {self._where} broke: {cause.__cause__ or cause or type(cause).__name__}"

    def _take(self, data: bytes) -> None:
        reader = Reader(data, f"answer of {self._where}")
        header = jute.read_reply_header(reader)
        if header.zxid > 0:
            self._zxid = header.zxid
        if header.xid == Xid.EVENT:
            event = jute.read_event(reader)
            self._watches.tell(attrs.evolve(event, path=event.path.removeprefix(self.root) or "/"))
            return
        if header.xid in (Xid.PING, Xid.SET_WATCHES):
            return
        call = self._calls[0] if self._calls else None
        if call is None or call.xid != header.xid:
            wanted = "nothing" if call is None else f"xid {call.xid}"
            raise WireError(f"{self._where} answered xid {header.xid} where {wanted} was next")
        value = None if header.error else call.decode(reader)
        self._calls.popleft()
        if call.watch is not None and (not header.error or (call.op is Op.EXISTS and header.error == NoNode.code)):
            self._watches.add(call.op, call.path, call.watch, found=not header.error)
        call.resolve(value, zookeeper_error(header.error, _named(call.op, call.path)) if header.error else None)


class _StreamFailed(Exception):
    """As told by the stream; a watch of the user's fails in other ways."""


async def _received(stream: ByteStream) -> bytes:
    try:
        return await stream.receive(_READ)
    except anyio.EndOfStream:
        raise
    except Exception as cause:
        raise _StreamFailed(str(cause.__cause__ or cause) or repr(cause)) from cause


def _named(op: Op, path: str) -> str:
    return f"{op.name.lower()} {path}".rstrip()


def _first_frame(buffer: bytearray, where: str) -> bytes | None:
    """Take the first frame off, once it is whole.

    Raises:
        WireError: its size cannot be.
    """
    if len(buffer) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack_from(buffer)
    if not 0 <= size <= _LARGEST_FRAME:
        raise WireError(f"{where} sent a frame of {size} bytes: is it a ZooKeeper server?")
    end = _SIZE.size + size
    if len(buffer) < end:
        return None
    found = bytes(buffer[_SIZE.size : end])
    del buffer[:end]
    return found
