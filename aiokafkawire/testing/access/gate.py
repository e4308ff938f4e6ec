"""The one place where requests are authorized: before a handler, which then knows nothing of rights."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs

from ...errors import ErrorCode
from ...protocol.api import ApiKey
from ...protocol.schema import Request, Response, schema_of
from ..cluster.api_error import Disconnect
from ..faults.error_responses import error_places, merge, refusal
from ..serving.call import ServerCall
from .checks import Asking
from .rules import rule_for

__all__ = ("authorized",)

_MESSAGES: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "Delegation Token authorization failed.",
}


async def authorized(
    handle: Callable[[ServerCall, Any], Awaitable[Response | None]], call: ServerCall, request: Request[Response]
) -> Response | None:
    """Handle what the client may ask for, refuse the rest, and return the response without what it may not see.

    Raises:
        Disconnect: a part of Produce with acks=0, which has no response, is refused; or the handler raised it.
    """
    if call.cluster.authorizer is None:
        return await handle(call, request)
    rule = rule_for(ApiKey(request.api_key))
    asking = Asking(
        call.rights, request, call.version, call.cluster.topics, call.cluster.settings.auto_create_topics_enable
    )
    decision = rule.decide(asking)
    answer = None
    if decision.handled is not None:
        answer = await handle(attrs.evolve(call, hides_topic=rule.hides_topic(asking)), decision.handled)
    if decision.refused and getattr(request, "acks", None) == 0:
        raise Disconnect(f"acks=0, and a part is refused with {decision.refused[0][1].name}")
    for part, error in decision.refused:
        refused = _refused(part, call.version, error)
        if answer is None:
            answer = refused
        elif not getattr(answer, "error_code", ErrorCode.NONE):  # an error of the whole request stands alone
            merge(answer, refused, call.version)
    if answer is not None:
        rule.narrow(asking, answer)
    return answer


def _refused(part: Request[Response], version: int, error: ErrorCode) -> Response:
    """Return the response to a part of a request that is refused, with Kafka's message where the API has one."""
    answer = refusal(part, version, error)
    for place in error_places(answer, version):
        if any(
            field.name == "error_message" and version in field.versions
            for field in schema_of(type(place.struct)).fields
        ):
            place.struct.error_message = _MESSAGES.get(error)
    return answer
