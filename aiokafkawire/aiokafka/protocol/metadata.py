"""aiokafka's request of the metadata."""

from collections.abc import Iterable
from typing import Any

from ...protocol.messages import metadata as messages
from ...protocol.schema import Request
from .request import TheirRequest

__all__ = ("MetadataRequest", "MetadataRequest_v1")


class MetadataRequest(TheirRequest):
    """Requests the brokers, and topics by their names; None for all topics."""

    def __init__(self, topics: Iterable[str] | None = None, allow_auto_topic_creation: bool | None = None) -> None:
        named = None if topics is None else [messages.MetadataRequestTopic(name=name) for name in topics]
        creates = allow_auto_topic_creation is not False
        self.message: Request[Any] = messages.MetadataRequest(topics=named, allow_auto_topic_creation=creates)


MetadataRequest_v1 = MetadataRequest  # the client negotiates versions itself
