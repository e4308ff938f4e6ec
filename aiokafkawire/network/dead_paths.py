"""Recognizes that the network between the client and a broker is dead, from what the system knows of a connection."""

import socket
import sys
from typing import Final

__all__ = ("CAN_RECOGNIZE", "DEAD_SECONDS", "PROBE_SECONDS", "unanswered_seconds")

CAN_RECOGNIZE: Final = sys.platform == "linux" and hasattr(socket, "TCP_INFO")
"""Whether this system reports how long the other side has acknowledged nothing."""
DEAD_SECONDS: Final = 5.0
"""The seconds without an acknowledgement after which a connection is useless, even if the network heals: the system
doubles the wait before each of its retransmissions, and a new connection begins with short ones."""
PROBE_SECONDS: Final = 1
"""The seconds between keepalive probes without an answer."""

# Of struct tcp_info: the numbers of retransmissions and of probes without an answer, and the wait before the next
# retransmission in microseconds.
_RETRANSMITS, _PROBES, _WAIT = 2, 3, 8
_SIZE: Final = 12


def unanswered_seconds(under: socket.socket | None) -> float:
    """Return for how many seconds the system has repeated bytes or probes without an answer.

    The result is 0.0 while the other side acknowledges, even if it reads nothing; if nothing was sent; and on systems
    that do not report it. Time without traffic does not count, and neither does the time since the last repetition.
    """
    if under is None or not CAN_RECOGNIZE:
        return 0.0
    try:
        info = under.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _SIZE)
    except (OSError, ValueError):
        return 0.0  # closed already, or no TCP socket
    return unanswered_in(info)


def unanswered_in(info: bytes) -> float:
    """Return what :func:`unanswered_seconds` returns, from the beginning of a struct tcp_info."""
    if len(info) < _SIZE:
        return 0.0
    if repeated := info[_RETRANSMITS]:
        # Each wait is twice the one before it, so that all of them together are a little shorter than the next.
        wait = int.from_bytes(info[_WAIT : _WAIT + 4], sys.byteorder) / 1_000_000
        return wait * (1 - 0.5**repeated)
    return max(0.0, (info[_PROBES] - 1) * float(PROBE_SECONDS))
