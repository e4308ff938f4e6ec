"""The handling of JoinGroup in a classic group."""

from collections.abc import Callable
from typing import Final

import attrs

from ...errors import ErrorCode
from ...protocol.messages.group import JoinGroupRequest, JoinGroupResponse
from ..cluster.api_error import ApiError
from ..cluster.deferred import Deferred
from .group import ClassicGroup
from .members import MemberRecord, Protocol, join_refusal, sync_refusal
from .rebalance import Rebalances, joined
from .settings import GroupSettings
from .states import CoordinatorState

__all__ = ("MEMBER_ID_REQUIRED_SINCE", "JoinAttempt", "Joins")

MEMBER_ID_REQUIRED_SINCE: Final = 4  # KIP-394
_SKIP_ASSIGNMENT_SINCE: Final = 9  # KIP-814


@attrs.frozen(eq=False)
class JoinAttempt:
    """A JoinGroup request and the client that sent it; ``answer`` is set to the response."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    protocol_type: str
    protocols: tuple[Protocol, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    reason: str
    version: int
    answer: Deferred[JoinGroupResponse] = attrs.field(factory=Deferred)

    @classmethod
    def of(cls, request: JoinGroupRequest, version: int, client_id: str, client_host: str) -> "JoinAttempt":
        """Parse a request; in version 0 the session timeout is also the rebalance timeout (KIP-62)."""
        return cls(
            request.member_id,
            request.group_instance_id,
            client_id,
            client_host,
            request.protocol_type,
            tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols),
            request.session_timeout_ms,
            request.rebalance_timeout_ms if version >= 1 else request.session_timeout_ms,
            request.reason or "not provided",
            version,
        )

    def refuse(self, error: ErrorCode, member_id: str | None = None) -> None:
        """Answer with an error and ``member_id``, by default the member id of the request."""
        self.answer.keep(join_refusal(error, self.member_id if member_id is None else member_id))


class Joins:
    """The handling of JoinGroup requests to all groups. ``new_id`` makes the unique part of member ids."""

    def __init__(self, settings: GroupSettings, rebalances: Rebalances, new_id: Callable[[], str]) -> None:
        self._settings = settings
        self._rebalances = rebalances
        self._new_id = new_id

    def join(self, group: ClassicGroup, asked: JoinAttempt) -> None:
        """Handle a JoinGroup request, and set ``asked.answer`` now or when the join phase ends."""
        if not self._accepts(group, asked.member_id):
            group.remove(asked.member_id)
            asked.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED, "")
        elif not group.supports(asked.protocol_type, asked.protocols):
            asked.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif not asked.member_id:
            self._join_new(group, asked)
        elif asked.member_id in group.pending:
            if asked.group_instance_id is not None:
                # Kafka fails at this request, too: a static member is never asked to rejoin with a member id.
                asked.refuse(ErrorCode.UNKNOWN_SERVER_ERROR, "")
            else:
                self._add(group, asked, asked.member_id)
        else:
            self._rejoin(group, asked)

    def _accepts(self, group: ClassicGroup, member_id: str) -> bool:
        most = self._settings.group_max_size
        member = group.members.get(member_id)
        match group.state:
            case CoordinatorState.PREPARING_REBALANCE:
                # Only the first members that rejoin are accepted; the group may be full for later ones.
                has_joined = member is not None and member.awaiting_join is not None
                return has_joined or len(group.awaiting_join) < most
            case CoordinatorState.COMPLETING_REBALANCE | CoordinatorState.STABLE:
                return member is not None or len(group.members) < most
        return True

    # --- without a member id ---------------------------------------------------------------------------------------

    def _join_new(self, group: ClassicGroup, asked: JoinAttempt) -> None:
        name = asked.client_id if asked.group_instance_id is None else asked.group_instance_id
        member_id = f"{name}-{self._new_id()}"
        if asked.group_instance_id in group.static_members:
            self._return(group, asked, member_id)
        elif asked.group_instance_id is None and asked.version >= MEMBER_ID_REQUIRED_SINCE:
            self._rebalances.await_pending(group, member_id, asked.session_timeout_ms)
            asked.refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        else:
            self._add(group, asked, member_id)

    def _add(self, group: ClassicGroup, asked: JoinAttempt, member_id: str) -> None:
        member = MemberRecord(
            member_id,
            asked.group_instance_id,
            asked.client_id,
            asked.client_host,
            asked.rebalance_timeout_ms,
            asked.session_timeout_ms,
            asked.protocols,
            awaiting_join=asked.answer,
        )
        if group.state == CoordinatorState.PREPARING_REBALANCE and group.previous_state == CoordinatorState.EMPTY:
            group.new_member_added = True
        group.add(member, asked.protocol_type)
        self._rebalances.await_join(group, member)
        self._rebalances.prepare_or_complete(group, f"{member_id} joins; client reason: {asked.reason}")

    def _return(self, group: ClassicGroup, asked: JoinAttempt, member_id: str) -> None:
        """Let a static member rejoin as ``member_id``, which replaces its previous member id (KIP-345)."""
        assert asked.group_instance_id is not None
        leader = group.leader or ""
        member = group.members[group.static_members[asked.group_instance_id]]
        member.answer_join(join_refusal(ErrorCode.FENCED_INSTANCE_ID, member.member_id))
        member.answer_sync(sync_refusal(ErrorCode.FENCED_INSTANCE_ID))
        group.replace(member, member_id)
        member.is_new = False
        self._rebalances.keep_alive(group, member)
        self._update(member, asked)
        match group.state:
            case CoordinatorState.STABLE if group.select_protocol() == group.protocol:
                self._rebalances.write(group)
                if asked.version >= _SKIP_ASSIGNMENT_SINCE:
                    member.answer_join(joined(group, member, skip_assignment=group.leader == member_id))
                else:
                    # The response has the leader's previous id, so that a returning leader does not assign again.
                    response = joined(group, member)
                    response.leader, response.members = leader, []
                    member.answer_join(response)
            case CoordinatorState.STABLE | CoordinatorState.COMPLETING_REBALANCE:
                self._rebalances.prepare(group, f"{member_id} rejoins as static; client reason: {asked.reason}")
            case _:
                self._rebalances.maybe_complete_join(group)

    # --- with a member id ------------------------------------------------------------------------------------------

    def _rejoin(self, group: ClassicGroup, asked: JoinAttempt) -> None:
        try:
            member = group.check_member(asked.member_id, asked.group_instance_id)
        except ApiError as refused:
            asked.refuse(refused.code)
            return
        same = member.protocols == asked.protocols
        match group.state:
            case CoordinatorState.EMPTY:
                asked.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
                return
            case CoordinatorState.COMPLETING_REBALANCE if same:
                # The member repeats its request, to which the first response was lost.
                asked.answer.keep(joined(group, member))
                return
            case CoordinatorState.STABLE if same and group.leader != member.member_id:
                asked.answer.keep(joined(group, member))
                return
        # The leader may need a rebalance for changes that other members do not see, such as more partitions.
        self._update(member, asked)
        self._rebalances.prepare_or_complete(group, f"{member.member_id} rejoins; client reason: {asked.reason}")

    def _update(self, member: MemberRecord, asked: JoinAttempt) -> None:
        member.protocols = asked.protocols
        member.rebalance_timeout_ms = asked.rebalance_timeout_ms
        member.session_timeout_ms = asked.session_timeout_ms
        # The member's pending JoinGroup gets a retriable error: the client may no longer read that connection.
        member.answer_join(join_refusal(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        member.awaiting_join = asked.answer
