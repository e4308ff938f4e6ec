"""One partition and its replicas: who leads, who follows, how far each has come, and what is committed.

There is one log, the leader's: every follower has a prefix of it. A replica that comes back after others have led gives
up what it had beyond them, so nothing else need be kept.
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
    """A partition.

    1. Followers copy at once what is appended, unless they are ``held`` by a test or their broker is down.
    2. The high watermark is the least end of the in-sync replicas, and falls only where an unclean election loses
       records. It stands still while fewer than ``min_insync_replicas`` are in sync (KIP-966).
    3. A broker that stops leaves the in-sync replicas. Who leaves them when they are too few stays eligible to lead,
       for it has all that is committed (KIP-966).
    4. The leader epoch grows with each change of the leader, the partition epoch with each change at all.

    Args:
        log: what it holds.
        replicas: the brokers that hold it, the preferred leader first.
        down: the brokers that do not run, now and later: the set is the caller's.
        config: gives a setting of the topic by its name.
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
        """The followers that are kept from copying, and the high watermark that each knew then."""
        self.in_sync_replicas: list[int] = [node for node in replicas if node not in down]
        self.eligible_leader_replicas: list[int] = [] if self.in_sync_replicas else replicas[:1]
        self.adding: list[int] = []
        self.removing: list[int] = []
        self.leader: int = self._electable()
        self.leader_epoch: int = 0
        self.leader_epoch_start: int = 0
        """The end of the log when the leader took over."""
        self.partition_epoch: int = 0
        self.epochs: LeaderEpochs = LeaderEpochs()
        self.epochs.begin(0, 0)
        self._ends: dict[int, int] = dict.fromkeys(replicas, 0)

    @property
    def index(self) -> int:
        """Its number in the topic."""
        return self.log.partition

    @property
    def offline_replicas(self) -> list[int]:
        """The replicas whose brokers are down."""
        return [node for node in self.replicas if node in self.down]

    @property
    def min_insync_replicas(self) -> int:
        """How many replicas must be in sync for acks=all; never more than there are."""
        return min(int(self.config(MIN_INSYNC_REPLICAS)), len(self.replicas))

    @property
    def lagging(self) -> list[int]:
        """The in-sync replicas that lack records of the leader's."""
        return [node for node in self.in_sync_replicas if self.end_offset(node) < self.log.log_end_offset]

    def end_offset(self, node: int) -> int:
        """How far this replica has come."""
        return self.log.log_end_offset if node == self.leader else self._ends[node]

    def high_watermark(self, node: int) -> int:
        """Up to where this replica knows the log to be committed: a follower hears of it as it copies."""
        known = self.held.get(node) if node != self.leader else None
        whole = self.log.high_watermark if known is None else known
        return min(whole, self.end_offset(node), self.log.high_watermark)

    def last_stable_offset(self, node: int) -> int:
        """Up to where read_committed consumers may read of this replica."""
        return min(self.log.last_stable_offset, self.high_watermark(node))

    def epoch_end(self, epoch: int, node: int) -> EpochEnd:
        """Where an epoch ends in this replica's log: see :meth:`LeaderEpochs.end_of`."""
        start, end = self.log.log_start_offset, self.end_offset(node)
        return self.epochs.end_of(epoch, start, max(start, end), leads=node == self.leader)

    def check_epoch(self, epoch: int) -> None:
        """Compare the leader epoch that a client knows, negative if it knows none (KIP-320).

        Raises:
            Refused: FENCED_LEADER_EPOCH, its is older; UNKNOWN_LEADER_EPOCH, its is newer.
        """
        if epoch < 0 or epoch == self.leader_epoch:
            return
        raise ApiError(ErrorCode.FENCED_LEADER_EPOCH if epoch < self.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH)

    def check_leader(self, node: int) -> None:
        """Whether this broker leads.

        Raises:
            Refused: NOT_LEADER_OR_FOLLOWER.
        """
        if node != self.leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    # --- copying -----------------------------------------------------------------------------------------------

    def replicate(self) -> bool:
        """Let followers copy what they can; whether the high watermark has moved."""
        if self.leader == NO_LEADER:
            return False
        end = self.log.log_end_offset
        for node in self.replicas:
            if node == self.leader or self._follows(node):
                self._ends[node] = end
        if len(self.in_sync_replicas) < self.min_insync_replicas:
            return False
        # With enough replicas in sync, the high watermark may leave behind those that are eligible only.
        self.eligible_leader_replicas.clear()
        before = self.log.high_watermark
        self.log.high_watermark = max(before, min(self.end_offset(node) for node in self.in_sync_replicas))
        return self.log.high_watermark != before

    def hold(self, node: int) -> None:
        """Keep a follower from copying; it stays among the in-sync replicas until :meth:`expel`.

        Raises:
            ValueError: it leads.
        """
        if node == self.leader:
            raise ValueError(f"broker {node} leads {self.log.topic}-{self.index}: it has nothing to copy")
        self.held.setdefault(node, self.high_watermark(node))

    def release(self, node: int) -> bool:
        """Let a held follower copy again, and be in sync; whether anything has changed."""
        self.held.pop(node, None)
        return self._rejoin(node)

    def expel(self, node: int) -> bool:
        """Take a follower out of the in-sync replicas, as a leader does with one that lags; whether it was there."""
        if node not in self.in_sync_replicas or node == self.leader:
            return False
        self._leave(node)
        self.partition_epoch += 1
        self.replicate()
        return True

    # --- electing ----------------------------------------------------------------------------------------------

    def elect(self, node: int, *, unclean: bool = False) -> None:
        """Make a replica the leader. What it had not copied is lost.

        Raises:
            Refused: ELIGIBLE_LEADERS_NOT_AVAILABLE, its broker is down, or it may lack committed records and
                ``unclean`` is off.
        """
        if node not in self.replicas or node in self.down or not (unclean or self._is_eligible(node)):
            raise ApiError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
        if node != self.leader:
            self._lead(node)

    def elect_preferred(self) -> None:
        """Make the first replica the leader, as ElectLeaders does.

        Raises:
            Refused: ELECTION_NOT_NEEDED, it leads; PREFERRED_LEADER_NOT_AVAILABLE, it is down or not in sync.
        """
        preferred = self.replicas[0]
        if self.leader == preferred:
            raise ApiError(ErrorCode.ELECTION_NOT_NEEDED)
        if preferred in self.down or not self._is_eligible(preferred):
            raise ApiError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
        self._lead(preferred)

    def elect_any(self) -> None:
        """Where nobody leads make any replica the leader whose broker runs, whatever is lost.

        Raises:
            Refused: ELECTION_NOT_NEEDED, there is a leader; ELIGIBLE_LEADERS_NOT_AVAILABLE, no replica's broker runs.
        """
        if self.leader != NO_LEADER:
            raise ApiError(ErrorCode.ELECTION_NOT_NEEDED)
        successor = self._electable(unclean=True)
        if successor == NO_LEADER:
            raise ApiError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
        self._lead(successor)

    def place(self, replicas: list[int]) -> None:
        """Give the partition to these brokers, of which one is in sync; new ones copy what they can at once."""
        gone = [node for node in self.replicas if node not in replicas]
        self.replicas = replicas
        self.held = {node: known for node, known in self.held.items() if node in replicas}
        self._ends = {node: self.end_offset(node) if node in self._ends else 0 for node in replicas}
        self.partition_epoch += 1
        for nodes in (self.in_sync_replicas, self.eligible_leader_replicas):
            nodes[:] = [node for node in nodes if node in replicas]
        if self.leader in gone:
            self._lead(self._electable())
        elif gone and self.leader != NO_LEADER:
            # Whoever reads from a replica that is gone must find out.
            self._lead(self.leader)
        else:
            self._rejoin_all()

    def node_stopped(self, node: int) -> bool:
        """Its broker is down, and in ``down``; whether anything has changed."""
        if node not in self.replicas:
            return False
        # How far it was is how far it is when it comes back.
        self._ends[node] = self.end_offset(node)
        self._leave(node)
        self.partition_epoch += 1
        if node == self.leader:
            self._lead(self._electable(unclean=self.config(UNCLEAN_ELECTION) == "true"))
        self.replicate()
        return True

    def node_started(self, node: int) -> bool:
        """Its broker is back, and no longer in ``down``; whether anything has changed."""
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
        """Put a replica that runs in charge, or nobody."""
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
        """Cut the log to what the replica has, and nobody has more than that any longer."""
        if self._ends[node] < self.log.log_end_offset:
            self.log.truncate(self._ends[node])
        end = self.log.log_end_offset
        self._ends = {replica: min(one, end) for replica, one in self._ends.items()}
        if node not in self.in_sync_replicas:
            if node not in self.eligible_leader_replicas:
                self.eligible_leader_replicas.clear()
            self.in_sync_replicas = [node]
        if node in self.eligible_leader_replicas:
            self.eligible_leader_replicas.remove(node)

    # --- who is in sync ----------------------------------------------------------------------------------------

    def _follows(self, node: int) -> bool:
        may = self.leader != NO_LEADER and node in self.replicas
        return may and node not in self.held and node not in self.down

    def _leave(self, node: int) -> None:
        if node not in self.in_sync_replicas:
            return
        self.in_sync_replicas.remove(node)
        if len(self.in_sync_replicas) < self.min_insync_replicas:
            self.eligible_leader_replicas.append(node)

    def _rejoin(self, node: int) -> bool:
        """Let a replica copy and be in sync, if nothing keeps it from that; whether anything has changed."""
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
