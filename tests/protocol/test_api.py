"""Headers, and the version that both sides speak."""

import pytest
from support.rows import every_row
from support.vectors import declared_messages

from aiokafkawire.errors import UnsupportedVersion
from aiokafkawire.protocol.api import (
    ApiKey,
    RequestHeader,
    ResponseHeader,
    choose_version,
    request_header_version,
    response_header_version,
)
from aiokafkawire.protocol.compiler import encode
from aiokafkawire.protocol.messages.fetch import FetchRequest
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest, MetadataRequest
from aiokafkawire.protocol.messages.transactions import InitProducerIdRequest
from aiokafkawire.protocol.primitives import String
from aiokafkawire.protocol.schema import Request, Response, Versions, field, message

ANY = Versions.parse("0+")
REQUESTS = [cls for cls in declared_messages().values() if issubclass(cls, Request)]


@message(ApiKey.CONTROLLED_SHUTDOWN, versions="0-3", flexible="3+")
class ControlledShutdownResponse(Response):
    """Brokers ask their controller for this, never clients."""

    text: String = field("0+", default="")


@message(ApiKey.CONTROLLED_SHUTDOWN, versions="0-3", flexible="3+")
class ControlledShutdownRequest(Request[ControlledShutdownResponse]):
    """The only request that ever had the first header."""

    text: String = field("0+", default="")


def test_a_flexible_request_has_a_flexible_header() -> None:
    assert [request_header_version(MetadataRequest, version) for version in (0, 8, 9, 13)] == [1, 1, 2, 2]
    assert [response_header_version(MetadataRequest, version) for version in (0, 8, 9, 13)] == [0, 0, 1, 1]


def test_the_first_controlled_shutdown_alone_has_the_first_header() -> None:
    assert [request_header_version(ControlledShutdownRequest, version) for version in range(4)] == [0, 1, 1, 2]


def test_the_answer_to_api_versions_always_has_the_plain_header() -> None:
    assert [request_header_version(ApiVersionsRequest, version) for version in (0, 2, 3, 5)] == [1, 1, 2, 2]
    assert {response_header_version(ApiVersionsRequest, version) for version in range(6)} == {0}


def test_headers_on_the_wire() -> None:
    header = RequestHeader(request_api_key=18, request_api_version=3, correlation_id=7, client_id="me")
    assert encode(header, 0).hex(" ") == "00 12 00 03 00 00 00 07"
    assert encode(header, 1).hex(" ") == "00 12 00 03 00 00 00 07 00 02 6d 65"
    # The client id stays plain in the flexible header (KIP-511).
    assert encode(header, 2).hex(" ") == "00 12 00 03 00 00 00 07 00 02 6d 65 00"
    assert encode(ResponseHeader(correlation_id=7), 0).hex(" ") == "00 00 00 07"
    assert encode(ResponseHeader(correlation_id=7), 1).hex(" ") == "00 00 00 07 00"


@pytest.mark.parametrize(
    ("theirs", "wanted", "chosen"),
    [("0-13", "0+", 13), ("0-99", "0+", 13), ("0-5", "0+", 5), ("7-9", "0+", 9), ("0-13", "4-6", 6), ("13", "13", 13)],
)
def test_the_newest_version_that_both_speak_and_that_will_do_is_chosen(theirs: str, wanted: str, chosen: int) -> None:
    spoken: dict[int, Versions] = {ApiKey.METADATA: Versions.parse(theirs)}
    assert choose_version(MetadataRequest, spoken, Versions.parse(wanted)) == chosen


@pytest.mark.parametrize(
    ("theirs", "wanted", "told"),
    [
        ("14-20", "0+", "speaks Metadata 14-20, and this request needs one of 0-13"),
        ("0-3", "4+", "speaks Metadata 0-3, and this request needs one of 4-13"),
        ("0-99", "14+", "speaks Metadata 0-99, and this client has 0-13 of the wanted 14+"),
        ("none", "0+", "speaks Metadata none, and this request needs one of 0-13"),
    ],
)
def test_without_a_common_version_the_error_says_what_each_side_has(theirs: str, wanted: str, told: str) -> None:
    spoken: dict[int, Versions] = {ApiKey.METADATA: Versions.parse(theirs)}
    with pytest.raises(UnsupportedVersion) as caught:
        choose_version(MetadataRequest, spoken, Versions.parse(wanted), "localhost:9092")
    assert str(caught.value) == f"localhost:9092 {told}"


def test_a_request_that_the_broker_does_not_list_is_unsupported() -> None:
    with pytest.raises(UnsupportedVersion, match=r"^b:1 does not know the request Fetch \(API key 1\)$"):
        choose_version(FetchRequest, {int(ApiKey.METADATA): ANY}, ANY, "b:1")


def test_an_unstable_version_is_declared_and_never_chosen() -> None:
    spoken: dict[int, Versions] = {ApiKey.INIT_PRODUCER_ID: Versions.parse("0-6")}
    assert 6 in InitProducerIdRequest.versions
    assert choose_version(InitProducerIdRequest, spoken, ANY) == 5
    with pytest.raises(UnsupportedVersion):
        choose_version(InitProducerIdRequest, spoken, Versions.parse("6"))


@every_row("cls", REQUESTS)
def test_request_and_answer_belong_together(cls: type[Request[Response]]) -> None:
    answer = cls.response
    assert answer.__name__ == cls.__name__.replace("Request", "Response")
    assert (answer.api_key, answer.versions, answer.flexible) == (cls.api_key, cls.versions, cls.flexible)
    assert cls.versions.covers(cls.stable)


def test_a_request_must_name_its_answer() -> None:
    with pytest.raises(TypeError, match="Lost must name its answer"):

        @message(ApiKey.METADATA, versions="0-1")
        class Lost(Request):  # type: ignore[type-arg]
            """Nobody answers it."""
