"""Three brokers of Apache Kafka that can be killed one at a time: controllers of their own keep the cluster alive.

    with KafkaCluster() as kafka:
        kafka.kill(2)  # as kill -9 does
        kafka.restart(2)
        kafka.wait_whole()

Topics, those of Kafka's own included, have a replica on each broker unless they are made otherwise, and ``acks=all``
takes two of them.
"""

from __future__ import annotations

import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from aiokafkawire.protocol.compiler import decode, encode
from aiokafkawire.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponsePartition

from .apache_kafka import NEWEST, exchange, format_storage, lines_of, new_cluster_id, resolve
from .guarded_process import BootFailed, GuardedProcess, Server, tail
from .ports import free_ports

__all__ = ("KafkaCluster",)

CONTROLLER = 100
"""The first controller's node id, others follow it; the brokers are 1, 2 and 3."""

_BROKERS = (1, 2, 3)
_HOST = "127.0.0.1"
_JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=info")
_REPLICATED = {
    "auto.create.topics.enable": "false",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "log.retention.ms": "-1",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "5",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.state.topic.num.partitions": "5",
}
_READY_TIMEOUT = 240.0
_END_TIMEOUT = 60.0
_METADATA_VERSION = 8  # the last one without tagged fields, so that plain headers do


class _Server(GuardedProcess):
    """One node: where it listens, and the process while it runs."""

    def __init__(
        self, node: int, port: int, home: Path, command: list[str], environment: Mapping[str, str] | None
    ) -> None:
        super().__init__(command, home / f"server-{node}.log", environment)
        self.node, self.address = node, f"{_HOST}:{port}"

    def check(self) -> None:
        """Raise BootFailed, with the end of the log, if the process has ended by itself."""
        if self.status is not None:
            raise BootFailed(f"node {self.node} of Apache Kafka has ended:\n{tail(self.log)}")


