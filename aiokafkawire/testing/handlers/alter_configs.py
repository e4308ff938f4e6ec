"""AlterConfigs and IncrementalAlterConfigs: changes of settings while the brokers run."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

from ...errors import ErrorCode
from ...protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from ..cluster.api_error import ApiError
from ..configs.altering import alter, replace
from ..configs.changes import ConfigChange, ConfigOperation
from ..configs.types import ConfigKind
from ..serving.call import ServerCall
from .configs import known_kinds

__all__ = ("alter_configs", "incremental_alter_configs")

_CHANGED: Final = (ConfigKind.TOPIC, ConfigKind.BROKER, ConfigKind.CLIENT_METRICS, ConfigKind.GROUP)
_LONGEST_MESSAGE: Final = 2**15 - 1


class _Resource(Protocol):
    resource_type: int
    resource_name: str


R = TypeVar("R", bound=_Resource)


async def incremental_alter_configs(
    call: ServerCall, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change single settings; for each resource, either all requested changes are made or none (KIP-339)."""

    def change(asked: IncrementalAlterConfigsRequestAlterConfigsResource) -> None:
        changes = [ConfigChange(config.name, config.config_operation, config.value) for config in asked.configs]
        _check_names([change.name for change in changes])
        _check_values([(change.name, change.value) for change in changes if change.operation != ConfigOperation.DELETE])
        kind = _kind(call, asked.resource_type, (*_CHANGED, ConfigKind.BROKER_LOGGER))
        alter(call.cluster, call.node.node_id, kind, asked.resource_name, changes, request.validate_only)

    return IncrementalAlterConfigsResponse(responses=_each(request.resources, change))


async def alter_configs(call: ServerCall, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Replace all settings of each resource (KIP-133)."""

    def change(asked: AlterConfigsRequestAlterConfigsResource) -> None:
        _check_names([config.name for config in asked.configs])
        configs = _check_values([(config.name, config.value) for config in asked.configs])
        kind = _kind(call, asked.resource_type, _CHANGED)
        replace(call.cluster, call.node.node_id, kind, asked.resource_name, configs, request.validate_only)

    return AlterConfigsResponse(responses=_each(request.resources, change))


def _each(resources: Sequence[R], change: Callable[[R], None]) -> list[AlterConfigsResourceResponse]:
    named = [(asked.resource_type, asked.resource_name) for asked in resources]
    times = Counter(named)
    responses = []
    for asked, name in zip(resources, named, strict=True):
        error, message = ErrorCode.NONE, None
        try:
            if times[name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            change(asked)
        except ApiError as refused:
            error, message = refused.code, refused.message
            if message is not None and len(message.encode()) > _LONGEST_MESSAGE:
                # Apache Kafka fails likewise.
                error, message = ErrorCode.UNKNOWN_SERVER_ERROR, None
        responses.append(
            AlterConfigsResourceResponse(
                error_code=error,
                error_message=message,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
            )
        )
    return responses


def _kind(call: ServerCall, code: int, changed: Sequence[ConfigKind]) -> ConfigKind:
    if code not in changed or code not in known_kinds(call):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {code}")
    return ConfigKind(code)


def _check_names(names: Sequence[str]) -> None:
    if len(names) != len(dict.fromkeys(names)):
        raise ApiError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")


def _check_values(configs: Sequence[tuple[str, str | None]]) -> dict[str, str]:
    nulls = [name for name, value in configs if value is None]
    if nulls:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
    return {name: value for name, value in configs if value is not None}
