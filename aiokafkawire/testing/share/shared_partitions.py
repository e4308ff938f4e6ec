"""The states of all shared partitions of a cluster, which outlive the leaders of the partitions."""

from collections.abc import Callable, Iterator
from functools import partial
from uuid import UUID

import attrs

from ..cluster.replicas import HostedPartition
from ..cluster.timers import Timer, Timers
from ..configs.configs import Configs
from ..logs.log import PartitionLog
from .acknowledgements import AcknowledgedRange
from .assignor import SharedPartition
from .dead_letters import DeadLetterQueues
from .group_configs import ShareGroupConfigs, initial_offset
from .share_partition import SharePartition
from .share_sessions import ShareSession

__all__ = ("ShareState", "SharedPartitions")


@attrs.define(eq=False)
class ShareState:
    """One partition of one group: its records in flight, and the log and the leader that they belong to."""

    group_id: str
    log: PartitionLog
    leader: int
    leader_epoch: int
    partition: SharePartition
    lock: Timer | None = None


class SharedPartitions:
    """The states of shared partitions, by group and partition, and the timers of their locks.

    ``clock`` returns the time in ms since the epoch; ``on_available`` is called when records of a log are available
    again. ``dead_letters`` gets the records that are archived because no member could process them.
    """

    def __init__(
        self,
        timers: Timers,
        configs: Configs,
        clock: Callable[[], int],
        on_available: Callable[[PartitionLog], None],
        dead_letters: DeadLetterQueues,
    ) -> None:
        self._timers = timers
        self._configs = configs
        self._clock = clock
        self._on_available = on_available
        self._dead_letters = dead_letters
        self._states: dict[tuple[str, SharedPartition], ShareState] = {}

    def configs(self, group_id: str) -> ShareGroupConfigs:
        """Return the configs of a share group."""
        return ShareGroupConfigs.of(self._configs, group_id)

    def get(self, group_id: str, key: SharedPartition) -> ShareState | None:
        """Return the state of a partition, or None if the group has not begun it."""
        return self._states.get((group_id, key))

    def begin(self, group_id: str, key: SharedPartition, hosted: HostedPartition) -> ShareState:
        """Return the state of a partition at its leader; a new one begins at ``share.auto.offset.reset``.

        Raises ApiError as :func:`initial_offset`.
        """
        state = self._states.get((group_id, key))
        if state is None:
            offset = initial_offset(hosted.log, self.configs(group_id).offset_reset, self._clock())
            state = self._set(group_id, key, hosted, SharePartition(offset))
        state.partition.log_started_at(hosted.log.log_start_offset)
        return state

    def alter(self, group_id: str, key: SharedPartition, hosted: HostedPartition, offset: int) -> None:
        """Let a group begin anew at an offset."""
        self._drop([(group_id, key)])
        state = self._set(group_id, key, hosted, SharePartition(offset))
        state.partition.stored_start = offset

    def _set(
        self, group_id: str, key: SharedPartition, hosted: HostedPartition, partition: SharePartition
    ) -> ShareState:
        state = ShareState(group_id, hosted.log, hosted.leader, hosted.leader_epoch, partition)
        self._states[group_id, key] = state
        return state

    # --- the end of acquisitions -------------------------------------------------------------------------------

    def locked(self, state: ShareState) -> None:
        """Start the timer of a partition's next lock, after records were acquired or renewed."""
        deadline = state.partition.next_deadline
        if state.lock is not None:
            state.lock.cancel()
        state.lock = None
        if deadline is not None:
            state.lock = self._timers.after(max(0.0, deadline - self._timers.now()), partial(self._expire, state))

    def lock_end(self, group_id: str) -> float:
        """Return the time at which locks that begin now end."""
        return self._timers.now() + self.configs(group_id).lock_ms / 1000

    def acknowledge(self, state: ShareState, member_id: str, parts: list[AcknowledgedRange]) -> None:
        """Apply a member's acknowledgements. Raises ApiError as :meth:`SharePartition.acknowledge`."""
        limit = self.configs(state.group_id).delivery_limit
        state.partition.acknowledge(member_id, parts, limit, self.lock_end(state.group_id))
        self._released(state)

    def _released(self, state: ShareState) -> None:
        self.locked(state)
        self._dead_letters.write(state.group_id, state.log, state.partition.take_dead_letters())
        self._on_available(state.log)

    def release(self, session: ShareSession, node_id: int) -> None:
        """Release the records that the member of an ended session has acquired from the broker ``node_id``.

        The session may still have partitions that other brokers lead by now: their locks hold.
        """
        limit = self.configs(session.group_id).delivery_limit
        for key in session.partitions:
            state = self.get(session.group_id, key)
            if state is not None and state.leader == node_id:
                state.partition.release_member(session.member_id, limit)
                self._released(state)

    def _expire(self, state: ShareState) -> None:
        if state.partition.expire(self._timers.now(), self.configs(state.group_id).delivery_limit):
            self._released(state)
        else:
            self.locked(state)

    # --- changes of partitions and groups ----------------------------------------------------------------------

    def start(self) -> None:
        """Go back to the stored states, when the cluster is opened."""
        for state in self._states.values():
            self._lead_anew(state)

    def partition_changed(self, hosted: HostedPartition) -> None:
        """Let a new leader of a partition go back to the stored states."""
        for state in self._of_log(hosted.log):
            if state.leader_epoch != hosted.leader_epoch:
                state.leader, state.leader_epoch = hosted.leader, hosted.leader_epoch
                self._lead_anew(state)

    def _lead_anew(self, state: ShareState) -> None:
        state.partition.led_anew(state.log.log_end_offset)
        self.locked(state)

    def _of_log(self, log: PartitionLog) -> Iterator[ShareState]:
        return (state for state in list(self._states.values()) if state.log is log)

    def delete_topic(self, topic_id: UUID) -> None:
        """Delete the states of a topic in all groups."""
        self._drop([key for key in self._states if key[1][0] == topic_id])

    def delete_group(self, group_id: str) -> None:
        """Delete all states of a group."""
        self._drop([key for key in self._states if key[0] == group_id])

    def delete_offsets(self, group_id: str, topic_id: UUID) -> None:
        """Delete the states of a topic in one group."""
        self._drop([key for key in self._states if (key[0], key[1][0]) == (group_id, topic_id)])

    def clear(self) -> None:
        """Delete all states."""
        self._drop(list(self._states))

    def _drop(self, keys: list[tuple[str, SharedPartition]]) -> None:
        for key in keys:
            state = self._states.pop(key, None)
            if state is not None and state.lock is not None:
                state.lock.cancel()
