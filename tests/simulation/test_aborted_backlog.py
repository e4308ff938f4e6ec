"""A member of a share group passes a backlog of aborted transactions quickly, though it brings no records."""

from aiokafkawire import ConfigResource
from aiokafkawire.testing.simulation import Simulation, simulate

_TRANSACTIONS = 100
_GROUP = "careful"


class _OnPurpose(Exception):
    """A transaction is to be aborted."""


async def pass_aborted_transactions(sim: Simulation) -> float:
    """Return the seconds until the member gets the record after the aborted ones."""
    sim.broker.create_topic("a", partitions=1)
    async with sim.client() as kafka, kafka.producer(transactional_id="t") as producer:
        configs = {"share.isolation.level": "read_committed", "share.auto.offset.reset": "earliest"}
        await kafka.admin.incremental_alter_configs({ConfigResource.group(_GROUP): configs})
        for _ in range(_TRANSACTIONS):
            try:
                async with producer.transaction() as transaction:
                    await transaction.send("a", b"aborted")
                    raise _OnPurpose
            except _OnPurpose:
                pass
        async with producer.transaction() as transaction:
            await transaction.send("a", b"committed")
        began = sim.now()
        async with kafka.share_consumer("a", group_id=_GROUP, max_poll_records=1) as consumer:
            async for record in consumer:
                async with record:
                    assert record.value == b"committed"
                break
        return sim.now() - began


def test_aborted_transactions_are_passed_without_long_waits() -> None:
    assert simulate(pass_aborted_transactions, seed=1).value < 0.05 * _TRANSACTIONS
