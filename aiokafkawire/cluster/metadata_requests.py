"""Metadata as brokers of every age are asked for it: which topics, and that the question shall create none.

What each version is, as far as that counts:

- v0 (0.8) knows no list of no topics: an empty one means all of them.
- v1 (0.10) has one, and null means all; it names the controller.
- Up to v3, to ask for a topic that is not there creates it where the broker's ``auto.create.topics.enable`` is set, as
  it is by default; v4 (0.11) asks whether it shall (KIP-204).
"""

from collections.abc import Iterator, Sequence
from typing import Final

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

__all__ = ("excuse_starting", "keep_only", "metadata_forms")

_MAY_NOT_CREATE: Final = Versions.parse("4+")
_CAN_ASK_FOR_NONE: Final = Versions.parse("1+")
_NULL_IS_ALL: Final = Versions.parse("1-3")
_EMPTY_IS_ALL: Final = Versions.parse("0")


def metadata_forms(topics: Sequence[str] | None, *, allow_creation: bool) -> Iterator[RequestVariant[MetadataResponse]]:
    """Metadata for brokers from new to old; what more an old one answers is for :func:`keep_only`.

    Args:
        topics: None for all that there are.
        allow_creation: whether the question may create topics. Where an old broker would, it is asked for all.
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
    """Take out what was asked for only since an old broker cannot be asked for less.

    Args:
        response: the answer, where those of the topics that are not there get the error that newer brokers give them.
        topics: as :func:`metadata_forms` got them.
        asked: the versions of the form.
    """
    if topics is None or asked not in (_NULL_IS_ALL, _EMPTY_IS_ALL):
        return
    found = {topic.name: topic for topic in response.topics}
    response.topics = [found[name] if name in found else _absent(name) for name in topics]


def excuse_starting(response: MetadataResponse, at: Address) -> None:
    """Of a broker of Kafka 0.8 that lists none: put in who was asked, whose id nobody has told.

    It may not have joined its cluster yet, and then fails to make topics. It says so by an error without a name; what
    it means is that there is no leader yet.
    """
    response.brokers.append(MetadataResponseBroker(node_id=-1, host=at.host, port=at.port))
    for topic in response.topics:
        if topic.error_code == ErrorCode.UNKNOWN_SERVER_ERROR:
            topic.error_code = ErrorCode.LEADER_NOT_AVAILABLE


def _absent(name: str) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name, partitions=[])
