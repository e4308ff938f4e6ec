"""Calls of admin clients beside what the brokers have answered them, and what the topics must be in the end."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey

__all__ = ("CHANGES", "Answer", "Call", "Topic", "answers_in", "problems_of", "topics_after")

CHANGES: Final = (
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
)


@attrs.frozen
class Call:
    """A call that changes a topic, and how it ended."""

    name: str
    """The id of the client that made only this call."""
    api: ApiKey
    topic: str
    size: int
    """The partitions to create or to have, or the retention to set."""
    error: int | None
    """0 if it returned, the code of the broker's error, or None if the caller cannot know what has happened."""


@attrs.frozen
class Answer:
    """A broker's answer to a request of a call."""

    call: str
    code: int


@attrs.frozen
class Topic:
    """What a topic is: its number of partitions, and its retention in ms."""

    partitions: int
    retention: int | None = None


def answers_in(requests: Iterable[Any]) -> list[Answer]:
    """Return the answers to requests that change one topic each, in the order in which the requests arrived."""
    return [
        Answer(asked.client_id, code)
        for asked in requests
        if asked.api in CHANGES and asked.response is not None
        for code in _codes(asked.response)
    ]


def _codes(response: Any) -> list[int]:
    for name in ("topics", "responses", "results"):
        if (found := getattr(response, name, None)) is not None:
            return [one.error_code for one in found]
    return [response.error_code]


def problems_of(calls: Sequence[Call], answers: Sequence[Answer]) -> list[str]:
    """Return the calls that ended otherwise than any broker has answered."""
    codes: dict[str, set[int]] = {}
    for answer in answers:
        codes.setdefault(answer.call, set()).add(answer.code)
    return [
        f"{call.name} of {call.topic} ended with {call.error}, but brokers answered {sorted(codes.get(call.name, ()))}"
        for call in calls
        if call.error is not None and call.error not in codes.get(call.name, ())
    ]


def topics_after(calls: Sequence[Call], answers: Sequence[Answer]) -> Mapping[str, Topic]:
    """Return the topics that must exist when all that brokers have accepted is done, in the order of the answers."""
    made, found = {call.name: call for call in calls}, dict[str, Topic]()
    for answer in answers:
        if answer.code != ErrorCode.NONE:
            continue
        call = made[answer.call]
        if call.api == ApiKey.CREATE_TOPICS:
            found[call.topic] = Topic(call.size)
        elif call.api == ApiKey.DELETE_TOPICS:
            del found[call.topic]
        elif call.api == ApiKey.CREATE_PARTITIONS:
            found[call.topic] = attrs.evolve(found[call.topic], partitions=call.size)
        else:
            found[call.topic] = attrs.evolve(found[call.topic], retention=call.size)
    return found
