"""Signals end ``Client.process`` in order: what runs is finished and committed."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from support import processing_worker
from support.examples import sampled

from aiokafkawire import Client, TopicPartition, UsageError, blocking
from aiokafkawire.testing.background import BackgroundBroker
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.timeout(200)
COUNT = 30
SIGNALS = sampled(
    [(backend, number) for number in (signal.SIGTERM, signal.SIGINT) for backend in ("asyncio", "trio")],
    ("asyncio", signal.SIGTERM),
)


@contextmanager
def worker(backend: str, bootstrap: str, log: Path, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """A worker that has begun to handle a record."""
    command = [sys.executable, processing_worker.__file__, backend, bootstrap, "t", "g", str(seconds), str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            while process.poll() is None and not (log.exists() and log.read_text()):
                time.sleep(0.02)
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("how", SIGNALS)
def test_a_signal_lets_running_handlers_finish_and_commits_them(
    how: tuple[str, signal.Signals], tmp_path: Path
) -> None:
    backend, number = how
    log = tmp_path / "log"
    with BackgroundBroker() as broker, blocking.Client(broker.bootstrap) as kafka:
        kafka.admin.create_topics({"t": 1})
        with kafka.producer() as producer:
            producer.send_many("t", [b"x"] * COUNT)
        with worker(backend, broker.bootstrap, log, 0.3) as process:
            process.send_signal(number)
            out, errors = process.communicate()
        assert process.returncode == 0, errors
        lines = [line.split()[1] for line in log.read_text().splitlines()]
        began, done = lines.count("began"), lines.count("done")
        assert began == done < COUNT
        assert out == f"processed {done}, in hand 0\n" or out.startswith(f"processed {done}, in hand ")
        offsets = kafka.admin.list_consumer_group_offsets("g")
        assert offsets[TopicPartition("t", 0)].offset == done
        found = kafka.loop.call(kafka.asynchronous.admin.describe_groups, "g")
        assert found["g"].members == ()


def test_a_second_signal_cancels_what_runs(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with BackgroundBroker() as broker, blocking.Client(broker.bootstrap) as kafka:
        kafka.admin.create_topics({"t": 1})
        with kafka.producer() as producer:
            producer.send("t", b"x")
        with worker("asyncio", broker.bootstrap, log, 1_000) as process:
            process.send_signal(signal.SIGTERM)
            assert process.stderr is not None
            while "no more records are read" not in process.stderr.readline():
                assert process.poll() is None
            process.send_signal(signal.SIGTERM)
            out, errors = process.communicate()
        assert process.returncode == 0, errors
        assert out == "processed 0, in hand 1\n"


def test_signals_need_the_main_thread() -> None:
    async def run() -> None:
        async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
            await kafka.process("t", print, group_id="g", handle_signals=True)

    raised: list[BaseException] = []

    def other() -> None:
        try:
            anyio.run(run)
        except UsageError as error:
            raised.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert "main thread" in str(raised[0])
