"""A real Apache Kafka for the tests: its jars by Maven, one KRaft node on free ports of 127.0.0.1.

    with ApacheKafka(properties={"message.max.bytes": "2000000"}) as kafka:
        ...  # kafka.bootstrap == "127.0.0.1:41807"

Jars are resolved once per version into ``AIOKAFKAWIRE_CACHE`` (``~/.cache/aiokafkawire`` unless set). Everything else
lives in a temporary directory that goes with the server.
"""

from __future__ import annotations

import base64
import socket
import struct
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

from .guarded_process import BootFailed, GuardedProcess, Server, run_to_end
from .jars import NEEDS, by_maven, missing
from .ports import free_ports

__all__ = (
    "NEEDS",
    "NEWEST",
    "ApacheKafka",
    "exchange",
    "format_storage",
    "lines_of",
    "missing",
    "new_cluster_id",
    "resolve",
)

NEWEST = "4.3.1"
"""The Apache Kafka release the tests run against unless they name another."""

_HOST = "127.0.0.1"
_JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=info")
_ONE_NODE = {
    "num.partitions": "1",
    "auto.create.topics.enable": "true",
    # Tests write records of 1970, which the first look at retention, 30 s after the boot, would take away.
    "log.retention.ms": "-1",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "5",
    # A transaction that was open for too long is aborted at the next look, by default up to 10 s later.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "5",
    # Locks that end while a test waits, and assignments that do not wait for the next second.
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.assignment.interval.ms": "0",
}
_UNWANTED = ("com.sun.jmx", "com.sun.jdmk", "javax.jms", "javax.mail", "junit", "jline")
"""What old releases ask for, cannot be had any more, and no server needs."""

_FORMAT_TIMEOUT = 120.0
_READY_TIMEOUT = 240.0
_ATTEMPTS = 3
_METADATA = 3


class _PortTaken(BootFailed):
    """Someone else bound a port between our choosing it and the server's binding it."""


def exchange(bootstrap: str, api_key: int, version: int, body: bytes, *, timeout: float = 5.0) -> bytes:
    """Send one request with a v1 header over a socket of its own; the response after its correlation id.

    :raises OSError: the server is not there, hangs up, or answers something else.
    """
    host, _, port = bootstrap.rpartition(":")
    request = struct.pack(">hhih", api_key, version, 1, -1) + body
    with socket.create_connection((host, int(port)), timeout) as connection, connection.makefile("rb") as answer:
        connection.sendall(struct.pack(">i", len(request)) + request)
        size = int.from_bytes(_exactly(answer.read(4), 4))
        response = _exactly(answer.read(size), max(size, 4))
    # Connecting to a free local port can reach the connecting socket itself, which then echoes the request.
    if response[:4] != b"\0\0\0\1":
        raise OSError(f"{bootstrap} answered with another correlation id")
    return response[4:]


