"""Asks new leaders whether positions are still valid, since their logs may have been truncated (KIP-320)."""

from collections.abc import Callable, Container, Iterable
from typing import Final

import anyio
from anyio.abc import TaskGroup

from ..cluster.cluster import Cluster
from ..cluster.metadata import Snapshot
from ..errors import BrokerError, KafkaError, UnsupportedVersion, WireError, as_kafka_error
from ..protocol.schema import Versions
from ..types import TopicPartition
from .pending_errors import PendingErrors
from .subscription_state import PartitionState, SubscriptionState, format_partitions
from .truncation_detection import EpochCheck, answered, due, request, settle

__all__ = ("PositionValidator",)

# Below v3 the request needs the ClusterAction permission, which consumers lack.
_FOR_CONSUMERS: Final = Versions.parse("3+")


class PositionValidator:
    """The validation of one consumer's positions by new leaders. ``on_change`` is called after each request."""

    def __init__(
        self, cluster: Cluster, positions: SubscriptionState, errors: PendingErrors, on_change: Callable[[], None]
    ) -> None:
        self._cluster, self._positions, self._errors = cluster, positions, errors
        self._on_change = on_change
        self._backoff = cluster.backoff()

    def start_due(
        self, tasks: TaskGroup, snapshot: Snapshot, states: Iterable[PartitionState], unread: Container[TopicPartition]
    ) -> None:
        """Start the checks of these partitions that are due."""
        for node_id, checks in due(snapshot, states, unread).items():
            for check in checks:
                check.state.validating = True
            tasks.start_soon(self._run, snapshot, node_id, checks)

    async def _run(self, snapshot: Snapshot, node_id: int, checks: list[EpochCheck]) -> None:
        """Send the checks to one leader; after a failure, back off before the checks are due again."""
        cluster, began = self._cluster, self._cluster.runtime.now()
        failed: dict[EpochCheck, KafkaError] = {}
        try:
            await self._ask(snapshot, node_id, checks, failed)
        except UnsupportedVersion:
            for check in checks:
                if check.counts(self._positions):
                    check.state.validated = check.leader_epoch
        except Exception as raised:
            error = as_kafka_error(
                raised, f"validating {format_partitions([check.state.partition for check in checks])}"
            )
            failed = dict.fromkeys(checks, error)
        for check, error in failed.items():
            if check.counts(self._positions):
                self._errors.failed([check.state], error, began, cluster.runtime.now())
        if failed:
            # There may be another leader by now.
            cluster.metadata.mark_stale(snapshot)
            self._on_change()
            await anyio.sleep(self._backoff.next())
        else:
            self._backoff.reset()
        for check in checks:
            if self._positions.is_current(check.state, check.epoch):
                check.state.validating = False
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
            partition = check.state.partition
            if partition not in found:
                failed[check] = WireError(f"{connection.broker} answered OffsetForLeaderEpoch without {partition}")
                continue
            error = settle(self._positions, check, found[partition])
            if isinstance(error, BrokerError):
                failed[check] = error
            elif error is not None:
                self._errors.report(check.state, error)
