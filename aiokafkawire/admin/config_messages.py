"""The requests about configs, and the entries in their responses."""

from collections.abc import Iterable, Mapping
from typing import Final

from ..errors import KafkaError, WireError
from ..protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesResponse,
)
from .config_resources import ConfigEntry, ConfigOp, ConfigResource, ConfigResourceType, ConfigSource, ConfigSynonym
from .response_errors import error_of, raise_for

__all__ = ("alter_request", "altered_configs", "describe_request", "described_configs", "listed_resources")

_TYPES: Final = (None, "boolean", "string", "int", "short", "long", "double", "list", "class", "password")
"""The types of values, by code."""
_NO_SOURCE: Final = -1
_SET_SOURCES: Final = {
    ConfigResourceType.TOPIC: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ConfigResourceType.BROKER: ConfigSource.STATIC_BROKER_CONFIG,
}
"""The sources of values that are not defaults, from brokers before 1.1, which do not name the source."""
_RESOURCE_TYPES: Final = {int(kind): kind for kind in ConfigResourceType}


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


def described_configs(
    resources: Iterable[ConfigResource], response: DescribeConfigsResponse
) -> dict[ConfigResource, dict[str, ConfigEntry] | KafkaError]:
    """Return the configs of each resource in a response, sorted by name, or the resource's error."""
    results = {(result.resource_type, result.resource_name): result for result in response.results}
    found: dict[ConfigResource, dict[str, ConfigEntry] | KafkaError] = {}
    for resource in resources:
        result = results.get((resource.type, resource.name))
        if result is None:
            found[resource] = WireError(f"the DescribeConfigs response lacks the requested {resource}")
        else:
            configs = sorted(result.configs, key=lambda config: config.name)
            error = error_of(result.error_code, f"DescribeConfigs of {resource}", result.error_message)
            found[resource] = error or {config.name: _entry(resource, config) for config in configs}
    return found


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


def altered_configs(response: IncrementalAlterConfigsResponse) -> dict[ConfigResource, KafkaError | None]:
    """Return None for each resource whose configs were changed, or the resource's error."""
    found: dict[ConfigResource, KafkaError | None] = {}
    for result in response.responses:
        if result.resource_type in _RESOURCE_TYPES:
            resource = ConfigResource(_RESOURCE_TYPES[result.resource_type], result.resource_name)
            what = f"IncrementalAlterConfigs of {resource}"
            found[resource] = error_of(result.error_code, what, result.error_message)
    return found


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
    raise_for(response.error_code, "ListConfigResources")
    return [
        ConfigResource(_RESOURCE_TYPES[resource.resource_type], resource.resource_name)
        for resource in response.config_resources
        if resource.resource_type in _RESOURCE_TYPES
    ]
