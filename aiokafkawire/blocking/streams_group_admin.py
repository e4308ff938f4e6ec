"""The blocking admin's methods for streams groups (KIP-1071)."""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from ..admin.admin import Admin
from ..loop_thread import LoopThread
from ..types import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from ..admin.streams_group_descriptions import StreamsGroupDescription

__all__ = ("StreamsGroupAdmin",)


class StreamsGroupAdmin:
    """The methods of :class:`~.admin.Admin` for streams groups."""

    _loop: LoopThread
    _admin: Admin

    def describe_streams_groups(
        self,
        *group_ids: str | Collection[str],
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> "dict[str, StreamsGroupDescription]":
        """Describe streams groups: state, topology, members, and their tasks."""
        return self._loop.call(
            self._admin.describe_streams_groups,
            *group_ids,
            include_authorized_operations=include_authorized_operations,
            timeout=timeout,
        )

    def delete_streams_groups(self, *group_ids: str | Collection[str], timeout: float | None = None) -> None:
        """Delete streams groups that have no members, with their offsets; their internal topics stay."""
        self._loop.call(self._admin.delete_streams_groups, *group_ids, timeout=timeout)

    def list_streams_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return a streams group's committed offsets."""
        return self._loop.call(
            self._admin.list_streams_group_offsets,
            group_id,
            partitions,
            require_stable=require_stable,
            timeout=timeout,
        )

    def alter_streams_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout: float | None = None,
    ) -> None:
        """Set the committed offsets of a streams group without members."""
        self._loop.call(self._admin.alter_streams_group_offsets, group_id, offsets, timeout=timeout)

    def delete_streams_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> None:
        """Delete a streams group's committed offsets for topics that the group does not read."""
        self._loop.call(self._admin.delete_streams_group_offsets, group_id, partitions, timeout=timeout)
