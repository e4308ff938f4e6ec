"""What is kept of clients that no longer exist, for OpenTelemetry's counters."""

from __future__ import annotations

import pytest

from aiokafkawire.metrics.instrument import Buckets, Instrument, InstrumentKind
from aiokafkawire.opentelemetry import ended_clients
from aiokafkawire.opentelemetry.ended_clients import EndedClients


def value(name: str, kind: InstrumentKind, value: float | Buckets, topic: str = "t") -> Instrument:
    return Instrument(name, "{record}", kind, {"topic": topic}, value, "")


def test_clients_with_one_id_have_their_sum_and_gauges_end() -> None:
    ended = EndedClients()
    ended.add("shop", [value("sent", "counter", 3), value("lag", "gauge", 7)])
    ended.add("shop", [value("sent", "counter", 2), value("sent", "counter", 1, topic="u")])
    assert [(each.attributes["topic"], each.value) for each in ended] == [("t", 5), ("u", 1)]


def test_histograms_are_added_up() -> None:
    ended = EndedClients()
    for _ in range(2):
        ended.add("shop", [value("time", "histogram", Buckets((1.0,), (1, 2), 9.0))])
    (found,) = ended
    assert found.value == Buckets((1.0,), [2, 4], 18.0)


def test_the_clients_that_ended_first_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended_clients, "MAX_SERIES", 2)
    ended = EndedClients()
    for client_id in ("a", "b", "a", "c"):
        ended.add(client_id, [value(client_id, "counter", 1)])
    assert [(each.name, each.value) for each in ended] == [("a", 2), ("c", 1)]
