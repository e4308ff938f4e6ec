"""A member of a classic group."""

from collections.abc import Sequence

import attrs

from ...errors import ErrorCode
from ...protocol.messages.group import JoinGroupResponse, SyncGroupResponse
from ..cluster.deferred import Deferred
from ..cluster.timers import Timer

__all__ = ("MemberRecord", "Protocol", "join_refusal", "sync_refusal")

Protocol = tuple[str, bytes]
"""A way of assigning that a member knows, by name, and what it tells the leader for it."""


@attrs.define(eq=False)
class MemberRecord:
    """A member: what it said when it joined, and which answers it waits for."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[Protocol, ...]
    """In order of preference."""
    assignment: bytes = b""
    awaiting_join: Deferred[JoinGroupResponse] | None = None
    awaiting_sync: Deferred[SyncGroupResponse] | None = None
    is_new: bool = False
    """Whether it has never been told its generation, so that nothing but its JoinGroup says that it lives."""
    session: Timer | None = None

    @property
    def knows(self) -> list[str]:
        """The names of its protocols."""
        return [name for name, _ in self.protocols]

    def metadata(self, protocol: str | None) -> bytes:
        """What it said for one protocol."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: Sequence[str]) -> str:
        """Which of the candidates it likes best; it knows all of them."""
        return next(name for name in self.knows if name in candidates)

    @property
    def is_alive(self) -> bool:
        """Whether it need not send heartbeats now: it waits for an answer, which a new member cannot do forever."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    def answer_join(self, response: JoinGroupResponse) -> None:
        """Answer its JoinGroup, if it waits for that."""
        waiting, self.awaiting_join = self.awaiting_join, None
        if waiting is not None:
            waiting.keep(response)

    def answer_sync(self, response: SyncGroupResponse) -> bool:
        """Answer its SyncGroup; whether it was waiting."""
        waiting, self.awaiting_sync = self.awaiting_sync, None
        if waiting is not None:
            waiting.keep(response)
        return waiting is not None

    def end_session(self) -> None:
        """Expect no more heartbeats."""
        if self.session is not None:
            self.session.cancel()


def join_refusal(error: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    """The answer to a JoinGroup that is not granted."""
    return JoinGroupResponse(error_code=error, protocol_name=None, leader="", member_id=member_id, members=[])


def sync_refusal(error: ErrorCode) -> SyncGroupResponse:
    """The answer to a SyncGroup that is not granted."""
    return SyncGroupResponse(error_code=error, assignment=b"")
