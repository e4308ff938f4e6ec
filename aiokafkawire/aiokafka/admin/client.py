"""aiokafka's AIOKafkaAdminClient on this client."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from ... import types
from ...protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from ...protocol.messages.group_admin import DescribeGroupsRequest, ListGroupsRequest
from ...protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ...protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from ...protocol.schema import Request, Response
from ..abc import AbstractTokenProvider
from ..argument_names import with_known_arguments
from ..client import CLIENT_ID, AIOKafkaClient
from ..client_options import warn_deprecated, whole_milliseconds
from ..error_translation import TRANSLATED
from ..errors import for_code
from ..structs import OffsetAndMetadata, TopicPartition
from .config_resource import ConfigResource, ConfigResourceType, as_text
from .new_partitions import NewPartitions
from .new_topic import NewTopic
from .records_to_delete import RecordsToDelete
from .responses import (
    ConfigsResponse,
    GroupsResponse,
    TopicErrorCodesResponse,
    TopicErrorsResponse,
    altered_configs,
    created_partitions,
    created_topics,
    deleted_topics,
    described_cluster,
    described_configs,
    described_groups,
    described_topics,
)

__all__ = ("AIOKafkaAdminClient",)

R = TypeVar("R", bound=Response)

_DELETES_BY_NAME: Final = 1
"""The version of DeleteTopics that names topics, and that all brokers since 0.11 know."""


class AIOKafkaAdminClient:
    """An admin client with aiokafka's arguments and methods. ``start()`` and ``close()`` it.

    Where aiokafka returns a response of the protocol, the result has the same fields and tuples; errors in it are not
    raised. ``admin._client.wire_client.admin`` has the operations that aiokafka lacks.

    Raises:
        ValueError: an argument is wrong.
    """

    _client_class: Callable[..., AIOKafkaClient] = AIOKafkaClient
    """Makes the client; a subclass may return one that it shares."""

    @with_known_arguments
    def __init__(
        self,
        *,
        loop: object = None,
        bootstrap_servers: str | Sequence[str] = "localhost",
        client_id: str | None = CLIENT_ID,
        request_timeout_ms: float = 40000,
        connections_max_idle_ms: float | None = 540000,
        retry_backoff_ms: float = 100,
        metadata_max_age_ms: float = 300000,
        security_protocol: str = "PLAINTEXT",
        ssl_context: Any = None,
        api_version: object = None,
        sasl_mechanism: str = "PLAIN",
        sasl_plain_username: str | None = None,
        sasl_plain_password: str | None = None,
        sasl_kerberos_service_name: str = "kafka",
        sasl_kerberos_domain_name: str | None = None,
        sasl_oauth_token_provider: AbstractTokenProvider | None = None,
    ) -> None:
        warn_deprecated(loop, api_version, stacklevel=3)
        self._client = self._client_class(
            bootstrap_servers=bootstrap_servers,
            client_id=client_id,
            metadata_max_age_ms=metadata_max_age_ms,
            request_timeout_ms=request_timeout_ms,
            retry_backoff_ms=retry_backoff_ms,
            ssl_context=ssl_context,
            security_protocol=security_protocol,
            connections_max_idle_ms=connections_max_idle_ms,
            sasl_mechanism=sasl_mechanism,
            sasl_plain_username=sasl_plain_username,
            sasl_plain_password=sasl_plain_password,
            sasl_kerberos_service_name=sasl_kerberos_service_name,
            sasl_kerberos_domain_name=sasl_kerberos_domain_name,
            sasl_oauth_token_provider=sasl_oauth_token_provider,
        )
        (self._request_timeout_ms,) = whole_milliseconds(request_timeout_ms=request_timeout_ms)
        self._started = self._closed = False

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Connect to the cluster; repeated calls have no effect. If it fails, it may be called again.

        Raises:
            KafkaConnectionError: no bootstrap server answered as a broker.
        """
        if self._started:
            return
        try:
            await self._client.bootstrap()
        except BaseException:
            await self._client._reset()
            raise
        self._started = True

    async def close(self) -> None:
        """Close all connections; repeated calls have no effect."""
        self._closed = True
        await self._client.close()

    # --- topics ------------------------------------------------------------------------------------------

    async def create_topics(
        self, new_topics: Iterable[NewTopic], timeout_ms: int | None = None, validate_only: bool = False
    ) -> TopicErrorsResponse:
        """Create topics; with ``validate_only``, only check whether they could be created."""
        topics = [
            CreatableTopic(
                name=one.name,
                num_partitions=one.num_partitions,
                replication_factor=one.replication_factor,
                assignments=[
                    CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
                    for index, brokers in one.replica_assignments.items()
                ],
                configs=[
                    CreatableTopicConfig(name=name, value=as_text(value)) for name, value in one.topic_configs.items()
                ],
            )
            for one in new_topics
        ]
        request = CreateTopicsRequest(topics=topics, timeout_ms=self._timeout(timeout_ms), validate_only=validate_only)
        return created_topics(await self._ask(request, "controller"))

    async def delete_topics(self, topics: Iterable[str], timeout_ms: int | None = None) -> TopicErrorCodesResponse:
        """Delete topics."""
        request = DeleteTopicsRequest(topic_names=list(topics), timeout_ms=self._timeout(timeout_ms))
        return deleted_topics(await self._ask(request, "controller", version=_DELETES_BY_NAME))

    async def list_topics(self) -> list[str]:
        """Return the names of all topics, internal ones included."""
        return [topic.name for topic in (await self._get_cluster_metadata()).topics if topic.name is not None]

    async def describe_topics(self, topics: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """Return topics with their partitions, by default all; a topic that does not exist has an error code."""
        return described_topics(await self._get_cluster_metadata(topics))

    async def create_partitions(
        self,
        topic_partitions: Mapping[str, NewPartitions],
        timeout_ms: int | None = None,
        validate_only: bool = False,
    ) -> TopicErrorsResponse:
        """Add partitions to topics.

        Raises:
            BrokerResponseError: the partitions of a topic were not created.
        """
        topics = [
            CreatePartitionsTopic(
                name=name,
                count=new.total_count,
                assignments=None
                if new.new_assignments is None
                else [CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in new.new_assignments],
            )
            for name, new in topic_partitions.items()
        ]
        request = CreatePartitionsRequest(
            topics=topics, timeout_ms=self._timeout(timeout_ms), validate_only=validate_only
        )
        response = created_partitions(await self._ask(request, "controller"))
        for topic, code, message in response.topic_errors:
            if code:
                raise for_code(code)(f"the partitions of topic {topic!r} were not created: {message}")
        return response

    async def delete_records(
        self, records_to_delete: Mapping[TopicPartition, RecordsToDelete], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Delete the records before an offset of each partition; return the partitions' first offsets.

        Raises:
            BrokerResponseError: a broker refused a partition.
        """
        offsets = {partition: records.before_offset for partition, records in records_to_delete.items()}
        with TRANSLATED:
            return await self._client.wire_client.admin.delete_records(
                offsets, timeout=self._timeout(timeout_ms) / 1000
            )

    # --- cluster and configs -----------------------------------------------------------------------------

    async def describe_cluster(self) -> dict[str, Any]:
        """Return the cluster's id, brokers and controller."""
        return described_cluster(await self._get_cluster_metadata(()))

    async def describe_configs(
        self, config_resources: Iterable[ConfigResource], include_synonyms: bool = False
    ) -> list[ConfigsResponse]:
        """Return the configs of topics and brokers, in one response of each broker that was asked."""
        by_broker: dict[int | None, list[DescribeConfigsResource]] = {}
        for one in config_resources:
            resource = DescribeConfigsResource(
                resource_type=one.resource_type,
                resource_name=str(one.name),
                configuration_keys=list(one.configs) if one.configs else None,
            )
            by_broker.setdefault(_broker_of(one), []).append(resource)
        return [
            described_configs(
                await self._ask(DescribeConfigsRequest(resources=found, include_synonyms=include_synonyms), broker)
            )
            for broker, found in by_broker.items()
        ]

    async def alter_configs(self, config_resources: Iterable[ConfigResource]) -> list[ConfigsResponse]:
        """Set configs of topics and brokers; None sets one back to its default. Configs that are not named stay.

        aiokafka resets all configs that are not named, by another request of the protocol.
        """
        by_broker: dict[int | None, list[IncrementalAlterConfigsRequestAlterConfigsResource]] = {}
        for one in config_resources:
            resource = IncrementalAlterConfigsRequestAlterConfigsResource(
                resource_type=one.resource_type,
                resource_name=str(one.name),
                configs=[
                    IncrementalAlterConfigsRequestAlterableConfig(
                        name=name, config_operation=int(value is None), value=as_text(value)
                    )
                    for name, value in (one.configs or {}).items()
                ],
            )
            by_broker.setdefault(_broker_of(one), []).append(resource)
        return [
            altered_configs(
                await self._ask(IncrementalAlterConfigsRequest(resources=found, validate_only=False), broker)
            )
            for broker, found in by_broker.items()
        ]

    # --- groups ------------------------------------------------------------------------------------------

    async def find_coordinator(self, group_id: str, coordinator_type: int = 0) -> int:
        """Return the id of the broker that coordinates a group, or with 1 the transactions of a producer."""
        return await self._client.coordinator_lookup(coordinator_type, group_id)

    async def list_consumer_groups(self, broker_ids: Iterable[int] | None = None) -> list[tuple[str, str]]:
        """Return the groups that brokers coordinate, by default all brokers, each as ``(group, protocol type)``.

        Raises:
            BrokerResponseError: a broker answered with an error.
        """
        if broker_ids is None:
            broker_ids = [broker.node_id for broker in (await self._get_cluster_metadata(())).brokers]
        found: set[tuple[str, str]] = set()
        for broker_id in broker_ids:
            response = await self._ask(ListGroupsRequest(), broker_id)
            if response.error_code:
                raise for_code(response.error_code)(f"broker {broker_id} did not list its groups")
            found.update((group.group_id, group.protocol_type) for group in response.groups)
        return list(found)

    async def describe_consumer_groups(
        self,
        group_ids: Iterable[str],
        group_coordinator_id: int | None = None,
        include_authorized_operations: bool = False,
    ) -> list[GroupsResponse]:
        """Return groups with their members, in one response of each coordinator."""
        by_broker: dict[int, list[str]] = {}
        for group_id in group_ids:
            broker = await self.find_coordinator(group_id) if group_coordinator_id is None else group_coordinator_id
            by_broker.setdefault(broker, []).append(group_id)
        return [
            described_groups(
                await self._ask(
                    DescribeGroupsRequest(groups=groups, include_authorized_operations=include_authorized_operations),
                    broker,
                )
            )
            for broker, groups in by_broker.items()
        ]

    async def list_consumer_group_offsets(
        self,
        group_id: str,
        group_coordinator_id: int | None = None,
        partitions: Iterable[TopicPartition] | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return a group's committed offsets; an asked partition without one has offset -1.

        ``group_coordinator_id`` is ignored, since the client knows the coordinator.

        Raises:
            BrokerResponseError: a broker answered with an error.
        """
        asked = [TopicPartition(*one) for one in partitions] if partitions else None
        with TRANSLATED:
            found = await self._client.wire_client.admin.list_consumer_group_offsets(group_id, asked)
        none = types.OffsetAndMetadata(-1)
        committed = found if asked is None else {one: found.get(one, none) for one in asked}
        return {one: OffsetAndMetadata(offset.offset, offset.metadata) for one, offset in committed.items()}

    # --- requests ----------------------------------------------------------------------------------------

    def _timeout(self, timeout_ms: int | None) -> int:
        return timeout_ms or self._request_timeout_ms

    async def _ask(self, request: Request[R], broker: Any = None, version: int | None = None) -> R:
        with TRANSLATED:
            return await self._client.wire_client.request(request, broker=broker, version=version)

    async def _get_cluster_metadata(self, topics: Iterable[str] | None = None) -> MetadataResponse:
        """Return the Metadata response for topics, by default all; it creates none."""
        asked = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        return await self._ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False))


def _broker_of(resource: ConfigResource) -> int | None:
    """Return the broker that a request about the resource goes to; None for any."""
    return int(resource.name) if resource.resource_type is ConfigResourceType.BROKER else None
