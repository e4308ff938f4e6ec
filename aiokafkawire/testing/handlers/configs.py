"""DescribeConfigs and ListConfigResources: the effective settings and their sources."""

from collections.abc import Iterable, Mapping
from typing import Final

from ...errors import ErrorCode
from ...protocol.messages.configs import (
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from ..cluster.api_error import ApiError
from ..cluster.state import BrokerNode
from ..cluster.topics import HostedTopic, invalid_name
from ..configs.broker_configs import BROKER_RATES
from ..configs.checks import broker_id
from ..configs.configs import ALL_BROKERS, Configs, Synonym
from ..configs.docs import CONFIG_DOCS
from ..configs.loggers import log_levels
from ..configs.topic_configs import CLIENT_METRICS_CONFIGS, TOPIC_CONFIGS
from ..configs.types import ConfigKind, ConfigType, ConfigValueSource, Definition
from ..serving.call import ServerCall
from .constants import MALFORMED

__all__ = ("describe_configs", "known_kinds", "list_config_resources", "topic_entries")

_DOCS: Final = {**CONFIG_DOCS} | {
    definition.synonym: CONFIG_DOCS[name] for name, definition in TOPIC_CONFIGS.items() if definition.synonym
}
_KINDS: Final = tuple(kind for kind in ConfigKind if kind is not ConfigKind.UNKNOWN)
_GROUPS_SINCE: Final = "4.0"


async def describe_configs(call: ServerCall, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Describe the settings of each resource; an unknown resource type fails the whole request."""
    if any(asked.resource_type not in known_kinds(call) for asked in request.resources):
        refused = ApiError(ErrorCode.INVALID_REQUEST, MALFORMED)
        return DescribeConfigsResponse(results=[_refusal(asked, refused) for asked in request.resources])
    results, has_sources = [], call.node.release.since("1.1")
    for asked in request.resources:
        try:
            entries = _entries(call, ConfigKind(asked.resource_type), asked.resource_name)
        except ApiError as refused:
            results.append(_refusal(asked, refused))
            continue
        keys = asked.configuration_keys
        described = [entry for entry in entries if not keys or entry.name in keys]
        for entry in described:
            # Since release 1.1 an entry has its source instead, and lacks this field in version 0 too.
            entry.is_default = not has_sources and entry.config_source == ConfigValueSource.DEFAULT
            if not request.include_synonyms:
                entry.synonyms = []
            if asked.resource_type != ConfigKind.BROKER_LOGGER:
                entry.documentation = _DOCS.get(entry.name, "") if request.include_documentation else None
        results.append(
            DescribeConfigsResult(
                error_code=ErrorCode.NONE,
                error_message="",  # Apache Kafka's message for success in this API
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
                configs=described,
            )
        )
    return DescribeConfigsResponse(results=results)


async def list_config_resources(call: ServerCall, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    """List the resources of the requested types (KIP-1142); v0 lists client metrics only (KIP-1000)."""
    if call.version == 0:
        kinds: Iterable[int] = (ConfigKind.CLIENT_METRICS,)
    else:
        kinds = request.resource_types or _KINDS
    if any(kind not in _KINDS for kind in kinds):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=[])
    found = [
        ConfigResource(resource_name=name, resource_type=kind)
        for kind in dict.fromkeys(kinds)
        for name in _names(call, ConfigKind(kind))
    ]
    return ListConfigResourcesResponse(error_code=ErrorCode.NONE, config_resources=found)


def known_kinds(call: ServerCall) -> tuple[ConfigKind, ...]:
    """Return the types of resources that have settings in the broker's release; groups have since 4.0 (KIP-848)."""
    if call.node.release.since(_GROUPS_SINCE):
        return _KINDS
    return tuple(kind for kind in _KINDS if kind is not ConfigKind.GROUP)


def topic_entries(topic: HostedTopic, node: int) -> list[DescribeConfigsResourceResult]:
    """Return the DescribeConfigs entries for a topic's settings, as the broker ``node`` describes them."""
    entries = []
    for name, definition in topic.defaults.tables.topics.items():
        synonyms = topic.defaults.synonyms(definition.synonym, node) if definition.synonym else []
        value = topic.config(name, node)
        if name in topic.configs:
            synonyms.insert(0, Synonym(name, value, ConfigValueSource.TOPIC))
        entries.append(_entry(name, definition, value, synonyms))
    return entries


def _names(call: ServerCall, kind: ConfigKind) -> list[str]:
    match kind:
        case ConfigKind.TOPIC:
            return [topic.name for topic in call.cluster.topics]
        case ConfigKind.BROKER | ConfigKind.BROKER_LOGGER:
            return [str(node.node_id) for node in call.cluster.alive]
        case _:
            return call.cluster.configs.named(kind)


def _refusal(asked: DescribeConfigsResource, refused: ApiError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=refused.code,
        error_message=refused.message or "",
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=[],
    )


def _entries(call: ServerCall, kind: ConfigKind, name: str) -> list[DescribeConfigsResourceResult]:
    match kind:
        case ConfigKind.TOPIC:
            return _of_topic(call, name)
        case ConfigKind.BROKER:
            if name == ALL_BROKERS:
                return _of_all_brokers(call)
            _check_node(call.node, name, " or empty string,")
            return _of_broker(call)
        case ConfigKind.BROKER_LOGGER:
            if not name:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
            _check_node(call.node, name, "")
            return [
                _level(logger, level) for logger, level in log_levels(call.cluster.configs, call.node.node_id).items()
            ]
        case ConfigKind.CLIENT_METRICS:
            return _of_metrics(call, name)
        case _:
            return _of_group(call, name)


def _check_node(node: BrokerNode, name: str, also: str) -> None:
    number = broker_id(name)
    if number is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if number != node.node_id:
        fault = f"Unexpected broker id, expected {node.node_id}{also} but received {name}"
        raise ApiError(ErrorCode.INVALID_REQUEST, fault)


def _of_topic(call: ServerCall, name: str) -> list[DescribeConfigsResourceResult]:
    fault = invalid_name(name)
    if fault is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    topic = call.cluster.topics.get(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return topic_entries(topic, call.node.node_id)


def _of_all_brokers(call: ServerCall) -> list[DescribeConfigsResourceResult]:
    entries = []
    for name, value in call.cluster.configs.own(ConfigKind.BROKER, ALL_BROKERS).items():
        synonyms = [Synonym(name, value, ConfigValueSource.DYNAMIC_DEFAULT_BROKER)]
        entries.append(_broker_entry(call.cluster.configs, name, value, synonyms))
    return entries


def _of_broker(call: ServerCall) -> list[DescribeConfigsResourceResult]:
    configs, node = call.cluster.configs, call.node
    given = _started_with(node)
    own = configs.own(ConfigKind.BROKER, str(node.node_id)) | configs.own(ConfigKind.BROKER, ALL_BROKERS)
    entries = []
    for name in [*configs.tables.brokers, *(name for name in own if name not in configs.tables.brokers)]:
        synonyms = configs.synonyms(name, node.node_id, given)
        entries.append(_broker_entry(configs, name, synonyms[0].value if synonyms else None, synonyms))
    return entries


def _started_with(node: BrokerNode) -> Mapping[str, str]:
    """Return the settings with which Kafka would start this broker, such as ``broker.id`` and ``listeners``."""
    given = {
        "advertised.listeners": f"PLAINTEXT://{node.host}:{node.port}",
        "broker.id": str(node.node_id),
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{node.host}:{node.port}",
        "log.dirs": ",".join(node.log_dirs.paths),
        "node.id": str(node.node_id),
        "process.roles": "broker,controller",
    }
    return given if node.rack is None else {**given, "broker.rack": node.rack}


def _broker_entry(
    configs: Configs, name: str, value: str | None, synonyms: list[Synonym]
) -> DescribeConfigsResourceResult:
    definition = configs.tables.brokers.get(name) or BROKER_RATES.get(name)
    entry = _entry(name, definition, value, synonyms)
    entry.read_only = definition is None or definition.dynamic == "-"
    return entry


def _of_group(call: ServerCall, group: str) -> list[DescribeConfigsResourceResult]:
    if not group:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    configs = call.cluster.configs
    own = configs.own(ConfigKind.GROUP, group)
    entries = []
    for name, definition in configs.tables.groups.items():
        value = configs.group(group, name)
        synonyms = configs.synonyms(definition.synonym or name, call.node.node_id)
        if not synonyms:  # brokers have no setting with this name or synonym
            synonyms.append(Synonym(name, definition.default, ConfigValueSource.DEFAULT))
        if name in own:
            synonyms.insert(0, Synonym(name, value, ConfigValueSource.GROUP))
        entries.append(_entry(name, definition, value, synonyms))
    return entries


def _of_metrics(call: ServerCall, subscription: str) -> list[DescribeConfigsResourceResult]:
    if not subscription:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
    own = call.cluster.configs.own(ConfigKind.CLIENT_METRICS, subscription)
    entries = []
    for name, definition in CLIENT_METRICS_CONFIGS.items():
        value = definition.parse(own.get(name, definition.default or ""))
        synonyms = [Synonym(name, value, ConfigValueSource.CLIENT_METRICS)] if name in own else []
        entries.append(_entry(name, definition, value, synonyms))
    return entries


def _level(logger: str, level: str) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=logger, value=level, read_only=False, config_source=ConfigValueSource.BROKER_LOGGER, is_sensitive=False
    )


def _entry(
    name: str, definition: Definition | None, value: str | None, synonyms: list[Synonym]
) -> DescribeConfigsResourceResult:
    # The value of an unknown setting might be a secret.
    sensitive = definition is None or definition.is_sensitive
    return DescribeConfigsResourceResult(
        name=name,
        value=None if sensitive else value,
        read_only=False,
        config_source=synonyms[0].source if synonyms else ConfigValueSource.DEFAULT,
        is_sensitive=sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=None if sensitive else synonym.value, source=synonym.source)
            for synonym in synonyms
        ],
        config_type=ConfigType.UNKNOWN if definition is None else definition.type,
    )
