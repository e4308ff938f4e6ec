"""How far frames are decoded, and that their bytes are kept."""

from __future__ import annotations

from typing import Any

import pytest

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import RequestHeader, ResponseHeader
from aiokafkawire.protocol.compiler import encode
from aiokafkawire.protocol.messages.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
)
from aiokafkawire.protocol.messages.produce import ProduceRequest
from aiokafkawire.testing.tap.request_frames import parse_request, parse_response


def head(api_key: int, version: int, header_version: int = 2) -> bytes:
    header = RequestHeader(request_api_key=api_key, request_api_version=version, correlation_id=7, client_id="me")
    return encode(header, header_version)


METADATA = head(3, 12) + encode(MetadataRequest(topics=[]), 12)


def test_a_known_request_is_decoded() -> None:
    request = parse_request(METADATA)
    assert (request.api, request.version, request.correlation_id, request.client_id) == ("Metadata", 12, 7, "me")
    assert (request.message, request.note, request.frame) == (MetadataRequest(topics=[]), "", METADATA)


def test_bytes_after_a_request_stay_where_they_are() -> None:
    request = parse_request(METADATA + b"abc")
    assert (request.message, request.frame[-3:]) == (MetadataRequest(topics=[]), b"abc")


@pytest.mark.parametrize(
    ("frame", "api", "client_id", "note"),
    [
        (head(999, 3) + b"body", "API 999", "me", "unknown API key 999"),
        (head(3, 99) + b"body", "Metadata", "me", "unknown version"),
        (head(3, 12) + b"\xff\xff", "Metadata", "me", "not decoded"),
        (b"\0\3", "unknown", None, "2 bytes are no request"),
        (b"\3\xe7\0\1\0\0\0\7\0\xff", "API 999", None, "unknown API key 999"),
    ],
)
def test_what_is_unknown_is_noted_and_not_decoded(frame: bytes, api: str, client_id: str | None, note: str) -> None:
    request = parse_request(frame)
    assert (request.api, request.client_id, request.message, request.frame) == (api, client_id, None, frame)
    assert request.note.startswith(note)
    response = parse_response(request, b"\0\0\0\7whatever")
    assert (response.message, response.encoded()) == (None, b"\0\0\0\x0c\0\0\0\7whatever")


@pytest.mark.parametrize("token", [b"\0alice\0secret", b"n,,n=alice,r=x", b"", b"\0\3\0\x0c" + b"\xff" * 9])
def test_after_sasl_handshake_0_whatever_is_no_request_is_a_token(token: bytes) -> None:
    request = parse_request(token, expects_tokens=True)
    assert (request.is_token, request.message, request.api) == (True, None, "SASL token")
    assert "secret" not in repr(request)
    assert not parse_request(METADATA, expects_tokens=True).is_token


@pytest.mark.parametrize(("acks", "answered"), [(0, False), (1, True), (-1, True)])
def test_only_produce_without_acks_has_no_response(acks: int, answered: bool) -> None:
    request = parse_request(head(0, 9) + encode(ProduceRequest(acks=acks, timeout_ms=1, topic_data=[]), 9))
    assert request.has_response is answered


def test_another_message_keeps_the_header() -> None:
    request = parse_request(METADATA).replaced(MetadataRequest(topics=None))
    assert parse_request(request.frame).message == MetadataRequest(topics=None)
    assert request.frame.startswith(head(3, 12))


def test_a_response_is_sent_as_it_came_unless_it_was_changed() -> None:
    message = MetadataResponse(brokers=[], topics=[], cluster_id="one")
    frame = encode(ResponseHeader(correlation_id=7), 1) + encode(message, 12) + b"more"
    response = parse_response(parse_request(METADATA), frame)
    assert response.message == message
    assert response.encoded() == len(frame).to_bytes(4) + frame
    changed: Any = response.message
    changed.cluster_id, response.changed = "another", True
    again = parse_response(parse_request(METADATA), response.encoded()[4:]).message
    assert isinstance(again, MetadataResponse)
    assert again.cluster_id == "another"


def test_a_response_that_is_none_is_noted() -> None:
    response = parse_response(parse_request(METADATA), b"\0\0\0\7\0\xff\xff")
    assert response.message is None
    assert response.note.startswith("not decoded")


def test_versions_that_the_broker_lacks_are_answered_in_version_0() -> None:
    message = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    request = parse_request(head(18, 4) + encode(message, 4))
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[])
    response = parse_response(request, b"\0\0\0\7" + encode(refusal, 0))
    assert (response.version, response.message) == (0, refusal)
