"""Which request a response answers."""

from __future__ import annotations

from aiokafkawire.protocol.api import RequestHeader
from aiokafkawire.protocol.compiler import encode
from aiokafkawire.protocol.messages.metadata import MetadataRequest
from aiokafkawire.testing.tap.expected_responses import MAX_REQUESTS, ExpectedResponses
from aiokafkawire.testing.tap.request_frames import ParsedRequest, parse_request


def request(correlation_id: int, api_key: int = 3) -> ParsedRequest:
    header = RequestHeader(
        request_api_key=api_key, request_api_version=12, correlation_id=correlation_id, client_id="c"
    )
    return parse_request(encode(header, 2) + encode(MetadataRequest(topics=[]), 12))


def response(correlation_id: int) -> bytes:
    return correlation_id.to_bytes(4) + b"rest"


def test_responses_answer_the_requests_with_their_correlation_id() -> None:
    expected: ExpectedResponses[str] = ExpectedResponses()
    for number in (7, 8):
        expected.add(request(number), str(number))
    found, skipped = expected.match(response(7))
    assert found is not None
    assert (found.context, skipped, len(expected)) == ("7", [], 2)
    expected.remove(found)
    expected.remove(found)  # a second time is no error
    assert len(expected) == 1


def test_requests_without_a_response_are_skipped_by_the_next_one() -> None:
    expected: ExpectedResponses[str] = ExpectedResponses()
    for number in (1, 2, 3):
        expected.add(request(number, api_key=99), str(number))
    found, skipped = expected.match(response(3))
    assert found is not None
    assert (found.context, [each.context for each in skipped], len(expected)) == ("3", ["1", "2"], 1)


def test_a_response_to_no_request_changes_nothing() -> None:
    expected: ExpectedResponses[str] = ExpectedResponses()
    assert expected.match(response(1)) == (None, [])
    expected.add(request(2), "2")
    assert expected.match(response(1)) == (None, [])
    assert expected.match(b"") == (None, [])
    assert len(expected) == 1


def test_tokens_have_no_correlation_id_and_are_answered_in_order() -> None:
    expected: ExpectedResponses[str] = ExpectedResponses()
    expected.add(parse_request(b"n,,n=alice,r=abcdef", expects_tokens=True), "token")
    found, _ = expected.match(b"")
    assert found is not None
    assert found.context == "token"
    expected.add(request(5), "5")
    found, skipped = expected.match(response(5))
    assert found is not None
    assert (found.context, [each.context for each in skipped]) == ("5", ["token"])


def test_it_is_full_at_a_limit_unless_the_oldest_may_get_no_response() -> None:
    expected: ExpectedResponses[None] = ExpectedResponses()
    for number in range(MAX_REQUESTS):
        assert not expected.is_full
        expected.add(request(number), None)
    assert expected.is_full
    unknown: ExpectedResponses[None] = ExpectedResponses()
    for number in range(MAX_REQUESTS + 10):
        assert not unknown.is_full
        unknown.add(request(number, api_key=99), None)
    assert len(unknown) == MAX_REQUESTS
