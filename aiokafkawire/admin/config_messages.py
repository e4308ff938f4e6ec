"""The requests about configs, and the entries in their responses."""

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from ..errors import ErrorCode, WireError, broker_error
from ..protocol.messages.configs import (
    AlterConfigsResourceResponse,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesResponse,
)
from .config_resources import ConfigEntry, ConfigOp, ConfigResource, ConfigResourceType, ConfigSource, ConfigSynonym

__all__ = ("alter_request", "check_altered", "describe_request", "described_configs", "listed_resources")

R = TypeVar("R", DescribeConfigsResult, AlterConfigsResourceResponse)

_TYPES: Final = (None, "boolean", "string", "int", "short", "long", "double", "list", "class", "password")
"""The types of values, by code."""
_NO_SOURCE: Final = -1
_SET_SOURCES: Final = {
    ConfigResourceType.TOPIC: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ConfigResourceType.BROKER: ConfigSource.STATIC_BROKER_CONFIG,
}
"""The sources of values that are not defaults, from brokers before 1.1, which do not name the source."""


def describe_request(
    resources: Iterable[ConfigResource], *, synonyms: bool, documentation: bool
) -> DescribeConfigsRequest:
    """Return the request for all configs of the resources."""
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=resource.type, resource_name=resource.name, configuration_keys=None)
            for resource in resources
        ],
        include_synonyms=synonyms,
        include_documentation=documentation,
    )


def described_configs(resource: ConfigResource, response: DescribeConfigsResponse) -> dict[str, ConfigEntry]:
    """Return the configs of a resource in a response, sorted by name.

    Raises:
        BrokerError: the resource has an error.
        WireError: the response lacks the resource.
    """
    result = _result(resource, response.results, "DescribeConfigs")
    return {config.name: _entry(resource, config) for config in sorted(result.configs, key=lambda config: config.name)}


def alter_request(
    changes: Mapping[ConfigResource, Mapping[str, ConfigOp]], *, validate_only: bool
) -> IncrementalAlterConfigsRequest:
    """Return the request for changes of configs."""
    return IncrementalAlterConfigsRequest(
        resources=[
            IncrementalAlterConfigsRequestAlterConfigsResource(
                resource_type=resource.type,
                resource_name=resource.name,
                configs=[
                    IncrementalAlterConfigsRequestAlterableConfig(
                        name=name, config_operation=change.type, value=change.value
                    )
                    for name, change in changed.items()
                ],
            )
            for resource, changed in changes.items()
        ],
        validate_only=validate_only,
    )


def check_altered(resource: ConfigResource, response: IncrementalAlterConfigsResponse) -> None:
    """Check that the configs of a resource were changed. Raise as :func:`described_configs`."""
    _result(resource, response.responses, "IncrementalAlterConfigs")


def _result(resource: ConfigResource, results: Iterable[R], api: str) -> R:
    for result in results:
        if (result.resource_type, result.resource_name) == (resource.type, resource.name):
            break
    else:
        raise WireError(f"the {api} response lacks the requested {resource}")
    if result.error_code != ErrorCode.NONE:
        suffix = f": {result.error_message}" if result.error_message else ""
        raise broker_error(result.error_code, f"{api} of {resource}{suffix}")
    return result


def _entry(resource: ConfigResource, config: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        config.name,
        config.value,
        _source(resource, config),
        config.is_sensitive,
        config.read_only,
        _TYPES[config.config_type] if 0 <= config.config_type < len(_TYPES) else None,
        tuple(ConfigSynonym(synonym.name, synonym.value, _known_source(synonym.source)) for synonym in config.synonyms),
        config.documentation or None,
    )


def _source(resource: ConfigResource, config: DescribeConfigsResourceResult) -> ConfigSource:
    if config.config_source != _NO_SOURCE:
        return _known_source(config.config_source)
    if config.is_default:
        return ConfigSource.DEFAULT_CONFIG
    return _SET_SOURCES.get(resource.type, ConfigSource.UNKNOWN)


def _known_source(code: int) -> ConfigSource:
    try:
        return ConfigSource(code)
    except ValueError:
        return ConfigSource.UNKNOWN


def listed_resources(response: ListConfigResourcesResponse) -> list[ConfigResource]:
    """Return the resources in a response, without those of types that this client does not know.

    Raises:
        BrokerError: the response has an error.
    """
    if response.error_code != ErrorCode.NONE:
        raise broker_error(response.error_code, "ListConfigResources")
    known = {int(kind): kind for kind in ConfigResourceType}
    return [
        ConfigResource(known[resource.resource_type], resource.resource_name)
        for resource in response.config_resources
        if resource.resource_type in known
    ]
