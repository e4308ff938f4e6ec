"""The faults: each a function that causes one, yields, and heals it."""

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Final

from aiokafkawire import ClientQuotaEntity, KafkaError, NewTopic, TopicPartition
from benchmarks.broker_faults.cluster import BROKERS, SMALL, Place, fake_time
from benchmarks.progress import tell
from benchmarks.recovery.run import PARTITIONS

_UPGRADED_TO: Final = "4.4.0"
_DELETED: Final = "deleted"
_MOVES: Final = 6
_CRASHES: Final = 4
_CRASH_AFTER: Final = 2.0
"""Seconds that a broker lives in a loop of crashes."""
_SMALL_HEAP: Final = ("-Xmx256m", "-XX:+ExitOnOutOfMemoryError")
"""Enough for the load; Kafka's log cleaner takes 128 MB of it at the start."""
_EXHAUSTED: Final = 3
_LARGE_REQUEST: Final = 100 << 20
"""Bytes of the largest request that a broker takes by default (`socket.request.max.bytes`)."""
_OUT_OF_MEMORY: Final = 3
"""The status with which Java ends for want of memory, if it is to end then."""
_OUT_OF_MEMORY_WITHIN: Final = 30.0

_FIVE_HOURS_AHEAD: Final = ("FAKETIME=+5h", "FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_FORCE_MONOTONIC_FIX=0")
"""Settings of libfaketime. With its fix for monotonic clocks Java's timed waits end at once, and its threads spin."""


def freeze(place: Place) -> Iterator[None]:
    """Stop the process of the busiest broker, which keeps its connections, and let it go on."""
    node = place.busiest()
    place.cluster.freeze(node)
    yield
    place.cluster.thaw(node)


def fill_disk(place: Place) -> Iterator[None]:
    """Fill the disk of one broker until it can append nothing; then free it, and start the broker again."""
    assert place.disk is not None
    filler = place.disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 20))
    yield
    filler.unlink()
    place.cluster.kill(SMALL)
    place.cluster.restart(SMALL)


def slow_disk(place: Place) -> Iterator[None]:
    """Let each write and sync of the busiest broker take 200 to 500 ms more, and then as long as usual."""
    assert place.slow_disks is not None
    node = place.busiest()
    place.slow_disks.slow(node)
    yield
    slowed = place.slow_disks.heal(node)
    if not slowed:
        raise RuntimeError(
            f"the disk of broker {node} was not slow: the broker wrote nothing by the library's functions"
        )
    tell(f"broker {node} was slow in {', '.join(f'{count} {name}' for name, count in slowed.items())}")


def crash_loop(place: Place) -> Iterator[None]:
    """Kill the busiest broker, as the system does without memory, several times soon after its start."""
    node = place.busiest()
    for _ in range(_CRASHES):
        place.cluster.kill(node)
        time.sleep(_CRASH_AFTER)
        place.cluster.launch(node)
        time.sleep(_CRASH_AFTER)
    place.cluster.kill(node)
    yield
    place.cluster.restart(node)


def small_heap(place: Place) -> Iterator[None]:
    """Start the busiest broker with a small heap, and let large requests exhaust it, several times."""
    node = place.busiest()
    place.cluster.end(node)
    place.cluster.jvm[node] = _SMALL_HEAP
    place.cluster.use(node)
    for _ in range(_EXHAUSTED):
        place.cluster.restart(node)
        place.cluster.wait_whole()
        with place.client() as client:
            place.balance(client)
        time.sleep(_CRASH_AFTER)
        _exhaust_memory(place, node)
        place.cluster.kill(node)
    yield
    del place.cluster.jvm[node]
    place.cluster.use(node)
    place.cluster.restart(node)


def _exhaust_memory(place: Place, node: int) -> None:
    """Send the size of a request of 100 MB, for which the broker takes the memory at once; wait until it has ended."""
    host, _, port = place.cluster.address_of(node).rpartition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(struct.pack(">i", _LARGE_REQUEST))
        deadline = time.monotonic() + _OUT_OF_MEMORY_WITHIN
        while place.cluster.runs(node) and time.monotonic() < deadline:
            time.sleep(0.05)
    status = place.cluster.status(node)
    if status != _OUT_OF_MEMORY:
        raise RuntimeError(f"broker {node} did not end for want of memory: its status is {status}")


def controller_dies(place: Place) -> Iterator[None]:
    """Kill the active controller; another takes over."""
    with place.client() as client:
        node = client.admin.describe_metadata_quorum().leader_id
    place.cluster.kill(node)
    yield
    place.cluster.launch(node)


def no_controller(place: Place) -> Iterator[None]:
    """Kill all controllers."""
    for node in place.cluster.controllers:
        place.cluster.kill(node)
    yield
    for node in place.cluster.controllers:
        place.cluster.launch(node)


def reassign(place: Place) -> Iterator[None]:
    """Give every partition other leaders and replicas, once a second."""
    with place.client() as client:
        for turn in range(_MOVES):
            for topic in place.topics:
                targets = {
                    TopicPartition(topic, one): [BROKERS[(one + turn + n) % 3] for n in range(2 + turn % 2)]
                    for one in range(PARTITIONS)
                }
                client.admin.alter_partition_reassignments(targets)
            time.sleep(1)
            place.balance(client)
        while client.admin.list_partition_reassignments():
            time.sleep(0.2)
    yield


def delete_topic(place: Place) -> Iterator[None]:
    """Delete another topic and create it again, while a producer of our client writes there."""
    with place.client() as client, client.producer(delivery_timeout_ms=5_000, request_timeout_ms=2_000) as producer:
        for turn in count():
            with suppress(KafkaError):
                client.admin.create_topics({_DELETED: NewTopic(3, 3)})
            for number in range(20):
                with suppress(KafkaError):
                    producer.send(_DELETED, b"%d" % number)
            with suppress(KafkaError):
                client.admin.delete_topics(_DELETED)
            if turn == 3:
                break
    yield


def throttle(place: Place) -> Iterator[None]:
    """Allow each client a tenth of what it writes and reads, and then everything."""
    everyone = ClientQuotaEntity.client_id(None)
    names = ("producer_byte_rate", "consumer_byte_rate")
    with place.client() as client:
        client.admin.alter_client_quotas({everyone: dict.fromkeys(names, 8_000.0)})
        yield
        client.admin.alter_client_quotas({everyone: dict.fromkeys(names)})


def wrong_clock(place: Place) -> Iterator[None]:
    """Start the busiest broker again with a clock that is five hours ahead, and then with the right one."""
    library = fake_time()
    assert library is not None
    node = place.busiest()
    place.cluster.end(node)
    place.cluster.use(node, within=["env", f"LD_PRELOAD={library}", *_FIVE_HOURS_AHEAD])
    place.cluster.restart(node)
    with place.client() as client:
        place.balance(client)
    yield
    place.cluster.end(node)
    place.cluster.use(node)
    place.cluster.restart(node)


def upgrade(place: Place) -> Iterator[None]:
    """Restart each node in turn as a newer release, the controllers first."""
    for node in (*place.cluster.controllers, *BROKERS):
        place.cluster.end(node)
        place.cluster.use(node, _UPGRADED_TO)
        place.cluster.launch(node)
        if node not in place.cluster.controllers:
            place.cluster.wait_alive(node)
        place.cluster.wait_whole()
    yield
