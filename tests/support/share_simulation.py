"""A member of a share group with short locks, in virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Literal

from aiokafkawire import ShareConsumer, TopicPartition
from aiokafkawire.testing.configs.types import ConfigKind
from aiokafkawire.testing.simulation import Simulation, simulate

__all__ = ("A0", "LOCK", "share")

LOCK: Final = 1.0
"""Seconds that a record stays locked."""
A0: Final = TopicPartition("a", 0)


def share(
    body: Callable[[Simulation, ShareConsumer[bytes, bytes]], Awaitable[None]],
    *,
    records: int = 1,
    nodes: int = 1,
    mode: Literal["explicit", "implicit"] = "explicit",
) -> None:
    """Run a member of a share group on a topic with so many records, all in one batch."""

    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a")
        configs = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": str(round(LOCK * 1000))}
        sim.broker._cluster.configs.replace(ConfigKind.GROUP, "g", configs)
        async with sim.client() as client:
            async with client.producer(linger_ms=50) as producer:
                await producer.send_many("a", [b"%d" % number for number in range(records)])
            async with client.share_consumer("a", group_id="g", share_acknowledgement_mode=mode) as consumer:
                await body(sim, consumer)

    simulate(main, nodes=nodes)
