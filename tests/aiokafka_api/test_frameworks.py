"""Frameworks that import aiokafka run on this package after install(), each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

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


@pytest.mark.parametrize(
    ("framework", "program"),
    [pytest.param("faststream", FASTSTREAM, id="FastStream"), pytest.param("kstreams", KSTREAMS, id="kstreams")],
)
def test_an_app_of_a_framework_publishes_and_receives(framework: str, program: str) -> None:
    if find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed: pip install 'aiokafkawire[test]'")
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert run.returncode == 0, run.stderr
    package, received = json.loads(run.stdout.splitlines()[-1])
    assert package == "aiokafkawire.aiokafka"
    assert received == ["EWR: 2", "JFK: 4"]
