"""What a Python worker keeps between tasks. Spark is needed for the last test alone."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from aiokafkawire import KafkaError, blocking
from aiokafkawire.config.properties import KafkaSettings
from aiokafkawire.spark import worker_client
from aiokafkawire.spark.offsets import OffsetRange
from aiokafkawire.spark.options import read_options, write_options
from aiokafkawire.spark.partition_reader import read_range
from aiokafkawire.spark.partition_writer import write_batches
from aiokafkawire.spark.worker_client import task_client

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

Kept = worker_client._Worker


@pytest.fixture
def in_worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    """As if this process were a worker: what it keeps."""
    one = Kept()
    monkeypatch.setattr(worker_client, "_worker", one)
    monkeypatch.setattr(worker_client, "_in_worker", lambda: True)
    yield one
    if one._kept is not None:
        one._kept[1].close()
    gc.unfreeze()


def _options(bootstrap: str, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": bootstrap, **more}


def test_reading_and_writing_tasks_have_one_client(
    in_worker: Kept, kafka: blocking.Client, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.admin.create_topics({"flights": 1})
    opened = []
    open_client = worker_client._client

    def counted(settings: KafkaSettings) -> blocking.Client:
        opened.append(settings)
        return open_client(settings)

    monkeypatch.setattr(worker_client, "_client", counted)
    asked = read_options(_options(bootstrap, subscribe="flights"), streaming=False)
    for first in (0, 3, 6):
        rows = pa.record_batch({"value": pa.array([b"a", b"b", b"c"], pa.binary())})
        assert write_batches(write_options(_options(bootstrap, topic="flights")), [rows]) == 3
        (read,) = read_range(asked, OffsetRange("flights", 0, first, first + 3))
        assert read.column("offset").to_pylist() == [first, first + 1, first + 2]
    assert len(opened) == 1


@pytest.mark.slow
def test_a_task_that_is_ended_early_leaves_the_client_to_the_next(
    in_worker: Kept, kafka: blocking.Client, bootstrap: str
) -> None:
    kafka.admin.create_topics({"flights": 1})
    with kafka.producer() as producer:
        producer.enqueue_many("flights", [b"v" * 1000] * 40_000)
    asked = read_options(_options(bootstrap, subscribe="flights"), streaming=False)
    rows = read_range(asked, OffsetRange("flights", 0, 0, 40_000))
    next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert in_worker._kept is not None
    kept = in_worker._kept[1]
    assert sum(batch.num_rows for batch in read_range(asked, OffsetRange("flights", 0, 0, 40_000))) == 40_000
    assert in_worker._kept[1] is kept


@pytest.mark.slow
def test_a_task_with_other_settings_closes_it(in_worker: Kept, bootstrap: str) -> None:
    some = read_options(_options(bootstrap, subscribe="flights"), streaming=False).settings
    other = read_options(_options(bootstrap, subscribe="flights") | {"kafka.client.id": "x"}, streaming=False).settings
    with task_client(some) as first:
        pass
    assert first.loop.is_running
    with task_client(other) as second:
        assert second is not first
        assert not first.loop.is_running
    with task_client(other) as third:
        assert third is second


@pytest.mark.slow
def test_a_task_within_a_task_has_its_own(in_worker: Kept, bootstrap: str) -> None:
    settings = read_options(_options(bootstrap, subscribe="flights"), streaming=False).settings
    with task_client(settings) as outer:
        with task_client(settings) as inner:
            assert inner is not outer
        assert inner.loop.is_running
    assert not outer.loop.is_running


@pytest.mark.slow
def test_a_task_that_fails_leaves_none(in_worker: Kept, bootstrap: str) -> None:
    settings = read_options(_options(bootstrap, subscribe="flights"), streaming=False).settings
    with pytest.raises(KafkaError, match="lost"), task_client(settings) as first:
        raise KafkaError("lost")
    assert not first.loop.is_running
    assert in_worker._kept is None


@pytest.mark.slow
def test_what_is_loaded_is_collected_no_more(in_worker: Kept, bootstrap: str) -> None:
    settings = read_options(_options(bootstrap, subscribe="flights"), streaming=False).settings
    gc.unfreeze()
    with task_client(settings):
        assert gc.get_freeze_count() == 0
    settled = gc.get_freeze_count()
    assert settled > 10_000
    # Once: a task may leave garbage.
    more = [[] for _ in range(1_000)]  # type: ignore[var-annotated]
    with task_client(settings):
        pass
    assert gc.get_freeze_count() <= settled
    assert len(more) == 1_000


@pytest.mark.slow
def test_elsewhere_nothing_is_kept(kafka: blocking.Client, bootstrap: str) -> None:
    settings = read_options(_options(bootstrap, subscribe="flights"), streaming=False).settings
    frozen = gc.get_freeze_count()
    with task_client(settings) as mine:
        assert mine.loop.is_running
    assert not mine.loop.is_running
    assert gc.get_freeze_count() == frozen


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_worker_of_spark_is_known_as_one(spark: SparkSession, kafka: blocking.Client, bootstrap: str) -> None:
    kafka.admin.create_topics({"flights": 1})
    with kafka.producer() as producer:
        producer.enqueue_many("flights", [b"v"] * 30)
    asked = read_options(_options(bootstrap, subscribe="flights"), streaming=False)

    def read_twice(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import gc
        import threading

        for _ in batches:
            threads = set()
            for start in (0, 10):
                assert (
                    sum(one.num_rows for one in read_range(asked, OffsetRange("flights", 0, start, start + 10))) == 10
                )
                threads |= {one.ident for one in threading.enumerate() if one.name == "aiokafkawire-blocking"}
            yield pa.record_batch({"threads": [len(threads)], "frozen": [gc.get_freeze_count()]})

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(read_twice, "threads long, frozen long").collect()
    assert row.threads == 1
    assert row.frozen > 10_000
