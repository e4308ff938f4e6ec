"""The table of what a broker serves: for each API its versions, its request and its handler."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import attrs

from ..protocol.api import ApiKey
from ..protocol.messages.fetch import FetchRequest
from ..protocol.messages.group import FindCoordinatorRequest
from ..protocol.messages.metadata import ApiVersionsRequest, MetadataRequest
from ..protocol.messages.offsets import ListOffsetsRequest
from ..protocol.messages.produce import ProduceRequest
from ..protocol.messages.topics import CreateTopicsRequest, DeleteTopicsRequest
from ..protocol.messages.transactions import InitProducerIdRequest
from ..protocol.schema import Request, Response, Versions
from .call import Call
from .handlers.fetch import fetch
from .handlers.group import find_coordinator
from .handlers.metadata import api_versions, metadata
from .handlers.offsets import list_offsets
from .handlers.produce import produce
from .handlers.topics import create_topics, delete_topics
from .handlers.transactions import init_producer_id

__all__ = ("ADVERTISED", "APIS", "Api", "Handler")

Handler: TypeAlias = Callable[[Call, Any], Awaitable[Response | None]]
"""Answers one request; None is no answer at all, which only Produce with acks=0 gets."""


@attrs.frozen
class Api:
    """One API: the versions that ApiVersions lists, those that are really served, and what serves them."""

    request: type[Request[Any]]
    handle: Handler
    advertised: Versions
    served: Versions


def _api(request: type[Request[Any]], handle: Handler, advertised: str, served: str | None = None) -> Api:
    return Api(request, handle, Versions.parse(advertised), Versions.parse(served or advertised))


APIS: Final = {
    # Versions 0-2 are advertised for the sake of librdkafka, as Apache Kafka does, and yet not served (KIP-896).
    ApiKey.PRODUCE: _api(ProduceRequest, produce, "0-13", "3-13"),
    ApiKey.FETCH: _api(FetchRequest, fetch, "4-18"),
    ApiKey.LIST_OFFSETS: _api(ListOffsetsRequest, list_offsets, "1-11"),
    ApiKey.METADATA: _api(MetadataRequest, metadata, "0-13"),
    ApiKey.FIND_COORDINATOR: _api(FindCoordinatorRequest, find_coordinator, "0-6"),
    ApiKey.API_VERSIONS: _api(ApiVersionsRequest, api_versions, "0-4"),
    ApiKey.CREATE_TOPICS: _api(CreateTopicsRequest, create_topics, "2-7"),
    ApiKey.DELETE_TOPICS: _api(DeleteTopicsRequest, delete_topics, "1-6"),
    ApiKey.INIT_PRODUCER_ID: _api(InitProducerIdRequest, init_producer_id, "0-5"),
}
"""What the newest Apache Kafka speaks, of the APIs that there are here."""

ADVERTISED: Final = {int(key): api.advertised for key, api in APIS.items()}
