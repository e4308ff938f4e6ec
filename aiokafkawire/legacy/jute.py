"""ZooKeeper's messages, and the encoding that they are written in, which it calls jute.

Big-endian numbers; strings, buffers and lists behind an int32 with their length, where -1 is null. A frame is a size
and a header: with an xid and a type in requests, with an xid, a transaction's number and an error in answers.
"""

from collections.abc import Sequence
from enum import IntEnum
from struct import Struct
from typing import Final

import attrs

from ..errors import UsageError, WireError

__all__ = (
    "ANY_VERSION",
    "ConnectAnswer",
    "EventType",
    "Op",
    "Reader",
    "ReplyHeader",
    "SetWatches",
    "Stat",
    "WatchEvent",
    "Xid",
    "bare_request",
    "connect_request",
    "create_request",
    "delete_request",
    "frame",
    "path_request",
    "read_connect_answer",
    "read_event",
    "read_reply_header",
    "read_stat",
    "set_request",
    "set_watches_request",
)

ANY_VERSION: Final = -1
"""The version of a node that stands for all."""

_INT32, _INT64 = Struct(">i"), Struct(">q")
_REPLY, _STAT = Struct(">iqi"), Struct(">qqqqiiiqiiq")
_EVERYBODY_MAY = Struct(">ii").pack(1, 31)
_EPHEMERAL: Final = 1


class Op(IntEnum):
    """What a request asks for."""

    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    GET_CHILDREN = 8
    PING = 11
    SET_WATCHES = 101
    CLOSE_SESSION = -11


class Xid(IntEnum):
    """Numbers of what no caller waits for."""

    EVENT = -1
    PING = -2
    SET_WATCHES = -8


class EventType(IntEnum):
    """What has happened to a node, or with NONE to the session."""

    NONE = -1
    CREATED = 1
    DELETED = 2
    DATA_CHANGED = 3
    CHILDREN_CHANGED = 4


