"""Finds where partitions without a position begin."""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import anyio

from ..cluster.cluster import Cluster
from ..cluster.list_offsets import look_up_offsets
from ..errors import BrokerError, KafkaError, UsageError, as_kafka_error
from ..types import IsolationLevel, OffsetAndMetadata, OffsetSpec, TopicPartition
from .offset_reset import spec_of
from .partition_errors import PartitionErrors
from .subscription_state import PartitionState, SubscriptionState, some_of

if TYPE_CHECKING:  # many a consumer has no group
    from ..group.committed_offsets import GroupOffsets

__all__ = ("OffsetFetcher",)

_log = logging.getLogger("aiokafkawire.consumer")


class OffsetFetcher:
    """Looks offsets up for a consumer's places. ``on_change`` is called when there is something new of these places, or
    of whichever.

    Without ``group``, no place asks for what a group has committed.
    """

    def __init__(
        self,
        cluster: Cluster,
        positions: SubscriptionState,
        troubles: PartitionErrors,
        isolation: IsolationLevel,
        on_change: Callable[[Sequence[PartitionState]], None],
        group: "GroupOffsets | None" = None,
    ) -> None:
        self._cluster, self._positions, self._troubles = cluster, positions, troubles
        self._isolation, self._on_change, self._group = isolation, on_change, group

    def take_due(self) -> list[list[PartitionState]]:
        """The places to look up now, in groups for :meth:`run`: one that cannot be looked up holds up no other.

        Partitions with the same leader go together, and those of a topic that is not known yet; one without a leader,
        of a topic that is known, goes alone. What the consumer's group has committed is asked for all at once.
        """
        snapshot = self._cluster.snapshot
        committed: list[PartitionState] = []
        groups: dict[int | str | TopicPartition, list[PartitionState]] = {}
        for place in self._positions.to_look_up():
            if place.ask_group:
                place.looking_up = True
                committed.append(place)
                continue
            if place.spec is None:
                place.lost = True
                why = "has no position, and auto_offset_reset is 'none': seek first"
                self._troubles.report(place, UsageError(f"{place.where} {why}"))
                self._on_change(())
                continue
            place.looking_up = True
            topic, leader = snapshot.topics.get(place.where.topic), snapshot.leader(place.where)
            if leader is not None:
                groups.setdefault(leader.node_id, []).append(place)
            else:
                is_known = topic is not None and topic.partitions
                groups.setdefault(place.where if is_known else place.where.topic, []).append(place)
        return [*([committed] if committed else []), *groups.values()]

    async def run(self, places: list[PartitionState]) -> None:
        """Look these places up; an error is reported, and after a rest they are due again."""
        if places[0].ask_group:
            await self._run_committed(places)
            return
        epochs = {place.where: place.epoch for place in places}
        now = self._cluster.runtime.wall_ms()
        specs = {place.where: spec_of(place.spec, now) for place in places if place.spec is not None}
        offsets: dict[TopicPartition, int] = {}
        try:
            offsets = await self._offsets(specs)
        except Exception as error:
            await self._failed(places, epochs, as_kafka_error(error, f"looking up {some_of(specs)}"))
        for place in places:
            if self._positions.is_current(place, epochs[place.where]):
                place.looking_up = False
                if place.where in offsets:
                    place.position, place.spec = offsets[place.where], None
                    if not place.sought:
                        place.begun = OffsetAndMetadata(offsets[place.where])
        self._on_change(places)

    async def _run_committed(self, places: list[PartitionState]) -> None:
        """Where the group has committed nothing, the default is due next; a partition that failed is due again."""
        assert self._group is not None
        epochs = {place.where: place.epoch for place in places}
        found: dict[TopicPartition, OffsetAndMetadata | BrokerError | None] = {}
        try:
            deadline = self._cluster.deadline(self._cluster.config.default_api_timeout_ms / 1000)
            found = await self._group.look_up(epochs, deadline)
        except Exception as error:
            doing = f"looking up what group {self._group.group.group_id!r} has committed"
            await self._failed(places, epochs, as_kafka_error(error, doing))
        for place in places:
            if not self._positions.is_current(place, epochs[place.where]):
                continue
            place.looking_up = False
            one = found.get(place.where)
            place.ask_group = place.where not in found or isinstance(one, BrokerError)
            if isinstance(one, OffsetAndMetadata):
                place.begin(one)
        self._on_change(places)

    async def _failed(self, places: list[PartitionState], epochs: dict[TopicPartition, int], error: KafkaError) -> None:
        # Whoever sought elsewhere or dropped the partitions meanwhile does not want to hear of it.
        current = [place for place in places if self._positions.is_current(place, epochs[place.where])]
        if current:
            self._troubles.report(current[0], error)
            self._on_change(())
            self._cluster.outdated(self._cluster.snapshot)
            delay_ms = self._cluster.config.retry_backoff_max_ms
            _log.debug("looking up %s again in %d ms: %s", some_of([one.where for one in current]), delay_ms, error)
            await anyio.sleep(delay_ms / 1000)

    async def _offsets(self, specs: dict[TopicPartition, OffsetSpec]) -> dict[TopicPartition, int]:
        """The offset for each spec; the end of the log where no record is that late.

        None at all where the topic just became known: then it is known what can be looked up together.
        """
        deadline = self._cluster.deadline(self._cluster.config.default_api_timeout_ms / 1000)
        for topic in dict.fromkeys(where.topic for where in specs):
            await self._cluster.topic(topic, deadline)
        if len(specs) > 1 and not all(map(self._cluster.snapshot.leader, specs)):
            return {}
        found = await look_up_offsets(self._cluster, specs, deadline, self._isolation)
        late = {where: OffsetSpec.LATEST for where, one in found.items() if one is None}
        if late:
            found.update(await look_up_offsets(self._cluster, late, deadline, self._isolation))
        return {where: one.offset for where, one in found.items() if one is not None}
