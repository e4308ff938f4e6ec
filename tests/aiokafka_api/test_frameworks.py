"""Frameworks that import aiokafka run on this package after install(), each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.patience import PATIENCE

FASTSTREAM = """
from aiokafkawire.aiokafka import install

install()

import asyncio
import json

import aiokafka
from faststream import FastStream
from faststream.kafka import KafkaBroker

from aiokafkawire.testing import Broker


async def main():
    async with Broker() as cluster:
        cluster.create_topic("flights")
        cluster.create_topic("delays")
        broker = KafkaBroker(cluster.bootstrap, logger=None)
        app = FastStream(broker, logger=None)
        received = []

        @broker.subscriber("flights", group_id="airport", auto_offset_reset="earliest")
        @broker.publisher("delays")
        async def delay_of(origin: str, minutes: int) -> str:
            return f"{origin}: {minutes}"

        @broker.subscriber("delays", group_id="screen", auto_offset_reset="earliest", batch=True)
        async def show(lines: list[str]) -> None:
            received.extend(lines)
            if len(received) == 2:
                app.exit()

        @app.after_startup
        async def publish():
            await broker.publish({"origin": "EWR", "minutes": 2}, "flights", key=b"EWR")
            await broker.publish({"origin": "JFK", "minutes": 4}, "flights", key=b"JFK")

        await app.run()
        print(json.dumps([aiokafka.__name__, sorted(received)]))


asyncio.run(main())
"""
KSTREAMS = """
from aiokafkawire.aiokafka import install

install()

import asyncio
import json

import aiokafka
from kstreams import ConsumerRecord, create_engine
from kstreams.backends import Kafka

from aiokafkawire.testing import Broker


async def main():
    async with Broker() as cluster:
        cluster.create_topic("flights")
        engine = create_engine(title="airport", backend=Kafka(bootstrap_servers=[cluster.bootstrap]))
        received, over = [], asyncio.Event()

        @engine.stream("flights", group_id="screen", auto_offset_reset="earliest")
        async def show(record: ConsumerRecord):
            received.append(f"{record.key}: {record.value.decode()}")
            if len(received) == 2:
                over.set()

        await engine.start()
        await engine.send("flights", value=b"2", key="EWR", headers={"kind": "delay"})
        await engine.send("flights", value=b"4", key="JFK", headers={"kind": "delay"})
        await over.wait()
        await engine.stop()
        print(json.dumps([aiokafka.__name__, received]))


asyncio.run(main())
"""

FAUST = """
from aiokafkawire.aiokafka import install

install()

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import aiokafka
import faust

from aiokafkawire.testing.background import BackgroundBroker


class Flight(faust.Record):
    origin: str
    minutes: int


def run(bootstrap, result):
    app = faust.App(
        "airport", broker=f"kafka://{bootstrap}", store="memory://", topic_partitions=2, datadir=result.parent / "data"
    )
    flights = app.topic("flights", value_type=Flight, key_type=str)
    delays = app.Table("delays", default=int)

    @app.agent(flights)
    async def add(stream):
        missing = {"EWR", "JFK"}
        async for flight in stream.group_by(Flight.origin):
            delays[flight.origin] += flight.minutes
            missing.discard(flight.origin)
            if not missing:
                lines = sorted(f"{key}: {value}" for key, value in delays.items())
                result.write_text(json.dumps([aiokafka.__name__, lines]))
                os.kill(os.getpid(), signal.SIGTERM)

    @app.task
    async def publish():
        await flights.send(key="EWR", value=Flight("EWR", 1))
        await flights.send(key="JFK", value=Flight("JFK", 2))

    sys.argv[1:] = ["worker", "--without-web"]
    app.main()


if len(sys.argv) > 1:
    run(sys.argv[1], Path(sys.argv[2]))
with BackgroundBroker() as cluster:
    cluster.create_topic("flights", 2)
    result = Path(__file__).with_name("result.json")
    for _ in range(2):  # the second worker restores the table of the first one, and adds to it
        subprocess.run([sys.executable, __file__, cluster.bootstrap, result], capture_output=True, check=True)
print(result.read_text())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("framework", "program"),
    [
        pytest.param("faststream", FASTSTREAM, id="FastStream"),
        pytest.param("kstreams", KSTREAMS, id="kstreams"),
        pytest.param("faust", FAUST, id="Faust"),
    ],
)
def test_an_app_of_a_framework_publishes_and_receives(framework: str, program: str, tmp_path: Path) -> None:
    if find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed: pip install 'aiokafkawire[test]', or `nox -s faust`")
    file = tmp_path / "program.py"
    file.write_text(program)
    run = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert run.returncode == 0, run.stderr
    package, received = json.loads(run.stdout.splitlines()[-1])
    assert package == "aiokafkawire.aiokafka"
    assert received == ["EWR: 2", "JFK: 4"]