class KafkaCluster(Server):
    """One controller and three brokers of Apache Kafka, from `start` to `stop`.

    1. `properties` are lines of ``server.properties``, for every node, that win over the defaults here. `racks` says
       where brokers are, by their ids (``broker.rack``), and `log_dirs` how many directories each has. `outside` is the
       host of each broker for clients on another network: it then listens on all addresses too, and advertises that
       host to those who ask there. `outside_bootstrap` names all three. `each` are more properties of one node, by its
       id, `jvm` more options of its Java, and `environment` more variables of its process.
    2. After `start`, every broker lists every other. `bootstrap` names all three, also while one is down.
    3. A broker that was killed keeps its data and its port; `restart` brings it back.
    4. After `stop`, or a failed `start`, no process and no file is left. No node outlives this process.
    """

    def __init__(
        self,
        version: str = NEWEST,
        *,
        properties: Mapping[str, str] | None = None,
        racks: Mapping[int, str] | None = None,
        log_dirs: int = 1,
        outside: Mapping[int, str] | None = None,
        controllers: int = 1,
        each: Mapping[int, Mapping[str, str]] | None = None,
        jvm: Mapping[int, Sequence[str]] | None = None,
        environment: Mapping[int, Mapping[str, str]] | None = None,
    ) -> None:
        self.version = version
        self.controllers = range(CONTROLLER, CONTROLLER + controllers)
        self.each, self.jvm, self.environment = dict(each or {}), dict(jvm or {}), dict(environment or {})
        self.outside = dict(outside or {})
        self.outside_bootstrap = ""
        self.log_dirs = log_dirs
        self.properties = dict(properties or {})
        self.racks = dict(racks or {})
        self.bootstrap = ""
        self.boot_seconds = 0.0
        self._home: tempfile.TemporaryDirectory[str] | None = None
        self._servers: dict[int, _Server] = {}

    def start(self) -> Self:
        """Resolve, format, boot, and wait until all brokers know of one another.

        :raises BootFailed: with the tail of the log of the step that failed.
        """
        if self._home is not None:
            raise RuntimeError("this cluster is already started")
        jars = resolve(self.version)
        began = time.monotonic()
        self._home = tempfile.TemporaryDirectory(prefix="aiokafkawire-kafka-", ignore_cleanup_errors=True)
        try:
            self._boot(jars, Path(self._home.name))
        except BaseException:
            self.stop()
            raise
        self.boot_seconds = time.monotonic() - began
        return self

    def stop(self) -> None:
        """Kill all nodes, and remove their data. May be repeated."""
        home, self._home = self._home, None
        servers, self._servers = self._servers, {}
        self.bootstrap = ""
        try:
            for server in servers.values():
                server.kill()
        finally:
            if home is not None:
                home.cleanup()

    # --- faults ------------------------------------------------------------------------------------------

    def kill(self, node: int) -> None:
        """End a broker's process at once, as ``kill -9`` does: it says good-bye to nobody."""
        self._servers[node].kill()

    def end(self, node: int) -> None:
        """Have a broker shut down in order: it hands over what it leads and coordinates, and leaves the cluster."""
        self._servers[node].end(_END_TIMEOUT)

    def freeze(self, node: int) -> None:
        """Stop a node's process until `thaw`: it keeps its connections, the system acknowledges, and nobody reads."""
        self._servers[node].send(signal.SIGSTOP)

    def thaw(self, node: int) -> None:
        """Let a process go on that `freeze` has stopped."""
        self._servers[node].send(signal.SIGCONT)

    def launch(self, node: int) -> None:
        """Start a node again that was killed or has ended, and wait for nothing."""
        self._servers[node].launch()

    def runs(self, node: int) -> bool:
        """Whether a node's process runs."""
        return self._servers[node].runs

    def status(self, node: int) -> int | None:
        """What a node's process has ended with by itself; None while it runs, and after a `kill` or `end`."""
        return self._servers[node].status

    def log_of(self, node: int) -> str:
        """What a node has logged."""
        return self._servers[node].log.read_text(errors="replace")

    def use(self, node: int, version: str | None = None, *, within: Sequence[str] = ()) -> None:
        """Let a node that was killed or has ended start as another release, or by another command, the next time.

        `within` is the beginning of the command that starts Java.
        """
        server = self._servers[node]
        assert not server.runs
        settings = server.log.parent / f"server-{node}.properties"
        server.command = [*within, *self._command(node, resolve(version or self.version), settings)]

    def node_at(self, address: str) -> int:
        """The broker that listens there."""
        return next(node for node in _BROKERS if self._servers[node].address == address)

    def address_of(self, node: int) -> str:
        """Where a broker listens, as ``host:port``."""
        return self._servers[node].address

    def restart(self, node: int) -> None:
        """Start a broker again that was killed or has ended, and wait until it serves.

        :raises BootFailed: it does not come back.
        """
        self._servers[node].launch()
        self.wait_alive(node)

    def wait_alive(self, node: int) -> None:
        """Wait until a broker answers, and says that it lives.

        :raises BootFailed: it does not come back.
        """
        self._wait(lambda: node in self._alive(node), f"broker {node} was not back", _READY_TIMEOUT)

    def leaders(self, topic: str) -> Counter[int]:
        """How many partitions of the topic each broker leads, as the running brokers know it."""
        for node in self._running_brokers():
            found = [one.leader_id for name, one in _partitions(self._metadata(node)) if name == topic]
            if found:
                return Counter(leader for leader in found if leader >= 0)
        return Counter()

    def wait_led(self, topic: str, node: int, timeout: float = _READY_TIMEOUT) -> None:
        """Wait until a running broker says that this one leads partitions of the topic.

        :raises BootFailed: that takes longer than `timeout` seconds.
        """
        self._wait(lambda: self.leaders(topic)[node] > 0, f"{topic} was not led by broker {node}", timeout)

    def wait_whole(self, timeout: float = _READY_TIMEOUT, *, topic: str | None = None) -> None:
        """Wait until every broker says that all of them live, and that every partition has all its replicas in sync.

        With a topic, every broker must know that as well: of a new one they hear at different times.

        :raises BootFailed: that takes longer than `timeout` seconds.
        """
        self._wait(
            lambda: all(self._is_whole(self._metadata(node), topic) for node in _BROKERS), "was not whole", timeout
        )

    # --- the parts ---------------------------------------------------------------------------------------

    def _boot(self, jars: Path, home: Path) -> None:
        nodes = (*self.controllers, *_BROKERS)
        free = free_ports(len(nodes) + len(self.outside))
        ports = dict(zip(nodes, free, strict=False))
        outside = {
            node: f"{self.outside[node]}:{port}" for node, port in zip(self.outside, free[len(nodes) :], strict=True)
        }
        voters = ",".join(f"{node}@{_HOST}:{ports[node]}" for node in self.controllers)
        for node, port in ports.items():
            settings = home / f"server-{node}.properties"
            more = {"broker.rack": self.racks[node]} if node in self.racks else {}
            if node in _BROKERS:
                more["log.dirs"] = ",".join(str(home / f"data-{node}-{n}") for n in range(self.log_dirs))
            if node in outside:
                more |= _two_listeners(f"{_HOST}:{port}", outside[node])
            more |= {**self.properties, **self.each.get(node, {})}
            settings.write_text(_properties(node, port, voters, home, more))
            command = self._command(node, jars, settings)
            self._servers[node] = _Server(node, port, home, command, self.environment.get(node))
        cluster_id = new_cluster_id()
        with ThreadPoolExecutor() as pool:
            files = [home / f"server-{node}.properties" for node in ports]
            list(pool.map(lambda file: format_storage(_java(jars), file, cluster_id), files))
        for server in self._servers.values():
            server.launch()
        self.bootstrap = ",".join(self._servers[node].address for node in _BROKERS)
        self.outside_bootstrap = ",".join(outside.values())
        self._wait(lambda: all(len(self._alive(node)) == len(_BROKERS) for node in _BROKERS), "was not ready")

    def _command(self, node: int, jars: Path, settings: Path) -> list[str]:
        return [*_java(jars, *self.jvm.get(node, ())), "kafka.Kafka", str(settings)]

    def _running_brokers(self) -> list[int]:
        return [node for node in _BROKERS if self._servers[node].runs]

    def _wait(self, until: Callable[[], bool], what: str, timeout: float = _READY_TIMEOUT) -> None:
        deadline = time.monotonic() + timeout
        while not until():
            for server in self._servers.values():
                server.check()
            if time.monotonic() > deadline:
                logs = "\n".join(tail(server.log, 10) for server in self._servers.values())
                raise BootFailed(f"Apache Kafka {self.version}: {what} after {timeout:.0f} s:\n{logs}")
            time.sleep(0.1)

    def _alive(self, node: int) -> set[int]:
        known = self._metadata(node)
        return {one.node_id for one in known.brokers} if known is not None else set()

    def _metadata(self, node: int) -> MetadataResponse | None:
        """All that a broker knows; None if it does not answer."""
        body = encode(MetadataRequest(topics=None, allow_auto_topic_creation=False), _METADATA_VERSION)
        try:
            answer = exchange(self._servers[node].address, MetadataRequest.api_key, _METADATA_VERSION, body)
        except OSError:
            return None
        return decode(MetadataResponse, _METADATA_VERSION, answer)

    def _is_whole(self, known: MetadataResponse | None, topic: str | None) -> bool:
        if known is None or len(known.brokers) < len(_BROKERS):
            return False
        partitions = list(_partitions(known))
        if topic is not None and topic not in {name for name, _ in partitions}:
            return False
        return all(one.leader_id >= 0 and len(one.isr_nodes) == len(one.replica_nodes) for _, one in partitions)


def _partitions(known: MetadataResponse | None) -> Iterator[tuple[str | None, MetadataResponsePartition]]:
    for topic in known.topics if known is not None else ():
        for one in topic.partitions:
            yield topic.name, one


def _java(jars: Path, *more: str) -> list[str]:
    return ["java", *_JVM, *more, "-cp", f"{jars}/*"]


def _two_listeners(inside: str, outside: str) -> dict[str, str]:
    return {
        "listeners": f"PLAINTEXT://{inside},OUTSIDE://0.0.0.0:{outside.rpartition(':')[2]}",
        "advertised.listeners": f"PLAINTEXT://{inside},OUTSIDE://{outside}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }


def _properties(node: int, port: int, voters: str, home: Path, more: Mapping[str, str]) -> str:
    role, listener = ("broker", "PLAINTEXT") if node in _BROKERS else ("controller", "CONTROLLER")
    settings = {
        "process.roles": role,
        "node.id": str(node),
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{listener}://{_HOST}:{port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(home / f"data-{node}"),
        **_REPLICATED,
        **more,
    }
    return lines_of(settings)
