"""One partition and its replicas: who leads, who follows, how far each has come, and what is committed.

There is one log, the leader's: every follower has a prefix of it. A replica that comes back after others have led gives
up what it had beyond them, so nothing else need be kept.
"""

from collections.abc import Set

from ..errors import ErrorCode
from .log import PartitionLog
from .refused import Refused

__all__ = ("NO_LEADER", "Partition")

NO_LEADER = -1


class Partition:
    """A partition.

    1. Followers copy at once what is appended, unless they are ``held`` by a test or their broker is down.
    2. The high watermark is the least end of the in-sync replicas, and falls only where an unclean election loses
       records.
    3. A broker that stops leaves the in-sync replicas, unless it is the last of them: then nobody leads (KIP-966 off).
    4. The leader epoch grows with each change of the leader, the partition epoch with each change at all.
    """

    def __init__(self, log: PartitionLog, replicas: list[int], down: Set[int] = frozenset()) -> None:
        self.log = log
        self.replicas = replicas
        self.down = down
        self.held: set[int] = set()
        self.in_sync_replicas: list[int] = [node for node in replicas if node not in down] or replicas[:1]
        self.leader = self._electable()
        self.leader_epoch = 0
        self.partition_epoch = 0
        self._ends: dict[int, int] = dict.fromkeys(replicas, 0)

    @property
    def index(self) -> int:
        """Its number in the topic."""
        return self.log.partition

    @property
    def offline_replicas(self) -> list[int]:
        """The replicas whose brokers are down."""
        return [node for node in self.replicas if node in self.down]

    def end_offset(self, node: int) -> int:
        """How far this replica has come."""
        return self.log.log_end_offset if node == self.leader else self._ends[node]

    def check_epoch(self, epoch: int) -> None:
        """Compare the leader epoch that a client knows, negative if it knows none (KIP-320).

        Raises:
            Refused: FENCED_LEADER_EPOCH, its is older; UNKNOWN_LEADER_EPOCH, its is newer.
        """
        if epoch < 0 or epoch == self.leader_epoch:
            return
        raise Refused(ErrorCode.FENCED_LEADER_EPOCH if epoch < self.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH)

    def check_leader(self, node: int) -> None:
        """Whether this broker leads.

        Raises:
            Refused: NOT_LEADER_OR_FOLLOWER.
        """
        if node != self.leader:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    # --- copying -----------------------------------------------------------------------------------------------

    def replicate(self) -> bool:
        """Let followers copy what they can; whether the high watermark has moved."""
        end = self.log.log_end_offset
        for node in self.replicas:
            if node == self.leader or self._follows(node):
                self._ends[node] = end
        before = self.log.high_watermark
        self.log.high_watermark = max(before, min(self.end_offset(node) for node in self.in_sync_replicas))
        return self.log.high_watermark != before

    def hold(self, node: int) -> None:
        """Keep a follower from copying; it stays among the in-sync replicas until :meth:`expel`."""
        self.held.add(node)

    def release(self, node: int) -> bool:
        """Let a held follower copy again, and be in sync; whether anything has changed."""
        self.held.discard(node)
        return self._rejoin(node)

    def expel(self, node: int) -> bool:
        """Take a replica that lags out of the in-sync ones; whether it was there."""
        if node not in self.in_sync_replicas or node == self.leader or len(self.in_sync_replicas) == 1:
            return False
        self.in_sync_replicas.remove(node)
        self.partition_epoch += 1
        self.replicate()
        return True

    # --- electing ----------------------------------------------------------------------------------------------

    def elect(self, node: int, *, unclean: bool = False) -> None:
        """Make a replica the leader. What it had not copied is lost.

        Raises:
            Refused: ELIGIBLE_LEADERS_NOT_AVAILABLE, its broker is down, or it is not in sync and ``unclean`` is off.
        """
        in_sync = node in self.in_sync_replicas
        if node not in self.replicas or node in self.down or not (in_sync or unclean):
            raise Refused(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
        if node == self.leader:
            return
        end = self.end_offset(node)
        if end < self.log.log_end_offset:
            self.log.truncate(end)
            self._ends = {replica: min(one, end) for replica, one in self._ends.items()}
        if not in_sync:
            self.in_sync_replicas = [node]
        self._lead(node)
        for replica in self.replicas:
            self._rejoin(replica)

    def node_stopped(self, node: int) -> bool:
        """Its broker is down; whether anything has changed."""
        if node not in self.replicas:
            return False
        # How far it was is how far it is when it comes back.
        self._ends[node] = self.end_offset(node)
        if node in self.in_sync_replicas and len(self.in_sync_replicas) > 1:
            self.in_sync_replicas.remove(node)
        if node == self.leader:
            successor = self._electable()
            if successor == NO_LEADER:
                self._lead(NO_LEADER)
            else:
                self.elect(successor)
        self.partition_epoch += 1
        if self.leader != NO_LEADER:
            self.replicate()
        return True

    def node_started(self, node: int) -> bool:
        """Its broker is back; whether anything has changed."""
        if node not in self.replicas:
            return False
        if self.leader == NO_LEADER and node in self.in_sync_replicas:
            self._lead(node)
            return True
        return self._rejoin(node)

    def _follows(self, node: int) -> bool:
        return self.leader != NO_LEADER and node not in self.held and node not in self.down

    def _rejoin(self, node: int) -> bool:
        if not self._follows(node):
            return False
        moved = self.replicate()
        if node in self.in_sync_replicas:
            return moved
        self.in_sync_replicas.append(node)
        self.partition_epoch += 1
        return True

    def _electable(self) -> int:
        return next(
            (node for node in self.replicas if node in self.in_sync_replicas and node not in self.down), NO_LEADER
        )

    def _lead(self, node: int) -> None:
        self.leader = node
        self.leader_epoch += 1
        self.partition_epoch += 1
        if node != NO_LEADER:
            self.replicate()
