"""The errors that only clients of Kafka 0.6 and 0.7 raise. All other errors are in :mod:`aiokafkawire.errors`."""

from typing import Final

from ..errors import BrokerError, CorruptBatch, KafkaError, UnknownBrokerError, broker_error

__all__ = (
    "BadVersion",
    "MisalignedOffset",
    "NoNode",
    "NodeExists",
    "NotEmpty",
    "SessionExpired",
    "ZooKeeperError",
    "legacy_error",
    "zookeeper_error",
)

_CODES: Final = (-1, 1, 2, 3, 4)
"""All error codes of Kafka 0.7; they have the same meaning in later releases."""


class MisalignedOffset(CorruptBatch):
    """No message begins at the requested offset: the offset is inside a message, or the log is damaged.

    A broker of 0.7 returns the bytes at any offset, unchecked. Read from an offset of a message or of ``offsets()``.
    """


def legacy_error(code: int, detail: str) -> BrokerError:
    """Return the exception for an error code of Kafka 0.7."""
    return broker_error(code, detail) if code in _CODES else UnknownBrokerError(code, detail)


# --- ZooKeeper -------------------------------------------------------------------------------------------------------


class ZooKeeperError(KafkaError):
    """A ZooKeeper server returned an error; ``code`` is its number."""

    code = 0


class NoNode(ZooKeeperError):
    """There is no node at this path, or no parent for one."""

    code = -101


class BadVersion(ZooKeeperError):
    """The node's version is another than the call gave: another client has changed it meanwhile."""

    code = -103


class NodeExists(ZooKeeperError):
    """There is a node at this path already."""

    code = -110


class NotEmpty(ZooKeeperError):
    """The node has children, and cannot be deleted."""

    code = -111


class SessionExpired(ZooKeeperError):
    """The session is over: its ephemeral nodes are gone, or will be, and its watches with them. Open a new one."""

    code = -112


_ZOOKEEPER: Final = {error.code: error for error in (NoNode, BadVersion, NodeExists, NotEmpty, SessionExpired)}
_MESSAGES: Final = {
    -4: "connection loss",
    -5: "marshalling error",
    -6: "unimplemented",
    -7: "operation timeout",
    -8: "bad arguments",
    -102: "not authorised",
    -108: "ephemeral nodes have no children",
    -113: "invalid callback",
    -114: "invalid ACL",
    -115: "authentication failed",
    -118: "the session has moved to another server",
}


def zookeeper_error(code: int, detail: str) -> ZooKeeperError:
    """Return the exception for an error code of ZooKeeper."""
    row = _ZOOKEEPER.get(code)
    if row is not None:
        return row(f"{detail}: {row.__doc__}")
    error = ZooKeeperError(f"{detail}: error {code} ({_MESSAGES.get(code, 'unknown to this release')})")
    error.code = code
    return error
