"""The results of the admin's calls: aiokafka's fields and tuples, made of this client's responses. Pure."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import attrs

from ...protocol.messages.configs import (
    DescribeConfigsResponse,
    IncrementalAlterConfigsResponse,
)
from ...protocol.messages.group_admin import DescribeGroupsResponse
from ...protocol.messages.metadata import MetadataResponse
from ...protocol.messages.topics import CreatePartitionsResponse, CreateTopicsResponse, DeleteTopicsResponse

__all__ = (
    "ConfigsResponse",
    "GroupsResponse",
    "TopicErrorCodesResponse",
    "TopicErrorsResponse",
    "altered_configs",
    "created_partitions",
    "created_topics",
    "deleted_topics",
    "described_cluster",
    "described_configs",
    "described_groups",
    "described_topics",
)


_MEMBER: Final = ("member_id", "client_id", "client_host", "member_metadata", "member_assignment")
_SYNONYM: Final = ("config_name", "config_value", "config_source")
_CONFIG: Final = (
    "config_names",
    "config_value",
    "read_only",
    "config_source",
    "is_sensitive",
    ("config_synonyms", _SYNONYM),
)


class _Response:
    """The base class of aiokafka's responses."""

    _names: ClassVar[Mapping[str, tuple[Any, ...]]]

    def to_object(self) -> dict[str, Any]:
        """Return the response as dictionaries, which name the fields of its tuples."""
        fields: dict[str, Any] = attrs.asdict(self, recurse=False)  # type: ignore[arg-type]  # the subclasses are attrs classes
        return {name: _named(value, self._names.get(name)) for name, value in fields.items()}


def _named(values: Any, names: tuple[Any, ...] | None) -> Any:
    """Return the tuples as dictionaries; a name with the names of inner tuples is a pair."""
    if names is None:
        return values
    found = []
    for one in values:
        pairs = ((name, None) if isinstance(name, str) else name for name in names)
        found.append({name: _named(value, inner) for (name, inner), value in zip(pairs, one, strict=False)})
    return found


@attrs.frozen
class TopicErrorsResponse(_Response):
    """The result of creating topics or partitions: ``(topic, error code, error message)`` of each topic."""

    _names: ClassVar[Mapping[str, tuple[Any, ...]]] = {"topic_errors": ("topic", "error_code", "error_message")}

    throttle_time_ms: int
    topic_errors: list[tuple[str, int, str | None]]


@attrs.frozen
class TopicErrorCodesResponse(_Response):
    """The result of deleting topics: ``(topic, error code)`` of each topic."""

    _names: ClassVar[Mapping[str, tuple[Any, ...]]] = {"topic_error_codes": ("topic", "error_code")}

    throttle_time_ms: int
    topic_error_codes: list[tuple[str, int]]


@attrs.frozen
class ConfigsResponse(_Response):
    """The result for configs: ``(error code, error message, resource type, resource name)`` of each resource.

    Described resources have a fifth field: the list of their configs, each as ``(name, value, read only, source,
    sensitive, synonyms)``, and each synonym as ``(name, value, source)``.
    """

    _names: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "resources": ("error_code", "error_message", "resource_type", "resource_name", ("config_entries", _CONFIG))
    }

    throttle_time_ms: int
    resources: list[tuple[Any, ...]]


@attrs.frozen
class GroupsResponse(_Response):
    """Described groups, each as a tuple.

    It has the error code, group, state, protocol type, protocol, members and authorized operations. Each member is
     ``(member id, client id, host, metadata, assignment)``.
    """

    _names: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "groups": (
            "error_code",
            "group",
            "state",
            "protocol_type",
            "protocol",
            ("members", _MEMBER),
            "authorized_operations",
        )
    }

    throttle_time_ms: int
    groups: list[tuple[Any, ...]]


def created_topics(response: CreateTopicsResponse) -> TopicErrorsResponse:
    """Convert the response to created topics."""
    errors = [(topic.name, topic.error_code, topic.error_message) for topic in response.topics]
    return TopicErrorsResponse(response.throttle_time_ms, errors)


def created_partitions(response: CreatePartitionsResponse) -> TopicErrorsResponse:
    """Convert the response to created partitions."""
    errors = [(topic.name, topic.error_code, topic.error_message) for topic in response.results]
    return TopicErrorsResponse(response.throttle_time_ms, errors)


def deleted_topics(response: DeleteTopicsResponse) -> TopicErrorCodesResponse:
    """Convert the response to deleted topics."""
    codes = [(topic.name or "", topic.error_code) for topic in response.responses]
    return TopicErrorCodesResponse(response.throttle_time_ms, codes)


def altered_configs(response: IncrementalAlterConfigsResponse) -> ConfigsResponse:
    """Convert the response to altered configs."""
    resources: list[tuple[Any, ...]] = [
        (one.error_code, one.error_message, one.resource_type, one.resource_name) for one in response.responses
    ]
    return ConfigsResponse(response.throttle_time_ms, resources)


def described_configs(response: DescribeConfigsResponse) -> ConfigsResponse:
    """Convert the response with described configs."""
    resources: list[tuple[Any, ...]] = []
    for one in response.results:
        entries = [
            (
                entry.name,
                entry.value,
                entry.read_only,
                entry.config_source,
                entry.is_sensitive,
                [(synonym.name, synonym.value, synonym.source) for synonym in entry.synonyms],
            )
            for entry in one.configs
        ]
        resources.append((one.error_code, one.error_message, one.resource_type, one.resource_name, entries))
    return ConfigsResponse(response.throttle_time_ms, resources)


def described_groups(response: DescribeGroupsResponse) -> GroupsResponse:
    """Convert the response with described groups."""
    groups: list[tuple[Any, ...]] = []
    for group in response.groups:
        members = [
            (one.member_id, one.client_id, one.client_host, one.member_metadata, one.member_assignment)
            for one in group.members
        ]
        groups.append(
            (
                group.error_code,
                group.group_id,
                group.group_state,
                group.protocol_type,
                group.protocol_data,
                members,
                group.authorized_operations,
            )
        )
    return GroupsResponse(response.throttle_time_ms, groups)


def described_topics(response: MetadataResponse) -> list[dict[str, Any]]:
    """Return the topics of a Metadata response as aiokafka's dictionaries."""
    return [
        {
            "error_code": topic.error_code,
            "topic": topic.name,
            "is_internal": topic.is_internal,
            "partitions": [
                {
                    "error_code": one.error_code,
                    "partition": one.partition_index,
                    "leader": one.leader_id,
                    "replicas": list(one.replica_nodes),
                    "isr": list(one.isr_nodes),
                    "offline_replicas": list(one.offline_replicas),
                }
                for one in topic.partitions
            ],
        }
        for topic in response.topics
    ]


def described_cluster(response: MetadataResponse) -> dict[str, Any]:
    """Return the brokers and the controller of a Metadata response as aiokafka's dictionary."""
    brokers = [
        {"node_id": one.node_id, "host": one.host, "port": one.port, "rack": one.rack} for one in response.brokers
    ]
    return {
        "throttle_time_ms": response.throttle_time_ms,
        "brokers": brokers,
        "cluster_id": response.cluster_id,
        "controller_id": response.controller_id,
    }
