"""One request's way through a broker: an order may answer it, alter its answer, hold it up or spoil it."""

import inspect
from collections.abc import Awaitable
from struct import Struct
from typing import Any, Final, Protocol, cast

import anyio
import attrs

from ...errors import ErrorCode
from ...protocol.api import ApiKey
from ...protocol.messages.fetch import FetchRequest, FetchResponse
from ...protocol.messages.metadata import MetadataResponse
from ...protocol.primitives import Buffer
from ...protocol.schema import Response
from ..cluster.api_error import Disconnect
from ..serving.call import Blamed
from .error_responses import OF_A_SESSION, blame, merge, refusal
from .request_log import LoggedRequest, RequestOutcome, Selector
from .request_targets import divided
from .rules import Action, FaultRule, Orders, When

__all__ = ("Ended", "Handle", "OutgoingResponse", "exchange")


class Handle(Protocol):
    """Answers a request, or a part of it, as Kafka does; but for the partitions that are ``blamed``."""

    def __call__(self, request: Any, blamed: Blamed | None = None) -> Awaitable[Response | None]: ...


class Ended(Exception):
    """An order has ended the exchange, and what becomes of the connection: DROPPED, or SWALLOWED."""

    def __init__(self, outcome: RequestOutcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


@attrs.frozen
class OutgoingResponse:
    """An answer, and how an order wants it to be sent."""

    response: Response | None
    action: Action | None = None

    def spoiled(self, frame: bytes) -> tuple[bytes, RequestOutcome]:
        """What to send of the frame, its size included, and the outcome. One that was CUT ends the connection."""
        if self.action is not None and self.action.cut:
            return frame[: len(frame) // 2], RequestOutcome.CUT
        if self.action is None or self.action.corrupt is None:
            return frame, RequestOutcome.ANSWERED
        if isinstance(self.action.corrupt, int):
            body = bytearray(frame[4:])
            body[self.action.corrupt % len(body)] ^= 0xFF
            frame = frame[:4] + body
        return frame, RequestOutcome.CORRUPTED


async def exchange(orders: Orders, asked: LoggedRequest, handle: Handle) -> OutgoingResponse:
    """The answer to a request.

    Raises:
        Ended: an order has taken it away.
        Disconnect: from the handler, or where an error cannot be told.
    """
    await orders.thawed(asked.node)
    if asked.api is ApiKey.PRODUCE:
        await orders.resumed(asked)
    order = orders.take(asked)
    if order is None:
        outgoing = OutgoingResponse(await handle(asked.request))
    else:
        try:
            outgoing = await _ordered(order, asked, handle)
        except anyio.get_cancelled_exc_class():  # the broker stops
            if order.gate is not None and asked in order.gate.requests:
                order.done()
            else:
                order.give_back()
            raise
        except BaseException:  # a bug in an answer's function, too: it was called
            order.done()
            raise
    await orders.thawed(asked.node)
    return outgoing


async def _ordered(order: FaultRule, asked: LoggedRequest, handle: Handle) -> OutgoingResponse:
    action = order.action
    await _at("before", order, asked, action.delay)
    answer = action.answer
    if answer is None:
        response = await handle(asked.request)
    elif isinstance(answer, Response):
        response = answer
    elif isinstance(answer, ErrorCode):
        response = await _failed(answer, order.selector, asked, handle)
    else:
        response = _made(answer(asked.request, await handle(asked.request)), asked)
    await _at("after", order, asked, action.delay_answer)
    spoils = action.cut or action.corrupt is not None
    nothing = response is None or (action.corrupt == "records" and not _spoil_records(response, order.selector, asked))
    if spoils and nothing:
        order.give_back()  # acks=0, or a fetch that found nothing
        return OutgoingResponse(response)
    order.done()
    return OutgoingResponse(response, action)


def _made(answer: object, asked: LoggedRequest) -> Response | None:
    """What an order's function has made of an answer.

    Raises:
        TypeError: it is no answer to this API.
    """
    expected = type(asked.request).response
    if answer is None or isinstance(answer, expected):
        return cast("Response | None", answer)
    if inspect.iscoroutine(answer):
        answer.close()
    raise TypeError(f"an order's function answers {asked.api.name} with {answer!r}: {expected.__name__}, or None")


async def _at(when: When, order: FaultRule, asked: LoggedRequest, delay: float) -> None:
    if delay:
        await anyio.sleep(delay)
    if order.gate is not None and order.action.hold == when:
        await order.gate.wait(asked)
    if order.action.drop == when:
        raise Ended(RequestOutcome.DROPPED)
    if order.action.swallow == when:
        raise Ended(RequestOutcome.SWALLOWED)


# --- errors ------------------------------------------------------------------------------------------------------


async def _failed(error: ErrorCode, selector: Selector, asked: LoggedRequest, handle: Handle) -> Response:
    """The answer with an error, to the whole request or to the topic and partition that the order names."""
    request, version = asked.request, asked.version
    if asked.api is ApiKey.PRODUCE and request.acks == 0:
        raise Disconnect(f"acks=0, and an order says {error.name}")  # as brokers tell of errors then
    if asked.api is ApiKey.METADATA:
        return await _metadata_failed(error, selector, asked, handle)
    if isinstance(request, FetchRequest) and error not in OF_A_SESSION:
        # What is read is in the session, if there is one (KIP-227), and not in the request.
        answer = await handle(request, lambda *where: error if selector.chooses(*where) else None)
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
    """The true metadata with errors in it: without any brokers, clients would not believe the rest."""
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


# --- spoiling ----------------------------------------------------------------------------------------------------

_BATCH_LENGTH: Final = Struct(">8xi")
_TOPIC_IDS: Final = 13  # the first version of Fetch that gives ids in place of names


def _spoil_records(response: Response, selector: Selector, asked: LoggedRequest) -> bool:
    """Flip the last byte of the first batch that the order means, so that its CRC is wrong; whether there is one."""
    for topic in response.responses if isinstance(response, FetchResponse) else ():
        name = topic.topic if asked.version < _TOPIC_IDS else asked.name_of(topic.topic_id)
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
