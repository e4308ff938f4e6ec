"""The admin's methods for configs of topics, brokers, groups and other resources.

The first call imports the message classes of configs.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from ..argument_checks import INT16, check_flag, check_mapping, check_text, is_text, items_of, shown
from ..errors import UsageError
from .admin_base import AdminBase
from .config_resources import ConfigChanges, ConfigEntry, ConfigOp, ConfigOpType, ConfigResource, ConfigResourceType
from .outcomes import results_of

__all__ = ("ConfigAdmin",)


class ConfigAdmin(AdminBase):
    """The methods of :class:`~.admin.Admin` for configs."""

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource] | ConfigResource,
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout: float | None = None,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """Return the configs of resources, by name: their values, and where these were set (KIP-133).

        A group need not exist to have configs.

        Args:
            resources: a resource or several, such as ``[ConfigResource.topic("orders"), ConfigResource.broker(1)]``.
            include_synonyms: whether to include all sources of each value (KIP-226, brokers since 1.1).
            include_documentation: whether to include the brokers' text about each config (KIP-569, brokers since 2.6).
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            UnknownTopicOrPartition, ...: a broker answered with an error for the only resource.
            BrokerNotAvailable: the broker is not in the cluster.
            AdminError: some of several resources have errors; ``results`` has the others.
            UnsupportedVersion: the brokers are too old.
            UsageError: a resource is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .config_requests import describe_configs

        check_flag("include_synonyms", include_synonyms)
        check_flag("include_documentation", include_documentation)
        if isinstance(resources, ConfigResource):
            resources = [resources]
        requested = [_checked(resource) for resource in items_of("resources", resources, f"[{_RESOURCE}]")]

        outcomes = await describe_configs(
            self._cluster,
            requested,
            self._deadline(timeout),
            synonyms=include_synonyms,
            documentation=include_documentation,
        )
        return results_of("describing configs", outcomes)

    async def incremental_alter_configs(
        self, changes: ConfigChanges, *, validate_only: bool = False, timeout: float | None = None
    ) -> None:
        """Change single configs of resources; other configs stay (KIP-339, brokers since 2.3).

        Each resource takes all of its changes or none.

        Args:
            changes: for each resource the new values by the configs' names; None means back to the default, and a
                ConfigOp changes lists: ``{ConfigResource.topic("orders"): {"retention.ms": "3600000"}}``.
            validate_only: whether brokers only check the changes, without making them.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            InvalidConfig, UnknownTopicOrPartition, ...: a broker rejected the only resource.
            BrokerNotAvailable: the broker is not in the cluster.
            AdminError: brokers rejected some of several resources; others are changed.
            UnsupportedVersion: the brokers are too old.
            UsageError: a resource or a change is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .config_requests import incremental_alter_configs

        check_flag("validate_only", validate_only)
        check_mapping("changes", changes, _CHANGES, secret=True)
        checked = {_checked(resource): _changes_of(resource, changed) for resource, changed in changes.items()}
        deadline = self._deadline(timeout)

        outcomes = await incremental_alter_configs(self._cluster, checked, deadline, validate_only=validate_only)
        results_of("changing configs", outcomes)

    async def list_config_resources(
        self, types: Iterable[ConfigResourceType] | None = None, *, timeout: float | None = None
    ) -> list[ConfigResource]:
        """Return the resources that have configs (KIP-1142): topics, brokers, groups and subscriptions to metrics.

        Args:
            types: the types of resources; None for all that the brokers know. Brokers before 4.1 list only
                ``ConfigResourceType.CLIENT_METRICS`` (KIP-1000, brokers since 3.7).
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            UnsupportedVersion: the brokers are too old for a type.
            ClusterAuthorizationFailed, ...: the broker answered with an error.
            UsageError: a type is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .config_requests import list_config_resources

        wanted = None if types is None else items_of("types", types, "[ConfigResourceType.TOPIC]")
        for wanted_type in wanted or ():
            if not isinstance(wanted_type, ConfigResourceType):
                raise UsageError(f"a type must be a ConfigResourceType, got {shown(wanted_type)}")
        return await list_config_resources(self._cluster, wanted, self._deadline(timeout))


_RESOURCE: Final = "ConfigResource.topic('orders')"
_CHANGES: Final = f"{{{_RESOURCE}: {{'retention.ms': '3600000'}}}}"


def _checked(resource: object) -> ConfigResource:
    """Return a user's resource.

    Raises:
        UsageError: the argument is not a resource.
    """
    if not isinstance(resource, ConfigResource) or not isinstance(resource.type, ConfigResourceType):
        raise UsageError(f"a resource must be a ConfigResource, such as {_RESOURCE}; got {shown(resource)}")
    check_text("the name of a resource", resource.name, empty=resource.type is ConfigResourceType.BROKER)
    of_broker = resource.type in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER)
    if of_broker and resource.name and not (resource.name.isascii() and resource.name.isdigit()):
        raise UsageError(f"the name of a broker's resource must be the broker's id, got {shown(resource.name)}")
    return resource


def _changes_of(resource: ConfigResource, changes: object) -> dict[str, ConfigOp]:
    check_mapping(f"the changes of {resource}", changes, "{'retention.ms': '3600000'}", secret=True)
    assert isinstance(changes, Mapping)
    found = {}
    for name, change in changes.items():
        check_text(f"the name of a config of {resource}", name)
        found[name] = _change(f"{name} of {resource}", change)
    return found


def _change(name: str, change: object) -> ConfigOp:
    """Return a change as a ConfigOp. The errors do not show the value, which may be a password.

    Raises:
        UsageError: the argument is not a change.
    """
    if change is None:
        return ConfigOp.delete()
    operation = change if isinstance(change, ConfigOp) else ConfigOp(ConfigOpType.SET, change)  # type: ignore[arg-type]
    if not isinstance(operation.type, ConfigOpType):
        raise UsageError(f"{name} has a ConfigOp of an unknown type, {shown(operation.type)}")
    if operation.type is ConfigOpType.DELETE:
        if operation.value is not None:
            raise UsageError(f"{name} has a ConfigOp to delete with a value: use ConfigOp.delete()")
    elif not isinstance(operation.value, str):
        given = "None" if operation.value is None else type(operation.value).__name__
        raise UsageError(f"{name} must be a string, a ConfigOp, or None for the default; got {given}")
    elif not is_text(operation.value):
        raise UsageError(f"{name} must be text that UTF-8 can encode; it has half a surrogate pair")
    elif len(operation.value.encode()) > INT16:
        raise UsageError(f"{name} must be at most {INT16} bytes long, got {len(operation.value.encode())} bytes")
    return operation
