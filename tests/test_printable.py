"""Texts of brokers in errors and in the log: one line each, of a limited length."""

from __future__ import annotations

import logging

import pytest

from aiokafkawire._printable import printable
from aiokafkawire.errors import ErrorCode, TopicAuthorizationFailed, UnknownBrokerError, broker_error
from aiokafkawire.event_log import EventLog

FORGED = "no\r\n2026-01-01 CRITICAL all is lost\x1b[2J\x00\u2028"
SAFE = "no??2026-01-01 CRITICAL all is lost?[2J??"


def test_control_characters_are_replaced_and_other_text_stays() -> None:
    assert printable(FORGED) == SAFE
    assert printable("Zürich: 東京 \N{GRINNING FACE}") == "Zürich: 東京 \N{GRINNING FACE}"
    assert printable("x" * 20_000) == "x" * 10_000
    assert printable("abc", 2) == "ab"


@pytest.mark.parametrize("code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, 12_345])
def test_an_error_shows_a_brokers_message_on_one_line(code: int) -> None:
    error = broker_error(code, f"Produce to t-0: {FORGED}")
    assert type(error) is (TopicAuthorizationFailed if code == 29 else UnknownBrokerError)
    assert "no 2026-01-01 CRITICAL all is lost?[2J?" in str(error)
    assert str(error).isprintable()


def test_a_field_of_the_log_cannot_begin_another_line(caplog: pytest.LogCaptureFixture) -> None:
    log = EventLog("aiokafkawire.test")
    error = ValueError(FORGED)
    with caplog.at_level(logging.INFO):
        log.info("%(host)s, %(error)s, %(error)r, %(count)d", host=FORGED, error=error, count=5)
        log.info("%(parts)s", text={"parts": FORGED})
    first, second = caplog.records
    assert first.getMessage() == f"{SAFE}, {SAFE}, {error!r}, 5"
    assert (first.__dict__["host"], first.__dict__["error"], first.__dict__["count"]) == (SAFE, "ValueError", 5)
    assert second.getMessage() == SAFE
