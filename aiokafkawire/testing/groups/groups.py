"""The groups of a cluster and the requests of classic members: JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""

from collections.abc import Callable, Iterable

from ...errors import ErrorCode
from ...protocol.messages.group import HeartbeatRequest, SyncGroupRequest, SyncGroupResponse
from ..cluster.api_error import ApiError
from ..cluster.deferred import Deferred
from ..cluster.timers import Timers
from ..cluster.topics import TopicStore
from ..configs.configs import Configs
from .classic_members import ClassicMembers
from .committed import CommittedOffsets
from .consumer_group import ConsumerGroup
from .consumer_groups import ConsumerGroups
from .consumer_member import TopicIdPartition
from .expiry import Expiry
from .group import CONSUMER, ClassicGroup
from .heartbeats import Heartbeats
from .join_group import JoinAttempt, Joins
from .members import MemberRecord, sync_refusal
from .rebalance import assigned
from .release_rules import ReleaseRules
from .settings import GroupSettings
from .states import CoordinatorState
from .store import Group, GroupStore

__all__ = ("Groups",)


class Groups:
    """All groups of a cluster, classic groups and consumer groups.

    ``new_id`` makes the unique part of member ids; ``partition_of`` is as in :class:`GroupStore`,
    ``rules`` as in :class:`ConsumerGroups`. ``check_writable`` raises ApiError if the coordinator of a group cannot
    write to its log.
    """

    def __init__(
        self,
        settings: GroupSettings,
        timers: Timers,
        clock: Callable[[], int],
        committed: CommittedOffsets,
        topics: TopicStore,
        configs: Configs,
        new_id: Callable[[], str],
        partition_of: Callable[[str], int],
        check_writable: Callable[[str], None],
        rules: ReleaseRules,
    ) -> None:
        self.store: GroupStore = GroupStore(settings, timers, clock, committed, partition_of)
        self.expiry: Expiry = Expiry(settings, timers, clock, self.store, committed)
        self.consumer: ConsumerGroups = ConsumerGroups(
            settings, timers, clock, self.store, topics, configs, new_id, rules
        )
        self.heartbeats: Heartbeats = Heartbeats(settings, self.consumer)
        self._classic_members = ClassicMembers(settings, timers, self.consumer)
        self._settings = settings
        self._check_writable = check_writable
        self._rebalances = self.store.rebalances
        self._joins = Joins(settings, self._rebalances, new_id)

    def start(self) -> None:
        """Reload all groups from their written records and start their timers, when the cluster is opened."""
        self.store.restart()
        self.expiry.start()

    def all(self) -> list[Group]:
        """Return the groups, oldest first."""
        return list(self.store)

    def get(self, group_id: str) -> Group:
        """Return the group with this id.

        Raises:
            ApiError: GROUP_ID_NOT_FOUND.
        """
        group = self.store.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def classic(self, group_id: str) -> ClassicGroup:
        """Return the classic group with this id.

        Raises:
            ApiError: GROUP_ID_NOT_FOUND.
        """
        group = self.get(group_id)
        if not isinstance(group, ClassicGroup):
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a classic group.")
        return group

    # --- members -----------------------------------------------------------------------------------------------

    def join(self, group_id: str, asked: JoinAttempt) -> None:
        """Handle a JoinGroup request and set ``asked.answer``, now or when the join phase ends.

        A request without a member id creates a missing group.

        Raises:
            ApiError: INVALID_SESSION_TIMEOUT, UNKNOWN_MEMBER_ID; see also :meth:`ClassicMembers.join`.
        """
        bounds = (self._settings.group_min_session_timeout_ms, self._settings.group_max_session_timeout_ms)
        if not bounds[0] <= asked.session_timeout_ms <= bounds[1]:
            raise ApiError(ErrorCode.INVALID_SESSION_TIMEOUT)
        group = self.store.get(group_id)
        if isinstance(group, ConsumerGroup):
            if not group.is_empty:
                self._classic_members.join(group, asked)
                return
            group = None
        if group is None:
            if asked.member_id:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
            group = self.store.make(group_id)
        self._joins.join(group, asked)

    def sync(self, request: SyncGroupRequest, answer: Deferred[SyncGroupResponse]) -> None:
        """Handle a SyncGroup request and set ``answer`` to the member's assignment, now or when the leader sends it.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL,
                REBALANCE_IN_PROGRESS.
        """
        group = self._with_members(request.group_id)
        if isinstance(group, ConsumerGroup):
            answer.keep(self._classic_members.sync(group, request))
            return
        member = self._member_of(group, request.generation_id, request.member_id, request.group_instance_id)
        if request.protocol_type not in (None, group.protocol_type):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if request.protocol_name not in (None, group.protocol) and group.protocol is not None:
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.state == CoordinatorState.PREPARING_REBALANCE:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._rebalances.synced(group, member)
        if group.state == CoordinatorState.STABLE:
            answer.keep(assigned(group, member))
            return
        member.answer_sync(sync_refusal(ErrorCode.REBALANCE_IN_PROGRESS))
        member.awaiting_sync = answer
        if group.leader == member.member_id:
            try:
                self._check_writable(request.group_id)
            except ApiError as refused:
                self._rebalances.refuse_assignment(group, refused.code)
                return
            parts = {part.member_id: bytes(part.assignment) for part in request.assignments}
            self._rebalances.assign(group, parts)

    def heartbeat(self, request: HeartbeatRequest) -> None:
        """Handle a member's heartbeat.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION; REBALANCE_IN_PROGRESS, the member must
                rejoin; COORDINATOR_NOT_AVAILABLE.
        """
        group = self._with_members(request.group_id)
        if isinstance(group, ConsumerGroup):
            self._classic_members.heartbeat(group, request)
        else:
            member = self._member_of(group, request.generation_id, request.member_id, request.group_instance_id)
            self._rebalances.keep_alive(group, member)
            if group.state == CoordinatorState.PREPARING_REBALANCE:
                raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._check_writable(request.group_id)

    def leave(self, group_id: str, leaving: list[tuple[str, str | None]]) -> list[ErrorCode]:
        """Remove members, each named by its member id or only by its instance id; return an error code for each.

        All removals together cause one rebalance.

        Raises:
            ApiError: COORDINATOR_NOT_AVAILABLE.
        """
        group = self.store.get(group_id)
        if group is not None:
            self._check_writable(group_id)
        if isinstance(group, ConsumerGroup):
            return self._classic_members.leave(group, leaving)
        if group is None:
            return [ErrorCode.UNKNOWN_MEMBER_ID for _ in leaving]
        errors = []
        for member_id, group_instance_id in leaving:
            try:
                self._leave(group, member_id, group_instance_id)
                errors.append(ErrorCode.NONE)
            except ApiError as refused:
                errors.append(refused.code)
        if ErrorCode.NONE in errors and group.state not in (CoordinatorState.EMPTY, CoordinatorState.DEAD):
            self._rebalances.prepare_or_complete(group, "members have left")
        return errors

    def _leave(self, group: ClassicGroup, member_id: str, group_instance_id: str | None) -> None:
        if not member_id and group_instance_id is not None:
            member_id = group.static_members.get(group_instance_id, "")
        if member_id in group.pending:
            group.remove(member_id)
            return
        self._rebalances.remove(group, group.check_member(member_id, group_instance_id))

    def _with_members(self, group_id: str) -> Group:
        group = self.store.get(group_id)
        if group is None or group.is_empty:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        return group

    def _member_of(
        self, group: ClassicGroup, generation: int, member_id: str, group_instance_id: str | None
    ) -> MemberRecord:
        member = group.check_member(member_id, group_instance_id)
        if generation != group.generation:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        return member

    # --- offsets -----------------------------------------------------------------------------------------------

    def check_member(
        self,
        group_id: str,
        member_id: str,
        generation: int,
        group_instance_id: str | None = None,
        *,
        partitions: Iterable[TopicIdPartition] = (),
        relaxed: bool = False,
        has_epochs: bool = True,
        transactional: bool = False,
        missing: ErrorCode = ErrorCode.ILLEGAL_GENERATION,
    ) -> None:
        """Check that a client may commit offsets: it is a member of this generation, or the group has no members.

        If the group does not exist, generation -1 creates it, and any other generation fails with ``missing``. A
        classic member's commit counts as a heartbeat. ``partitions`` and ``relaxed`` are as in
        :meth:`ConsumerGroup.check_commit`; ``has_epochs`` means that requests of this version have member epochs. With
        ``transactional`` (TxnOffsetCommit), a client without member id and generation may commit to any group at any
        time.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID, REBALANCE_IN_PROGRESS,
                STALE_MEMBER_EPOCH, UNSUPPORTED_VERSION, COORDINATOR_NOT_AVAILABLE.
        """
        group = self.store.get(group_id)
        if group is None and generation >= 0:
            raise ApiError(missing)
        if group is not None:
            self._check_committer(
                group,
                member_id,
                generation,
                group_instance_id,
                partitions=partitions,
                relaxed=relaxed,
                has_epochs=has_epochs,
                transactional=transactional,
            )
        self._check_writable(group_id)
        if group is None:
            self.store.make(group_id)

    def _check_committer(
        self,
        group: Group,
        member_id: str,
        generation: int,
        group_instance_id: str | None,
        *,
        partitions: Iterable[TopicIdPartition],
        relaxed: bool,
        has_epochs: bool,
        transactional: bool,
    ) -> None:
        if generation < 0 and group.is_empty:
            return
        if generation < 0 and not member_id and group_instance_id is None and transactional:
            return
        if isinstance(group, ConsumerGroup):
            if not has_epochs and group.member(member_id).classic is None:
                raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
            group.check_commit(member_id, generation, partitions, relaxed=relaxed)
            return
        if generation < 0 and not member_id and group_instance_id is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        member = self._member_of(group, generation, member_id, group_instance_id)
        if transactional:
            return
        if group.state == CoordinatorState.COMPLETING_REBALANCE:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._rebalances.keep_alive(group, member)

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> None:
        """Check that a client may fetch a group's offsets: see :meth:`ConsumerGroup.check_fetch`; any client else."""
        group = self.store.get(group_id)
        if isinstance(group, ConsumerGroup):
            group.check_fetch(member_id, epoch)

    def check_offset_delete(self, group_id: str) -> Group:
        """Check that a group has no members or only consumers, so that its offsets may be deleted; return the group.

        Raises:
            ApiError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, COORDINATOR_NOT_AVAILABLE.
        """
        group = self.get(group_id)
        if isinstance(group, ClassicGroup) and not group.is_empty and group.protocol_type != CONSUMER:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)
        self._check_writable(group_id)
        return group

    def delete(self, group_id: str) -> None:
        """Delete a group that has no members, with its offsets. Raises ApiError as :meth:`check_offset_delete`."""
        group = self.get(group_id)
        if not group.is_empty:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)
        self._check_writable(group_id)
        self.store.delete(group)
