"""The blocking client's admin."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ..admin.config_resources import ConfigChanges, ConfigEntry, ConfigResource, ConfigResourceType
from ..client import Client as AsyncClient
from ..loop_thread import LoopThread
from ..other_clients_names import ADMIN, add_hints
from ..types import OffsetAndTimestamp, OffsetSpec, TopicPartition
from .cluster_admin import ClusterAdmin
from .group_admin import GroupAdmin
from .metrics_push import MetricsPush
from .share_group_admin import ShareGroupAdmin
from .streams_group_admin import StreamsGroupAdmin
from .topic_admin import TopicAdmin
from .transaction_admin import TransactionAdmin
from .user_admin import UserAdmin

if TYPE_CHECKING:
    from ..admin.acl_bindings import AclBinding, AclBindingFilter

__all__ = ("Admin",)


class Admin(
    TopicAdmin,
    GroupAdmin,
    ShareGroupAdmin,
    StreamsGroupAdmin,
    TransactionAdmin,
    ClusterAdmin,
    UserAdmin,
    MetricsPush,
):
    """The admin client at :attr:`Client.admin`. Errors are those of the asynchronous admin client.

    Each ``timeout`` is in seconds; its default is ``default_api_timeout_ms``.
    """

    def __init__(self, loop: LoopThread, client: AsyncClient) -> None:
        self._loop, self._admin = loop, client.admin
        self._telemetry = client

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

    def list_config_resources(
        self, types: Iterable[ConfigResourceType] | None = None, *, timeout: float | None = None
    ) -> list[ConfigResource]:
        """Return the resources that have configs, of all types or of some."""
        return self._loop.call(self._admin.list_config_resources, types, timeout=timeout)

    def incremental_alter_configs(
        self, changes: ConfigChanges, *, validate_only: bool = False, timeout: float | None = None
    ) -> None:
        """Change single configs of resources; None means back to the default, and other configs stay."""
        self._loop.call(self._admin.incremental_alter_configs, changes, validate_only=validate_only, timeout=timeout)

    # --- ACLs ----------------------------------------------------------------------------------------------------

    def create_acls(self, acls: "Iterable[AclBinding] | AclBinding", *, timeout: float | None = None) -> None:
        """Create an ACL or several ACLs; one that exists already stays."""
        self._loop.call(self._admin.create_acls, acls, timeout=timeout)

    def describe_acls(
        self,
        filter: "AclBindingFilter | None" = None,  # noqa: A002  # its name in Java
        *,
        timeout: float | None = None,
    ) -> "list[AclBinding]":
        """Return the ACLs that a filter finds, or all ACLs, sorted by resource and principal."""
        return self._loop.call(self._admin.describe_acls, filter, timeout=timeout)

    def delete_acls(
        self, filters: "Iterable[AclBindingFilter] | AclBindingFilter", *, timeout: float | None = None
    ) -> "dict[AclBindingFilter, list[AclBinding]]":
        """Delete the ACLs that a filter or several filters find; return the deleted ones by filter."""
        return self._loop.call(self._admin.delete_acls, filters, timeout=timeout)


add_hints(Admin, ADMIN)
