"""Asks new leaders whether they have what was read of their partitions."""

from collections.abc import Callable, Container, Iterable
from typing import Final

import anyio
from anyio.abc import TaskGroup

from ..cluster.cluster import Cluster
from ..cluster.metadata import Snapshot
from ..errors import BrokerError, KafkaError, UnsupportedVersion, WireError, as_kafka_error
from ..protocol.schema import Versions
from ..types import TopicPartition
from .offsets_for_leader_epoch import EpochCheck, answered, due, request, settle
from .partition_errors import PartitionErrors
from .subscription_state import PartitionState, SubscriptionState, some_of

__all__ = ("PositionValidator",)

# Below v3 it takes the right to cluster actions, which consumers lack.
_FOR_CONSUMERS: Final = Versions.parse("3+")


class PositionValidator:
    """Checks positions under new leaders. ``on_change`` is called when there is something new."""

    def __init__(
        self, cluster: Cluster, positions: SubscriptionState, troubles: PartitionErrors, on_change: Callable[[], None]
    ) -> None:
        self._cluster, self._positions, self._troubles = cluster, positions, troubles
        self._on_change = on_change
        self._backoff = cluster.backoff()

    def start_due(
        self, tasks: TaskGroup, snapshot: Snapshot, places: Iterable[PartitionState], unread: Container[TopicPartition]
    ) -> None:
        """Begin the checks that are due now for these places."""
        for node_id, checks in due(snapshot, places, unread).items():
            for check in checks:
                check.place.validating = True
            tasks.start_soon(self._run, snapshot, node_id, checks)

    async def _run(self, snapshot: Snapshot, node_id: int, checks: list[EpochCheck]) -> None:
        """One question to one leader; after a failure these checks rest, and are due again."""
        cluster, began = self._cluster, self._cluster.runtime.now()
        failed: dict[EpochCheck, KafkaError] = {}
        try:
            await self._ask(snapshot, node_id, checks, failed)
        except UnsupportedVersion:
            for check in checks:
                if check.counts(self._positions):
                    check.place.validated = check.leader_epoch
        except Exception as raised:
            error = as_kafka_error(raised, f"validating {some_of([check.place.where for check in checks])}")
            failed = dict.fromkeys(checks, error)
        for check, error in failed.items():
            if check.counts(self._positions):
                self._troubles.failed([check.place], error, began, cluster.runtime.now())
        if failed:
            # Whatever it was, another may lead by now.
            cluster.outdated(snapshot)
            self._on_change()
            await anyio.sleep(self._backoff.next())
        else:
            self._backoff.reset()
        for check in checks:
            if self._positions.is_current(check.place, check.epoch):
                check.place.validating = False
        self._on_change()

    async def _ask(
        self, snapshot: Snapshot, node_id: int, checks: list[EpochCheck], failed: dict[EpochCheck, KafkaError]
    ) -> None:
        cluster = self._cluster
        deadline = cluster.deadline(cluster.config.default_api_timeout_ms / 1000)
        connection = await cluster.connection(snapshot.nodes[node_id], deadline=deadline)
        response = await connection.request(
            request(checks), timeout=deadline.left(cluster.runtime.now()), wanted=_FOR_CONSUMERS
        )
        found = answered(response)
        for check in checks:
            if not check.counts(self._positions):
                continue
            where = check.place.where
            if where not in found:
                failed[check] = WireError(f"{connection.where} answered OffsetForLeaderEpoch without {where}")
                continue
            error = settle(self._positions, check, found[where])
            if isinstance(error, BrokerError):
                failed[check] = error
            elif error is not None:
                self._troubles.report(check.place, error)
