"""A real ZooKeeper for the tests: its jars by Maven, one server on a free port of 127.0.0.1.

with ZooKeeperServer() as server:
    ...  # server.address == "127.0.0.1:41807"
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from support.apache_kafka import missing
from support.guarded_process import BootFailed, GuardedProcess
from support.needing import require

__all__ = ("ZooKeeperServer", "zookeeper")

_VERSION = "3.8.4"
_HOST = "127.0.0.1"
_READY_TIMEOUT = 60.0
_RESOLVE_TIMEOUT = 600.0
_POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>aiokafkawire.tests</groupId>
  <artifactId>zookeeper</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.zookeeper</groupId><artifactId>zookeeper</artifactId><version>{_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>io.dropwizard.metrics</groupId><artifactId>metrics-core</artifactId><version>4.1.12.1</version>
    </dependency>
    <dependency>
      <groupId>org.xerial.snappy</groupId><artifactId>snappy-java</artifactId><version>1.1.10.5</version>
    </dependency>
  </dependencies>
</project>
"""


class ZooKeeperServer:
    """One ZooKeeper, from `start` to `stop`; it does not outlive this process, and comes back with its data.

    The least session timeout is twice the tick: short, so that tests of expiry are.
    """

    def __init__(self, tick_ms: int = 200) -> None:
        self._tick_ms = tick_ms
        self._home: tempfile.TemporaryDirectory[str] | None = None
        self._server: GuardedProcess | None = None
        with socket.socket() as one:
            one.bind((_HOST, 0))
            self.port: int = one.getsockname()[1]

    @property
    def address(self) -> str:
        return f"{_HOST}:{self.port}"

    def start(self) -> Self:
        """Boot, and wait until it answers."""
        jars = _resolve()
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

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _resolve() -> Path:
    """The folder with the jars, filled by Maven at the first call on this machine."""
    cache = Path(os.environ.get("AIOKAFKAWIRE_CACHE") or Path.home() / ".cache" / "aiokafkawire").absolute()
    jars = cache / "zookeeper" / _VERSION
    if jars.exists():
        return jars
    with tempfile.TemporaryDirectory(prefix="aiokafkawire-zookeeper-") as place:
        pom, made = Path(place) / "pom.xml", Path(place) / "jars"
        pom.write_text(_POM)
        command = ["mvn", "--batch-mode", "--quiet", "--no-transfer-progress", "--file", str(pom)]
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={made}", "-DincludeScope=runtime"]
        done = subprocess.run([*command, *goal], capture_output=True, text=True, timeout=_RESOLVE_TIMEOUT, check=False)
        if done.returncode:
            raise BootFailed(f"resolving ZooKeeper {_VERSION} by Maven failed:\n{done.stdout[-4000:]}")
        jars.parent.mkdir(parents=True, exist_ok=True)
        staged = jars.with_name(f"{_VERSION}-{os.getpid()}")
        shutil.copytree(made, staged)
        try:
            staged.rename(jars)
        except OSError:  # another process was first
            shutil.rmtree(staged)
    return jars


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[ZooKeeperServer]:
    """The ZooKeeper that all tests of the session share; each makes a root of its own."""
    require(missing())
    with ZooKeeperServer() as server:
        yield server
