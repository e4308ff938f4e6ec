"""Says on standard error that no broker can be reached, while the client still tries."""

from typing import Final

from ...errors import ConnectionLost
from ...observe import ConnectionFailed, ConnectionOpened, Observer
from ..error_text import one_line, reason_text
from .output import note

__all__ = ("ConnectionNotes",)

_SERVERS: Final = 3
"""The most addresses in a line."""


class ConnectionNotes(Observer):
    """Prints one line once all bootstrap servers have refused a connection, unless there was one before.

    Args:
        servers: the number of bootstrap servers.
        seconds: how long the client tries.
    """

    def __init__(self, servers: int, seconds: float) -> None:
        self._servers, self._seconds = servers, seconds
        self._failed: dict[str, str] = {}
        self._is_done = False

    def connection_opened(self, event: ConnectionOpened) -> None:
        """Print nothing any more."""
        self._is_done = True

    def connection_failed(self, event: ConnectionFailed) -> None:
        """Print the line if this is the last bootstrap server."""
        # Errors that retries cannot fix end the command anyway.
        if self._is_done or not isinstance(event.error, ConnectionLost):
            return
        self._failed[event.broker] = one_line(reason_text(str(event.error)))
        if len(self._failed) >= self._servers:
            self._is_done = True
            causes = list(self._failed.values())
            others = f"; and {len(causes) - _SERVERS} more" if len(causes) > _SERVERS else ""
            note(f"aiokafkawire: {'; '.join(causes[:_SERVERS])}{others}; trying again for {self._seconds:g} s")
