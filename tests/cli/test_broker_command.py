"""The broker command serves until it is told to stop."""

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import pytest
from support.patience import PATIENCE

from aiokafkawire import Client, TopicNotReady
from aiokafkawire.cli.main import main

BACKENDS = ["asyncio", "uvloop", "trio"]


@contextmanager
def broker(*argv: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command as a process, and the bootstrap address it tells."""
    command = [sys.executable, "-W", "error", "-m", "aiokafkawire", "broker", "--port", "0", *argv]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            hints = "".join(iter(process.stdout.readline, "Ctrl-C stops it.\n"))
            told = re.match(r"(?:\d )?Kafka brokers? at (\S+), ", hints)
            assert told is not None
            assert f"aiokafkawire demo --bootstrap {told[1]}\n" in hints
            assert ("(allow_auto_create_topics)" in hints) == ("--no-auto-create" not in argv)
            assert ("Topics: orders (6 partitions), log (1 partition).\n" in hints) == ("orders:6" in argv)
            yield process, told[1]
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status", "backend"),
    [
        *((signal.SIGINT, 130, backend) for backend in BACKENDS),
        (signal.SIGTERM, 0, "asyncio"),
        *(pytest.param(signal.SIGTERM, 0, backend, marks=pytest.mark.thorough) for backend in BACKENDS[1:]),
    ],
)
def test_it_serves_until_a_signal(backend: str, number: signal.Signals, status: int) -> None:
    pytest.importorskip(backend)

    async def use(bootstrap: str) -> None:
        async with Client(bootstrap) as kafka:
            await kafka.admin.create_topics({"flights": 2})
            async with (
                kafka.producer() as producer,
                kafka.consumer("flights", auto_offset_reset="earliest") as consumer,
            ):
                await producer.send("flights", b"on time")
                with anyio.fail_after(PATIENCE):
                    assert (await anext(consumer)).value == b"on time"
                process.send_signal(number)  # while clients are connected

    with broker("--backend", backend) as (process, bootstrap):
        anyio.run(use, bootstrap)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (status, "", "")


def test_topics_made_on_first_use_get_the_partitions_asked_for() -> None:
    async def partitions(bootstrap: str) -> int:
        async with Client(bootstrap, allow_auto_create_topics=True) as kafka, kafka.producer() as producer:
            return len(await producer.partitions_for("new"))

    with broker("--partitions", "6") as (_, bootstrap):
        assert anyio.run(partitions, bootstrap) == 6


def test_it_begins_with_the_topics_and_nodes_asked_for() -> None:
    async def described(bootstrap: str) -> list[tuple[int, int]]:
        async with Client(bootstrap) as kafka:
            topics = [await kafka.admin.describe_topic(name) for name in ("orders", "log")]
            return [(len(topic.partitions), len(topic.partitions[0].replicas)) for topic in topics]

    with broker("--nodes", "3", "--topic", "orders:6", "--topic", "log") as (_, bootstrap):
        assert len(bootstrap.split(",")) == 3
        assert anyio.run(described, bootstrap) == [(6, 3), (1, 3)]


def test_a_topic_that_cannot_be_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broker", "--port", "0", "--topic", "a/b:2"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("aiokafkawire: --topic a/b:2: Topic name is invalid: 'a/b' contains")


@pytest.mark.parametrize("argument", ["--nodes=0", "--nodes=x", "--topic=orders:0", "--topic=orders:many"])
def test_numbers_that_cannot_be_are_wrong_usage(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["broker", argument])
    assert left.value.code == 2
    assert re.search("is not a (positive integer|number from 1 to 100)", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["broker", "--topics", "orders:3"], "there is no option --topics; did you mean --topic?"),
        (["broker", "--prot=9092"], "there is no option --prot; did you mean --port?"),
        (["demo", "--nonsense"], "there is no option --nonsense"),
        (["broker", "--topic", "orders=3"], "argument --topic: 'orders=3' is not NAME or NAME:PARTITIONS"),
    ],
)
def test_misspelt_options_are_told_with_the_usage_of_the_verb(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith(f"usage: aiokafkawire {arguments[0]} ")
    assert err.endswith(f"error: {told}\n")


def test_no_topic_is_made_where_that_is_off() -> None:
    async def topics(bootstrap: str) -> tuple[str, ...]:
        async with Client(bootstrap, allow_auto_create_topics=True) as kafka:
            async with kafka.producer(max_block_ms=300) as producer:
                with pytest.raises(TopicNotReady):
                    await producer.partitions_for("new")
            return await kafka.admin.list_topics()

    with broker("--no-auto-create") as (_, bootstrap):
        assert anyio.run(topics, bootstrap) == ()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_port_in_use_is_one_line(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip(backend)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["broker", "--port", str(port), "--backend", backend]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"aiokafkawire: cannot listen at 127.0.0.1:{port}: ")


def test_ports_that_there_are_not_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broker", "--port", "65535", "--nodes", "2"]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", "aiokafkawire: 2 brokers from port 65535 on: the first port is 65534 at most\n")