class ApacheKafka(Server):
    """One Apache Kafka server, broker and controller in one, from `start` to `stop`.

    1. `properties` are lines of ``server.properties`` that win over the defaults here. `listeners` are further ones,
       by name, each with its security protocol; once started, `addresses` says where they are. `features` are levels to
       begin with, such as ``{"transaction.version": 1}``, where the release's own are not wanted (KIP-584). `scram` is
       of users with SCRAM credentials, as kafka-storage takes them: ``SCRAM-SHA-256=[name=alice,password=secret]``.
       `jvm` are more options of Java's, and `classes` folders with classes of plug-ins.
    2. After `start`, `bootstrap` is answered: Metadata lists the broker. `controllers` is where the controller listens.
    3. After `stop`, or a failed `start`, no process and no file of it is left; it can be started again, empty.
    4. The server does not outlive this process, even a killed one.
    """

    java_options: ClassVar[tuple[str, ...]] = _JVM

    def __init__(
        self,
        version: str = NEWEST,
        *,
        properties: Mapping[str, str] | None = None,
        listeners: Mapping[str, str] | None = None,
        features: Mapping[str, int] | None = None,
        scram: Sequence[str] = (),
        jvm: Sequence[str] = (),
        classes: Sequence[Path] = (),
    ) -> None:
        self.version = version
        self.jvm = tuple(jvm)
        self.classes = tuple(classes)
        self.scram = tuple(scram)
        self.properties = dict(properties or {})
        self.listeners = dict(listeners or {})
        self.features = dict(features or {})
        self.controllers = ""
        self.bootstrap = ""
        self.addresses: dict[str, str] = {}
        self.boot_seconds = 0.0
        self._home: tempfile.TemporaryDirectory[str] | None = None
        self._server: GuardedProcess | None = None

    def start(self) -> Self:
        """Resolve, format, boot, and wait until ready.

        :raises BootFailed: with the tail of the log of the step that failed.
        """
        if self._home is not None:
            raise RuntimeError("this server is already started")
        jars = resolve(self.version)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._boot(jars)
                break
            except _PortTaken:
                self.stop()
                if attempt == _ATTEMPTS:
                    raise
            except BaseException:
                self.stop()
                raise
        return self

    def kill(self) -> None:
        """End the server as ``kill -9`` does; :meth:`stop` is still to be called."""
        if self._server is not None:
            self._server.kill()

    def stop(self) -> None:
        """Kill the server, and remove its data. May be repeated."""
        server, self._server = self._server, None
        home, self._home = self._home, None
        self.bootstrap = ""
        try:
            if server is not None:
                # Asked to end, it would write down what it knows of thousands of partitions, which goes with its data.
                server.kill()
        finally:
            if home is not None:
                home.cleanup()

    def _boot(self, jars: Path) -> None:
        began = time.monotonic()
        self._home = tempfile.TemporaryDirectory(prefix="aiokafkawire-kafka-", ignore_cleanup_errors=True)
        home = Path(self._home.name)
        port, controller_port, *others = free_ports(2 + len(self.listeners))
        self.addresses = {name: f"{_HOST}:{other}" for name, other in zip(self.listeners, others, strict=True)}
        settings = home / "server.properties"
        settings.write_text(
            _properties(home / "data", port, controller_port, self._more_listeners(port, controller_port))
        )
        java = ["java", *self.java_options, *self.jvm, "-cp", ":".join([f"{jars}/*", *map(str, self.classes)])]
        levels = [argument for name, level in self.features.items() for argument in ("--feature", f"{name}={level}")]
        users = [argument for user in self.scram for argument in ("--add-scram", user)]
        format_storage(java, settings, new_cluster_id(), *levels, *users)
        self._server = GuardedProcess([*java, "kafka.Kafka", str(settings)], home / "server.log")
        self._server.launch()
        self._wait_ready(self._server, f"{_HOST}:{port}")
        self.bootstrap = f"{_HOST}:{port}"
        self.controllers = f"{_HOST}:{controller_port}"
        self.boot_seconds = time.monotonic() - began

    def _more_listeners(self, port: int, controller_port: int) -> dict[str, str]:
        if not self.listeners:
            return self.properties
        where = {"PLAINTEXT": f"{_HOST}:{port}", **self.addresses}
        protocols = {"CONTROLLER": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT", **self.listeners}
        at = ",".join(f"{name}://{address}" for name, address in where.items())
        return {
            "listeners": f"{at},CONTROLLER://{_HOST}:{controller_port}",
            "advertised.listeners": at,
            "listener.security.protocol.map": ",".join(":".join(each) for each in protocols.items()),
            **self.properties,
        }

    def _wait_ready(self, server: GuardedProcess, bootstrap: str) -> None:
        try:
            server.wait_until(lambda: _lists_a_broker(bootstrap), f"Apache Kafka {self.version}", _READY_TIMEOUT)
        except BootFailed as error:
            if server.status is not None and "Address already in use" in server.log.read_text(errors="replace"):
                raise _PortTaken(str(error)) from None
            raise


def resolve(version: str, artifact: str = "") -> Path:
    """The folder with the server's jars, filled by Maven at the first call for a version on this machine.

    ``artifact`` is the server unless given; ``kafka-tools`` has the commands.

    :raises BootFailed: Maven failed, or another process has held the lock for too long.
    """
    number = _number(version)
    wanted = [f"org.apache.kafka:{artifact or f'kafka_{_scala(version)}'}:{version}"]
    if (0, 10) <= number < (1, 1):
        wanted.append("javax.xml.bind:jaxb-api:2.3.1")  # no part of Java since 11
    if number >= (1,):
        wanted.append("org.slf4j:slf4j-simple:1.7.36")
    if (1,) <= number < (4,):
        wanted.append("ch.qos.reload4j:reload4j:1.2.25")  # the server's own log control is written against Log4j 1
    return by_maven("apache-kafka", f"{version}-{artifact}" if artifact else version, wanted, _UNWANTED)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _scala(version: str) -> str:
    """The newest Scala that a release was built for and Java 17 runs."""
    number = _number(version)
    if number < (0, 8, 2):
        return "2.10"
    return "2.11" if number < (0, 10) else "2.12" if number < (2, 4) else "2.13"


def _properties(data: Path, port: int, controller_port: int, overrides: Mapping[str, str]) -> str:
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{_HOST}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{_HOST}:{port},CONTROLLER://{_HOST}:{controller_port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(data),
        **_ONE_NODE,
        **overrides,
    }
    return lines_of(settings)


def lines_of(settings: Mapping[str, object]) -> str:
    """Settings as a file of properties."""
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def new_cluster_id() -> str:
    # A UUID in URL-safe base64; the first byte keeps it from beginning with a dash, like an option.
    return base64.urlsafe_b64encode(b"\1" + uuid.uuid4().bytes[1:]).decode().rstrip("=")


def format_storage(java: list[str], settings: Path, cluster_id: str, *more: str) -> None:
    """Prepare a node of KRaft: ``more`` are arguments of kafka-storage.

    :raises BootFailed: with the tail of the tool's log.
    """
    tool = ["kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(settings), *more]
    log = settings.with_suffix(".format.log")
    run_to_end([*java, *tool], log, _FORMAT_TIMEOUT, "formatting Apache Kafka's storage")


def _lists_a_broker(bootstrap: str) -> bool:
    """Whether Metadata v0, which every release answers, lists a broker."""
    try:
        response = exchange(bootstrap, _METADATA, 0, struct.pack(">i", 0))
    except OSError:
        return False
    return int.from_bytes(response[:4], signed=True) >= 1


def _exactly(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise OSError(f"the server hung up after {len(data)} of {size} bytes")
    return data
