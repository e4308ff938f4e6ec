"""A standalone cluster of Spark on this machine: a master and workers as processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from support.ports import free_ports
from support.spark import tree

__all__ = ("SparkCluster", "running_cluster")

TREE = (tree(), str(Path(__file__).parent.parent))
_PATIENCE = 60.0
_MARK = "AIOKAFKAWIRE_TEST_CLUSTER"
"""The variable of the environment by which executors are found, which inherit it from their worker."""


class SparkCluster:
    """A master and its workers, each with two cores; an application has an executor on each."""

    def __init__(self, folder: Path, imports: Sequence[str]) -> None:
        import pyspark

        self._folder, self._imports = folder, imports
        self._home = Path(pyspark.__file__).parent
        [self._port] = free_ports(1)
        self.master = f"spark://127.0.0.1:{self._port}"
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._begin("master.Master", "--port", str(self._port))
        self._wait_for_line("master.Master", "I have been elected leader")

    def add_worker(self) -> subprocess.Popen[bytes]:
        """A new worker, once the master has it."""
        number = len(self._daemons)
        folder = ("--work-dir", str(self._folder / f"work{number}"))
        worker = self._begin("worker.Worker", "--cores", "2", "--memory", "1g", *folder, self.master)
        self._wait_for_line(f"worker.Worker{number}", "Successfully registered with master")
        return worker

    def executors(self) -> list[int]:
        """The process ids of the executors that are running."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended
                is_executor = b"CoarseGrainedExecutorBackend" in (process / "cmdline").read_bytes()
                if is_executor and f"{_MARK}={self._port}".encode() in (process / "environ").read_bytes().split(b"\0"):
                    found.append(int(process.name))
        return sorted(found)

    def kill(self, daemon: subprocess.Popen[bytes]) -> None:
        """Kill a daemon, and wait for its end."""
        with suppress(ProcessLookupError):
            os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait()

    def close(self) -> None:
        """Kill all daemons and executors."""
        executors = self.executors()
        for daemon in self._daemons:
            self.kill(daemon)
        for executor in executors:
            with suppress(ProcessLookupError):
                os.kill(executor, signal.SIGKILL)

    def _begin(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "SPARK_HOME": str(self._home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_NO_DAEMONIZE": "1",
            "PYTHONPATH": os.pathsep.join(self._imports),
            _MARK: str(self._port),
        }
        log = self._log(name if name.startswith("master") else f"{name}{len(self._daemons)}")
        command = [str(self._home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1"]
        with log.open("wb") as file:
            daemon = subprocess.Popen(
                [*command, "--webui-port", str(free_ports(1)[0]), *arguments],
                env=environment,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        self._daemons.append(daemon)
        return daemon

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _wait_for_line(self, name: str, line: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        while line not in (text := self._log(name).read_text()):
            assert time.monotonic() < deadline, text[-3_000:]
            time.sleep(0.05)


@contextmanager
def running_cluster(folder: Path, workers: int = 2, imports: Sequence[str] = TREE) -> Iterator[SparkCluster]:
    """A cluster with workers, whose logs are in the folder; its Python processes import these folders."""
    folder.mkdir()
    cluster = SparkCluster(folder, imports)
    try:
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.close()
