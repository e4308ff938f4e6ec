"""A real Prometheus for the tests (Debian: prometheus), which scrapes what runs on ports of 127.0.0.1.

with PrometheusServer({"example": port}) as prometheus:
    prometheus.wait_for("kafka_client_connections")
    prometheus.query("sum(rate(kafka_producer_records_total[5s]))")
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from .guarded_process import GuardedProcess, Server
from .ports import free_ports

__all__ = ("PrometheusServer", "check_metrics", "missing_prometheus")

_SECONDS = 240.0


def missing_prometheus() -> str | None:
    """What this machine lacks for a Prometheus, as a sentence; None when nothing."""
    lacks = [f"no `{tool}` (Debian: apt-get install prometheus)" for tool in _TOOLS if shutil.which(tool) is None]
    return "Tests of dashboards need a Prometheus: " + ", ".join(lacks) if lacks else None


_TOOLS = ("prometheus", "promtool")


class PrometheusServer(Server):
    """A Prometheus that scrapes ports, by the names of their jobs, from `start` to `stop`."""

    def __init__(self, jobs: Mapping[str, int], *, interval: str = "250ms") -> None:
        self._jobs, self._interval = dict(jobs), interval
        self._url = ""
        self._home: tempfile.TemporaryDirectory[str] | None = None
        self._process: GuardedProcess | None = None

    def start(self) -> Self:
        self._home = tempfile.TemporaryDirectory(prefix="aiokafkawire-prometheus-", ignore_cleanup_errors=True)
        home = Path(self._home.name)
        (port,) = free_ports(1)
        self._url = f"http://127.0.0.1:{port}"
        (home / "prometheus.yml").write_text(self._config())
        command = [
            "prometheus",
            f"--config.file={home / 'prometheus.yml'}",
            f"--storage.tsdb.path={home / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        self._process = GuardedProcess(command, home / "prometheus.log")
        self._process.launch()
        try:
            self._process.wait_until(self._is_ready, "Prometheus", _SECONDS)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        process, self._process = self._process, None
        home, self._home = self._home, None
        if process is not None:
            process.kill()
        if home is not None:
            home.cleanup()

    def query(self, expression: str) -> list[Any]:
        """Return the series of an expression, as they are now.

        :raises ValueError: Prometheus does not understand the expression; the message says why.
        """
        return self._result("query", query=expression)

    def query_range(self, expression: str, start: float, end: float, step: float) -> list[Any]:
        """Return the series of an expression from one time to another. Raises as :meth:`query`."""
        return self._result("query_range", query=expression, start=start, end=end, step=step)

    def wait_for(self, expression: str) -> None:
        """Wait until an expression has series."""
        assert self._process is not None
        self._process.wait_until(lambda: bool(self.query(expression)), f"the series of {expression}", _SECONDS)

    def _config(self) -> str:
        jobs = [
            {"job_name": name, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
            for name, port in self._jobs.items()
        ]
        # JSON is YAML.
        return json.dumps({"global": {"scrape_interval": self._interval}, "scrape_configs": jobs})

    def _is_ready(self) -> bool:
        try:
            with urlopen(f"{self._url}/-/ready", timeout=5) as response:
                return bool(response.status == 200)
        except HTTPError as error:
            with error:
                return False
        except (URLError, OSError):
            return False

    def _result(self, endpoint: str, **arguments: object) -> list[Any]:
        try:
            with urlopen(f"{self._url}/api/v1/{endpoint}?{urlencode(arguments)}", timeout=_SECONDS) as response:
                answer = json.load(response)
        except HTTPError as error:
            with error:
                raise ValueError(f"{arguments['query']}: {json.load(error)['error']}") from None
        found: list[Any] = answer["data"]["result"]
        return found


def check_metrics(text: str) -> str:
    """Return what promtool finds wrong with an exposition; nothing if it is as Prometheus wants it."""
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    return done.stdout + done.stderr
