"""Finds the offsets at which to begin reading partitions that have no position."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import anyio

from ..cluster.cluster import Cluster
from ..cluster.list_offsets import look_up_starts
from ..errors import BrokerError, KafkaError, UsageError, as_kafka_error
from ..event_log import EventLog
from ..types import IsolationLevel, OffsetAndMetadata, OffsetSpec, TopicPartition
from .offset_reset_policy import resolve_start
from .pending_errors import PendingErrors
from .subscription_state import PartitionState, SubscriptionState, format_partitions

if TYPE_CHECKING:  # consumers without a group do not need it
    from ..group.group_offsets import GroupOffsets

__all__ = ("InitialPositions",)

_log = EventLog("aiokafkawire.consumer")


class InitialPositions:
    """The lookups of the offsets at which one consumer begins to read its partitions.

    ``on_change`` is called with the partitions that have changed, or with an empty sequence if any partition may have
    changed. Without ``group``, there are no committed offsets.
    """

    def __init__(
        self,
        cluster: Cluster,
        positions: SubscriptionState,
        errors: PendingErrors,
        isolation: IsolationLevel,
        on_change: Callable[[Sequence[PartitionState]], None],
        group: "GroupOffsets | None" = None,
    ) -> None:
        self._cluster, self._positions, self._errors = cluster, positions, errors
        self._isolation, self._on_change, self._group = isolation, on_change, group

    def take_due(self) -> list[list[PartitionState]]:
        """Return the partitions to look up now, in groups for :meth:`run`, so that a failing lookup delays no other.

        Partitions that may have committed offsets form one group. Other partitions form a group for each leader, and
        for each unknown topic; a partition without a leader is a group of its own.
        """
        snapshot = self._cluster.metadata.snapshot
        committed: list[PartitionState] = []
        groups: dict[int | str | TopicPartition, list[PartitionState]] = {}
        for state in self._positions.to_look_up():
            if state.ask_group:
                state.looking_up = True
                committed.append(state)
                continue
            if state.spec is None:
                state.lost = True
                why = "has no position, and auto_offset_reset is 'none': call seek() first"
                self._errors.report(state, UsageError(f"{state.partition} {why}"))
                self._on_change(())
                continue
            state.looking_up = True
            topic, leader = snapshot.topics.get(state.partition.topic), snapshot.leader(state.partition)
            if leader is not None:
                groups.setdefault(leader.node_id, []).append(state)
            else:
                is_known = topic is not None and topic.partitions
                groups.setdefault(state.partition if is_known else state.partition.topic, []).append(state)
        return [*([committed] if committed else []), *groups.values()]

    async def run(self, states: list[PartitionState]) -> None:
        """Look up the offsets of one group of partitions; after an error, report it, and back off before a retry."""
        if states[0].ask_group:
            await self._run_committed(states)
            return
        epochs = {state.partition: state.epoch for state in states}
        now = self._cluster.runtime.wall_ms()
        specs = {state.partition: resolve_start(state.spec, now) for state in states if state.spec is not None}
        offsets: dict[TopicPartition, int] = {}
        try:
            offsets = await self._offsets(specs)
        except Exception as error:
            await self._failed(states, epochs, as_kafka_error(error, f"looking up {format_partitions(specs)}"))
        for state in states:
            if self._positions.is_current(state, epochs[state.partition]):
                state.looking_up = False
                if state.partition in offsets:
                    state.position, state.spec = offsets[state.partition], None
        self._on_change(states)

    async def _run_committed(self, states: list[PartitionState]) -> None:
        """Fetch committed offsets. A partition without one has its spec looked up next; a failed one is due again."""
        assert self._group is not None
        epochs = {state.partition: state.epoch for state in states}
        found: dict[TopicPartition, OffsetAndMetadata | BrokerError | None] = {}
        try:
            deadline = self._cluster.deadline(self._cluster.config.default_api_timeout_ms / 1000)
            found = await self._group.look_up(epochs, deadline, self._positions.assigned_ids(epochs))
        except Exception as error:
            doing = f"looking up what group {self._group.group_id!r} has committed"
            await self._failed(states, epochs, as_kafka_error(error, doing))
        for state in states:
            if not self._positions.is_current(state, epochs[state.partition]):
                continue
            state.looking_up = False
            offset = found.get(state.partition)
            state.ask_group = state.partition not in found or isinstance(offset, BrokerError)
            if isinstance(offset, OffsetAndMetadata):
                state.begin(offset)
        self._on_change(states)

    async def _failed(self, states: list[PartitionState], epochs: dict[TopicPartition, int], error: KafkaError) -> None:
        # After a seek or a revocation, the error no longer matters.
        current = [state for state in states if self._positions.is_current(state, epochs[state.partition])]
        if current:
            # A topic that was created again with fewer partitions is no error of the user: the group takes them back.
            if not (isinstance(error, UsageError) and current[0].by_group):
                self._errors.report(current[0], error)
                self._on_change(())
            self._cluster.metadata.mark_stale(self._cluster.metadata.snapshot)
            delay = self._cluster.config.retry_backoff_max_ms / 1000
            named = format_partitions([state.partition for state in current])
            message = "looking up %(partitions)s again in %(delay).3f s: %(error)s"
            _log.debug(message, partitions=named, delay=delay, error=error)
            await anyio.sleep(delay)

    async def _offsets(self, specs: dict[TopicPartition, OffsetSpec]) -> dict[TopicPartition, int]:
        """Return the offset for each spec; the end of the log if no record has the spec's time, or a later one.

        If one of several partitions has no leader, return no offsets, so that :meth:`take_due` groups them anew.
        Raise WireError if a partition has no end.
        """
        deadline = self._cluster.deadline(self._cluster.config.default_api_timeout_ms / 1000)
        for topic in dict.fromkeys(partition.topic for partition in specs):
            await self._cluster.metadata.topic(topic, deadline)
        if len(specs) > 1 and not all(map(self._cluster.metadata.snapshot.leader, specs)):
            return {}
        return await look_up_starts(self._cluster, specs, deadline, self._isolation)
