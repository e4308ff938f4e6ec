"""The storage of groups, and their transfer between coordinators."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias

from ...errors import ErrorCode
from ..cluster.api_error import ApiError
from ..cluster.timers import Timer, Timers
from .committed import CommittedOffsets
from .consumer_group import ConsumerGroup
from .group import ClassicGroup
from .group_record import GroupImage
from .members import join_refusal, sync_refusal
from .rebalance import Rebalances
from .settings import GroupSettings
from .states import CoordinatorState

__all__ = ("Group", "GroupStore")

Group: TypeAlias = ClassicGroup | ConsumerGroup


class GroupStore:
    """All groups of a cluster, by id: their state at the coordinators, and their last written records.

    ``partition_of`` returns a group's partition of ``__consumer_offsets``, whose leader coordinates the group.
    """

    def __init__(
        self,
        settings: GroupSettings,
        timers: Timers,
        clock: Callable[[], int],
        committed: CommittedOffsets,
        partition_of: Callable[[str], int],
    ) -> None:
        self.rebalances: Rebalances = Rebalances(settings, timers, clock, self._write)
        self._settings = settings
        self._timers = timers
        self._committed = committed
        self._partition_of = partition_of
        self.on_load: Callable[[ConsumerGroup], None] = ConsumerGroup.stop
        """Called with each consumer group that a new coordinator loads."""
        self._groups: dict[str, Group] = {}
        # Of a consumer group, every change is written: the group is its own record.
        self._written: dict[str, GroupImage | ConsumerGroup] = {}
        self._leader_epochs: dict[int, int] = {}
        self._loading: dict[int, Timer] = {}
        self._loading_takes = 0.0

    def __iter__(self) -> Iterator[Group]:
        return iter(list(self._groups.values()))

    def get(self, group_id: str) -> Group | None:
        """Return the group with this id, or None."""
        return self._groups.get(group_id)

    def add(self, group: ConsumerGroup) -> None:
        """Store a consumer group in the place of the group with its id, whose offsets it keeps."""
        previous = self._groups.get(group.group_id)
        if previous is group:
            return
        if previous is not None:
            self._unload_group(previous, ErrorCode.REBALANCE_IN_PROGRESS)
        self._groups[group.group_id] = self._written[group.group_id] = group
        self.on_load(group)

    def downgrade(self, group: ClassicGroup) -> None:
        """Store a classic group in the place of the consumer group with its id, and start its sessions."""
        self._drop(self._groups[group.group_id])
        self._groups[group.group_id] = group
        self._write(group)
        for member in group.members.values():
            self.rebalances.keep_alive(group, member)

    def make(self, group_id: str) -> ClassicGroup:
        """Create a classic group without members."""
        group = self._groups[group_id] = ClassicGroup(group_id)
        self._write(group)
        return group

    def delete(self, group: Group) -> None:
        """Delete a group and its offsets."""
        self._drop(group)
        self._written.pop(group.group_id, None)
        self._committed.delete_group(group.group_id)

    # --- coordinators ------------------------------------------------------------------------------------------

    def check_loaded(self, group_id: str) -> None:
        """Check that the coordinator of a group has loaded the group.

        Raises:
            ApiError: COORDINATOR_LOAD_IN_PROGRESS.
        """
        timer = self._loading.get(self._partition_of(group_id))
        if timer is not None and timer.pending:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    @property
    def loading(self) -> list[int]:
        """The partitions of ``__consumer_offsets`` that new leaders are loading."""
        return [partition for partition, timer in self._loading.items() if timer.pending]

    def coordinator_changed(self, partition: int, leader_epoch: int, *, led: bool) -> None:
        """Drop the groups of a partition that has a new leader epoch; if it has a leader (``led``), load them again.

        Requests that wait at the old coordinator get NOT_COORDINATOR. The new coordinator loads the written records and
        then restarts the session timeout of every member.
        """
        if leader_epoch == self._leader_epochs.get(partition, 0):
            return
        self._leader_epochs[partition] = leader_epoch
        loading = self._loading.pop(partition, None)
        if loading is not None:
            loading.cancel()
        for group in self:
            if self._partition_of(group.group_id) == partition:
                self._unload_group(group)
        if not led:
            return
        if self._loading_takes:
            self._loading[partition] = self._timers.after(self._loading_takes, partial(self._load, partition))
        else:
            self._load(partition)

    @contextmanager
    def loading_for(self, seconds: float) -> Iterator[None]:
        """Let every coordinator that is elected while the context is open take ``seconds`` to load its groups."""
        self._loading_takes = seconds
        try:
            yield
        finally:
            self._loading_takes = 0.0

    def restart(self) -> None:
        """Reload all groups from their written records."""
        self._unload()
        self._load(None)

    def clear(self) -> None:
        """Delete all groups, because the topic that stores them, ``__consumer_offsets``, was deleted."""
        self._unload()
        self._written.clear()
        self._leader_epochs.clear()

    def _unload(self) -> None:
        for loading in self._loading.values():
            loading.cancel()
        self._loading.clear()
        for group in self:
            self._unload_group(group)

    def _write(self, group: ClassicGroup) -> None:
        self._written[group.group_id] = GroupImage.of(group)

    def _unload_group(self, group: Group, error: ErrorCode = ErrorCode.NOT_COORDINATOR) -> None:
        if isinstance(group, ClassicGroup):
            for member in group.members.values():
                member.answer_join(join_refusal(error, member.member_id))
                member.answer_sync(sync_refusal(error))
        self._drop(group)

    def _drop(self, group: Group) -> None:
        group.stop()
        if isinstance(group, ClassicGroup):
            group.go(CoordinatorState.DEAD)
        del self._groups[group.group_id]

    def _load(self, partition: int | None) -> None:
        # A group with offsets only may have no record of its own.
        for group_id in dict.fromkeys([*self._written, *self._committed.groups()]):
            if partition in (None, self._partition_of(group_id)):
                self._read(group_id)

    def _read(self, group_id: str) -> None:
        if group_id in self._groups:
            return
        image = self._written.get(group_id)
        if isinstance(image, ConsumerGroup):
            self._groups[group_id] = image
            self.on_load(image)
            return
        group = self._groups[group_id] = image.group() if image else ClassicGroup(group_id)
        for member in group.members.values():
            self.rebalances.keep_alive(group, member)
        if len(group.members) > self._settings.group_max_size:
            self.rebalances.prepare(group, "it has more members than group.max.size")
