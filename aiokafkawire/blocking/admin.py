"""The blocking client's admin."""

from collections.abc import Iterable, Mapping

from ..admin.admin import NewTopics
from ..admin.config_resources import ConfigChanges, ConfigEntry, ConfigResource
from ..client import Client as AsyncClient
from ..loop_thread import LoopThread
from ..other_clients_names import ADMIN, add_hints
from ..types import OffsetAndTimestamp, OffsetSpec, TopicPartition
from .group_admin import GroupAdmin
from .share_group_admin import ShareGroupAdmin
from .streams_group_admin import StreamsGroupAdmin
from .transaction_admin import TransactionAdmin

__all__ = ("Admin",)


class Admin(GroupAdmin, ShareGroupAdmin, StreamsGroupAdmin, TransactionAdmin):
    """The admin client at :attr:`Client.admin`. Errors are those of the asynchronous admin client.

    Each ``timeout`` is in seconds; its default is ``default_api_timeout_ms``.
    """

    def __init__(self, loop: LoopThread, client: AsyncClient) -> None:
        self._loop, self._admin = loop, client.admin

    def create_topics(self, topics: NewTopics, *, timeout: float | None = None) -> None:
        """Create topics, given as a mapping of each name to the number of partitions or a NewTopic."""
        self._loop.call(self._admin.create_topics, topics, timeout=timeout)

    def delete_topics(self, topics: str | Iterable[str], *, timeout: float | None = None) -> None:
        """Delete topics with all their records."""
        self._loop.call(self._admin.delete_topics, topics, timeout=timeout)

    def list_topics(self, *, internal: bool = False, timeout: float | None = None) -> tuple[str, ...]:
        """Return the names of all topics that this client may see, sorted."""
        return self._loop.call(self._admin.list_topics, internal=internal, timeout=timeout)

    def partitions_of(self, topic: str, *, timeout: float | None = None) -> tuple[int, ...]:
        """Return the indexes of the topic's partitions. Raises UnknownTopicOrPartition."""
        found = self._loop.call(self._admin.describe_topic, topic, timeout=timeout)
        return tuple(partition.index for partition in found.partitions)

    def list_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look up offsets: of the beginning, of the end, or by time; None for a time after all records."""
        return self._loop.call(self._admin.list_offsets, specs, timeout=timeout)

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
