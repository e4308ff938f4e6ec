"""When a client asks for its subscription, and when it pushes."""

from __future__ import annotations

import math
from typing import Any
from uuid import UUID, uuid4

import pytest

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.telemetry import GetTelemetrySubscriptionsResponse
from aiokafkawire.telemetry.exchange import DEFAULT_INTERVAL, TelemetryExchange, TelemetryState, TelemetrySubscription

ID = uuid4()


def answer(**changes: Any) -> GetTelemetrySubscriptionsResponse:
    values: dict[str, Any] = {
        "error_code": 0,
        "client_instance_id": ID,
        "subscription_id": 7,
        "accepted_compression_types": [4, 1],
        "push_interval_ms": 10_000,
        "telemetry_max_bytes": 1000,
        "delta_temporality": True,
        "requested_metrics": ["*"],
    }
    return GetTelemetrySubscriptionsResponse(**values | changes)


def subscribed(**changes: Any) -> TelemetryExchange:
    exchange = TelemetryExchange()
    exchange.begin()
    exchange.subscribed(answer(**changes), now=100.0, share=0.5)
    return exchange


def pushing() -> TelemetryExchange:
    exchange = subscribed()
    assert exchange.begin() is TelemetryState.PUSH_IN_PROGRESS
    return exchange


def test_the_first_request_is_due_at_once() -> None:
    exchange = TelemetryExchange()
    assert exchange.due == -math.inf
    assert exchange.instance_id == UUID(int=0)
    assert exchange.begin() is TelemetryState.SUBSCRIPTION_IN_PROGRESS


@pytest.mark.parametrize("share", [0.5, 1.5])
def test_the_first_push_comes_after_a_share_of_the_interval_and_the_others_after_a_whole_one(share: float) -> None:
    exchange = TelemetryExchange()
    exchange.begin()
    exchange.subscribed(answer(), now=100.0, share=share)
    assert exchange.instance_id == ID
    assert exchange.due == 100 + 10 * share
    assert exchange.begin() is TelemetryState.PUSH_IN_PROGRESS
    exchange.pushed(0, now=120.0)
    assert exchange.due == 130
    assert exchange.begin() is TelemetryState.PUSH_IN_PROGRESS


def test_without_requested_metrics_the_subscription_is_asked_for_again() -> None:
    exchange = subscribed(requested_metrics=[])
    assert exchange.due == 110
    assert exchange.begin() is TelemetryState.SUBSCRIPTION_IN_PROGRESS
    assert not exchange.terminate()


def test_a_wrong_interval_is_replaced_by_five_minutes() -> None:
    assert subscribed(push_interval_ms=0).due == 100 + DEFAULT_INTERVAL / 2


def test_an_interval_is_no_shorter_than_kafkas_own_limit() -> None:
    assert subscribed(push_interval_ms=1).due == subscribed(push_interval_ms=100).due == 100.05
    assert subscribed(push_interval_ms=1).interval == 0.1


def test_a_response_without_an_id_counts_as_none() -> None:
    exchange = subscribed(client_instance_id=UUID(int=0))
    assert exchange.subscription is None
    assert exchange.due == 100 + DEFAULT_INTERVAL


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE])
def test_a_push_under_an_old_subscription_asks_for_the_new_one_at_once(code: int) -> None:
    exchange = pushing()
    exchange.pushed(code, now=110.0)
    assert exchange.due == 110
    assert exchange.begin() is TelemetryState.SUBSCRIPTION_IN_PROGRESS
    exchange.subscribed(answer(error_code=code), now=111.0, share=1.0)
    assert exchange.due == 121  # not again at once, which might never end


@pytest.mark.parametrize("code", [ErrorCode.TELEMETRY_TOO_LARGE, ErrorCode.THROTTLING_QUOTA_EXCEEDED])
def test_a_push_too_large_or_too_early_waits_for_the_next_interval(code: int) -> None:
    exchange = pushing()
    exchange.pushed(code, now=110.0)
    assert exchange.due == 120
    assert exchange.begin() is TelemetryState.SUBSCRIPTION_IN_PROGRESS


@pytest.mark.parametrize(
    "code", [ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_RECORD, ErrorCode.UNSUPPORTED_VERSION, -1, 12_345]
)
def test_other_errors_end_the_exchange(code: int) -> None:
    exchange = pushing()
    exchange.pushed(code, now=110.0)
    assert exchange.has_ended
    assert exchange.due == math.inf
    assert not exchange.terminate()


def test_a_broker_that_throttles_the_first_request_is_asked_again_after_five_minutes() -> None:
    exchange = subscribed(error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    assert exchange.due == 100 + DEFAULT_INTERVAL


def test_without_an_answer_the_subscription_is_asked_for_after_the_interval_under_the_same_id() -> None:
    exchange = pushing()
    exchange.unanswered(now=110.0)
    assert exchange.due == 120
    assert exchange.begin() is TelemetryState.SUBSCRIPTION_IN_PROGRESS
    assert exchange.instance_id == ID


@pytest.mark.parametrize("during", [False, True])
def test_a_client_that_closes_pushes_once_more(during: bool) -> None:
    exchange = pushing() if during else subscribed()
    assert exchange.terminate()
    assert exchange.due == -math.inf
    if during:
        exchange.pushed(0, now=110.0)  # of the push before; it changes nothing
    assert exchange.begin() is TelemetryState.TERMINATING_PUSH_IN_PROGRESS
    exchange.pushed(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, now=110.0)
    exchange.ended()
    assert exchange.has_ended


def test_a_client_that_never_had_a_subscription_closes_without_a_push() -> None:
    exchange = TelemetryExchange()
    exchange.begin()
    assert not exchange.terminate()
    exchange.subscribed(answer(), now=100.0, share=1.0)
    assert exchange.has_ended


@pytest.mark.parametrize(
    ("requested", "selected"),
    [
        (["*"], {"org.apache.kafka.producer.a", "org.apache.kafka.consumer.a"}),
        ([""], {"org.apache.kafka.producer.a", "org.apache.kafka.consumer.a"}),
        (["org.apache.kafka.producer."], {"org.apache.kafka.producer.a"}),
        (["*", "org.apache.kafka.producer.a"], {"org.apache.kafka.producer.a"}),
        ([], set()),
    ],
)
def test_metrics_are_selected_by_prefix(requested: list[str], selected: set[str]) -> None:
    subscription = TelemetrySubscription(1, 1.0, (), 0, True, requested)
    names = ("org.apache.kafka.producer.a", "org.apache.kafka.consumer.a")
    assert {name for name in names if subscription.selects(name)} == selected
