"""A pipeline that is fed in a way of one's choice, and what those heard who waited."""

from collections.abc import Iterable

import attrs

from aiokafkawire.errors import KafkaError, WireError
from aiokafkawire.network.connection_protocol import ConnectionProtocol
from aiokafkawire.protocol.compiler import decode
from aiokafkawire.protocol.messages.group import HeartbeatRequest
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest, MetadataRequest
from aiokafkawire.protocol.messages.offsets import ListOffsetsRequest
from aiokafkawire.protocol.schema import Message, Request, Response

__all__ = ("MAX_FRAME", "MOST_WAITING", "Heard", "asked", "fed")

MAX_FRAME = 64 * 1024
MOST_WAITING = 3

# Plain and flexible headers, and the one answer whose header is always plain.
_REQUESTS: tuple[tuple[Request[Response], int], ...] = (
    (MetadataRequest(topics=None), 12),
    (MetadataRequest(topics=None), 1),
    (ApiVersionsRequest(), 3),
    (HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4),
    (ListOffsetsRequest(replica_id=-1, topics=[]), 2),
)


def asked(waiting: int) -> list[tuple[Request[Response], int]]:
    """The requests that wait, by the number that chooses them: none to three, in a row of the kinds there are."""
    first = waiting >> 2
    return [_REQUESTS[(first + step) % len(_REQUESTS)] for step in range(waiting & MOST_WAITING)]


@attrs.define
class Heard:
    """What a pipeline made of a stream: bodies in order with what was read from them, and how it failed."""

    answers: list[tuple[int, bytes, Message | None]]
    failure: type[KafkaError] | None
    in_flight: int


class _Slot:
    def __init__(self, heard: Heard, number: int, answer: type[Message], version: int) -> None:
        self._heard, self._number, self._answer, self._version = heard, number, answer, version
        self._done = False

    def resolve(self, frame: bytes, position: int) -> None:
        assert not self._done
        self._done = True
        try:
            message = decode(self._answer, self._version, frame, position)
        except WireError:
            message = None
        self._heard.answers.append((self._number, frame[position:], message))

    def fail(self, error: KafkaError) -> None:
        assert not self._done
        self._done = True


def fed(waiting: int, pieces: Iterable[bytes]) -> Heard:
    """Feed the pieces to a pipeline on which :func:`asked` waits."""
    heard = Heard([], None, 0)
    pipeline = ConnectionProtocol(client_id="me", broker="b:9092", max_frame=MAX_FRAME)
    for number, (request, version) in enumerate(asked(waiting)):
        pipeline.send(request, version, _Slot(heard, number, type(request).response, version))
    try:
        for piece in pieces:
            pipeline.receive(piece)
    except WireError:
        assert not pipeline.in_flight, "poisoned, and yet someone waits"
    heard.failure = None if pipeline.failure is None else type(pipeline.failure)
    heard.in_flight = pipeline.in_flight
    return heard
