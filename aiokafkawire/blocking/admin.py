"""The blocking client's admin."""

from collections.abc import Collection, Iterable, Mapping

from ..admin.config_resources import ConfigChanges, ConfigEntry, ConfigResource
from ..admin.descriptions import (
    GroupDescription,
    GroupListing,
    ShareGroupDescription,
    SharePartitionOffsetInfo,
)
from ..client import Client as AsyncClient
from ..loop_thread import LoopThread
from ..other_clients_names import ADMIN, add_hints
from ..types import OffsetAndMetadata, OffsetAndTimestamp, OffsetSpec, TopicPartition
from .topic_admin import TopicAdmin

__all__ = ("Admin",)


class Admin(TopicAdmin):
    """The admin client at :attr:`Client.admin`. Errors are those of the asynchronous admin client.

    Each ``timeout`` is in seconds; its default is ``default_api_timeout_ms``. For other methods use
    ``kafka.loop.call(kafka.asynchronous.admin.remove_members, ...)``.
    """

    def __init__(self, loop: LoopThread, client: AsyncClient) -> None:
        self._loop, self._admin = loop, client.admin

    def list_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look up offsets: of the beginning, of the end, or by time; None for a time after all records."""
        return self._loop.call(self._admin.list_offsets, specs, timeout=timeout)

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

    def list_consumer_group_offsets(
        self, group_id: str, *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets that a group has committed."""
        return self._loop.call(self._admin.list_consumer_group_offsets, group_id, timeout=timeout)

    def alter_consumer_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout: float | None = None,
    ) -> None:
        """Commit offsets for a group without members."""
        self._loop.call(self._admin.alter_consumer_group_offsets, group_id, offsets, timeout=timeout)

    def consumer_group_lag(self, group_id: str, *, timeout: float | None = None) -> dict[TopicPartition, int]:
        """Return the group's lag by partition: the number of offsets from the committed one to the end of the log."""
        return self._loop.call(self._admin.consumer_group_lag, group_id, timeout=timeout)

    # --- share groups --------------------------------------------------------------------------------------------

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

    # --- configs -------------------------------------------------------------------------------------------------

    def describe_configs(
        self,
        resources: Iterable[ConfigResource] | ConfigResource,
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout: float | None = None,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """Return the configs of resources, by name: their values, and where these were set."""
        return self._loop.call(
            self._admin.describe_configs,
            resources,
            include_synonyms=include_synonyms,
            include_documentation=include_documentation,
            timeout=timeout,
        )

    def incremental_alter_configs(
        self, changes: ConfigChanges, *, validate_only: bool = False, timeout: float | None = None
    ) -> None:
        """Change single configs of resources; None means back to the default, and other configs stay."""
        self._loop.call(self._admin.incremental_alter_configs, changes, validate_only=validate_only, timeout=timeout)


add_hints(Admin, ADMIN)
