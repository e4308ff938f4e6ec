"""The cluster whose brokers fail, and what the faults do to it."""

import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.kafka_cluster import KafkaCluster

from aiokafkawire import ElectionType, KafkaError, TopicPartition, blocking
from benchmarks.broker_faults.slow_disk import SlowDisks
from benchmarks.recovery.run import PARTITIONS

BROKERS: Final = (1, 2, 3)
SMALL: Final = 3
"""The broker whose disk is small, if this machine can mount one."""
_DISK: Final = 400
"""MiB of that disk."""


@dataclass(frozen=True)
class Place:
    """A cluster under load: the topics of the load, and the disks of brokers that are small or can be slow, if any."""

    cluster: KafkaCluster
    topics: Sequence[str]
    disk: Path | None = None
    slow_disks: SlowDisks | None = None

    def busiest(self) -> int:
        """Return the broker that leads most partitions of the load."""
        led = sum((self.cluster.leaders(topic) for topic in self.topics), Counter[int]())
        return max(sorted(led), key=lambda one: led[one])

    def balance(self, client: blocking.Client) -> None:
        """Let the preferred replica of each partition lead it, where it is in sync."""
        partitions = [TopicPartition(topic, one) for topic in self.topics for one in range(PARTITIONS)]
        with suppress(KafkaError):
            client.admin.elect_leaders(ElectionType.PREFERRED, partitions)

    def client(self) -> blocking.Client:
        """Return a client beside those of the load."""
        return blocking.Client(self.cluster.bootstrap, client_id="faults")


@contextmanager
def small_disk() -> Iterator[Path | None]:
    """Make a small disk in memory until the ``with`` block ends, or yield None where that is not allowed."""
    folder = Path(tempfile.mkdtemp(prefix="aiokafkawire-disk-"))
    command = ["mount", "-t", "tmpfs", "-o", f"size={_DISK}m", "tmpfs", str(folder)]
    mounted = shutil.which("mount") is not None and _succeeds(command)
    try:
        yield folder if mounted else None
    finally:
        if mounted:
            _succeeds(["umount", "--lazy", str(folder)])
        with suppress(OSError):
            folder.rmdir()


def fake_time() -> str | None:
    """Return the library that gives a process another time, or None where libfaketime is not installed."""
    found = sorted(Path("/usr/lib").glob("**/faketime/libfaketimeMT.so.1"))
    return str(found[0]) if found else None


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def usual_cluster(disk: Path | None, slow: SlowDisks | None) -> KafkaCluster:
    """Return a cluster of three controllers and three brokers, one on the small disk, each on one that can be slow."""
    data = {} if slow is None else {node: slow.folder / f"data-{node}" for node in BROKERS}
    if disk is not None:
        data[SMALL] = disk / "data"
    return KafkaCluster(
        controllers=3,
        each={node: {"log.dirs": str(folder)} for node, folder in data.items()},
        environment={} if slow is None else {node: slow.environment(node, folder) for node, folder in data.items()},
    )
