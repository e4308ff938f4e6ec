"""The picture of docs/top.md: `python tests/support/top_picture.py` draws it with the real program on a broker."""

from __future__ import annotations

import random
import re
from pathlib import Path

import anyio

from aiokafkawire import Client, TopicPartition
from aiokafkawire.cli.top.app import TopApp
from aiokafkawire.cli.top.options import Pattern
from aiokafkawire.cli.top.sampler import Sampler
from aiokafkawire.testing.broker import Broker

__all__ = ("draw",)

PICTURE = Path(__file__).parent.parent.parent / "docs" / "plots" / "top.svg"

TOPICS = {"orders": 400, "payments": 120, "clicks": 2_500, "shipments": 40, "audit": 3, "archive": 0}
"""The topics, and the records that each gets in a sample."""
GROUPS = {
    "billing": ("orders", 1.0),
    "fraud-check": ("payments", 0.7),
    "sessionizer": ("clicks", 0.97),
    "warehouse": ("shipments", 1.6),
    "auditors": ("audit", 0.0),
}
"""The groups, the topic of each, and how fast it reads: 1.0 is as fast as records come."""
SAMPLES = 12
BACKLOG = 7
"""The records at the start, in those of a sample; one of the groups has read none of them."""


async def draw() -> str:
    """Return the picture, as SVG."""
    chance = random.Random(7)
    async with (
        Broker(3, racks=["rack-a", "rack-b", "rack-c"], auto_create_topics_enable=False) as broker,
        Client(broker.bootstrap) as kafka,
        kafka.producer(linger_ms=1) as producer,
        anyio.create_task_group() as members,
    ):
        for name in TOPICS:
            broker.create_topic(name, partitions=3)
        leader = broker.leader("clicks", 1)
        behind = next(node for node in broker.isr("clicks", 1) if node != leader)
        broker.hold_replica("clicks", 1, behind)
        broker.shrink_isr("clicks", 1, behind)
        written = {name: BACKLOG * count for name, count in TOPICS.items()}
        read = {group: float(written[topic]) for group, (topic, _) in GROUPS.items()} | {"warehouse": 0.0}
        for name, count in written.items():
            await producer.send_many(name, [b"x"] * count, partition=0)

        async def go_on() -> None:
            for name, count in TOPICS.items():
                several = round(count * chance.uniform(0.8, 1.2))
                for _ in range(several):
                    await producer.enqueue(name, b"x", partition=0)
                written[name] += several
            await producer.flush()
            for group, (topic, speed) in GROUPS.items():
                pace = TOPICS[topic] * speed * chance.uniform(0.7, 1.3)
                read[group] = min(written[topic], read[group] + pace)
                await kafka.admin.alter_consumer_group_offsets(group, {TopicPartition(topic, 0): int(read[group])})

        async def read_on() -> None:
            async with kafka.consumer("payments", group_id="payouts", auto_commit_interval_ms=900) as consumer:
                async for _ in consumer:
                    pass

        for _ in range(2):
            members.start_soon(read_on)
        await go_on()
        sampler = Sampler(kafka, topics=Pattern(), groups=Pattern(), timeout=10.0)
        app = TopApp(kafka, sampler, interval=1.0, timeout=10.0)
        async with app.run_test(size=(80, 24)) as pilot:
            for _ in range(SAMPLES):
                await go_on()
                await pilot.pause(1.0)
            svg = app.export_screenshot(title="aiokafkawire top", simplify=True)
        members.cancel_scope.cancel()
    # Viewers that do not load fonts from elsewhere use their own.
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def main() -> None:
    PICTURE.write_text(anyio.run(draw), encoding="utf-8")


if __name__ == "__main__":
    main()
