"""Handlers that take longer than a rebalance may wait: they are cancelled, and another member handles their records."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from aiokafkawire.testing.simulation import Simulation, simulate

POLL_INTERVAL_MS = 9_000


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_rebalance_waits_for_two_thirds_of_the_poll_interval(protocol: Any, caplog: pytest.LogCaptureFixture) -> None:
    began: list[tuple[str, int, float]] = []
    cancelled: list[tuple[int, float]] = []

    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a", partitions=2)
        stop = anyio.Event()
        joined_at = 0.0

        async def member(name: str) -> None:
            async def handle(record: Any) -> None:
                began.append((name, record.partition, anyio.current_time()))
                try:
                    await anyio.sleep(1_000 if name == "one" else 0.1)
                except anyio.get_cancelled_exc_class():
                    cancelled.append((record.partition, anyio.current_time() - joined_at))
                    raise
                if name == "two":
                    stop.set()

            async with sim.client(name) as kafka:
                await kafka.process(
                    "a",
                    handle,
                    group_id="g",
                    group_protocol=protocol,
                    max_poll_interval_ms=POLL_INTERVAL_MS,
                    drain_timeout=0,
                    stop=stop,
                )

        async with sim.client("writer") as kafka, kafka.producer() as producer:
            for partition in (0, 1):
                await producer.send("a", b"x", partition=partition)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(member, "one")
            while len(began) < 2:  # noqa: ASYNC110
                await anyio.sleep(0.1)
            joined_at = anyio.current_time()
            tasks.start_soon(member, "two")
            with anyio.fail_after(60):
                await stop.wait()

    simulate(main)
    (moved,) = {partition for name, partition, _ in began if name == "two"}
    waited = next(seconds for partition, seconds in cancelled if partition == moved)
    assert POLL_INTERVAL_MS * 2 / 3_000 <= waited < POLL_INTERVAL_MS * 2 / 3_000 + 6  # and until the rebalance begins
    assert any("since the group waits for the partitions for 6 s already" in line for line in caplog.messages)
