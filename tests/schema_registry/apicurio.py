"""A real registry for the tests: Apicurio's, by Maven, on a free port of 127.0.0.1, with Confluent's REST API.

with Apicurio(folder) as server:
    ...  # server.url == "http://127.0.0.1:21807/apis/ccompat/v7"
"""

from __future__ import annotations

import http.client
from pathlib import Path
from typing import Self

from support.guarded_process import BootFailed, GuardedProcess, Server, run_to_end
from support.ports import free_ports

__all__ = ("Apicurio", "fetch")

_VERSION = "2.6.13.Final"
_ARTIFACT = f"io.apicurio:apicurio-registry-app:{_VERSION}:tar.gz:all"
_JAR = f"apicurio-registry-app-{_VERSION}-runner.jar"
_API = "/apis/ccompat/v7"
_HOST = "127.0.0.1"
_JVM = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_FETCH_TIMEOUT = 600.0
_READY_TIMEOUT = 240.0
_ATTEMPTS = 3


def fetch(folder: Path) -> None:
    """Have Maven fetch the registry, and unpack it into a folder.

    :raises BootFailed: it cannot be fetched.
    """
    maven = ["mvn", "--batch-mode", "--no-transfer-progress", "-Dstyle.color=never"]
    goal = ["dependency:unpack", f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={folder}"]
    run_to_end([*maven, *goal], folder / "maven.log", _FETCH_TIMEOUT, f"fetching {_ARTIFACT} by Maven")
    if not (folder / _JAR).exists():
        raise BootFailed(f"{_ARTIFACT} has no {_JAR}")


class Apicurio(Server):
    """One registry in a folder that `fetch` has filled, from `start` to `stop`, with its schemas in memory.

    It does not outlive this process, even a killed one.
    """

    def __init__(self, folder: Path) -> None:
        self.url = ""
        self._folder = folder
        self._server: GuardedProcess | None = None

    def start(self) -> Self:
        """Boot, and wait until it lists its subjects.

        :raises BootFailed: with the tail of its log.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            (port,) = free_ports(1)
            log = self._folder / f"server-{attempt}.log"
            where = [f"-Dquarkus.http.host={_HOST}", f"-Dquarkus.http.port={port}"]
            server = self._server = GuardedProcess(["java", *_JVM, *where, "-jar", _JAR], log)
            try:
                server.launch()
                server.wait_until(lambda port=port: _lists_subjects(port), f"Apicurio {_VERSION}", _READY_TIMEOUT)  # type: ignore[misc]
                break
            except BaseException as error:
                self.stop()
                taken = isinstance(error, BootFailed) and f"Port {port} seems to be in use" in str(error)
                if not taken or attempt == _ATTEMPTS:
                    raise
        self.url = f"http://{_HOST}:{port}{_API}"
        return self

    def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.kill()


def _lists_subjects(port: int) -> bool:
    connection = http.client.HTTPConnection(_HOST, port, timeout=20)
    try:
        connection.request("GET", f"{_API}/subjects")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
