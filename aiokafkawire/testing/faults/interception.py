"""Interception of one request: a fault rule may delay the request, or replace, corrupt or suppress its response."""

import inspect
from collections.abc import Awaitable
from struct import Struct
from typing import Any, Final, Protocol, cast

import anyio
import attrs

from ...errors import ErrorCode
from ...protocol.api import ApiKey
from ...protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse
from ...protocol.messages.metadata import MetadataResponse
from ...protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from ...protocol.primitives import Buffer
from ...protocol.schema import Response
from ..cluster.api_error import Disconnect
from ..serving.call import Blamed
from .error_responses import OF_A_SESSION, OF_PARTITIONS, blame, merge, refusal
from .request_log import LoggedRequest, RequestOutcome, Selector
from .request_targets import divided
from .rules import Action, FaultRule, FaultRules, When

__all__ = ("Ended", "Handle", "OutgoingResponse", "apply_rule", "exchange")


class Handle(Protocol):
    """A handler of a request, or a part of one; ``blamed(topic, partition)`` returns an error to inject, or None."""

    def __call__(self, request: Any, blamed: Blamed | None = None) -> Awaitable[Response | None]: ...


class Ended(Exception):
    """A fault rule ended the exchange without a whole response; ``outcome`` is DROPPED, CUT or SWALLOWED."""

    def __init__(self, outcome: RequestOutcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


@attrs.frozen
class OutgoingResponse:
    """The response to a request, and the action that a fault rule has for the response; either may be None."""

    response: Response | None
    action: Action | None = None

    def spoiled(self, frame: bytes) -> tuple[bytes, RequestOutcome]:
        """Return the bytes to send instead of ``frame``, and the outcome; after CUT, the connection must be closed."""
        if self.action is not None and self.action.cut:
            return frame[: len(frame) // 2], RequestOutcome.CUT
        if self.action is None or self.action.corrupt is None:
            return frame, RequestOutcome.ANSWERED
        if isinstance(self.action.corrupt, int):
            body = bytearray(frame[4:])
            body[self.action.corrupt % len(body)] ^= 0xFF
            frame = frame[:4] + body
        return frame, RequestOutcome.CORRUPTED


async def exchange(rules: FaultRules, asked: LoggedRequest, handle: Handle) -> OutgoingResponse:
    """Handle a request under the fault rule that applies to it, if any, and return the response.

    Raises:
        Ended: a fault rule ended the exchange.
        Disconnect: the handler raised it, or a fault rule injects an error into Produce with acks=0.
    """
    await rules.thawed(asked.node)
    if asked.api is ApiKey.PRODUCE:
        await rules.resumed(asked)
    rule = rules.take(asked)
    if rule is None:
        outgoing = OutgoingResponse(await handle(asked.request))
    else:
        outgoing = await apply_rule(rule, asked, handle)
    await rules.thawed(asked.node)
    return outgoing


async def apply_rule(rule: FaultRule, asked: LoggedRequest, handle: Handle) -> OutgoingResponse:
    """Handle a request under a fault rule that has taken it, and return the response. Raises as :func:`exchange`."""
    try:
        return await _apply(rule, asked, handle)
    except anyio.get_cancelled_exc_class():  # the broker stops
        if rule.gate is not None and asked in rule.gate.requests:
            rule.done()
        else:
            rule.give_back()
        raise
    except BaseException:  # such as a bug in the rule's function: the rule was applied
        rule.done()
        raise


async def _apply(rule: FaultRule, asked: LoggedRequest, handle: Handle) -> OutgoingResponse:
    action = rule.action
    await _at("before", rule, asked, action.delay)
    answer = action.answer
    if answer is None:
        response = await handle(asked.request)
    elif isinstance(answer, Response):
        response = answer
    elif isinstance(answer, ErrorCode):
        response = await _failed(answer, rule.selector, asked, handle)
    else:
        response = _made(answer(asked.request, await handle(asked.request)), asked)
    await _at("after", rule, asked, action.delay_answer)
    spoils = action.cut or action.corrupt is not None
    nothing = response is None or (action.corrupt == "records" and not _spoil_records(response, rule.selector, asked))
    if spoils and nothing:
        rule.give_back()  # no response because of acks=0, or no records to corrupt
        return OutgoingResponse(response)
    rule.done()
    return OutgoingResponse(response, action)


def _made(answer: object, asked: LoggedRequest) -> Response | None:
    """Return ``answer``, which a rule's function returned: the response to send, or None to send none.

    Raises:
        TypeError: ``answer`` is neither None nor a response of the request's API.
    """
    expected = type(asked.request).response
    if answer is None or isinstance(answer, expected):
        return cast("Response | None", answer)
    if inspect.iscoroutine(answer):
        answer.close()
    raise TypeError(
        f"a fault rule's function must return {expected.__name__} or None for {asked.api.name}, got {answer!r}"
    )


async def _at(when: When, rule: FaultRule, asked: LoggedRequest, delay: float) -> None:
    if delay:
        await anyio.sleep(delay)
    if rule.gate is not None and rule.action.hold == when:
        await rule.gate.wait(asked)
    if rule.action.drop == when:
        raise Ended(RequestOutcome.DROPPED)
    if rule.action.swallow == when:
        raise Ended(RequestOutcome.SWALLOWED)


# --- errors ------------------------------------------------------------------------------------------------------


async def _failed(error: ErrorCode, selector: Selector, asked: LoggedRequest, handle: Handle) -> Response:
    """Return a response with the error for the selected topic or partition; handle the rest of the request normally.

    If the rule selects no topic, the error is for the whole request.
    """
    request, version = asked.request, asked.version
    if asked.api is ApiKey.PRODUCE and request.acks == 0:
        raise Disconnect(f"acks=0, and a fault rule injects {error.name}")  # as brokers do
    if asked.api is ApiKey.METADATA:
        return await _metadata_failed(error, selector, asked, handle)
    of_session = isinstance(request, FetchRequest) and error not in OF_A_SESSION
    if of_session or (isinstance(request, ShareFetchRequest) and error in OF_PARTITIONS):
        # The partitions of a fetch are in its session, if there is one (KIP-227, KIP-932), and not in the request.
        answer = await handle(request, lambda *target: error if selector.chooses(*target) else None)
        assert answer is not None
        return answer
    bad, rest = request, None
    if selector.topic is not None:
        bad, rest = divided(request, version, asked.name_of, selector.chooses)
    if bad is None or rest is None:
        return refusal(request, version, error)
    answer = await handle(rest)
    refused = refusal(bad, version, error)
    if answer is None:
        return refused
    merge(answer, refused, version)
    return answer


async def _metadata_failed(error: ErrorCode, selector: Selector, asked: LoggedRequest, handle: Handle) -> Response:
    """Return the handler's metadata with the error set in it; clients reject an error response without brokers."""
    answer = await handle(asked.request)
    assert isinstance(answer, MetadataResponse)
    if error is ErrorCode.REBOOTSTRAP_REQUIRED:
        blame(answer, asked.version, error)
        return answer
    for topic in answer.topics:
        if selector.topic is not None and topic.name != selector.topic:
            continue
        if selector.partition is None:
            topic.error_code, topic.partitions = int(error), []
        for partition in topic.partitions:
            if partition.partition_index == selector.partition:
                partition.error_code = int(error)
                partition.leader_id = -1
    return answer


# --- corruption ------------------------------------------------------------------------------------------------

_BATCH_LENGTH: Final = Struct(">8xi")
_TOPIC_IDS: Final = 13  # the first version of Fetch with topic ids instead of names


def _spoil_records(response: Response, selector: Selector, asked: LoggedRequest) -> bool:
    """Change the last byte of the first selected batch, so that its CRC is wrong; return whether there is a batch."""
    for topic in response.responses if isinstance(response, FetchResponse | ShareFetchResponse) else ():
        name = asked.name_of(topic.topic_id)
        if isinstance(topic, FetchableTopicResponse) and asked.version < _TOPIC_IDS:
            name = topic.topic
        for partition in topic.partitions:
            if partition.records and selector.chooses(name, partition.partition_index):
                partition.records = _spoiled(partition.records)
                return True
    return False


def _spoiled(records: Buffer) -> bytes:
    spoiled = bytearray(records)
    (length,) = _BATCH_LENGTH.unpack_from(spoiled)
    spoiled[min(_BATCH_LENGTH.size + length, len(spoiled)) - 1] ^= 0xFF
    return bytes(spoiled)
