"""Plans the fetches of each broker.

The rules:

1. One fetch per broker is in flight at a time. A partition is fetched from one broker: its leader, or a closer replica.
2. The next fetch skips a partition that is paused, has no position or an unvalidated one, or has reached its end. If a
   partition has much unread data, the fetch requests the data after it, so that brokers work while the user reads. A
   partition with little unread data, or with two unread fetches, is skipped. Its broker gets no fetch at all then: a
   fetch of other partitions might wait for data, and so delay the partition once the user has read its data. But data
   that the user passes over, since it waits for other partitions, delays none.
3. Brokers fill a limited response in the order of the request, so the partition that returned data most recently comes
   last. In a fetch session brokers rotate the partitions themselves.
4. The unread data of all partitions stays below ``fetch_max_bytes``, which the fetches in flight share; a response may
   exceed its share by one batch per partition, as brokers always return a first batch whole (KIP-74). Data of
   partitions that are paused or passed over does not count, since it could keep all others from being fetched.
5. A response counts only for partitions whose epoch has not changed since the request.
"""

from collections.abc import Container, Iterable, Mapping
from typing import Final

import attrs

from ..cluster.metadata import Node, Partition, Snapshot
from ..types import TopicPartition
from .completed_fetch import CompletedFetch, PartitionFetch
from .read_replica import select_read_replica
from .subscription_state import PartitionState

__all__ = ("AT_LEAST_ONE_SINCE", "fetch_budgets", "limit_bytes", "plan")

AT_LEAST_ONE_SINCE: Final = 3
"""The first version of Fetch that returns a first batch whole, however large, and has a limit for all partitions
(KIP-74)."""


def plan(
    snapshot: Snapshot,
    states: Iterable[PartitionState],
    unread: Mapping[TopicPartition, CompletedFetch],
    ahead: Container[TopicPartition],
    busy: Container[int],
    *,
    max_bytes: int,
    now: float,
) -> tuple[dict[int, list[PartitionFetch]], TopicPartition | None]:
    """Return the partitions to fetch from each broker now, and a partition without a known leader, if there is any.

    ``states`` has all partitions of each broker to fetch from; ``ahead`` has the partitions whose data after ``unread``
    is fetched already; ``busy`` has the ids of brokers with a fetch in flight. ``max_bytes`` limits the data of each
    partition; ``now`` is in seconds.
    """
    occupied: set[int] = set()
    free: list[tuple[PartitionState, Node | None, int | None]] = []
    for state in sorted(states, key=lambda state: state.served):
        if state.is_suspended:
            continue
        node = select_read_replica(snapshot, state, now)
        fetched = unread.get(state.partition)
        if fetched is None:
            free.append((state, node, state.position))
        elif state.partition not in ahead and fetched.end is not None:
            free.append((state, node, fetched.end))
        elif node is not None and not state.passed_over:
            occupied.add(node.node_id)
    asks: dict[int, list[PartitionFetch]] = {}
    unled: TopicPartition | None = None
    for state, node, offset in free:
        if offset is None or state.lost or (state.until is not None and offset >= state.until):
            continue
        known = snapshot.partition(state.partition)
        if known is None or node is None:
            unled = state.partition
        elif node.node_id not in busy and node.node_id not in occupied and _continues(state, known, unread):
            limit = max(max_bytes, state.fetch_bytes or 0)
            from_leader = node.node_id == known.leader
            ask = PartitionFetch(state, state.epoch, offset, known.leader_epoch, limit, from_leader)
            asks.setdefault(node.node_id, []).append(ask)
    return asks, unled


def _continues(state: PartitionState, known: Partition, unread: Mapping[TopicPartition, CompletedFetch]) -> bool:
    """Return whether the position is valid under the leader's epoch, and unread data, if any, was fetched under it."""
    fetched = unread.get(state.partition)
    if fetched is not None and fetched.ask.leader_epoch != known.leader_epoch:
        return False
    return not state.needs_validation(known.leader_epoch)


def fetch_budgets(
    asked: Iterable[int], brokers: int, unread: Iterable[CompletedFetch], promised: Iterable[int], limit: int
) -> dict[int, int]:
    """Return how many bytes the next fetch of each broker may return, shared so that no broker has to wait for another.

    Brokers without a budget are left out. ``asked`` has the ids of the brokers to fetch from now; ``brokers`` is the
    number of all brokers that are read from; ``promised`` has the budgets of the fetches in flight; ``limit`` is the
    limit for all budgets and all unread data.
    """
    states = ((fetched.ask.state, len(fetched.records)) for fetched in unread)
    kept = sum(size for state, size in states if not (state.is_suspended or state.passed_over))
    left, share, found = limit - kept - sum(promised), max(1, limit // max(1, brokers)), {}
    for node_id in asked:
        if left <= 0:
            break
        found[node_id] = min(left, share)
        left -= found[node_id]
    return found


def limit_bytes(asks: list[PartitionFetch], version: int, budget: int) -> list[PartitionFetch]:
    """Return the partitions to fetch; for versions of Fetch before v3, limit them to ``budget`` bytes in all.

    These versions have limits per partition only, so each partition gets a share of the budget. A partition whose next
    message exceeds its share is fetched alone.
    """
    if version >= AT_LEAST_ONE_SINCE:
        return asks
    grown = next((ask for ask in asks if ask.state.fetch_bytes is not None), None)
    if grown is not None:
        return [grown]
    share = max(1, budget // len(asks))
    return [attrs.evolve(ask, max_bytes=min(ask.max_bytes, share)) for ask in asks]
