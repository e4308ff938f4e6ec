"""Throttling of requests that create and delete topics and partitions (KIP-599)."""

from typing import Any, Final

from ...errors import ErrorCode
from ...protocol.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from ...protocol.schema import Request, Response
from ..serving.call import ServerCall

__all__ = ("mutation_pause", "take_mutations")

_STRICT_SINCE: Final[dict[type[Request[Any]], int]] = {
    CreateTopicsRequest: 6,
    DeleteTopicsRequest: 5,
    CreatePartitionsRequest: 3,
}
"""The versions since which requests beyond the quota are rejected; older versions are only slowed down."""


def take_mutations(call: ServerCall, request: type[Request[Any]], partitions: int) -> None:
    """Count partitions that a request creates or deletes. Raise ApiError if the client has exceeded its quota."""
    strict = call.version >= _STRICT_SINCE[request]
    call.cluster.mutation_quotas.take(partitions, *_client(call), strict=strict)


def mutation_pause(call: ServerCall, request: Request[Response], response: Response) -> int:
    """Return the throttle time in ms for a request that creates or deletes topics or partitions; 0 for others."""
    since = _STRICT_SINCE.get(type(request))
    if since is None or (call.version >= since and not _is_rejected(response)):
        return 0
    return call.cluster.mutation_quotas.pause_ms(*_client(call))


def _client(call: ServerCall) -> tuple[str, str, float]:
    user = call.peer.principal.removeprefix("User:")
    return user, call.client_id or "", call.cluster.timers.now() * 1000


def _is_rejected(response: Response) -> bool:
    if isinstance(response, CreateTopicsResponse):
        codes = [topic.error_code for topic in response.topics]
    elif isinstance(response, DeleteTopicsResponse):
        codes = [topic.error_code for topic in response.responses]
    else:
        assert isinstance(response, CreatePartitionsResponse)
        codes = [topic.error_code for topic in response.results]
    return ErrorCode.THROTTLING_QUOTA_EXCEEDED in codes
