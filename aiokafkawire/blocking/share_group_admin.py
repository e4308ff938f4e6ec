"""The blocking admin's methods for share groups (KIP-932)."""

from collections.abc import Collection, Iterable, Mapping

from ..admin.admin import Admin
from ..admin.descriptions import ShareGroupDescription, SharePartitionOffsetInfo
from ..loop_thread import LoopThread
from ..types import TopicPartition

__all__ = ("ShareGroupAdmin",)


class ShareGroupAdmin:
    """The methods of :class:`~.admin.Admin` for share groups."""

    _loop: LoopThread
    _admin: Admin

    def describe_share_groups(
        self,
        *group_ids: str | Collection[str],
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> dict[str, ShareGroupDescription]:
        """Describe share groups: state, members, and the partitions that the members read."""
        return self._loop.call(
            self._admin.describe_share_groups,
            *group_ids,
            include_authorized_operations=include_authorized_operations,
            timeout=timeout,
        )

    def delete_share_groups(self, *group_ids: str | Collection[str], timeout: float | None = None) -> None:
        """Delete share groups that have no members, with their offsets."""
        self._loop.call(self._admin.delete_share_groups, *group_ids, timeout=timeout)

    def list_share_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, SharePartitionOffsetInfo]:
        """Return the start offsets and the lag of a share group, by partition."""
        return self._loop.call(self._admin.list_share_group_offsets, group_id, partitions, timeout=timeout)

    def list_offsets_of_share_groups(
        self, *group_ids: str | Collection[str], timeout: float | None = None
    ) -> dict[str, dict[TopicPartition, SharePartitionOffsetInfo]]:
        """Return the start offsets and the lag of several share groups, by one request to each coordinator."""
        return self._loop.call(self._admin.list_offsets_of_share_groups, *group_ids, timeout=timeout)

    def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> None:
        """Set the start offsets of a share group without members; create the group if it does not exist."""
        self._loop.call(self._admin.alter_share_group_offsets, group_id, offsets, timeout=timeout)

    def delete_share_group_offsets(
        self, group_id: str, topics: str | Iterable[str], *, timeout: float | None = None
    ) -> None:
        """Delete the offsets of a share group without members, for a topic or several topics."""
        self._loop.call(self._admin.delete_share_group_offsets, group_id, topics, timeout=timeout)
