"""The admin's methods for groups: listing, describing, deleting, and changing their offsets.

The first call imports the message classes of groups.
"""

from collections.abc import Collection, Iterable, Mapping

from ..argument_checks import check_flag, check_text, items_of, shown
from ..errors import UsageError
from ..types import IsolationLevel, OffsetAndMetadata, OffsetSpec, TopicPartition, check_group_id, normalize_partitions
from .admin_base import AdminBase, check_group_ids
from .descriptions import GroupDescription, GroupListing, GroupMember
from .outcomes import results_of

__all__ = ("GroupAdmin",)


class GroupAdmin(AdminBase):
    """The methods of :class:`~.admin.Admin` for groups."""

    # --- groups and members ----------------------------------------------------------------------------

    async def list_groups(
        self,
        *,
        states: Collection[str] | None = None,
        types: Collection[str] | None = None,
        timeout: float | None = None,
    ) -> list[GroupListing]:
        """List all groups of the cluster, sorted by id; every broker lists the groups that it coordinates (KIP-40).

        Args:
            states: only groups in one of these states, such as "Stable" or "Empty" (KIP-518, brokers since 2.6).
            types: only groups of one of these types, such as "classic" or "consumer" (KIP-848, brokers since 3.8; older
                brokers have only classic groups).
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            RequestTimeout: a broker did not answer in time; the message has the broker and the cause.
            ConnectionLost: a broker left the cluster meanwhile; other brokers take over its groups shortly.
            UnsupportedVersion: a broker is too old to filter by state or by type.
            ClusterAuthorizationFailed, ...: a broker answered with an error.
            AdminError: some of several brokers have errors, by the broker's id; it has the groups of the others.
        """
        from .group_requests import list_groups

        states, types = _names("states", states), _names("types", types)

        outcomes = await list_groups(self._cluster, states, types, self._deadline(timeout))
        found = results_of("listing groups", outcomes)
        listed = {group.group_id: group for groups in found.values() for group in groups}
        return [listed[group_id] for group_id in sorted(listed)]

    async def describe_groups(
        self,
        *group_ids: str | Collection[str],
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> dict[str, GroupDescription]:
        """Describe classic groups and consumer groups (KIP-848): state, members, assignments and committed offsets.

        Args:
            group_ids: the groups.
            include_authorized_operations: whether to include the ACL operations that this client may perform on the
                groups (KIP-430, brokers since 2.3).
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            GroupIdNotFound: there is no such group, or it is a share group or a streams group; brokers before 4.0
                describe it as "Dead" instead.
            GroupAuthorizationFailed, ...: a broker answered with an error.
            RequestTimeout: the timeout has passed; the message has the last cause.
            AdminError: some of several groups have these errors; it has the descriptions of the others.
        """
        return await self._describe(group_ids, timeout, operations=include_authorized_operations, classic_only=False)

    async def describe_consumer_groups(
        self,
        *group_ids: str | Collection[str],
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> dict[str, GroupDescription]:
        """Describe groups; this is :meth:`describe_groups` by the name of Kafka's own admin."""
        return await self._describe(group_ids, timeout, operations=include_authorized_operations, classic_only=False)

    async def describe_classic_groups(
        self,
        *group_ids: str | Collection[str],
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> dict[str, GroupDescription]:
        """Describe classic groups only; arguments and errors are those of :meth:`describe_groups`.

        A group of another type raises GroupIdNotFound.
        """
        return await self._describe(group_ids, timeout, operations=include_authorized_operations, classic_only=True)

    async def _describe(
        self,
        group_ids: tuple[str | Collection[str], ...],
        timeout: float | None,
        *,
        operations: bool,
        classic_only: bool,
    ) -> dict[str, GroupDescription]:
        from .describe_groups import describe_groups

        check_flag("include_authorized_operations", operations)
        deadline, names = self._deadline(timeout), check_group_ids(group_ids)
        described = await describe_groups(
            self._cluster, names, deadline, operations=operations, classic_only=classic_only
        )
        return results_of("describing groups", described)

    async def delete_groups(self, *group_ids: str | Collection[str], timeout: float | None = None) -> None:
        """Delete groups that have no members, with their offsets (KIP-229, brokers since 1.1).

        Raises:
            NonEmptyGroup, GroupIdNotFound, ...: a broker rejected the group.
            RequestTimeout: the timeout has passed; the message has the last cause.
            AdminError: some of several groups have these errors; the others are deleted.
        """
        from .group_requests import delete_groups

        outcomes = await delete_groups(self._cluster, check_group_ids(group_ids), self._deadline(timeout))
        results_of("deleting groups", outcomes)

    async def remove_members(
        self,
        group_id: str,
        members: Iterable[GroupMember | str] | None = None,
        *,
        reason: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Remove members from a classic group or a consumer group; running members rejoin.

        Args:
            group_id: the group.
            members: members that :meth:`describe_groups` returned, or the ``group_instance_id`` of static members
                (KIP-345, brokers since 2.4); by default all members.
            reason: a reason that the brokers log (KIP-800, brokers since 3.2).
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            UnknownMemberId: the member does not exist.
            AdminError: some of several members have this error; the others are removed.
            UnsupportedVersion: the group is a consumer group of brokers before 4.0.
            GroupAuthorizationFailed, ...: a broker answered with an error.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .group_requests import remove_members

        check_group_id(group_id)
        if members is not None:
            members = items_of("members", members, "those that describe_groups() returns")
        if reason is not None:
            check_text("reason", reason, empty=True)

        outcomes = await remove_members(self._cluster, group_id, members, reason, self._deadline(timeout))
        results_of(f"removing members of group {group_id!r}", outcomes)

    # --- offsets ---------------------------------------------------------------------------------------

    async def list_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return a group's committed offsets; partitions without a committed offset are left out.

        A group that does not exist has no committed offsets.

        Args:
            group_id: the group.
            partitions: the partitions; by default all partitions with a committed offset, in one request (KIP-88).
            require_stable: wait for transactions that are about to change an offset (KIP-447, brokers since 2.5).
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            GroupAuthorizationFailed, ...: a broker answered with an error.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .group_offsets import offsets_of

        check_group_id(group_id)
        check_flag("require_stable", require_stable)
        requested = None if partitions is None else normalize_partitions(partitions)
        return await offsets_of(self._cluster, group_id, requested, self._deadline(timeout), stable=require_stable)

    async def list_offsets_of_groups(
        self, *group_ids: str | Collection[str], require_stable: bool = False, timeout: float | None = None
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        """Return all committed offsets of several groups.

        The admin sends one request to each coordinator (KIP-709), or one for each group to brokers before 3.0.
        Arguments and errors are those of :meth:`list_consumer_group_offsets`; AdminError has the errors of some of
        several groups, and the offsets of the others.
        """
        from .group_offsets import offsets_of_groups

        check_flag("require_stable", require_stable)
        names = check_group_ids(group_ids)

        outcomes = await offsets_of_groups(self._cluster, names, self._deadline(timeout), stable=require_stable)
        return results_of("listing offsets of groups", outcomes)

    async def alter_consumer_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout: float | None = None,
    ) -> None:
        """Set the committed offsets of a group without members; create the group if it does not exist.

        Args:
            group_id: the group.
            offsets: the offset of the next record to read, by partition.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            UnknownMemberId: the group has members, which would not use the new offsets; stop the members first.
            UsageError: an offset is not valid.
            GroupAuthorizationFailed, ...: a broker answered with an error.
            RequestTimeout: the timeout has passed, for example because the partition does not exist; the message has
                the last cause.
            AdminError: some of several partitions have errors; the offsets of the others are set.
        """
        from .group_offsets import alter_offsets

        outcomes = await alter_offsets(self._cluster, group_id, offsets, self._deadline(timeout))
        results_of(f"setting offsets of group {group_id!r}", outcomes)

    async def reset_consumer_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetSpec | int], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Set the committed offsets of a group without members to the beginning, the end, a time, or an offset.

        A time after the last record means the end. Errors are those of :meth:`alter_consumer_group_offsets`, and of
        :meth:`~.admin.Admin.list_offsets`.

        Returns:
            The new committed offsets.
        """
        from .group_offsets import reset_offsets

        outcomes = await reset_offsets(self._cluster, group_id, offsets, self._deadline(timeout))
        return results_of(f"resetting offsets of group {group_id!r}", outcomes)

    async def delete_consumer_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> None:
        """Delete a group's committed offsets for topics that the group does not read (KIP-496, brokers since 2.4).

        Raises:
            GroupSubscribedToTopic, NonEmptyGroup: the group reads the topic; stop its members first.
            GroupIdNotFound, UnknownTopicOrPartition, ...: a broker answered with an error.
            RequestTimeout: the timeout has passed; the message has the last cause.
            AdminError: some of several partitions have errors; the offsets of the others are deleted.
        """
        from .group_offsets import delete_offsets

        check_group_id(group_id)
        requested = normalize_partitions(partitions)
        outcomes = await delete_offsets(self._cluster, group_id, requested, self._deadline(timeout))
        results_of(f"deleting offsets of group {group_id!r}", outcomes)

    async def consumer_group_lag(
        self,
        group_id: str,
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        timeout: float | None = None,
    ) -> dict[TopicPartition, int]:
        """Return a group's lag by partition: the number of offsets from the committed offset to the partition's end.

        The lag may exceed the number of records: control records of transactions and compacted records count.

        Args:
            group_id: the group.
            isolation_level: READ_COMMITTED counts up to the first open transaction, since consumers with this level
                read no further.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            GroupAuthorizationFailed, ...: a broker answered with an error.
            RequestTimeout, TopicNotReady: the timeout has passed; the message has the last cause.
        """
        from .group_offsets import lag_of

        check_group_id(group_id)
        if not isinstance(isolation_level, IsolationLevel):
            expected = "IsolationLevel.READ_UNCOMMITTED or IsolationLevel.READ_COMMITTED"
            raise UsageError(f"isolation_level must be {expected}, got {shown(isolation_level)}")

        return await lag_of(self._cluster, group_id, isolation_level, self._deadline(timeout))


def _names(what: str, given: Collection[str] | None) -> list[str] | None:
    if given is None:
        return None
    names: list[str] = items_of(what, given, "['Stable', 'Empty']" if what == "states" else "['classic', 'consumer']")
    for name in names:
        check_text(f"each of {what}", name)
    return names
