"""DescribeClientQuotas and AlterClientQuotas, and throttling by quotas."""

from ...errors import ErrorCode
from ...protocol.messages.fetch import FetchRequest, FetchResponse
from ...protocol.messages.produce import ProduceRequest
from ...protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeClientQuotasResponseEntryData,
    EntityData,
    ValueData,
)
from ...protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from ...protocol.messages.topics import CreatePartitionsResponse, CreateTopicsResponse, DeleteTopicsResponse
from ...protocol.schema import Request, Response
from ..cluster.api_error import ApiError
from ..configs.quotas import Component, Entity, QuotaOperation, entity_of
from ..logs.sessions import FULL_EPOCH
from ..serving.call import ServerCall

__all__ = ("alter_client_quotas", "describe_client_quotas", "throttled")


async def describe_client_quotas(
    call: ServerCall, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Describe the quotas of the entities that match the request (KIP-546)."""
    components = [
        Component(component.entity_type, component.match_type, component.match) for component in request.components
    ]
    try:
        found = call.cluster.quotas.describe(components, request.strict)
    except ApiError as refused:
        return DescribeClientQuotasResponse(error_code=refused.code, error_message=refused.message, entries=None)
    return DescribeClientQuotasResponse(
        error_code=ErrorCode.NONE,
        error_message="",  # Apache Kafka's message for success in this API
        entries=[
            DescribeClientQuotasResponseEntryData(
                entity=_entity(entity), values=[ValueData(key=key, value=value) for key, value in quotas.items()]
            )
            for entity, quotas in found
        ],
    )


async def alter_client_quotas(call: ServerCall, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    """Change the quotas of each entity. If one is named twice, its first change is made, but its result is an error."""
    results: dict[Entity, tuple[ErrorCode, str | None]] = {}
    for entry in request.entries:
        entity = entity_of([(part.entity_type, part.entity_name) for part in entry.entity])
        try:
            if entity in results:
                raise _ignored(entity)
            _alter(call, entity, entry, request.validate_only)
            results[entity] = ErrorCode.NONE, None
        except ApiError as refused:
            results[entity] = refused.code, refused.message
    return AlterClientQuotasResponse(
        entries=[
            AlterClientQuotasResponseEntryData(error_code=error, error_message=message, entity=_entity(entity))
            for entity, (error, message) in results.items()
        ]
    )


def throttled(call: ServerCall, request: Request[Response], response: Response | None, size: int) -> int:
    """Set the throttle time in a response and return it, in ms; ``size`` is the size of the request frame.

    A Fetch response above a quota becomes empty. The caller sends the response, then mutes the connection (KIP-219).
    Produce with acks=0 has no response, and does not count for ``request_percentage``.
    """
    if response is None and not (isinstance(request, ProduceRequest) and request.acks == 0):
        return 0  # a fault rule suppresses the response
    throttles = call.cluster.throttles[call.node.node_id]
    pause = throttles.forced.get(call.client_id, throttles.forced.get(None, 0))
    if call.cluster.quotas.any:
        user, client_id = call.peer.principal.removeprefix("User:"), call.client_id or ""
        now = call.cluster.timers.now() * 1000
        if response is not None:
            pause = max(pause, throttles.requested(user, client_id, now))
        if isinstance(request, ProduceRequest):
            pause = max(pause, throttles.produced(size, user, client_id, now))
        if isinstance(response, FetchResponse):
            pause = max(pause, _fetched(call, request, response, (user, client_id, now)))
        if isinstance(request, ShareFetchRequest) and isinstance(response, ShareFetchResponse):
            pause = max(pause, _share_fetched(call, request, response, (user, client_id, now)))
    if isinstance(response, CreateTopicsResponse | DeleteTopicsResponse | CreatePartitionsResponse):
        pause = max(pause, response.throttle_time_ms)  # by controller_mutation_rate
    if pause > 0 and response is not None and hasattr(response, "throttle_time_ms"):
        response.throttle_time_ms = max(pause, response.throttle_time_ms)
    return pause


def _fetched(
    call: ServerCall, request: Request[Response], response: FetchResponse, client: tuple[str, str, float]
) -> int:
    if not isinstance(request, FetchRequest) or request.replica_id >= 0:
        return 0
    size = sum(len(partition.records or b"") for topic in response.responses for partition in topic.partitions)
    pause = call.cluster.throttles[call.node.node_id].fetched(size, *client)
    if pause > 0:
        call.node.sessions.take_back(response, opened=request.session_epoch == FULL_EPOCH)
        response.responses = []
    return pause


def _share_fetched(
    call: ServerCall, request: ShareFetchRequest, response: ShareFetchResponse, client: tuple[str, str, float]
) -> int:
    """Return the throttle time of a ShareFetch; if it is above 0, leave only outcomes of acknowledgements.

    As in Kafka, the records that are left out stay acquired until their locks end.
    """
    size = sum(len(partition.records or b"") for topic in response.responses for partition in topic.partitions)
    pause = call.cluster.throttles[call.node.node_id].fetched(size, *client)
    if pause > 0:
        acknowledged = {
            (topic.topic_id, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
            if partition.acknowledgement_batches
        }
        for topic in response.responses:
            topic.partitions = [
                part for part in topic.partitions if (topic.topic_id, part.partition_index) in acknowledged
            ]
            for part in topic.partitions:
                part.records, part.acquired_records = b"", []
        response.responses = [topic for topic in response.responses if topic.partitions]
    return pause


def _alter(call: ServerCall, entity: Entity, entry: AlterClientQuotasRequestEntryData, validate_only: bool) -> None:
    keys = [operation.key for operation in entry.ops]
    if len(keys) != len(dict.fromkeys(keys)):
        raise _ignored(entity)
    operations = [QuotaOperation(change.key, None if change.remove else change.value) for change in entry.ops]
    call.cluster.quotas.alter(entity, operations, validate_only=validate_only)


def _ignored(entity: Entity) -> ApiError:
    parts = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    fault = f"Ignoring duplicate entity ClientQuotaEntity(entries={{{parts}}})"
    return ApiError(ErrorCode.INVALID_REQUEST, fault)


def _entity(entity: Entity) -> list[EntityData]:
    return [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
