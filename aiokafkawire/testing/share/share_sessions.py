"""Share sessions: the partitions that a member of a share group reads from one broker (KIP-932)."""

from collections.abc import Iterable
from typing import Final

import attrs

from ...errors import ErrorCode
from ..cluster.api_error import ApiError
from .assignor import SharedPartition

__all__ = ("FINAL_EPOCH", "INITIAL_EPOCH", "ShareSession", "ShareSessions")

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_NEWEST_EPOCH: Final = 2**31 - 1


@attrs.define(eq=False)
class ShareSession:
    """The session of one member; ``epoch`` is the epoch of its next request, ``connection`` the number of its own."""

    group_id: str
    member_id: str
    connection: int
    epoch: int = 1
    partitions: dict[SharedPartition, None] = attrs.field(factory=dict)

    def in_turn(self) -> list[SharedPartition]:
        """Return the partitions in the order of the next fetch, which begins with another one than the last fetch."""
        partitions = list(self.partitions)
        turn = self.epoch % len(partitions) if partitions else 0
        return partitions[turn:] + partitions[:turn]


class ShareSessions:
    """The share sessions of one broker, by group and member."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[str, str], ShareSession] = {}

    def open(self, group_id: str, member_id: str, connection: int, slots: int) -> ShareSession:
        """Open a session, in place of the one that the member may have.

        Raises:
            ApiError: SHARE_SESSION_LIMIT_REACHED, there are ``slots`` other sessions.
        """
        self._sessions.pop((group_id, member_id), None)
        if len(self._sessions) >= slots:
            raise ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = self._sessions[group_id, member_id] = ShareSession(group_id, member_id, connection)
        return session

    def get(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """Return the session for a request of this epoch, and advance its epoch.

        Raises:
            ApiError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH.
        """
        session = self._sessions.get((group_id, member_id))
        if session is None:
            raise ApiError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch == FINAL_EPOCH:
            return session
        if epoch != session.epoch:
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.epoch = 1 if epoch == _NEWEST_EPOCH else epoch + 1
        return session

    def update(
        self, session: ShareSession, added: Iterable[SharedPartition], forgotten: Iterable[SharedPartition]
    ) -> None:
        """Add partitions to a session and remove forgotten ones."""
        for partition in added:
            session.partitions.setdefault(partition)
        for partition in forgotten:
            session.partitions.pop(partition, None)

    def close(self, session: ShareSession) -> None:
        """Close a session, unless the member has opened another one meanwhile."""
        key = session.group_id, session.member_id
        if self._sessions.get(key) is session:
            del self._sessions[key]

    def read_by(self, group_id: str, member_id: str) -> list[SharedPartition]:
        """Return the partitions in a member's session; empty without a session."""
        session = self._sessions.get((group_id, member_id))
        return list(session.partitions) if session else []

    def of_connection(self, connection: int) -> list[ShareSession]:
        """Return the sessions that were opened on a connection."""
        return [session for session in self._sessions.values() if session.connection == connection]

    def clear(self) -> list[ShareSession]:
        """Remove and return all sessions, as when the broker stops."""
        sessions = list(self._sessions.values())
        self._sessions.clear()
        return sessions
