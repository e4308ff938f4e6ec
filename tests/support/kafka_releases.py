"""Apache Kafka of any release from 0.8.0 on: with a ZooKeeper beside it up to 2.8, by itself from 3.9 on.

    with KafkaRelease("0.8.2.2", brokers=3) as kafka:
        ...  # kafka.bootstrap == "127.0.0.1:41807,127.0.0.1:41809,127.0.0.1:41811"
        kafka.kill(2)

As in :mod:`support.apache_kafka`, jars come by Maven once for each release, and nothing outlives this process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from .apache_kafka import ApacheKafka, exchange, lines_of, resolve
from .guarded_process import BootFailed, GuardedProcess, Server, run_to_end
from .ports import accepts, free_ports

__all__ = ("RELEASES", "KafkaRelease", "number_of")

RELEASES = (
    *("0.8.0", "0.8.1.1", "0.8.2.2", "0.9.0.1", "0.10.2.2", "0.11.0.3"),
    *("1.1.1", "2.8.2", "3.9.1", "4.0.2", "4.1.1", "4.3.1", "4.4.0"),
)
"""The last patch of each release that the matrix is made of, from old to new."""

_HOST = "127.0.0.1"
_JVM = (
    *("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"),
    "-Dzookeeper.jmx.log4j.disable=true",
)
# The snappy of 0.8.0 and 0.8.1 loads its native part by a method that Java 17 keeps to itself.
_OPENED = ("--add-opens=java.base/java.lang=ALL-UNNAMED",)
_READY_TIMEOUT = 240.0
_ATTEMPTS = 3
_PORT_TAKEN = ("Address already in use", "failed to bind")
_END_TIMEOUT = 30.0
_LOG4J = """\
log4j.rootLogger=INFO, A
log4j.appender.A=org.apache.log4j.ConsoleAppender
log4j.appender.A.layout=org.apache.log4j.PatternLayout
log4j.appender.A.layout.ConversionPattern=%d %p %c: %m%n
"""


def number_of(version: str) -> tuple[int, ...]:
    """A release to compare with others."""
    return tuple(int(part) for part in version.split("."))


class KafkaRelease(Server):
    """One or more brokers of one release, from `start` to `stop`; those up to 2.8 with a ZooKeeper.

    Brokers have the ids 1, 2, 3. With KRaft there is one broker alone. Topics that are made by asking for them have two
    partitions, and a replica on each broker.

    A single broker from 0.10.2 on that knows ZooKeeper may have more `listeners`, by name, each with its security
    protocol; `addresses` says where they are. `properties` are more lines of its settings, `jvm` options of Java.
    """

    def __init__(
        self,
        version: str,
        *,
        brokers: int = 1,
        listeners: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        jvm: Sequence[str] = (),
    ) -> None:
        assert not listeners or (brokers == 1 and (0, 10, 2) <= number_of(version) < (3, 3))
        self.version, self.brokers = version, brokers
        self.listeners, self.properties, self.jvm = dict(listeners or {}), dict(properties or {}), tuple(jvm)
        self.bootstrap = ""
        self.addresses: dict[str, str] = {}
        self._home: tempfile.TemporaryDirectory[str] | None = None
        self._zookeeper: GuardedProcess | None = None
        self._servers: dict[int, GuardedProcess] = {}
        self._addresses: dict[int, str] = {}
        self._kraft: ApacheKafka | None = None

    def start(self) -> Self:
        """Resolve, boot, and wait until every broker answers.

        :raises BootFailed: with the tail of the log of the step that failed.
        """
        if number_of(self.version) >= (3, 3):
            assert self.brokers == 1
            self._kraft = ApacheKafka(self.version, properties={"num.partitions": "2"}).start()
            self.bootstrap = self._kraft.bootstrap
            return self
        resolve(self.version)
        for attempt in range(1, _ATTEMPTS + 1):
            self._home = tempfile.TemporaryDirectory(prefix="aiokafkawire-kafka-", ignore_cleanup_errors=True)
            try:
                self._boot(Path(self._home.name))
                break
            except BootFailed as error:
                self.stop()
                # Somebody else has bound a port between its choice and the server's start.
                if attempt == _ATTEMPTS or not any(sign in str(error) for sign in _PORT_TAKEN):
                    raise
            except BaseException:
                self.stop()
                raise
        return self

    def stop(self) -> None:
        """Kill everything, and remove the data. May be repeated."""
        kraft, self._kraft = self._kraft, None
        servers, self._servers = self._servers, {}
        zookeeper, self._zookeeper = self._zookeeper, None
        home, self._home = self._home, None
        try:
            if kraft is not None:
                kraft.stop()
            for server in servers.values():
                server.kill()
            if zookeeper is not None:
                zookeeper.kill()
        finally:
            if home is not None:
                home.cleanup()

    def kill(self, node: int) -> None:
        """End a broker as ``kill -9`` does."""
        self._servers[node].kill()

    def scram_user(self, mechanism: str, user: str, password: str) -> None:
        """Have the brokers know a user, by Kafka's own tool, over ZooKeeper."""
        assert self._home is not None
        home = Path(self._home.name)
        secret = f"{mechanism}=[iterations=4096,password={password}]"
        tool = [*_java(self.version, home), "kafka.admin.ConfigCommand", "--zookeeper", self._keeper, "--alter"]
        command = [*tool, "--add-config", secret, "--entity-type", "users", "--entity-name", user]
        run_to_end(command, home / "config.log", _READY_TIMEOUT, "ConfigCommand")

    def upgrade(self, node: int, version: str, properties: dict[str, str] | None = None) -> None:
        """End a broker in order, and start it again as another release that knows ZooKeeper."""
        server = self._servers[node]
        server.end(_END_TIMEOUT)
        assert self._home is not None
        home = Path(self._home.name)
        settings = home / f"server-{node}.properties"
        settings.write_text(settings.read_text() + lines_of(properties or {}))
        server.command = [*_java(version, home), "kafka.Kafka", str(settings)]
        server.launch()
        ready = f"broker {node} of {version}"
        server.wait_until(lambda: _lists(self._addresses[node]) == self.brokers, ready, _READY_TIMEOUT)

    def _boot(self, home: Path) -> None:
        keeper_port, *ports = free_ports(1 + self.brokers + len(self.listeners))
        self._keeper = f"{_HOST}:{keeper_port}"
        ports, others = ports[: self.brokers], ports[self.brokers :]
        self.addresses = {name: f"{_HOST}:{port}" for name, port in zip(self.listeners, others, strict=True)}
        (home / "log4j.properties").write_text(_LOG4J)
        keeper = home / "zoo.cfg"
        keeper.write_text(
            f"tickTime=2000\ndataDir={home / 'zookeeper'}\nclientPort={keeper_port}\nclientPortAddress={_HOST}\n"
            "maxClientCnxns=0\nadmin.enableServer=false\n"
        )
        java = _java(self.version, home)
        command = [*java, "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(keeper)]
        self._zookeeper = GuardedProcess(command, home / "zookeeper.log")
        self._zookeeper.launch()
        self._zookeeper.wait_until(lambda: accepts(keeper_port), "ZooKeeper", _READY_TIMEOUT)
        for node, port in enumerate(ports, 1):
            settings = home / f"server-{node}.properties"
            settings.write_text(lines_of(self._properties(node, port, keeper_port)))
            self._addresses[node] = f"{_HOST}:{port}"
            command = [*java[:1], *self.jvm, *java[1:], "kafka.Kafka", str(settings)]
            self._servers[node] = GuardedProcess(command, home / f"server-{node}.log")
            self._servers[node].launch()
        # Kafka 0.8 lists no broker before there is a topic.
        ready = (0, self.brokers) if number_of(self.version) < (0, 9) else (self.brokers,)
        for node, server in self._servers.items():
            server.wait_until(
                lambda at=self._addresses[node]: _lists(at) in ready,  # type: ignore[misc]
                f"broker {node} of Apache Kafka {self.version}",
                _READY_TIMEOUT,
            )
        self.bootstrap = ",".join(self._addresses.values())

    def _properties(self, node: int, port: int, keeper_port: int) -> dict[str, object]:
        assert self._home is not None
        replicas = min(3, self.brokers)
        settings: dict[str, object] = {
            "broker.id": node,
            "zookeeper.connect": f"{_HOST}:{keeper_port}",
            "zookeeper.connection.timeout.ms": 20_000,
            "log.dirs": Path(self._home.name) / f"data-{node}",
            "log.retention.ms": -1,
            "num.partitions": 2,
            "default.replication.factor": replicas,
            "offsets.topic.replication.factor": replicas,
            "offsets.topic.num.partitions": 5,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": min(2, replicas),
            "transaction.state.log.num.partitions": 5,
            "group.initial.rebalance.delay.ms": 0,
            "delete.topic.enable": "true",
            "controlled.shutdown.enable": "true",
        }
        if number_of(self.version) < (0, 9):
            del settings["log.retention.ms"]
            settings |= {"port": port, "host.name": _HOST, "advertised.host.name": _HOST, "advertised.port": port}
        else:
            at = f"PLAINTEXT://{_HOST}:{port}"
            settings |= {"listeners": at, "advertised.listeners": at}
        if self.listeners:
            at = ",".join([at, *(f"{name}://{address}" for name, address in self.addresses.items())])
            protocols = {"PLAINTEXT": "PLAINTEXT", **self.listeners}
            settings |= {
                "listeners": at,
                "advertised.listeners": at,
                "listener.security.protocol.map": ",".join(":".join(each) for each in protocols.items()),
            }
        return settings | self.properties


def _java(version: str, home: Path) -> list[str]:
    opened = _OPENED if number_of(version) < (0, 8, 2) else ()
    log = f"-Dlog4j.configuration=file:{home / 'log4j.properties'}"
    return ["java", *_JVM, *opened, log, "-cp", f"{resolve(version)}/*"]


def _lists(address: str) -> int:
    """How many brokers a broker lists in Metadata v0; -1 while it does not answer."""
    try:
        return int.from_bytes(exchange(address, 3, 0, b"\0\0\0\0")[:4], signed=True)
    except OSError:
        return -1
