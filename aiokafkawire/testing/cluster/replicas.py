"""One partition and its replicas: the leader, the followers, their end offsets and the high watermark.

Only the leader's log is stored. The log of a follower is a prefix of it, so the follower's end offset suffices. A
replica that returns after a change of the leader truncates its log to a prefix of the new leader's log.
"""

from collections.abc import Callable, Set

from ...errors import ErrorCode
from ..logs.log import PartitionLog
from .api_error import ApiError
from .leader_epochs import EpochEnd, LeaderEpochs

__all__ = ("NO_LEADER", "HostedPartition")

NO_LEADER = -1

MIN_INSYNC_REPLICAS = "min.insync.replicas"
UNCLEAN_ELECTION = "unclean.leader.election.enable"
_DEFAULTS = {MIN_INSYNC_REPLICAS: "1", UNCLEAN_ELECTION: "false"}


class HostedPartition:
    """A partition and the state of its replicas.

    1. Followers copy appended records at once, unless a test holds them (``held``) or their broker is down.
    2. The high watermark is the lowest end offset of the in-sync replicas, and falls only if an unclean election loses
       records. It does not advance while fewer than ``min_insync_replicas`` are in sync (KIP-966).
    3. A broker that stops leaves the in-sync replicas. If fewer than ``min_insync_replicas`` are left, the stopped
       broker stays eligible to lead, since it has all committed records (KIP-966).
    4. The leader epoch grows with each change of the leader; the partition epoch also with changes of the replicas.

    Args:
        log: the records.
        replicas: the brokers with a replica, the preferred leader first.
        down: the brokers that do not run: a set that the caller keeps up to date.
        config: a function that returns the value of a topic setting by its name.
    """

    def __init__(
        self,
        log: PartitionLog,
        replicas: list[int],
        down: Set[int] = frozenset(),
        config: Callable[[str], str] = _DEFAULTS.__getitem__,
    ) -> None:
        self.log = log
        self.replicas: list[int] = replicas
        self.down = down
        self.config = config
        self.held: dict[int, int] = {}
        """The followers that a test keeps from copying, with the high watermark that each knew when it was held."""
        self.in_sync_replicas: list[int] = [node for node in replicas if node not in down]
        self.eligible_leader_replicas: list[int] = [] if self.in_sync_replicas else replicas[:1]
        self.log_dirs: dict[int, str] = {}
        """The log directory of each replica, by broker; a replica gets one on first use (LogDirs)."""
        self.adding: list[int] = []
        self.removing: list[int] = []
        self.leader: int = self._electable()
        self.leader_epoch: int = 0
        self.leader_epoch_start: int = 0
        """The end offset of the log when the leader took over."""
        self.partition_epoch: int = 0
        self.epochs: LeaderEpochs = LeaderEpochs()
        self.epochs.begin(0, 0)
        self._ends: dict[int, int] = dict.fromkeys(replicas, 0)

    @property
    def index(self) -> int:
        """The partition's number in the topic."""
        return self.log.partition

    @property
    def offline_replicas(self) -> list[int]:
        """The replicas whose brokers are down."""
        return [node for node in self.replicas if node in self.down]

    @property
    def min_insync_replicas(self) -> int:
        """The number of in-sync replicas that a write with acks=all needs; at most as many as there are replicas."""
        return min(int(self.config(MIN_INSYNC_REPLICAS)), len(self.replicas))

    @property
    def lacks_replicas(self) -> bool:
        """Whether too few replicas are in sync for a write with acks=all."""
        return len(self.in_sync_replicas) < self.min_insync_replicas

    @property
    def lagging(self) -> list[int]:
        """The in-sync replicas that lack records of the leader."""
        return [node for node in self.in_sync_replicas if self.end_offset(node) < self.log.log_end_offset]

    def end_offset(self, node: int) -> int:
        """Return the end offset of the replica on ``node``."""
        return self.log.log_end_offset if node == self.leader else self._ends[node]

    def high_watermark(self, node: int) -> int:
        """Return the high watermark known on ``node``; it does not rise while a test holds the replica (``held``)."""
        known = self.held.get(node) if node != self.leader else None
        whole = self.log.high_watermark if known is None else known
        return min(whole, self.end_offset(node), self.log.high_watermark)

    def last_stable_offset(self, node: int) -> int:
        """Return the offset up to which read_committed consumers may read from the replica on ``node``."""
        return min(self.log.last_stable_offset, self.high_watermark(node))

    def epoch_end(self, epoch: int, node: int) -> EpochEnd:
        """Return the end of an epoch in the log of the replica on ``node``; see :meth:`LeaderEpochs.end_of`."""
        start, end = self.log.log_start_offset, self.end_offset(node)
        return self.epochs.end_of(epoch, start, max(start, end), leads=node == self.leader)

    def check_epoch(self, epoch: int) -> None:
        """Check the leader epoch that a client knows; a negative one means unknown (KIP-320).

        Raises:
            ApiError: FENCED_LEADER_EPOCH, the client's epoch is older; UNKNOWN_LEADER_EPOCH, it is newer.
        """
        if epoch < 0 or epoch == self.leader_epoch:
            return
        raise ApiError(ErrorCode.FENCED_LEADER_EPOCH if epoch < self.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH)

    def check_leader(self, node: int) -> None:
        """Check that this broker leads the partition.

        Raises:
            ApiError: NOT_LEADER_OR_FOLLOWER.
        """
        if node != self.leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    # --- copying -----------------------------------------------------------------------------------------------

    def replicate(self) -> bool:
        """Let the followers that are not held or down copy all records; return whether the high watermark advanced."""
        if self.leader == NO_LEADER:
            return False
        end = self.log.log_end_offset
        for node in self.replicas:
            if node == self.leader or self._follows(node):
                self._ends[node] = end
        if self.lacks_replicas:
            return False
        # With enough replicas in sync, the high watermark may pass replicas that are only eligible to lead.
        self.eligible_leader_replicas.clear()
        before = self.log.high_watermark
        self.log.high_watermark = max(before, min(self.end_offset(node) for node in self.in_sync_replicas))
        return self.log.high_watermark != before

    def hold(self, node: int) -> None:
        """Keep a follower from copying; the follower stays in sync until :meth:`expel`.

        Raises:
            ValueError: the broker is the leader.
        """
        if node == self.leader:
            raise ValueError(f"broker {node} leads {self.log.topic}-{self.index}: it has nothing to copy")
        self.held.setdefault(node, self.high_watermark(node))

    def release(self, node: int) -> bool:
        """Let a held follower copy and rejoin the in-sync replicas; return whether anything changed."""
        self.held.pop(node, None)
        return self._rejoin(node)

    def expel(self, node: int) -> bool:
        """Remove a follower from the in-sync replicas, as a leader does if it lags; return whether it was in sync."""
        if node not in self.in_sync_replicas or node == self.leader:
            return False
        self._leave(node)
        self.partition_epoch += 1
        self.replicate()
        return True

    # --- elections ------------------------------------------------------------------------------------------------

    def elect(self, node: int, *, unclean: bool = False) -> None:
        """Make a replica the leader. Records that this replica had not copied are lost.

        Raises:
            ApiError: ELIGIBLE_LEADERS_NOT_AVAILABLE, there is no such replica, its broker is down, or it may lack
                committed records and ``unclean`` is off.
        """
        if node not in self.replicas or node in self.down or not (unclean or self._is_eligible(node)):
            raise ApiError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
        if node != self.leader:
            self._lead(node)

    def elect_preferred(self) -> None:
        """Elect the preferred leader, which is the first replica, as ElectLeaders does.

        Raises:
            ApiError: ELECTION_NOT_NEEDED, the preferred leader leads already; PREFERRED_LEADER_NOT_AVAILABLE, its
                broker is down, or it may lack committed records.
        """
        preferred = self.replicas[0]
        if self.leader == preferred:
            raise ApiError(ErrorCode.ELECTION_NOT_NEEDED)
        if preferred in self.down or not self._is_eligible(preferred):
            raise ApiError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
        self._lead(preferred)

    def elect_any(self) -> None:
        """Elect any replica whose broker runs, if there is no leader; records may be lost.

        Raises:
            ApiError: ELECTION_NOT_NEEDED, there is a leader; ELIGIBLE_LEADERS_NOT_AVAILABLE, no replica's broker runs.
        """
        if self.leader != NO_LEADER:
            raise ApiError(ErrorCode.ELECTION_NOT_NEEDED)
        successor = self._electable(unclean=True)
        if successor == NO_LEADER:
            raise ApiError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
        self._lead(successor)

    def place(self, replicas: list[int]) -> None:
        """Move the partition to these brokers, at least one of which is in sync; new replicas copy the log at once."""
        gone = [node for node in self.replicas if node not in replicas]
        self.replicas = replicas
        self.held = {node: known for node, known in self.held.items() if node in replicas}
        self._ends = {node: self.end_offset(node) if node in self._ends else 0 for node in replicas}
        self.log_dirs = {node: path for node, path in self.log_dirs.items() if node in replicas}
        self.partition_epoch += 1
        for nodes in (self.in_sync_replicas, self.eligible_leader_replicas):
            nodes[:] = [node for node in nodes if node in replicas]
        if self.leader in gone:
            self._lead(self._electable())
        elif gone and self.leader != NO_LEADER:
            # A new epoch notifies consumers that read from a removed replica.
            self._lead(self.leader)
        else:
            self._rejoin_all()

    def node_stopped(self, node: int) -> bool:
        """Update the replicas after a broker was added to ``down``; return whether anything changed."""
        if node not in self.replicas:
            return False
        # The replica keeps its end offset until its broker returns.
        self._ends[node] = self.end_offset(node)
        self._leave(node)
        self.partition_epoch += 1
        if node == self.leader:
            self._lead(self._electable(unclean=self.config(UNCLEAN_ELECTION) == "true"))
        self.replicate()
        return True

    def node_started(self, node: int) -> bool:
        """Update the replicas after a broker was removed from ``down``; return whether anything changed."""
        if node not in self.replicas:
            return False
        if self.leader != NO_LEADER:
            return self._rejoin(node)
        successor = self._electable(unclean=self.config(UNCLEAN_ELECTION) == "true")
        if successor == NO_LEADER:
            return False
        self._lead(successor)
        return True

    def _is_eligible(self, node: int) -> bool:
        return node in self.in_sync_replicas or node in self.eligible_leader_replicas

    def _electable(self, *, unclean: bool = False) -> int:
        running = [node for node in self.replicas if node not in self.down]
        clean = [node for node in running if self._is_eligible(node)]
        return next(iter(clean or (running if unclean else [])), NO_LEADER)

    def _lead(self, node: int) -> None:
        """Make ``node``, a running replica or NO_LEADER, the leader and begin a new leader epoch."""
        if self.leader not in self.down:
            self.replicate()
        if self.leader in self._ends:
            self._ends[self.leader] = self.log.log_end_offset
        if node != NO_LEADER:
            self._take_over(node)
        self.leader = node
        self.leader_epoch += 1
        self.partition_epoch += 1
        if node == NO_LEADER:
            return
        self.leader_epoch_start = self.log.log_end_offset
        self.epochs.begin(self.leader_epoch, self.leader_epoch_start)
        self._rejoin_all()

    def _take_over(self, node: int) -> None:
        """Truncate the log to the new leader's end; a leader that was not in sync becomes the only in-sync replica."""
        if self._ends[node] < self.log.log_end_offset:
            self.log.truncate(self._ends[node])
        end = self.log.log_end_offset
        self._ends = {replica: min(offset, end) for replica, offset in self._ends.items()}
        if node not in self.in_sync_replicas:
            if node not in self.eligible_leader_replicas:
                self.eligible_leader_replicas.clear()
            self.in_sync_replicas = [node]
        if node in self.eligible_leader_replicas:
            self.eligible_leader_replicas.remove(node)

    # --- in-sync replicas ------------------------------------------------------------------------------------------

    def _follows(self, node: int) -> bool:
        may = self.leader != NO_LEADER and node in self.replicas
        return may and node not in self.held and node not in self.down

    def _leave(self, node: int) -> None:
        if node not in self.in_sync_replicas:
            return
        self.in_sync_replicas.remove(node)
        if self.lacks_replicas:
            self.eligible_leader_replicas.append(node)

    def _rejoin(self, node: int) -> bool:
        """Let a replica copy and rejoin the in-sync ones unless it is held or down; return whether anything changed."""
        if not self._follows(node):
            return False
        moved = self.replicate()
        if node in self.in_sync_replicas:
            return moved
        if node in self.eligible_leader_replicas:
            self.eligible_leader_replicas.remove(node)
        self.in_sync_replicas.append(node)
        self.partition_epoch += 1
        self.replicate()
        return True

    def _rejoin_all(self) -> None:
        for node in list(self.replicas):
            self._rejoin(node)
        self.replicate()
