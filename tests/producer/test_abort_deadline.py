"""An abort has its own time, whatever the commit before it took. In virtual time."""

from __future__ import annotations

import pytest

from aiokafkawire.errors import ErrorCode, TransactionAbortable
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.simulation import Simulation, simulate


def test_a_commit_that_fails_late_leaves_its_abort_the_whole_time() -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("t")
        async with sim.client() as kafka, kafka.producer(transactional_id="x", max_block_ms=10_000) as producer:
            async with producer.transaction() as transaction:
                await transaction.send("t", b"known")  # metadata, coordinator and producer id
            sim.broker.on(ApiKey.END_TXN, answer=ErrorCode.TRANSACTION_ABORTABLE, delay_answer=8)
            slow = sim.broker.on(ApiKey.END_TXN, delay_answer=5)
            with pytest.raises(TransactionAbortable):
                async with producer.transaction() as transaction:
                    await transaction.send("t", b"aborted")
            async with producer.transaction() as transaction:
                await transaction.send("t", b"committed")
            assert slow.is_met
            async with kafka.consumer("t", auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
                assert [(await anext(consumer)).value for _ in range(2)] == [b"known", b"committed"]

    simulate(main, seed=1)
