"""DescribeClientQuotas and AlterClientQuotas, and the pauses that quotas make for."""

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
from ...protocol.schema import Request, Response
from ..cluster.api_error import ApiError
from ..configs.quotas import Component, Entity, QuotaOperation, entity_of
from ..logs.sessions import FULL_EPOCH
from ..serving.call import ServerCall

__all__ = ("alter_client_quotas", "describe_client_quotas", "throttled")


async def describe_client_quotas(
    call: ServerCall, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """The quotas of the entities that match."""
    components = [Component(each.entity_type, each.match_type, each.match) for each in request.components]
    try:
        found = call.cluster.quotas.describe(components, request.strict)
    except ApiError as refused:
        return DescribeClientQuotasResponse(error_code=refused.code, error_message=refused.message, entries=None)
    return DescribeClientQuotasResponse(
        error_code=ErrorCode.NONE,
        error_message="",  # as Apache Kafka spells success here
        entries=[
            DescribeClientQuotasResponseEntryData(
                entity=_entity(entity), values=[ValueData(key=key, value=value) for key, value in quotas.items()]
            )
            for entity, quotas in found
        ],
    )


async def alter_client_quotas(call: ServerCall, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    """Change the quotas of each entity by itself; of an entity named twice the first change is made, and not told."""
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


def throttled(call: ServerCall, request: Request[Response], response: Response, size: int) -> int:
    """How long the client is to pause, in ms, which the answer tells; ``size`` is that of the request's frame.

    The answer is not held back (KIP-219): what sends it keeps the connection waiting afterwards.
    """
    throttles = call.cluster.throttles[call.node.node_id]
    pause = throttles.ordered.get(call.client_id, throttles.ordered.get(None, 0))
    if call.cluster.quotas.any:
        user, client_id = call.peer.principal.removeprefix("User:"), call.client_id or ""
        now = call.cluster.timers.now() * 1000
        pause = max(pause, throttles.requested(user, client_id, now))
        if isinstance(request, ProduceRequest):
            pause = max(pause, throttles.produced(size, user, client_id, now))
        if isinstance(response, FetchResponse):
            pause = max(pause, _fetched(call, request, response, (user, client_id, now)))
    if pause > 0 and hasattr(response, "throttle_time_ms"):
        response.throttle_time_ms = max(pause, response.throttle_time_ms)
    return pause


def _fetched(
    call: ServerCall, request: Request[Response], response: FetchResponse, client: tuple[str, str, float]
) -> int:
    if not isinstance(request, FetchRequest) or request.replica_id >= 0:
        return 0
    size = sum(len(one.records or b"") for topic in response.responses for one in topic.partitions)
    pause = call.cluster.throttles[call.node.node_id].fetched(size, *client)
    if pause > 0:
        call.node.sessions.take_back(response, opened=request.session_epoch == FULL_EPOCH)
        response.responses = []
    return pause


def _alter(call: ServerCall, entity: Entity, entry: AlterClientQuotasRequestEntryData, validate_only: bool) -> None:
    keys = [each.key for each in entry.ops]
    if len(keys) != len(dict.fromkeys(keys)):
        raise _ignored(entity)
    operations = [QuotaOperation(each.key, None if each.remove else each.value) for each in entry.ops]
    call.cluster.quotas.alter(entity, operations, validate_only=validate_only)


def _ignored(entity: Entity) -> ApiError:
    parts = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    fault = f"Ignoring duplicate entity ClientQuotaEntity(entries={{{parts}}})"
    return ApiError(ErrorCode.INVALID_REQUEST, fault)


def _entity(entity: Entity) -> list[EntityData]:
    return [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
