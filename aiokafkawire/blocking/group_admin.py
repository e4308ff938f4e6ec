"""The blocking admin's methods for classic groups and consumer groups."""

from collections.abc import Collection, Iterable, Mapping

from ..admin.admin import Admin
from ..admin.descriptions import GroupDescription, GroupListing, GroupMember
from ..loop_thread import LoopThread
from ..types import IsolationLevel, OffsetAndMetadata, OffsetSpec, TopicPartition

__all__ = ("GroupAdmin",)


class GroupAdmin:
    """The methods of :class:`~.admin.Admin` for groups."""

    _loop: LoopThread
    _admin: Admin

    def list_groups(
        self,
        *,
        states: Collection[str] | None = None,
        types: Collection[str] | None = None,
        timeout: float | None = None,
    ) -> list[GroupListing]:
        """List all groups of the cluster, or those in one of the states, such as "Empty", or of the types."""
        return self._loop.call(self._admin.list_groups, states=states, types=types, timeout=timeout)

    def describe_groups(
        self,
        *group_ids: str | Collection[str],
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> dict[str, GroupDescription]:
        """Describe classic groups and consumer groups: state, members, assignments and committed offsets."""
        return self._loop.call(
            self._admin.describe_groups,
            *group_ids,
            include_authorized_operations=include_authorized_operations,
            timeout=timeout,
        )

    def describe_consumer_groups(
        self,
        *group_ids: str | Collection[str],
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> dict[str, GroupDescription]:
        """Describe groups; this is :meth:`describe_groups` by the name of Kafka's own admin."""
        return self.describe_groups(
            *group_ids, include_authorized_operations=include_authorized_operations, timeout=timeout
        )

    def describe_classic_groups(
        self,
        *group_ids: str | Collection[str],
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> dict[str, GroupDescription]:
        """Describe classic groups only."""
        return self._loop.call(
            self._admin.describe_classic_groups,
            *group_ids,
            include_authorized_operations=include_authorized_operations,
            timeout=timeout,
        )

    def delete_groups(self, *group_ids: str | Collection[str], timeout: float | None = None) -> None:
        """Delete groups that have no members, with their offsets."""
        self._loop.call(self._admin.delete_groups, *group_ids, timeout=timeout)

    def remove_members(
        self,
        group_id: str,
        members: Iterable[GroupMember | str] | None = None,
        *,
        reason: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Remove members from a classic group or a consumer group, by default all; running members rejoin."""
        self._loop.call(self._admin.remove_members, group_id, members, reason=reason, timeout=timeout)

    # --- offsets -------------------------------------------------------------------------------------------------

    def list_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets that a group has committed."""
        return self._loop.call(
            self._admin.list_consumer_group_offsets,
            group_id,
            partitions,
            require_stable=require_stable,
            timeout=timeout,
        )

    def list_offsets_of_groups(
        self, *group_ids: str | Collection[str], require_stable: bool = False, timeout: float | None = None
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        """Return all committed offsets of several groups."""
        return self._loop.call(
            self._admin.list_offsets_of_groups, *group_ids, require_stable=require_stable, timeout=timeout
        )

    def alter_consumer_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout: float | None = None,
    ) -> None:
        """Commit offsets for a group without members."""
        self._loop.call(self._admin.alter_consumer_group_offsets, group_id, offsets, timeout=timeout)

    def reset_consumer_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetSpec | int], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Set a group's offsets to the beginning, the end, a time, or an offset; return the new offsets."""
        return self._loop.call(self._admin.reset_consumer_group_offsets, group_id, offsets, timeout=timeout)

    def delete_consumer_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> None:
        """Delete a group's committed offsets for topics that the group does not read."""
        self._loop.call(self._admin.delete_consumer_group_offsets, group_id, partitions, timeout=timeout)

    def consumer_group_lag(
        self,
        group_id: str,
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        timeout: float | None = None,
    ) -> dict[TopicPartition, int]:
        """Return the group's lag by partition: the number of offsets from the committed one to the end of the log."""
        return self._loop.call(
            self._admin.consumer_group_lag, group_id, isolation_level=isolation_level, timeout=timeout
        )
