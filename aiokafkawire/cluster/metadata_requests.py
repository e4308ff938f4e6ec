"""Metadata requests for brokers of every version. They create topics only if the caller allows it.

The versions differ:

- v0 (0.8) cannot request no topics: an empty list means all topics.
- v1 (0.10) can request no topics: null means all topics. The response contains the controller.
- Up to v3, requesting a missing topic creates it if the broker's ``auto.create.topics.enable`` is true, the default.
  Since v4 (0.11) the request has a field that allows creation (KIP-204).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from uuid import UUID

from ..errors import ErrorCode
from ..protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from ..protocol.schema import Versions
from ..types import Address
from .request_variants import RequestVariant

__all__ = (
    "BY_ID",
    "add_starting_broker",
    "drop_unreliable_epochs",
    "keep_only",
    "metadata_variants",
    "names_request",
)

_MAY_NOT_CREATE: Final = Versions.parse("4+")
_CAN_ASK_FOR_NONE: Final = Versions.parse("1+")
_NULL_IS_ALL: Final = Versions.parse("1-3")
_EMPTY_IS_ALL: Final = Versions.parse("0")
BY_ID: Final[Versions] = Versions.parse("12+")
"""The versions in which a request may name topics by id; brokers fail on it in v10 and v11."""
_UNRELIABLE_EPOCHS: Final = Versions.parse("7-8")
_NO_EPOCH: Final = -1


def metadata_variants(
    topics: Sequence[str] | None, *, allow_creation: bool
) -> Iterator[RequestVariant[MetadataResponse]]:
    """Yield Metadata requests for brokers from new to old. Apply :func:`keep_only` to the response.

    Args:
        topics: the topics to request; None for all.
        allow_creation: whether the request may create topics. If not, all topics are requested from old brokers, since
            these could create the topics that a request names.
    """
    named = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
    newest = MetadataRequest(topics=named, allow_auto_topic_creation=allow_creation)
    if allow_creation:
        yield RequestVariant(newest, _CAN_ASK_FOR_NONE)
    else:
        yield RequestVariant(newest, _MAY_NOT_CREATE)
        yield RequestVariant(MetadataRequest(topics=None), _NULL_IS_ALL)
        named = None
    yield RequestVariant(MetadataRequest(topics=named or []), _EMPTY_IS_ALL)


def keep_only(response: MetadataResponse, topics: Sequence[str] | None, asked: Versions) -> None:
    """Reduce the response to ``topics``, since all topics may have been requested from an old broker.

    Args:
        response: the response to change; topics that it lacks get the error that newer brokers return.
        topics: the argument of :func:`metadata_variants`.
        asked: the versions of the request variant that was sent.
    """
    if topics is None or asked not in (_NULL_IS_ALL, _EMPTY_IS_ALL):
        return
    found = {topic.name: topic for topic in response.topics}
    response.topics = [found[name] if name in found else _absent(name) for name in topics]


def drop_unreliable_epochs(response: MetadataResponse, version: int) -> None:
    """Remove the leader epochs from a response of a broker before 2.4, as the Java client does.

    During a reassignment such a broker returns old epochs, and the leader refuses each request that has one of them.
    """
    if version in _UNRELIABLE_EPOCHS:
        for topic in response.topics:
            for partition in topic.partitions:
                partition.leader_epoch = _NO_EPOCH


def names_request(topic_ids: Iterable[UUID]) -> MetadataRequest:
    """Build a request for topics by id. Brokers ignore names in such a request."""
    topics = [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in topic_ids]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def add_starting_broker(response: MetadataResponse, at: Address) -> None:
    """Add the broker itself, with an unknown id, to the response of a Kafka 0.8 broker that lists no brokers.

    Such a broker may not have joined its cluster yet; then it answers UNKNOWN_SERVER_ERROR when it should create a
    topic. Replace this error by LEADER_NOT_AVAILABLE.
    """
    response.brokers.append(MetadataResponseBroker(node_id=-1, host=at.host, port=at.port))
    for topic in response.topics:
        if topic.error_code == ErrorCode.UNKNOWN_SERVER_ERROR:
            topic.error_code = ErrorCode.LEADER_NOT_AVAILABLE


def _absent(name: str) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name, partitions=[])
