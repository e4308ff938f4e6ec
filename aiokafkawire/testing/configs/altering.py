"""The change of a resource's settings, after Kafka's checks of the new values (KIP-133, KIP-339)."""

from collections.abc import Mapping, Sequence

from ...errors import ErrorCode
from ..cluster.api_error import ApiError
from ..cluster.state import ClusterState
from ..cluster.topics import invalid_name
from .changes import ConfigChange, apply
from .checks import (
    broker_id,
    check_broker_configs,
    check_group_configs,
    check_metrics_configs,
    check_min_insync,
    check_topic_configs,
)
from .loggers import alter_levels
from .types import ConfigKind

__all__ = ("alter", "replace")


def alter(
    cluster: ClusterState,
    node: int,
    kind: ConfigKind,
    name: str,
    changes: Sequence[ConfigChange],
    validate_only: bool,
) -> None:
    """Apply all changes to one resource, as IncrementalAlterConfigs does; if ``validate_only``, only check the changes.

    Raises:
        ApiError: one change is invalid; then none is applied.
    """
    if kind is ConfigKind.BROKER_LOGGER:
        alter_levels(cluster.configs, node, name, changes, validate_only)
        return
    if kind is ConfigKind.BROKER:
        _check_node(node, name)
    before = _own(cluster, kind, name)
    after = dict(before)
    for change in changes:
        apply(cluster.configs.tables, kind, after, change)
    _check(cluster, node, kind, name, before, after, [change.name for change in changes])
    if not validate_only:
        _keep(cluster, kind, name, after)


def replace(
    cluster: ClusterState, node: int, kind: ConfigKind, name: str, configs: Mapping[str, str], validate_only: bool
) -> None:
    """Replace all settings of a resource by ``configs``, as AlterConfigs does.

    ``validate_only`` and the raised error are as in :func:`alter`.
    """
    if kind is ConfigKind.BROKER:
        _check_node(node, name)
    before = _own(cluster, kind, name)
    _check(cluster, node, kind, name, before, dict(configs), list(configs))
    if not validate_only:
        _keep(cluster, kind, name, dict(configs))


def _own(cluster: ClusterState, kind: ConfigKind, name: str) -> dict[str, str]:
    if kind is not ConfigKind.TOPIC:
        return cluster.configs.own(kind, name)
    topic = cluster.topics.get(name)
    return dict(topic.configs) if topic else {}


def _keep(cluster: ClusterState, kind: ConfigKind, name: str, configs: dict[str, str]) -> None:
    topic = cluster.topics.get(name) if kind is ConfigKind.TOPIC else None
    if topic is not None:
        topic.configs = configs
    else:
        cluster.configs.replace(kind, name, configs)


def _check(
    cluster: ClusterState,
    node: int,
    kind: ConfigKind,
    name: str,
    before: Mapping[str, str],
    after: Mapping[str, str],
    touched: Sequence[str],
) -> None:
    match kind:
        case ConfigKind.TOPIC:
            _check_topic(cluster, name, after)
        case ConfigKind.GROUP:
            check_group_configs(cluster.configs, name, after)
        case ConfigKind.CLIENT_METRICS:
            check_metrics_configs(name, after)
        case _:
            check_broker_configs(cluster.configs, node, name, after)
            check_min_insync(name, before, after, touched)


def _check_topic(cluster: ClusterState, name: str, configs: Mapping[str, str]) -> None:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    fault = invalid_name(name)
    if fault is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    check_topic_configs(cluster.configs, configs)
    if cluster.topics.get(name) is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def _check_node(node: int, name: str) -> None:
    if not name:
        return
    number = broker_id(name)
    if number is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if number != node:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node}, but received {name}")
