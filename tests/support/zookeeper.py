"""A real ZooKeeper for the tests: its jars by Maven, one server on a free port of 127.0.0.1.

with ZooKeeperServer() as server:
    ...  # server.address == "127.0.0.1:41807"
"""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from support.guarded_process import GuardedProcess, Server
from support.jars import by_maven, missing
from support.needing import require
from support.ports import free_ports

__all__ = ("ZooKeeperServer", "zookeeper")

_VERSION = "3.8.4"
_HOST = "127.0.0.1"
_READY_TIMEOUT = 240.0
_JARS = (
    f"org.apache.zookeeper:zookeeper:{_VERSION}",
    "io.dropwizard.metrics:metrics-core:4.1.12.1",
    "org.xerial.snappy:snappy-java:1.1.10.5",
)


class ZooKeeperServer(Server):
    """One ZooKeeper, from `start` to `stop`; it does not outlive this process, and comes back with its data.

    The least session timeout is twice the tick: short, so that tests of expiry are.
    """

    def __init__(self, tick_ms: int = 200) -> None:
        self._tick_ms = tick_ms
        self._home: tempfile.TemporaryDirectory[str] | None = None
        self._server: GuardedProcess | None = None
        (self.port,) = free_ports(1)

    @property
    def address(self) -> str:
        return f"{_HOST}:{self.port}"

    def start(self) -> Self:
        """Boot, and wait until it answers."""
        jars = by_maven("zookeeper", _VERSION, _JARS)
        if self._home is None:
            self._home = tempfile.TemporaryDirectory(prefix="aiokafkawire-zookeeper-", ignore_cleanup_errors=True)
        home = Path(self._home.name)
        settings = home / "zoo.cfg"
        settings.write_text(
            f"tickTime={self._tick_ms}\ndataDir={home}/data\nclientPort={self.port}\nclientPortAddress={_HOST}\n"
            "admin.enableServer=false\nmaxClientCnxns=0\n4lw.commands.whitelist=ruok\n"
        )
        command = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
        command += ["org.apache.zookeeper.server.ZooKeeperServerMain", str(settings)]
        self._server = GuardedProcess(command, home / "server.log")
        self._server.launch()
        try:
            self._server.wait_until(self._answers, f"ZooKeeper {_VERSION}", _READY_TIMEOUT)
        except BaseException:
            self.stop()
            raise
        return self

    def kill(self) -> None:
        """End it as `kill -9` does; its data stays for `start`."""
        if self._server is not None:
            self._server.kill()

    def stop(self) -> None:
        """End it, and remove its data."""
        self.kill()
        home, self._home = self._home, None
        if home is not None:
            home.cleanup()

    def _answers(self) -> bool:
        try:
            with socket.create_connection((_HOST, self.port), 1.0) as connection:
                connection.sendall(b"ruok")
                return connection.recv(4) == b"imok"
        except OSError:
            return False


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[ZooKeeperServer]:
    """The ZooKeeper that all tests of the session share; each makes a root of its own."""
    require(missing())
    with ZooKeeperServer() as server:
        yield server
