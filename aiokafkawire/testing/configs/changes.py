"""One change of a setting: to set or delete its value, to add items to its list or to remove them (KIP-339)."""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from ...errors import ErrorCode
from ..cluster.api_error import ApiError
from .tables import ConfigTables
from .topic_configs import CLIENT_METRICS_CONFIGS
from .types import ConfigKind, ConfigType, Definition

__all__ = ("ConfigChange", "ConfigOperation", "apply")


class ConfigOperation(IntEnum):
    """The operations on one setting."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """One change of a setting; ``operation`` is the code that the client sent, which may be unknown."""

    name: str
    operation: int
    value: str | None


def _definitions(tables: ConfigTables, kind: ConfigKind) -> Mapping[str, Definition]:
    match kind:
        case ConfigKind.TOPIC:
            return tables.topics
        case ConfigKind.GROUP:
            return tables.groups
        case ConfigKind.CLIENT_METRICS:
            return CLIENT_METRICS_CONFIGS
        case _:
            return tables.brokers


def apply(tables: ConfigTables, kind: ConfigKind, configs: dict[str, str], change: ConfigChange) -> None:
    """Apply one change to the settings of a resource.

    Raises:
        ApiError: the operation is unknown, or it needs a list but the setting is not a list.
    """
    name, value = change.name, change.value or ""
    if change.operation not in tuple(ConfigOperation):
        if kind is ConfigKind.BROKER:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {change.operation}")
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    match ConfigOperation(change.operation):
        case ConfigOperation.SET:
            configs[name] = value
        case ConfigOperation.DELETE:
            configs.pop(name, None)
        case operation:
            definition = _definitions(tables, kind).get(name)
            _check_list(kind, definition, name, operation)
            old = configs.get(name, definition.default if definition else None) or ""
            items = [item for item in old.split(",") if item]
            if operation is ConfigOperation.APPEND:
                items += [item for item in dict.fromkeys(value.split(",")) if item not in items]
            else:
                for item in value.split(","):
                    if item in items:
                        items.remove(item)
            configs[name] = ",".join(items)


def _check_list(kind: ConfigKind, definition: Definition | None, name: str, operation: ConfigOperation) -> None:
    if definition is not None and definition.type is ConfigType.LIST:
        return
    if kind is not ConfigKind.BROKER:
        fault = f"Can't {operation.name} to key {name} because its type is not LIST."
    elif definition is None:
        fault = f"Unknown config name: {name}"
    else:
        fault = f"Config value {operation.name.lower()} is not allowed for config key: {name}"
    raise ApiError(ErrorCode.INVALID_CONFIG, fault)
