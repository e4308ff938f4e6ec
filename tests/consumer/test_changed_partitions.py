"""A step of the fetcher looks at what something has happened to, and not at every partition of a large cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from support.clusters import partition

from aiokafkawire.cluster.metadata import Node, Snapshot, Topic
from aiokafkawire.consumer import fetch_planner
from aiokafkawire.consumer.changed_partitions import ChangedPartitions
from aiokafkawire.consumer.subscription_state import PartitionState, SubscriptionState
from aiokafkawire.testing.simulation import Simulation, simulate
from aiokafkawire.types import Address, OffsetSpec, TopicPartition

BROKERS = 3


def snapshot() -> Snapshot:
    """Twelve partitions, of which broker 1 leads 0, 3, 6 and 9, and all have replicas of all."""
    parts = [partition(index, 1 + index % BROKERS) for index in range(12)]
    for part in parts:
        part.replica_nodes = list(range(1, BROKERS + 1))
    nodes = {number: Node(number, Address("host", 9090 + number)) for number in range(1, BROKERS + 1)}
    return Snapshot(1, "cluster", 1, nodes, {"a": Topic("a", UUID(int=1), 0, parts)}, {})


class Looking:
    """An attention that has seen everything once."""

    def __init__(self) -> None:
        self.snapshot, self.positions = snapshot(), SubscriptionState(OffsetSpec.LATEST)
        self.positions.assign({TopicPartition("a", index): 0 for index in range(12)})
        self.attention = ChangedPartitions(self.positions)
        assert self.attention.take(self.snapshot, 0.0) is None
        assert self.attention.brokers == BROKERS

    def place(self, index: int) -> PartitionState:
        return self.positions.require(TopicPartition("a", index))

    def take(self, now: float = 0.0) -> list[int] | None:
        found = self.attention.take(self.snapshot, now)
        return None if found is None else sorted(place.partition.partition for place in found)


def test_all_of_a_brokers_partitions_are_looked_at_and_no_others() -> None:
    looking = Looking()
    looking.attention.mark_dirty([looking.place(3)])
    assert looking.take() == [0, 3, 6, 9]
    looking.attention.mark_dirty([looking.place(3), looking.place(9)])
    looking.attention.mark_dirty([looking.place(1)])
    assert looking.take() == [0, 1, 3, 4, 6, 7, 9, 10]
    # Once; and who is woken by the time that is up looks at everything.
    assert looking.take() is None
    looking.positions.appeared([TopicPartition("b", 0)])
    assert looking.take() is None
    assert looking.attention.topics == ("a", "b")


def _touched(looking: Looking) -> None:
    place = looking.positions.get(TopicPartition("a", 0))
    looking.attention.mark_dirty([place] if place is not None else ())


def _all(looking: Looking) -> None:
    looking.attention.mark_dirty()


def _newer(looking: Looking) -> None:
    looking.snapshot = snapshot()


def _paused(looking: Looking) -> None:
    looking.positions.pause(looking.place(11), True)


def _sought(looking: Looking) -> None:
    looking.positions.seek(TopicPartition("a", 11), 5)


def _dropped(looking: Looking) -> None:
    looking.positions.revoke([TopicPartition("a", 0)], None, "it was revoked", 0.0)


def _elsewhere(looking: Looking) -> None:
    looking.place(6).replica, looking.place(6).replica_until = 2, 1.0


def _unknown(looking: Looking) -> None:
    looking.place(6).position = None


@pytest.mark.parametrize("change", [_all, _newer, _paused, _sought, _dropped, _elsewhere, _unknown])
@pytest.mark.parametrize("first", [True, False])
def test_whatever_else_changes_has_everything_looked_at(change: Callable[[Looking], None], first: bool) -> None:
    looking = Looking()
    for what in (change, _touched) if first else (_touched, change):
        what(looking)
    assert looking.take() is None


def test_a_replica_whose_time_is_up_is_noticed() -> None:
    looking = Looking()
    _elsewhere(looking)
    assert looking.take() is None
    looking.attention.mark_dirty([looking.place(1)])
    assert looking.take(0.5) == [1, 4, 6, 7, 10]
    looking.attention.mark_dirty([looking.place(1)])
    assert looking.take(1.0) is None


def test_what_a_broker_costs_does_not_grow_with_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = 0
    plan = fetch_planner.plan

    def counted(known: Snapshot, places: list[PartitionState], *args: Any, **options: Any) -> Any:
        nonlocal looked_at
        looked_at += len(places)
        return plan(known, places, *args, **options)

    monkeypatch.setattr("aiokafkawire.consumer.fetcher.plan", counted)

    def partitions_looked_at(brokers: int) -> float:
        nonlocal looked_at

        async def main(sim: Simulation) -> None:
            sim.broker.create_topic("t", partitions=brokers)
            async with sim.client("app") as kafka:
                async with kafka.producer() as producer:
                    for index in range(brokers):
                        await producer.enqueue("t", b"x", partition=index)
                async with kafka.consumer("t", auto_offset_reset="earliest") as consumer:
                    left = brokers
                    async for _ in consumer:
                        left -= 1
                        if not left:
                            break

        looked_at = 0
        simulate(main, nodes=brokers)
        return looked_at / brokers

    few, many = partitions_looked_at(10), partitions_looked_at(100)
    assert many < 2 * few
