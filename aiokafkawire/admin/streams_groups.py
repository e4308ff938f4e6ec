"""The admin's methods for streams groups (KIP-1071), the groups of Kafka Streams applications.

The first call imports the message classes of streams groups.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from ..argument_checks import check_flag
from ..types import OffsetAndMetadata, TopicPartition, check_group_id, normalize_partitions
from .admin_base import AdminBase, check_group_ids
from .outcomes import results_of

if TYPE_CHECKING:
    from .streams_group_descriptions import StreamsGroupDescription

__all__ = ("StreamsGroupAdmin",)


class StreamsGroupAdmin(AdminBase):
    """The methods of :class:`~.admin.Admin` for streams groups.

    Brokers support streams groups since 4.2, and 4.1 with the feature ``streams.version``. Applications that use the
    classic protocol are classic groups.
    """

    async def describe_streams_groups(
        self,
        *group_ids: str | Collection[str],
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> "dict[str, StreamsGroupDescription]":
        """Describe streams groups: state, topology, members, and their tasks.

        Args:
            group_ids: the groups.
            include_authorized_operations: whether to include the ACL operations that this client may perform on the
                groups (KIP-430).
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            GroupIdNotFound: there is no such group, or it is of another type.
            GroupAuthorizationFailed, ...: a broker answered with an error.
            UnsupportedVersion: the brokers do not support streams groups.
            RequestTimeout: the timeout has passed; the message has the last cause.
            AdminError: some of several groups have these errors; it has the descriptions of the others.
        """
        from .streams_group_requests import describe_streams_groups

        check_flag("include_authorized_operations", include_authorized_operations)
        deadline, names = self._deadline(timeout), check_group_ids(group_ids)

        outcomes = await describe_streams_groups(
            self._cluster, names, deadline, operations=include_authorized_operations
        )
        return results_of("describing streams groups", outcomes)

    async def delete_streams_groups(self, *group_ids: str | Collection[str], timeout: float | None = None) -> None:
        """Delete streams groups that have no members, with their offsets; their internal topics stay.

        Raises:
            GroupIdNotFound: there is no such group, or it is of another type.
            NonEmptyGroup, ...: a broker rejected the group.
            UnsupportedVersion: the brokers do not support streams groups.
            RequestTimeout: the timeout has passed; the message has the last cause.
            AdminError: some of several groups have these errors; the others are deleted.
        """
        from .streams_group_requests import delete_streams_groups

        outcomes = await delete_streams_groups(self._cluster, check_group_ids(group_ids), self._deadline(timeout))
        results_of("deleting streams groups", outcomes)

    async def list_streams_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return a streams group's committed offsets; partitions without a committed offset are left out.

        Arguments and errors are those of ``list_consumer_group_offsets``, which sends the same request.
        """
        from .group_offsets import offsets_of

        check_group_id(group_id)
        check_flag("require_stable", require_stable)
        requested = None if partitions is None else normalize_partitions(partitions)
        return await offsets_of(self._cluster, group_id, requested, self._deadline(timeout), stable=require_stable)

    async def alter_streams_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout: float | None = None,
    ) -> None:
        """Set the committed offsets of a streams group without members.

        Arguments and errors are those of ``alter_consumer_group_offsets``, which sends the same request. The state of
        the application stays: reset it as well (``kafka-streams-application-reset.sh``) to process records again.
        """
        from .group_offsets import alter_offsets

        outcomes = await alter_offsets(self._cluster, group_id, offsets, self._deadline(timeout))
        results_of(f"setting offsets of streams group {group_id!r}", outcomes)

    async def delete_streams_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> None:
        """Delete a streams group's committed offsets for topics that the group does not read.

        Arguments and errors are those of ``delete_consumer_group_offsets``, which sends the same request.
        """
        from .group_offsets import delete_offsets

        check_group_id(group_id)
        requested = normalize_partitions(partitions)

        outcomes = await delete_offsets(self._cluster, group_id, requested, self._deadline(timeout))
        results_of(f"deleting offsets of streams group {group_id!r}", outcomes)
