"""The metrics of Java's clients after the same work: every name of ours is there, and totals are equal or close."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from support.apache_kafka import NEEDS, NEWEST, missing, resolve
from support.needing import require

from aiokafkawire import Client, ConfigResource, NewTopic
from aiokafkawire.metrics.definitions import DEFINITIONS, LEFT_OUT
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio

COUNT, SIZE = 200, 1000
_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")
Key = tuple[str, tuple[str, ...], str]
"""A group, its tags besides the client's id, and a name."""

FETCH, SHARE_FETCH = "consumer-fetch-manager-metrics", "consumer-share-fetch-manager-metrics"
COORDINATOR = "consumer-coordinator-metrics"
PARTITION = ("partition", "topic")
CLASSIC_ONLY = ("join-", "sync-")
"""What Java's consumer has in classic groups only."""

PRODUCED: list[Key] = [
    *(("producer-metrics", (), f"record-{what}-total") for what in ("send", "retry", "error")),
    *(("producer-topic-metrics", ("topic",), f"record-{what}-total") for what in ("send", "retry", "error")),
    ("producer-topic-metrics", ("topic",), "byte-total"),
    ("producer-metrics", (), "batch-size-max"),
    ("producer-metrics", (), "buffer-total-bytes"),
    ("producer-metrics", (), "produce-throttle-time-max"),
]
"""What is equal."""
_CONSUMED: list[Key] = [
    (FETCH, (), "records-consumed-total"),
    (FETCH, ("topic",), "records-consumed-total"),
    (FETCH, (), "fetch-throttle-time-max"),
    (FETCH, PARTITION, "records-lag"),
    (FETCH, PARTITION, "records-lead"),
    (FETCH, PARTITION, "preferred-read-replica"),
    (COORDINATOR, (), "commit-total"),
    (COORDINATOR, (), "assigned-partitions"),
]
_REBALANCES = (COORDINATOR, (), "rebalance-total")
REBALANCES: dict[str, Key] = {
    "consumer": _REBALANCES,
    "share": ("consumer-share-coordinator-metrics", (), "rebalance-total"),
}
"""Java's count each time that they wait for the name of a topic that they were assigned."""
CONSUMED: dict[str, list[Key]] = {
    "classic": [*_CONSUMED, _REBALANCES],
    "consumer": _CONSUMED,
    "share": [
        (SHARE_FETCH, (), "records-consumed-total"),
        (SHARE_FETCH, (), "acknowledgements-send-total"),
        (SHARE_FETCH, (), "acknowledgements-error-total"),
    ],
}
PRODUCED_ABOUT: dict[Key, float] = {
    ("producer-metrics", (), "record-send-rate"): 0.2,
    ("producer-metrics", (), "batch-size-avg"): 0.001,
    ("producer-metrics", (), "buffer-available-bytes"): 0.001,  # Java may not have freed the last batch yet
    ("producer-metrics", (), "compression-rate-avg"): 0.01,
    ("producer-metrics", (), "record-size-avg"): 0.1,
    ("producer-metrics", (), "records-per-request-avg"): 0.05,
    ("producer-metrics", (), "request-total"): 0.1,
    ("producer-metrics", (), "outgoing-byte-total"): 0.1,
    ("producer-node-metrics", ("node-id",), "request-total"): 0.1,
    ("producer-node-metrics", ("node-id",), "outgoing-byte-total"): 0.1,
    ("producer-node-metrics", ("node-id",), "incoming-byte-total"): 0.2,
}
"""What is close, and how close."""
# Ours count the headers of batches, and the bytes of compressed ones as they were sent.
CONSUMED_ABOUT: dict[str, dict[Key, float]] = {
    "classic": {(FETCH, (), "bytes-consumed-total"): 0.1, (FETCH, ("topic",), "bytes-consumed-total"): 0.1},
    "consumer": {(FETCH, (), "bytes-consumed-total"): 0.1, (FETCH, ("topic",), "bytes-consumed-total"): 0.1},
    "share": {(SHARE_FETCH, (), "bytes-consumed-total"): 0.1},
}


