"""What the admin does with groups: lists, describes and deletes them, and moves their offsets.

The messages of groups are loaded with the first call.
"""

from collections.abc import Collection, Iterable, Mapping

from ..argument_checks import check_flag, check_seconds, check_text, flattened, items_of, shown
from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..errors import UsageError
from ..other_clients_names import ADMIN, add_hints
from ..types import IsolationLevel, OffsetAndMetadata, OffsetSpec, TopicPartition, check_group_id, normalize_partitions
from .descriptions import GroupDescription, GroupListing, GroupMember

__all__ = ("GroupAdmin",)


class GroupAdmin:
    """The half of :class:`~.admin.Admin` that is about groups."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def _deadline(self, timeout: float | None) -> Deadline:
        check_seconds("timeout", timeout)
        allowed = self._cluster.config.default_api_timeout_ms / 1000 if timeout is None else timeout
        return self._cluster.deadline(allowed)

    # --- groups and members ----------------------------------------------------------------------------

    async def list_groups(
        self,
        *,
        states: Collection[str] | None = None,
        types: Collection[str] | None = None,
        timeout: float | None = None,
    ) -> list[GroupListing]:
        """All groups of the cluster, by their ids: every broker is asked for those that it coordinates (KIP-40).

        Args:
            states: only groups in one of these, as "Stable" or "Empty" (KIP-518, brokers since 2.6).
            types: only groups of one of these, as "classic" or "consumer" (KIP-848, brokers since 3.8; older ones have
                classic groups alone).
            timeout: in seconds, ``default_api_timeout_ms`` if not given.

        Raises:
            RequestTimeout: a broker did not answer in time; the message has which, and why.
            ConnectionLost: a broker left the cluster meanwhile; its groups are others' in a moment.
            UnsupportedVersion: a broker is too old to choose by state or by type.
            ClusterAuthorizationFailed, ...: what a broker answers.
        """
        from .group_requests import list_groups

        states, types = _names("states", states), _names("types", types)

        return await list_groups(self._cluster, states, types, self._deadline(timeout))

    async def describe_groups(
        self,
        *group_ids: str | Collection[str],
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> dict[str, GroupDescription]:
        """What these classic groups are like: state, members, assignments, and what they have committed.

        Args:
            group_ids: whom to describe.
            include_authorized_operations: tell what this client may do with them (KIP-430, brokers since 2.3).
            timeout: in seconds, ``default_api_timeout_ms`` if not given.

        Raises:
            GroupIdNotFound: there is no such classic group; brokers before 4.0 say that its state is "Dead" instead.
            GroupAuthorizationFailed, ...: what a broker answers.
            RequestTimeout: not in time; the message has the last cause.
        """
        from .group_requests import describe_groups

        check_flag("include_authorized_operations", include_authorized_operations)
        deadline, names = self._deadline(timeout), _group_ids(group_ids)
        return await describe_groups(self._cluster, names, deadline, operations=include_authorized_operations)

    async def delete_groups(self, *group_ids: str | Collection[str], timeout: float | None = None) -> None:
        """Delete groups that have no members, with their offsets (KIP-229, brokers since 1.1).

        Raises:
            NonEmptyGroup, GroupIdNotFound, ...: the first that a broker refuses; those before it are gone.
            RequestTimeout: not in time; the message has the last cause.
        """
        from .group_requests import delete_groups

        await delete_groups(self._cluster, _group_ids(group_ids), self._deadline(timeout))

    async def remove_members(
        self,
        group_id: str,
        members: Iterable[GroupMember | str] | None = None,
        *,
        reason: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Take members out of a classic group; those that are alive join it again.

        Args:
            group_id: whose members.
            members: as :meth:`describe_groups` gives them, or the ``group_instance_id`` of static ones (KIP-345,
                brokers since 2.4); all that there are, if not given.
            reason: for the brokers' log (KIP-800, brokers since 3.2).
            timeout: in seconds, ``default_api_timeout_ms`` if not given.

        Raises:
            UnknownMemberId: there is no such member; the others are removed.
            GroupAuthorizationFailed, ...: what a broker answers.
            RequestTimeout: not in time; the message has the last cause.
        """
        from .group_requests import remove_members

        check_group_id(group_id)
        if members is not None:
            members = items_of("members", members, "those that describe_groups() returns")
        if reason is not None:
            check_text("reason", reason, empty=True)

        await remove_members(self._cluster, group_id, members, reason, self._deadline(timeout))

    # --- offsets ---------------------------------------------------------------------------------------

    async def list_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a group has committed; partitions for which that is nothing are not in it.

        A group that does not exist has committed nothing.

        Args:
            group_id: whose offsets.
            partitions: which; all that there are if not given, by one request (KIP-88).
            require_stable: wait for transactions that are about to change an offset (KIP-447, brokers since 2.5).
            timeout: in seconds, ``default_api_timeout_ms`` if not given.

        Raises:
            GroupAuthorizationFailed, ...: what a broker answers.
            RequestTimeout: not in time; the message has the last cause.
        """
        from .group_offsets import offsets_of

        check_group_id(group_id)
        check_flag("require_stable", require_stable)
        asked = None if partitions is None else normalize_partitions(partitions)
        return await offsets_of(self._cluster, group_id, asked, self._deadline(timeout), stable=require_stable)

    async def list_offsets_of_groups(
        self, *group_ids: str | Collection[str], require_stable: bool = False, timeout: float | None = None
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        """All that each of several groups has committed.

        It takes one request for each coordinator (KIP-709), or one for each group with brokers before 3.0. Arguments
        and errors are those of :meth:`list_consumer_group_offsets`.
        """
        from .group_offsets import offsets_of_groups

        check_flag("require_stable", require_stable)
        names = _group_ids(group_ids)

        return await offsets_of_groups(self._cluster, names, self._deadline(timeout), stable=require_stable)

    async def alter_consumer_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout: float | None = None,
    ) -> None:
        """Set where a group without members goes on; the group is made if there is none.

        Args:
            group_id: whose offsets.
            offsets: of the next record to read.
            timeout: in seconds, ``default_api_timeout_ms`` if not given.

        Raises:
            UnknownMemberId: the group has members, which would not hear of it; stop them first.
            UsageError: what is given is no offset.
            GroupAuthorizationFailed, ...: what a broker answers; some may be set.
            RequestTimeout: not in time, as for a partition that does not exist; the message has the last cause.
        """
        from .group_offsets import alter_offsets

        await alter_offsets(self._cluster, group_id, offsets, self._deadline(timeout))

    async def reset_consumer_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetSpec | int], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Set where a group without members goes on: at the beginning, at the end, at a time, at an offset.

        A time after the last record means the end. Errors are those of :meth:`alter_consumer_group_offsets`, and of
        :meth:`~.admin.Admin.list_offsets`.

        Returns:
            What was set.
        """
        from .group_offsets import reset_offsets

        return await reset_offsets(self._cluster, group_id, offsets, self._deadline(timeout))

    async def delete_consumer_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> None:
        """Have a group forget its offsets for partitions of topics that it does not read (KIP-496, brokers since 2.4).

        Raises:
            GroupSubscribedToTopic, NonEmptyGroup: the group reads the topic; stop its members first.
            GroupIdNotFound, UnknownTopicOrPartition, ...: what a broker answers; offsets of the others are gone.
            RequestTimeout: not in time; the message has the last cause.
        """
        from .group_offsets import delete_offsets

        check_group_id(group_id)
        asked = normalize_partitions(partitions)
        await delete_offsets(self._cluster, group_id, asked, self._deadline(timeout))

    async def consumer_group_lag(
        self,
        group_id: str,
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        timeout: float | None = None,
    ) -> dict[TopicPartition, int]:
        """How many offsets a group is behind the end, for each partition that it has committed an offset for.

        Offsets are not always records: markers of transactions count, and what compaction has removed.

        Args:
            group_id: whose lag.
            isolation_level: READ_COMMITTED counts up to the first open transaction, where such readers end.
            timeout: in seconds, ``default_api_timeout_ms`` if not given.

        Raises:
            GroupAuthorizationFailed, ...: what a broker answers.
            RequestTimeout, TopicNotReady: not in time; the message has the last cause.
        """
        from .group_offsets import lag_of

        check_group_id(group_id)
        if not isinstance(isolation_level, IsolationLevel):
            wanted = "IsolationLevel.READ_UNCOMMITTED or IsolationLevel.READ_COMMITTED"
            raise UsageError(f"isolation_level must be {wanted}, got {shown(isolation_level)}")

        return await lag_of(self._cluster, group_id, isolation_level, self._deadline(timeout))


add_hints(GroupAdmin, ADMIN)


def _group_ids(given: tuple[str | Collection[str], ...]) -> tuple[str, ...]:
    """Read ids of groups, given one by one or as one collection.

    Raises:
        UsageError: one cannot be a group's id.
    """
    group_ids: tuple[str, ...] = flattened(given)
    for group_id in group_ids:
        check_group_id(group_id)
    return group_ids


def _names(what: str, given: Collection[str] | None) -> list[str] | None:
    if given is None:
        return None
    names: list[str] = items_of(what, given, "['Stable', 'Empty']" if what == "states" else "['classic', 'consumer']")
    for name in names:
        check_text(f"each of {what}", name)
    return names
