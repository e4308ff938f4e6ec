"""The programs of the tutorials in docs/, which the reader saves and runs, do what their pages say."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from support import spark
from support.needing import require
from support.patience import PATIENCE
from support.ports import free_ports
from support.spark_environments import Environments, environment
from support.streaming_jobs import kill, wait_for

from aiokafkawire.testing import BackgroundBroker

DOCS = Path(__file__).parents[2] / "docs"
_PROGRAM = re.compile(
    r"^Save this as `(\w+\.py)`[^`]*(?:`[^`]+`[^`]*)?\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
TUTORIALS = {
    "first-service.md": ["service.py", "test_service.py"],
    "first-worker.md": ["send.py", "worker.py"],
    "first-tests.md": ["delays.py", "conftest.py", "test_delays.py"],
    "first-spark.md": ["send.py", "delays.py", "stream.py"],
    "first-migration.md": ["orders.py"],
}

PYTEST = ("-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:xdist")
"""pytest as a reader of the pages has it, without the plugins of this project's tests."""


@pytest.fixture
def broker() -> Iterator[BackgroundBroker]:
    with BackgroundBroker() as broker:
        yield broker


def save_programs(page: str, folder: Path, bootstrap: str) -> None:
    """Save the programs of a page in a folder, with another broker."""
    found = dict(_PROGRAM.findall((DOCS / page).read_text()))
    assert list(found) == TUTORIALS[page]
    assert (DOCS / page).read_text().count("```python") == len(found)
    for name, program in found.items():
        (folder / name).write_text(program.replace("localhost:9092", bootstrap))