def of_java(servers: str, topic: str, group: str, protocol: str) -> dict[Key, float | None]:
    """What Java's clients say after they have produced, and consumed all records."""
    require(missing() or (None if shutil.which("javac") else f"{NEEDS}no `javac` on PATH"))
    program = Path(__file__).with_name("JavaMetrics.java")
    arguments = [servers, topic, group, protocol, str(COUNT), str(SIZE)]
    command = ["java", *_JVM, "-cp", f"{resolve(NEWEST)}/*", str(program), *arguments]
    done = subprocess.run(command, capture_output=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    found: dict[Key, float | None] = {}
    for line in done.stdout.splitlines():
        one = json.loads(line)
        if one["tags"].get("node-id", "node-1") == "node-1" and one["tags"].get("partition", "0") == "0":
            found[one["group"], _tags(one["tags"]), one["name"]] = one["value"]
    return found


async def of_ours(broker: Broker, topic: str, group: str, protocol: str) -> dict[Key, float]:
    """What this client says after the same work."""
    async with Client(broker.bootstrap) as kafka, kafka.producer() as producer:
        kafka.metrics()
        await kafka.admin.describe_topics([topic])
        for number in range(COUNT):
            await producer.send(topic, bytes(SIZE), partition=number % 2)
        read = 0
        if protocol == "share":
            async with kafka.share_consumer(topic, group_id=group, share_acknowledgement_mode="implicit") as member:
                while read < COUNT:
                    read += len(await member.poll())
                await member.commit()
                return _values(kafka)
        options: Any = {"group_protocol": protocol, "auto_offset_reset": "earliest", "enable_auto_commit": False}
        async with kafka.consumer(topic, group_id=group, **options) as consumer:
            while read < COUNT:
                read += len(await consumer.poll())
            await consumer.commit()
            return _values(kafka)


def _values(kafka: Client) -> dict[Key, float]:
    return {(one.group, _tags(one.attributes), one.name): one.value for one in kafka.metrics()}


def _tags(tags: Any) -> tuple[str, ...]:
    return tuple(sorted(tag for tag in tags if tag != "client-id"))


@pytest.fixture
async def broker() -> Any:
    async with Broker() as started:
        yield started


@pytest.mark.parametrize("protocol", ["classic", "consumer", "share"])
async def test_metrics_are_those_of_java(broker: Broker, protocol: str) -> None:
    async with Client(broker.bootstrap) as kafka:
        await kafka.admin.create_topics({"java": NewTopic(2, 1), "ours": NewTopic(2, 1)})
        if protocol == "share":
            changes = {ConfigResource.group(name): {"share.auto.offset.reset": "earliest"} for name in ("j", "o")}
            await kafka.admin.incremental_alter_configs(changes)
    java = await anyio.to_thread.run_sync(of_java, broker.bootstrap, "java", "j", protocol)
    with anyio.fail_after(60):
        ours = await of_ours(broker, "ours", "o", protocol)

    unknown = {key for key in ours if key not in java}
    assert {key for key in unknown if protocol == "classic" or not key[2].startswith(CLASSIC_ONLY)} == set()
    for key in (*PRODUCED, *CONSUMED[protocol]):
        assert ours[key] == java[key], key
    if protocol in REBALANCES:
        rebalances = REBALANCES[protocol]
        assert ours[rebalances] == 1 <= (java[rebalances] or 0)
    for key, tolerance in {**PRODUCED_ABOUT, **CONSUMED_ABOUT[protocol]}.items():
        assert ours[key] == pytest.approx(java[key], rel=tolerance), key
    left_out = {
        name for _, _, name in java.keys() - {(each.group, tuple(sorted(each.tags)), each.name) for each in DEFINITIONS}
    }
    assert left_out <= LEFT_OUT.keys()
