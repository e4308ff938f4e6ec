"""The resources of ``configs`` as users name them, such as ``topic orders``, ``broker 1`` and ``broker --default``."""

from collections.abc import Sequence
from typing import Any, Final

from ...admin.config_resources import ConfigEntry, ConfigResource, ConfigResourceType, ConfigSource
from ...argument_checks import INT32
from ...errors import UsageError
from ..exit_status import MISSING, CommandFailed

__all__ = ("DEFAULT", "RESOURCE_TYPES", "is_own", "named_resources", "resource_row")

RESOURCE_TYPES: Final = {
    "topic": ConfigResourceType.TOPIC,
    "broker": ConfigResourceType.BROKER,
    "broker-logger": ConfigResourceType.BROKER_LOGGER,
    "group": ConfigResourceType.GROUP,
    "client-metrics": ConfigResourceType.CLIENT_METRICS,
}
"""The types of resources, by their names at the shell, which are Kafka's."""

DEFAULT: Final = "(default)"
"""The defaults of all brokers in a table."""

_TYPE_NAMES: Final = {kind: name for name, kind in RESOURCE_TYPES.items()}
_OWN_SOURCES: Final = {
    ConfigResourceType.TOPIC: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ConfigResourceType.BROKER: ConfigSource.DYNAMIC_BROKER_CONFIG,
    ConfigResourceType.BROKER_LOGGER: ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
    ConfigResourceType.GROUP: ConfigSource.DYNAMIC_GROUP_CONFIG,
    ConfigResourceType.CLIENT_METRICS: ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
}


def named_resources(type_name: str, names: Sequence[str], *, default: bool = False) -> list[ConfigResource]:
    """Return the resources that a command line names.

    Args:
        type_name: a key of :data:`RESOURCE_TYPES`.
        names: the names of topics, groups or subscriptions to metrics, or the ids of brokers.
        default: whether the defaults of all brokers are meant, too.

    Raises:
        CommandFailed: a name is not valid, or the resources have no defaults (exit status 2).
    """
    kind = RESOURCE_TYPES[type_name]
    if default and kind is not ConfigResourceType.BROKER:
        raise CommandFailed(f"--default means the defaults of all brokers; a {type_name} has none", MISSING)
    try:
        found = [_resource(kind, name) for name in names]
    except UsageError as wrong:
        raise CommandFailed(str(wrong), MISSING) from None
    if default:
        found.append(ConfigResource.all_brokers())
    return list(dict.fromkeys(found))


def _resource(kind: ConfigResourceType, name: str) -> ConfigResource:
    match kind:
        case ConfigResourceType.TOPIC:
            return ConfigResource.topic(name)
        case ConfigResourceType.GROUP:
            return ConfigResource.group(name)
        case ConfigResourceType.CLIENT_METRICS:
            return ConfigResource.client_metrics(name)
    if not (name.isascii() and name.isdigit()) or int(name) > INT32:
        hint = ", or --default for those of all brokers" if kind is ConfigResourceType.BROKER else ""
        raise CommandFailed(f"a broker is named by its id, such as 1{hint}; got {name!r}", MISSING)
    is_broker = kind is ConfigResourceType.BROKER
    return ConfigResource.broker(int(name)) if is_broker else ConfigResource.broker_logger(int(name))


def resource_row(resource: ConfigResource, *, json: bool) -> dict[str, Any]:
    """Return the type and name of a resource, for a row; the name of all brokers' defaults is null in JSON."""
    return {"resource_type": _TYPE_NAMES[resource.type], "resource_name": resource.name or (None if json else DEFAULT)}


def is_own(resource: ConfigResource, entry: ConfigEntry) -> bool:
    """Return whether the value of a setting is set for the resource itself, as kafka-configs shows without --all."""
    if resource == ConfigResource.all_brokers():
        return entry.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return entry.source is _OWN_SOURCES[resource.type]