def run(folder: Path, *arguments: str, **environment: str) -> str:
    """Run Python in a folder, and return what it prints."""
    command = [sys.executable, *arguments]
    environment = os.environ | environment
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=3 * PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def running(folder: Path, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run Python in a folder until the block ends, then press Ctrl-C."""
    command = [sys.executable, *arguments]
    process = subprocess.Popen(
        command, cwd=folder, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait(timeout=PATIENCE)
    finally:
        process.kill()
        process.communicate()


def lines_until(process: subprocess.Popen[str], last: str) -> list[str]:
    """Return the lines that a process prints, to the one that has this text."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if last in line:
            return lines
    raise AssertionError(f"the process ended without {last!r}: {lines}")


@pytest.mark.slow
def test_the_service_answers_and_bills_and_its_test_passes(tmp_path: Path, broker: BackgroundBroker) -> None:
    broker.create_topic("orders", partitions=3)
    save_programs("first-service.md", tmp_path, broker.bootstrap)
    (port,) = free_ports(1)
    address = f"http://127.0.0.1:{port}"
    with running(tmp_path, "-m", "uvicorn", "service:app", "--port", str(port)) as service:
        lines_until(service, "Uvicorn running on")
        assert httpx.post(f"{address}/orders/7").json()["offset"] == 0
        assert httpx.get(f"{address}/health/ready").json()["ready"] is True
        lines_until(service, "billed order 7")
    assert service.returncode in (0, -signal.SIGINT, 130)
    assert "1 passed" in run(tmp_path, *PYTEST)


@pytest.mark.slow
def test_the_worker_retries_and_puts_aside(tmp_path: Path, broker: BackgroundBroker) -> None:
    broker.create_topic("invoices", partitions=3)
    broker.create_topic("invoices.dead")
    save_programs("first-worker.md", tmp_path, broker.bootstrap)
    run(tmp_path, "send.py")
    with running(tmp_path, "worker.py") as worker:
        printed = [f"sent an invoice of {amount}" for amount in (10, 20, 40)]
        assert [line for line in lines_until(worker, "40") if line.startswith("sent")] == printed
        assert "\n".join(printed) in (DOCS / "first-worker.md").read_text()
        worker.send_signal(signal.SIGINT)
        assert lines_until(worker, "put aside")[-1] == "3 processed, 1 retried, 1 put aside"
        worker.wait(timeout=PATIENCE)
    assert worker.returncode == 0
    listed = run(tmp_path, "-m", "aiokafkawire", "dead-letters", "list", "invoices.dead", "-b", broker.bootstrap)
    assert "ValueError" in listed
    shown = run(tmp_path, "-m", "aiokafkawire", "dead-letters", "show", "invoices.dead", "0:0", "-b", broker.bootstrap)
    assert "thirty" in shown


@pytest.mark.slow
def test_the_tests_pass_and_two_fail_when_the_code_is_changed(tmp_path: Path, broker: BackgroundBroker) -> None:
    save_programs("first-tests.md", tmp_path, broker.bootstrap)
    assert "3 passed" in run(tmp_path, *PYTEST)
    code = tmp_path / "delays.py"
    code.write_text(code.read_text().replace("minutes > 15", "minutes > 30"))
    with pytest.raises(AssertionError, match="2 failed, 1 passed"):
        run(tmp_path, *PYTEST)


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Environments:
    """Virtual environments, of which only ``full`` has this package. The PATH of tests begins with ``bare``."""
    require(spark.missing())
    return Environments(tmp_path_factory.mktemp("environments"))


def not_activated(environments: Environments) -> dict[str, str]:
    """The environment of a reader who has not activated the virtual environment: ``python3`` is another Python."""
    java = shutil.which("java")
    assert java is not None
    return environment(
        PATH=os.pathsep.join([str(environments.bare.parent), str(Path(java).parent), "/usr/bin", "/bin"])
    )


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_spark_reads_and_writes(tmp_path: Path, broker: BackgroundBroker, environments: Environments) -> None:
    broker.create_topic("flights", partitions=3)
    broker.create_topic("delays")
    save_programs("first-spark.md", tmp_path, broker.bootstrap)
    page = (DOCS / "first-spark.md").read_text()
    assert run(tmp_path, "send.py") == ""
    done = subprocess.run(
        [str(environments.full), "delays.py"],
        cwd=tmp_path,
        env=not_activated(environments),
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"```\n{done.stdout.strip()}\n```" in page
    written = run(tmp_path, "-m", "aiokafkawire", "consume", "delays", "-b", broker.bootstrap)
    assert f"```\n{written.strip()}\n```" in page


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_spark_streams_until_ctrl_c_and_continues(
    tmp_path: Path, broker: BackgroundBroker, environments: Environments
) -> None:
    broker.create_topic("flights", partitions=3)
    broker.create_topic("late")
    save_programs("first-spark.md", tmp_path, broker.bootstrap)
    for batch in range(2):
        run(tmp_path, "send.py")
        stream_one_batch(tmp_path, str(environments.full), not_activated(environments), batch)
        written = run(tmp_path, "-m", "aiokafkawire", "consume", "late", "-b", broker.bootstrap)
        assert len(written.splitlines()) == 700 * (batch + 1)


def stream_one_batch(folder: Path, python: str, environment: dict[str, str], batch: int) -> None:
    """Run ``stream.py`` until the checkpoint has the batch as finished, then press Ctrl-C."""
    log = folder / "log"
    with log.open("w") as output:
        stream = subprocess.Popen(
            [python, "stream.py"],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for(folder / "checkpoint" / "commits" / str(batch), stream)
        os.killpg(stream.pid, signal.SIGINT)  # as a terminal does: to all processes of the program
        stream.wait(timeout=PATIENCE)
    finally:
        kill(stream)
    assert "KeyboardInterrupt" in log.read_text()


def test_the_program_of_aiokafka_moves(tmp_path: Path, broker: BackgroundBroker) -> None:
    pytest.importorskip("aiokafka")
    broker.create_topic("orders", partitions=3)
    save_programs("first-migration.md", tmp_path, broker.bootstrap)
    assert run(tmp_path, "orders.py").count("b'order") == 5
    listed = run(tmp_path, "-m", "aiokafkawire", "migrate", "orders.py")
    assert listed.startswith("orders.py:2:22: drop-in: ")
    assert f"```\n{listed}```" in (DOCS / "first-migration.md").read_text()
    run(tmp_path, "-m", "aiokafkawire", "migrate", "orders.py", "--write", "--yes")
    moved = "from aiokafkawire.aiokafka import AIOKafkaConsumer, AIOKafkaProducer\n"
    assert moved in (tmp_path / "orders.py").read_text()
    assert moved in (DOCS / "first-migration.md").read_text()
    assert run(tmp_path, "-m", "aiokafkawire", "migrate", "orders.py") == ""
    assert run(tmp_path, "orders.py").count("b'order") == 5
