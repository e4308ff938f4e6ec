"""A member of a classic group."""

from collections.abc import Sequence

import attrs

from ...errors import ErrorCode
from ...protocol.messages.group import JoinGroupResponse, SyncGroupResponse
from ..cluster.deferred import Deferred
from ..cluster.timers import Timer

__all__ = ("MemberRecord", "Protocol", "join_refusal", "sync_refusal")

Protocol = tuple[str, bytes]
"""A protocol of assignment that a member supports: its name and the member's metadata for it."""


@attrs.define(eq=False)
class MemberRecord:
    """A member of a classic group: the data of its JoinGroup request, and the responses for which it waits."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[Protocol, ...]
    """The member's protocols in order of preference."""
    assignment: bytes = b""
    awaiting_join: Deferred[JoinGroupResponse] | None = None
    awaiting_sync: Deferred[SyncGroupResponse] | None = None
    is_new: bool = False
    """Whether the member does not know its generation yet, so that it cannot send heartbeats."""
    session: Timer | None = None

    @property
    def knows(self) -> list[str]:
        """The names of the protocols that the member supports, in order of preference."""
        return [name for name, _ in self.protocols]

    def metadata(self, protocol: str | None) -> bytes:
        """Return the member's metadata for one protocol; empty if the member does not support it."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: Sequence[str]) -> str:
        """Return the protocol that the member prefers among ``candidates``, all of which it supports."""
        return next(name for name in self.knows if name in candidates)

    @property
    def is_alive(self) -> bool:
        """Whether the member counts as alive without heartbeats: it is not new and waits for a response."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    def answer_join(self, response: JoinGroupResponse) -> None:
        """Answer the member's pending JoinGroup, if any."""
        waiting, self.awaiting_join = self.awaiting_join, None
        if waiting is not None:
            waiting.keep(response)

    def answer_sync(self, response: SyncGroupResponse) -> bool:
        """Answer the member's pending SyncGroup, if any; return whether there was one."""
        waiting, self.awaiting_sync = self.awaiting_sync, None
        if waiting is not None:
            waiting.keep(response)
        return waiting is not None

    def end_session(self) -> None:
        """Cancel the session timer."""
        if self.session is not None:
            self.session.cancel()


def join_refusal(error: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    """Return an error response to a JoinGroup."""
    return JoinGroupResponse(error_code=error, protocol_name=None, leader="", member_id=member_id, members=[])


def sync_refusal(error: ErrorCode) -> SyncGroupResponse:
    """Return an error response to a SyncGroup."""
    return SyncGroupResponse(error_code=error, assignment=b"")
