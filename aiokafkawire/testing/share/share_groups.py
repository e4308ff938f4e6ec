"""The share groups of a cluster: their members' heartbeats and session timeouts."""

from collections.abc import Callable, Mapping
from functools import partial

from ...errors import ErrorCode
from ...protocol.messages.share_group import ShareGroupHeartbeatRequest
from ..cluster.api_error import ApiError
from ..cluster.timers import Timers
from ..configs.configs import Configs
from ..groups.release_rules import ReleaseRules
from .share_group import ShareGroup, ShareGroupMember
from .topic_partitions import SubscribedTopic

__all__ = ("JOIN_EPOCH", "LEAVE_EPOCH", "ShareGroups", "check_heartbeat")

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
_LONGEST_ID = 36


class ShareGroups:
    """All share groups of a cluster.

    ``existing_topics`` returns all topics by name; ``is_other_kind`` returns whether a group id belongs to another kind
    of group; ``partition_of`` returns a group's partition of ``__consumer_offsets``; ``rules`` are those of
    the emulated release.
    """

    def __init__(
        self,
        timers: Timers,
        configs: Configs,
        existing_topics: Callable[[], Mapping[str, SubscribedTopic]],
        is_other_kind: Callable[[str], bool],
        partition_of: Callable[[str], int],
        rules: ReleaseRules,
    ) -> None:
        self._timers = timers
        self._configs = configs
        self._existing_topics = existing_topics
        self._is_other_kind = is_other_kind
        self._partition_of = partition_of
        self._rules = rules
        self._groups: dict[str, ShareGroup] = {}
        self._leader_epochs: dict[int, int] = {}

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups

    def start(self) -> None:
        """Restart the session timeouts, when the cluster is opened, perhaps by another clock."""
        for group in self._groups.values():
            group.assigned_at = None
            for member in group.members.values():
                self._keep_alive(group, member)

    def coordinator_changed(self, partition: int, leader_epoch: int) -> None:
        """Restart the session timeouts of a partition's groups, if its leader is a new coordinator."""
        if leader_epoch == self._leader_epochs.get(partition, 0):
            return
        self._leader_epochs[partition] = leader_epoch
        for group in self._groups.values():
            if self._partition_of(group.group_id) == partition:
                for member in group.members.values():
                    self._keep_alive(group, member)

    def all(self) -> list[ShareGroup]:
        """Return the groups, oldest first."""
        return list(self._groups.values())

    def clear(self) -> None:
        """Delete all groups, because the topic that stores them was deleted."""
        for group in self.all():
            self._remove_all(group)
        self._groups.clear()
        self._leader_epochs.clear()

    def get(self, group_id: str, what: str = "Group") -> ShareGroup:
        """Return a group; ``what`` begins the error's message.

        Raises:
            ApiError: GROUP_ID_NOT_FOUND, there is no such group, or it is of another kind.
        """
        group = self._groups.get(group_id)
        if group is None:
            self.check_kind(group_id)
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"{what} {group_id} not found.")
        return group

    def check_kind(self, group_id: str) -> None:
        """Check that a group id does not belong to another kind of group.

        Raises:
            ApiError: GROUP_ID_NOT_FOUND.
        """
        if self._is_other_kind(group_id):
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")

    def check_free(self, group_id: str, kind: str) -> None:
        """Check that a group id does not belong to a share group, for a request about groups of another ``kind``.

        Raises:
            ApiError: GROUP_ID_NOT_FOUND.
        """
        if group_id in self._groups:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {kind} group.")

    def make(self, group_id: str) -> ShareGroup:
        """Return a group; make it if it does not exist. Raises ApiError as :meth:`check_kind`."""
        if group_id not in self._groups:
            self.check_kind(group_id)
            self._groups[group_id] = ShareGroup(group_id, self._rules.first_epoch, self._rules.first_epoch)
        return self._groups[group_id]

    def get_empty(self, group_id: str) -> ShareGroup:
        """Return a group without members. Raises ApiError as :meth:`get`, or NON_EMPTY_GROUP."""
        group = self.get(group_id)
        if group.members:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
        return group

    def delete(self, group_id: str) -> None:
        """Delete a group without members. Raises ApiError as :meth:`get_empty`."""
        del self._groups[self.get_empty(group_id).group_id]

    # --- heartbeats --------------------------------------------------------------------------------------------

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, client_id: str, client_host: str
    ) -> tuple[ShareGroupMember, bool]:
        """Handle the heartbeat of a member that joins or stays; return it, and whether to send it its assignment.

        A member gets its assignment if that has changed, or if it sends its subscription, as after a lost response.

        Raises:
            ApiError: GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH.
        """
        joins = request.member_epoch == JOIN_EPOCH
        group = self.make(request.group_id) if joins else self.get(request.group_id, "Share group")
        self._check_room(group, request.member_id)
        member = _member(group, request.member_id, joins=joins)
        member.check_epoch(request.member_epoch)
        group.members[member.member_id] = member
        member.client_id, member.client_host = client_id, client_host
        member.rack_id = member.rack_id if request.rack_id is None else request.rack_id
        topics = member.topics
        if request.subscribed_topic_names is not None:
            member.topics = tuple(sorted(set(request.subscribed_topic_names)))
        changed = group.refresh(self._existing_topics())
        if changed or topics != member.topics:
            group.epoch += 1
        self._assign(group)
        has_changed = group.reconcile(member)
        self._keep_alive(group, member)
        return member, has_changed or request.subscribed_topic_names is not None

    def leave(self, group_id: str, member_id: str) -> None:
        """Remove a member. Raises ApiError: GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID."""
        group = self.get(group_id)
        self._remove(group, _member(group, member_id, joins=False))

    def _check_room(self, group: ShareGroup, member_id: str) -> None:
        most = int(self._configs.synonyms("group.share.max.size")[0].value or 0)
        if member_id not in group.members and len(group.members) >= most:
            message = f"The share group has reached its maximum capacity of {most} members."
            raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)

    def _assign(self, group: ShareGroup) -> None:
        """Make an assignment for a new epoch, unless the last one is too young."""
        interval = int(self._configs.group(group.group_id, "share.assignment.interval.ms")) / 1000
        now = self._timers.now()
        is_due = group.assigned_at is None or now - group.assigned_at >= interval
        if group.epoch > group.assignment_epoch and is_due:
            group.assign(now)

    def _keep_alive(self, group: ShareGroup, member: ShareGroupMember) -> None:
        if member.session is not None:
            member.session.cancel()
        timeout = int(self._configs.group(group.group_id, "share.session.timeout.ms")) / 1000
        member.session = self._timers.after(timeout, partial(self._remove, group, member))

    def _remove(self, group: ShareGroup, member: ShareGroupMember) -> None:
        if member.session is not None:
            member.session.cancel()
        del group.members[member.member_id]
        group.targets.pop(member.member_id, None)
        group.refresh(self._existing_topics())
        group.epoch += 1
        if self._rules.last_leave_assigns and not group.members:
            group.assignment_epoch, group.assigned_at = group.epoch, None

    def _remove_all(self, group: ShareGroup) -> None:
        for member in list(group.members.values()):
            self._remove(group, member)


def _member(group: ShareGroup, member_id: str, *, joins: bool) -> ShareGroupMember:
    member = group.members.get(member_id)
    if member is not None:
        return member
    if not joins:
        message = f"Member {member_id} is not a member of group {group.group_id}."
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, message)
    return ShareGroupMember(member_id)


def check_heartbeat(request: ShareGroupHeartbeatRequest) -> None:
    """Check the fields of a heartbeat, which every broker checks, whichever group it coordinates.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    message = None
    if not request.member_id or len(request.member_id) > _LONGEST_ID:
        raise ApiError(ErrorCode.INVALID_REQUEST)
    if not request.member_id.strip():
        message = "MemberId can't be empty."
    elif not request.group_id.strip():
        message = "GroupId can't be empty."
    elif request.rack_id is not None and not request.rack_id.strip():
        message = "RackId can't be empty."
    elif request.member_epoch < LEAVE_EPOCH:
        message = "MemberEpoch is invalid."
    elif request.member_epoch == JOIN_EPOCH and not request.subscribed_topic_names:
        message = "SubscribedTopicNames must be set in first request."
    if message is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, message)
