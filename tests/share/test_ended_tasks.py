"""Share consumers whose background task has failed."""

from __future__ import annotations

from typing import NoReturn

import anyio
import pytest

from aiokafkawire import Client, UsageError
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio


async def test_nobody_waits_for_the_records_of_a_task_that_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        broker.create_topic("t")
        async with kafka.share_consumer("t", group_id="g") as consumer:
            assert await consumer.poll(timeout=0.1) == []

            def fail(_: object) -> NoReturn:
                raise RuntimeError("a defect")

            monkeypatch.setattr(consumer._fetcher._worker, "_step", fail)
            with anyio.fail_after(10):
                for _ in range(2):
                    with pytest.raises(UsageError, match="this share consumer is closed"):
                        await consumer.poll()
            health = consumer.health()
            assert health.failed is not None
            assert "the log has its error" in health.failed
