"""Requests and batches wait to be counted together: how many, and what happens if counting fails."""

from __future__ import annotations

import signal

import pytest
from support.log_watch import watched_log

from aiokafkawire import Client, TopicPartition
from aiokafkawire.cluster.live_values import PartitionValues
from aiokafkawire.metrics.client_metrics import ClientMetrics
from aiokafkawire.notes import BatchNote

from .test_measurements import batch, request


class Watched:
    """The measurements of a client that is not open, with the function that takes what has ended."""

    def __init__(self) -> None:
        self.client = Client("localhost:9092")
        self.observers = self.client._cluster.observers
        assert self.observers.note_batch is None
        assert self.observers.note_request is None
        self.metrics: ClientMetrics = self.client._client_metrics()

    def end(self, count: int, now: float = 1.0) -> None:
        assert self.observers.note_batch is not None
        for _ in range(count):
            self.observers.note_batch(batch(now=now))

    @property
    def counted(self) -> int:
        """The batches that were counted so far, without those that wait."""
        return self.metrics._measured.producer.records.count


def test_many_are_counted_at_once() -> None:
    watched = Watched()
    watched.end(512)
    assert watched.counted == 0
    watched.end(1)
    assert watched.counted == 512


def test_those_that_are_counted_together_ended_within_a_second() -> None:
    watched = Watched()
    watched.end(3, 1.0)
    watched.end(2, 1.5)
    watched.end(1, 2.0)
    assert watched.counted == 5
    assert watched.metrics._measured.producer.records.last == 1.5


def test_reading_counts_those_that_wait() -> None:
    watched = Watched()
    watched.end(3)
    assert watched.observers.note_request is not None
    watched.observers.note_request(request("Metadata"))
    found = {(one.group, one.name): one.value for one in watched.client.metrics() if len(one.attributes) == 1}
    assert found["producer-metrics", "record-send-total"] == 30
    assert found["admin-client-metrics", "request-total"] == 1


def test_a_failure_to_count_is_logged_and_ends_counting() -> None:
    watched = Watched()
    with watched_log(name="aiokafkawire.observe") as log:
        assert watched.observers.note_batch is not None
        watched.observers.note_batch(("orders", 1.0))  # type: ignore[arg-type]
        watched.end(1, 3.0)
    assert "cannot count requests and batches" in log.lines[0]
    assert watched.observers.note_batch is None
    assert watched.observers.note_request is None


def test_a_signal_handler_reads_while_its_thread_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    watched, read = Watched(), []
    measured = watched.metrics._measured
    count = measured.batches_ended

    def count_interrupted(batches: list[BatchNote]) -> None:
        signal.raise_signal(signal.SIGUSR1)
        count(batches)

    before = signal.signal(signal.SIGUSR1, lambda *_: read.append(watched.client.metrics()))
    try:
        monkeypatch.setattr(measured, "batches_ended", count_interrupted)
        watched.end(513)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(read) == 1
    assert watched.counted == 512


def test_an_unknown_lag_of_one_consumer_does_not_hide_that_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    watched, partition = Watched(), TopicPartition("t", 0)
    has_read = PartitionValues("", partition, lag=0, lead=5, replica=-1)
    begins = PartitionValues("", partition, lag=None, lead=None, replica=-1)
    live = watched.client._live
    monkeypatch.setattr(type(live), "has_consumers", True)
    for consumers in ((begins, has_read), (has_read, begins)):
        monkeypatch.setattr(live, "partitions", lambda consumers=consumers: iter(consumers))
        found = {one.name: one.value for one in watched.client.metrics() if "partition" in one.attributes}
        assert (found["records-lag"], found["records-lead"]) == (0, 5)