@attrs.frozen
class Stat:
    """What ZooKeeper knows of a node; times are ms since the epoch."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    """The session that it goes with; 0 for a persistent one."""
    data_length: int
    num_children: int
    pzxid: int


@attrs.frozen
class WatchEvent:
    """What a watch tells, once. With NONE the session has expired, and nothing more will be told."""

    type: EventType
    path: str


@attrs.frozen
class ConnectAnswer:
    """The session that a server gave, or goes on with; a timeout (ms) of 0 or less says that it has expired."""

    timeout_ms: int
    session_id: int
    password: bytes


@attrs.frozen
class ReplyHeader:
    """What begins every answer."""

    xid: int
    zxid: int
    error: int


@attrs.frozen
class SetWatches:
    """Watches that a new connection takes over, by what they look at."""

    data: Sequence[str] = ()
    exist: Sequence[str] = ()
    child: Sequence[str] = ()


# --- written ---------------------------------------------------------------------------------------------------------


def frame(*parts: bytes) -> bytes:
    """The parts as one frame, its size included."""
    body = b"".join(parts)
    return _INT32.pack(len(body)) + body


def _header(xid: int, op: Op) -> bytes:
    return _INT32.pack(xid) + _INT32.pack(op)


def _buffer(data: bytes | None) -> bytes:
    return _INT32.pack(-1) if data is None else _INT32.pack(len(data)) + data


def _string(text: str) -> bytes:
    try:
        return _buffer(text.encode())
    except UnicodeEncodeError as cause:
        raise UsageError(f"{text!r:.300} cannot be written as UTF-8") from cause


def _strings(texts: Sequence[str]) -> bytes:
    return _INT32.pack(len(texts)) + b"".join(map(_string, texts))


def connect_request(timeout_ms: int, last_zxid: int, session_id: int = 0, password: bytes = bytes(16)) -> bytes:
    """Asks for a session, or to go on with one: ``session_id`` 0 is a new one."""
    begin = _INT32.pack(0) + _INT64.pack(last_zxid) + _INT32.pack(timeout_ms) + _INT64.pack(session_id)
    return frame(begin, _buffer(password), b"\0")  # not read-only: servers before 3.4 pass over it


def create_request(xid: int, path: str, data: bytes | None, *, ephemeral: bool) -> bytes:
    """A node that everybody may read and write."""
    acl = _EVERYBODY_MAY + _string("world") + _string("anyone")
    flags = _INT32.pack(_EPHEMERAL if ephemeral else 0)
    return frame(_header(xid, Op.CREATE), _string(path), _buffer(data), acl, flags)


def delete_request(xid: int, path: str, version: int = ANY_VERSION) -> bytes:
    """A node to be deleted, if it has this version."""
    return frame(_header(xid, Op.DELETE), _string(path), _INT32.pack(version))


def set_request(xid: int, path: str, data: bytes | None, version: int = ANY_VERSION) -> bytes:
    """New data for a node, if it has this version."""
    return frame(_header(xid, Op.SET_DATA), _string(path), _buffer(data), _INT32.pack(version))


def path_request(xid: int, op: Op, path: str, *, watch: bool = False) -> bytes:
    """A question about a node: EXISTS, GET_DATA or GET_CHILDREN."""
    return frame(_header(xid, op), _string(path), b"\1" if watch else b"\0")


def bare_request(xid: int, op: Op) -> bytes:
    """PING or CLOSE_SESSION."""
    return frame(_header(xid, op))


def set_watches_request(last_zxid: int, watches: SetWatches) -> bytes:
    """Watches that were set on a connection before; what has happened since ``last_zxid`` is told at once."""
    lists = map(_strings, (watches.data, watches.exist, watches.child))
    return frame(_header(Xid.SET_WATCHES, Op.SET_WATCHES), _INT64.pack(last_zxid), *lists)


# --- read ------------------------------------------------------------------------------------------------------------


class Reader:
    """Reads one field of an answer after the other.

    Every method raises:
        WireError: the answer does not hold what it says.
    """

    __slots__ = ("_data", "_position", "_what")

    def __init__(self, data: bytes, what: str) -> None:
        self._data, self._position, self._what = data, 0, what

    @property
    def left(self) -> int:
        """How many bytes were not read yet."""
        return len(self._data) - self._position

    def take(self, size: int) -> bytes:
        """So many bytes."""
        if not 0 <= size <= self.left:
            raise WireError(f"{self._what}: a field of {size} bytes at byte {self._position}, with {self.left} left")
        self._position += size
        return self._data[self._position - size : self._position]

    def int32(self) -> int:
        """An int."""
        (value,) = _INT32.unpack(self.take(_INT32.size))
        return int(value)

    def int64(self) -> int:
        """A long."""
        (value,) = _INT64.unpack(self.take(_INT64.size))
        return int(value)

    def buffer(self) -> bytes | None:
        """A buffer, or None for null."""
        size = self.int32()
        return None if size == -1 else self.take(size)

    def string(self) -> str:
        """A string; null is an empty one."""
        data = self.buffer()
        try:
            return "" if data is None else data.decode()
        except UnicodeDecodeError as cause:
            raise WireError(f"{self._what}: a string that is not UTF-8") from cause

    def strings(self) -> list[str]:
        """A list of strings."""
        count = self.int32()
        if not -1 <= count <= self.left // _INT32.size:
            raise WireError(f"{self._what}: {count} strings, with {self.left} bytes left")
        return [self.string() for _ in range(count)]


def read_connect_answer(data: bytes) -> ConnectAnswer:
    """The answer to a connect request; a newer server says more, which is left unread.

    Raises:
        WireError: it is none.
    """
    reader = Reader(data, "answer to a connect request")
    reader.int32()
    timeout, session = reader.int32(), reader.int64()
    return ConnectAnswer(timeout, session, reader.buffer() or b"")


def read_reply_header(reader: Reader) -> ReplyHeader:
    """The header of any other answer.

    Raises:
        WireError: it is cut.
    """
    return ReplyHeader(*_REPLY.unpack(reader.take(_REPLY.size)))


def read_stat(reader: Reader) -> Stat:
    """What is known of a node.

    Raises:
        WireError: it is cut.
    """
    return Stat(*_STAT.unpack(reader.take(_STAT.size)))


def read_event(reader: Reader) -> WatchEvent:
    """What a watch tells.

    Raises:
        WireError: it is none.
    """
    number, _, path = reader.int32(), reader.int32(), reader.string()
    try:
        return WatchEvent(EventType(number), path)
    except ValueError:
        raise WireError(f"a watch of {path!r:.300} tells of event {number}, which is unknown") from None
