"""The lines that the tap prints."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from aiokafkawire.cli.tap.lines import json_line, text_line
from aiokafkawire.testing import RequestOutcome, TappedRequest, TappedResponse


def request(**fields: Any) -> TappedRequest:
    known: dict[str, Any] = {
        "time": 1_700_000_000.25,
        "connection": 3,
        "node": 2,
        "client": "127.0.0.1:50000",
        "api": "Produce",
        "api_key": 0,
        "version": 9,
        "correlation_id": 17,
        "client_id": "rdkafka",
        "size": 345,
    }
    return TappedRequest(**{**known, **fields})


def response(asked: TappedRequest | None = None, **fields: Any) -> TappedResponse:
    known: dict[str, Any] = {
        "time": 1_700_000_000.3,
        "request": asked or request(),
        "size": 77,
        "seconds": 0.0123,
        "outcome": RequestOutcome.ANSWERED,
    }
    return TappedResponse(**{**known, **fields})


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (request(), '  3 > 2  Produce v9  id 17  "rdkafka"  345 bytes'),
        (request(node=None, client_id=None, size=1), "  3 > ?  Produce v9  id 17  no client id  1 byte"),
        (request(client_id="a\n\x1b[0m"), r'  3 > 2  Produce v9  id 17  "a\n\u001b[0m"  345 bytes'),
        (
            request(api="SASL token", api_key=-1, note="a token, passed on unread"),
            "  3 > 2  SASL token  345 bytes  (a token, passed on unread)",
        ),
        (response(), '  3 < 2  Produce v9  id 17  "rdkafka"  77 bytes  12.3 ms'),
        (
            response(errors={"NOT_LEADER_OR_FOLLOWER": 2, "MESSAGE_TOO_LARGE": 1}),
            '  3 < 2  Produce v9  id 17  "rdkafka"  77 bytes  12.3 ms  NOT_LEADER_OR_FOLLOWER x2  MESSAGE_TOO_LARGE',
        ),
        (
            response(outcome=RequestOutcome.DROPPED, size=0, fault="drop='after'"),
            "  3 < 2  Produce v9  id 17  \"rdkafka\"  no response  12.3 ms  dropped  fault: drop='after'",
        ),
        (
            response(outcome=RequestOutcome.CUT, size=20),
            '  3 < 2  Produce v9  id 17  "rdkafka"  20 bytes  12.3 ms  cut',
        ),
    ],
)
def test_a_line_for_people(event: TappedRequest | TappedResponse, line: str) -> None:
    clock, _, rest = text_line(event).partition("  ")
    assert re.fullmatch(r"\d\d:\d\d:00\.\d{3}|\d\d:\d\d:\d\d\.\d{3}", clock)
    assert rest == line


def test_a_line_for_programs() -> None:
    asked = json.loads(json_line(request()))
    assert asked == {
        "event": "request",
        "time": "2023-11-14T22:13:20.250000+00:00",
        "connection": 3,
        "client": "127.0.0.1:50000",
        "node_id": 2,
        "api_name": "Produce",
        "api_key": 0,
        "api_version": 9,
        "correlation_id": 17,
        "client_id": "rdkafka",
        "size_bytes": 345,
        "note": None,
    }
    answered = json.loads(json_line(response(errors={"MESSAGE_TOO_LARGE": 1}, fault="delay=0.5")))
    more = {"duration_ms": 12.3, "errors": {"MESSAGE_TOO_LARGE": 1}, "outcome": "answered", "rewritten": False}
    assert answered == {
        **asked,
        **more,
        "event": "response",
        "time": "2023-11-14T22:13:20.300000+00:00",
        "size_bytes": 77,
        "fault": "delay=0.5",
    }
