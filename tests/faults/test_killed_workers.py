"""Workers of ``Client.process`` on Apache Kafka that are killed with SIGKILL: nothing is lost, little is repeated."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from secrets import token_hex

import pytest
from support import processing_worker
from support.apache_kafka import ApacheKafka

from aiokafkawire import TopicPartition, blocking

pytestmark = [pytest.mark.kafka, pytest.mark.faults, pytest.mark.timeout(300)]

COUNT, KEYS, PARTITIONS = 6_000, 40, 4
KILLS = 4
PATIENCE = 150.0


def test_killed_workers_lose_nothing_and_keep_the_order_of_keys(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    topic, log, numbers = f"topic-{token_hex(6)}", tmp_path / "log", itertools.count()
    log.touch()

    def start() -> subprocess.Popen[bytes]:
        arguments = ["asyncio", apache_kafka.bootstrap, topic, topic, "0.01", str(log)]
        with (tmp_path / f"worker-{next(numbers)}").open("wb") as out:
            return subprocess.Popen([sys.executable, processing_worker.__file__, *arguments], stdout=out, stderr=out)

    with blocking.Client(apache_kafka.bootstrap) as kafka:
        kafka.admin.create_topics({topic: PARTITIONS})
        with kafka.producer() as producer:
            producer.enqueue_many(topic, [b"x"] * COUNT, keys=[b"%d" % (number % KEYS) for number in range(COUNT)])
        workers = [start() for _ in range(2)]
        try:
            for kill in range(KILLS):
                wait_for(log, (kill + 1) * COUNT // (KILLS + 2))
                workers[kill % 2].kill()
                workers[kill % 2].wait()
                workers[kill % 2] = start()
            wait_for(log, COUNT)
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait(60)
        committed = kafka.admin.list_consumer_group_offsets(topic)
    assert sum(committed[TopicPartition(topic, index)].offset for index in range(PARTITIONS)) == COUNT
    handled, events = read(log)
    check_order(events)
    repeated = sum(handled.values()) - COUNT
    print(f"{repeated} of {COUNT} records repeated after {KILLS} kills")
    assert repeated <= KILLS * processing_worker.IN_HAND


def wait_for(log: Path, count: int) -> None:
    """Wait until so many records are handled."""
    end = time.monotonic() + PATIENCE
    while len(read(log)[0]) < count:
        assert time.monotonic() < end, f"{len(read(log)[0])} of {count} records are handled after {PATIENCE} s"
        time.sleep(0.2)


def read(log: Path) -> tuple[Counter[tuple[str, str]], list[list[str]]]:
    """Return how often each record was handled, and all lines in the order of their times."""
    events = sorted((line.split() for line in log.read_text().splitlines()), key=lambda parts: int(parts[0]))
    return Counter((partition, offset) for _, what, partition, offset, _ in events if what == "done"), events


def check_order(events: list[list[str]]) -> None:
    """No record begins before those of its key that are before it are done."""
    offsets: dict[str, list[int]] = defaultdict(list)
    for key, found in sorted({(key, int(offset)) for _, _, _, offset, key in events}):
        offsets[key].append(found)
    done: set[tuple[str, int]] = set()
    for _, what, _, offset, key in events:
        if what == "done":
            done.add((key, int(offset)))
        else:
            earlier = [other for other in offsets[key] if other < int(offset)]
            assert all((key, other) in done for other in earlier), f"{offset} of key {key} began too early"
