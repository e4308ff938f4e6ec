"""The admin's methods for share groups (KIP-932).

The first call imports the message classes of share groups.
"""

from collections.abc import Collection, Iterable, Mapping

from ..argument_checks import INT64, check_flag, check_mapping, is_integer, items_of, shown
from ..errors import UsageError
from ..types import TopicPartition, check_group_id, check_partition, check_topic_name, normalize_partitions
from .admin_base import AdminBase, check_group_ids
from .descriptions import ShareGroupDescription, SharePartitionOffsetInfo
from .outcomes import results_of

__all__ = ("ShareGroupAdmin",)


class ShareGroupAdmin(AdminBase):
    """The methods of :class:`~.admin.Admin` for share groups.

    Every method raises UnsupportedVersion if the brokers do not support share groups: they do since 4.2, and 4.1 with
    the feature ``share.version``.
    """

    async def describe_share_groups(
        self,
        *group_ids: str | Collection[str],
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> dict[str, ShareGroupDescription]:
        """Describe share groups: state, members, and the partitions that the members read.

        Args:
            group_ids: the groups.
            include_authorized_operations: whether to include the ACL operations that this client may perform on the
                groups (KIP-430).
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            GroupIdNotFound: there is no such group, or it is of another type.
            GroupAuthorizationFailed, ...: a broker answered with an error.
            RequestTimeout: the timeout has passed; the message has the last cause.
            AdminError: some of several groups have these errors; it has the descriptions of the others.
        """
        from .share_group_requests import describe_share_groups

        check_flag("include_authorized_operations", include_authorized_operations)
        deadline, names = self._deadline(timeout), check_group_ids(group_ids)

        outcomes = await describe_share_groups(self._cluster, names, deadline, operations=include_authorized_operations)
        return results_of("describing share groups", outcomes)

    async def delete_share_groups(self, *group_ids: str | Collection[str], timeout: float | None = None) -> None:
        """Delete share groups that have no members, with their offsets.

        Raises:
            GroupIdNotFound: there is no such group, or it is of another type.
            NonEmptyGroup, ...: a broker rejected the group.
            RequestTimeout: the timeout has passed; the message has the last cause.
            AdminError: some of several groups have these errors; the others are deleted.
        """
        from .share_group_requests import delete_share_groups

        outcomes = await delete_share_groups(self._cluster, check_group_ids(group_ids), self._deadline(timeout))
        results_of("deleting share groups", outcomes)

    async def list_share_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, SharePartitionOffsetInfo]:
        """Return the start offsets and the lag of a share group, by partition.

        A partition in which the group has not finished a record has a ``start_offset`` of None; partitions that the
        group has never read are left out.

        Args:
            group_id: the group.
            partitions: the partitions; by default all partitions that the group has read.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            GroupIdNotFound: there is no such group, or it is of another type.
            GroupAuthorizationFailed, ...: a broker answered with an error.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .share_group_requests import list_offsets

        check_group_id(group_id)
        requested = None if partitions is None else normalize_partitions(partitions)

        return await list_offsets(self._cluster, group_id, requested, self._deadline(timeout))

    async def list_offsets_of_share_groups(
        self, *group_ids: str | Collection[str], timeout: float | None = None
    ) -> dict[str, dict[TopicPartition, SharePartitionOffsetInfo]]:
        """Return the start offsets and the lag of several share groups, by one request to each coordinator.

        The offsets of a group are those of :meth:`list_share_group_offsets`; a group that does not exist has none.

        Raises:
            GroupAuthorizationFailed, ...: a broker answered with an error.
            RequestTimeout: the timeout has passed; the message has the last cause.
            AdminError: some of several groups have these errors; it has the offsets of the others.
        """
        from .share_group_requests import list_offsets_of_groups

        outcomes = await list_offsets_of_groups(self._cluster, check_group_ids(group_ids), self._deadline(timeout))
        return results_of("listing offsets of share groups", outcomes)

    async def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> None:
        """Set the start offsets of a share group without members; create the group if it does not exist.

        Args:
            group_id: the group.
            offsets: the offset of the next record to read, by partition.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            NonEmptyGroup: the group has members; stop them first.
            GroupIdNotFound: the group is of another type.
            UsageError: an offset is not valid.
            GroupAuthorizationFailed, ...: a broker answered with an error.
            RequestTimeout: the timeout has passed, for example because the partition does not exist; the message has
                the last cause.
            AdminError: some of several partitions have errors; the offsets of the others are set.
        """
        from .share_group_requests import alter_offsets

        check_group_id(group_id)
        outcomes = await alter_offsets(self._cluster, group_id, _start_offsets(offsets), self._deadline(timeout))
        results_of(f"setting offsets of share group {group_id!r}", outcomes)

    async def delete_share_group_offsets(
        self, group_id: str, topics: str | Iterable[str], *, timeout: float | None = None
    ) -> None:
        """Delete the offsets of a share group without members, for all partitions of a topic or of several topics.

        Raises:
            NonEmptyGroup: the group has members; stop them first.
            GroupIdNotFound: there is no such group, or it is of another type.
            UnknownTopicOrPartition, ...: a broker answered with an error.
            RequestTimeout: the timeout has passed; the message has the last cause.
            AdminError: some of several topics have errors; the offsets of the others are deleted.
        """
        from .share_group_requests import delete_offsets

        check_group_id(group_id)
        names = [topics] if isinstance(topics, str) else items_of("topics", topics, "['orders']")
        for name in names:
            check_topic_name(name)

        outcomes = await delete_offsets(self._cluster, group_id, names, self._deadline(timeout))
        results_of(f"deleting offsets of share group {group_id!r}", outcomes)


def _start_offsets(offsets: object) -> dict[TopicPartition, int]:
    check_mapping("offsets", offsets, "{TopicPartition('orders', 0): 42}")
    assert isinstance(offsets, Mapping)
    found = {}
    for given, offset in offsets.items():
        partition = check_partition(given)
        if not is_integer(offset, 0, INT64):
            raise UsageError(f"the start offset of {partition} must be from 0 to {INT64}, got {shown(offset)}")
        found[partition] = offset
    return found
