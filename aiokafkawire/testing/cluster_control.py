"""What a test tells a running cluster: who leads and coordinates, which replicas lag, when logs are cleaned."""

from collections.abc import Mapping

from ..errors import ErrorCode
from .broker_options import check_index, check_name, check_number
from .cluster.api_error import ApiError
from .cluster.replicas import HostedPartition
from .cluster.state import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, ClusterState
from .cluster.topics import HostedTopic
from .serving.listening import NodeServer

__all__ = ("ClusterControl",)


class ClusterControl:
    """Leaders, replicas, coordinators, cleaning, quotas and markers; :class:`~.broker.Broker` has all of it.

    A name that is no string, or a number that is none, is a TypeError. What there is none of: a topic or partition is
    Refused with UNKNOWN_TOPIC_OR_PARTITION, as requests are; a broker or a replica is a KeyError. Both say what there
    is.
    """

    _cluster: ClusterState
    _servers: Mapping[int, NodeServer]

    def compact(self, topic: str, *, keep_tombstones: bool = True) -> None:
        """Clean a compacted topic now: of each key the newest record stays, and has the offset that it had.

        Nothing is ever compacted otherwise. Without ``keep_tombstones`` deletions go as well, as they do in time.

        Raises:
            Refused: there is no such topic.
            ValueError: its ``cleanup.policy`` is not to compact.
        """
        self._cluster.compact(self._topic(topic), keep_tombstones=keep_tombstones)

    def apply_retention(self, topic: str) -> None:
        """Drop the records of a topic that are older than ``retention.ms``, or more than ``retention.bytes``, now.

        Nothing is ever dropped otherwise. Time is the broker's ``clock``.

        Raises:
            Refused: there is no such topic.
        """
        self._cluster.apply_retention(self._topic(topic))

    def apply_offsets_retention(self) -> None:
        """Forget now what groups have committed and ``offsets.retention.minutes`` (7 days) have taken (KIP-211).

        Time is the broker's ``clock``. It looks by itself, too, every ten minutes of the loop's time.
        """
        self._cluster.groups.expiry.check()

    def throttle(self, client_id: str | None, ms: int) -> None:
        """Have every answer to a client tell it to pause for so long, and its connection wait, as quotas do (KIP-219).

        None is every client that was not named; 0 ends it.
        """
        if client_id is not None:
            check_name("client_id", client_id)
        check_number("ms", ms, whole=True)
        for throttles in self._cluster.throttles.values():
            if ms > 0:
                throttles.ordered[client_id] = ms
            else:
                throttles.ordered.pop(client_id, None)

    def fence_node(self, node_id: int) -> None:
        """Let the cluster think that a broker is gone, though it runs: others lead where it led (KIP-631).

        Raises:
            KeyError: there is no such broker.
        """
        node = self._cluster.node(node_id)
        if node.alive:
            self._cluster.node_stopped(node)

    def unfence_node(self, node_id: int) -> None:
        """Undo :meth:`fence_node`; a broker that does not run stays away.

        Raises:
            KeyError: there is no such broker.
        """
        node = self._cluster.node(node_id)
        if self._servers[node_id].running and not node.alive:
            self._cluster.node_started(node)

    def isr(self, topic: str, partition: int = 0) -> list[int]:
        """The in-sync replicas of a partition.

        Raises:
            Refused: there is no such partition.
        """
        return list(self._partition(topic, partition).in_sync_replicas)

    def hold_replica(self, topic: str, partition: int, node_id: int) -> None:
        """Keep a follower from copying records, so that acks=all waits for it.

        It leaves the in-sync replicas when it has lacked records for ``replica_lag_time_max_ms``.

        Raises:
            Refused: there is no such partition.
            KeyError: there is no such broker, or it does not hold the partition.
            ValueError: it leads.
        """
        self._replica(topic, partition, node_id).hold(node_id)

    def release_replica(self, topic: str, partition: int, node_id: int) -> None:
        """Let a held follower copy what it lacks, and be in sync.

        Raises:
            Refused: there is no such partition.
            KeyError: there is no such broker, or it does not hold the partition.
        """
        held = self._replica(topic, partition, node_id)
        held.release(node_id)
        self._cluster.changed(held)

    def shrink_isr(self, topic: str, partition: int, node_id: int) -> None:
        """Hold a follower, and take it out of the in-sync replicas at once, until :meth:`release_replica`.

        Raises:
            Refused: there is no such partition.
            KeyError: there is no such broker, or it does not hold the partition.
            ValueError: the broker leads it.
        """
        shrunk = self._replica(topic, partition, node_id)
        if shrunk.leader == node_id:
            raise ValueError(f"broker {node_id} leads {topic}-{partition}: it is in sync with itself")
        shrunk.hold(node_id)
        shrunk.expel(node_id)
        self._cluster.changed(shrunk)

    @property
    def partitions(self) -> list[HostedPartition]:
        """Every partition of every topic, with its replicas."""
        return list(self._cluster.topics.partitions())

    def leader(self, topic: str, partition: int = 0) -> int:
        """The broker that leads a partition; -1 if none does.

        Raises:
            Refused: there is no such partition.
        """
        return self._partition(topic, partition).leader

    def move_leader(self, topic: str, partition: int, node_id: int, *, unclean: bool = False) -> None:
        """Have another replica lead a partition; with ``unclean`` one that lags, so that records are lost.

        Raises:
            Refused: there is no such partition, or the replica cannot lead.
            KeyError: there is no such broker.
        """
        self._move(self._partition(topic, partition), node_id, unclean=unclean)

    def coordinator(self, group: str) -> int:
        """The broker that coordinates a group; -1 if none does."""
        check_name("a group's id", group)
        return self._cluster.coordinator_partition(OFFSETS_TOPIC, group).leader

    def move_coordinator(self, group: str, node_id: int, *, loading: float = 0) -> None:
        """Have another broker coordinate a group, and all that share its partition of ``__consumer_offsets``.

        Who waits at the old one hears NOT_COORDINATOR, and a generation that is being formed is lost. For ``loading``
        seconds the new one answers COORDINATOR_LOAD_IN_PROGRESS; then every session starts anew.

        Raises:
            Refused: the broker cannot lead the partition.
            KeyError: there is no such broker.
        """
        check_name("a group's id", group)
        check_number("loading", loading)
        with self._cluster.groups.store.loading_for(loading):
            self._move(self._cluster.coordinator_partition(OFFSETS_TOPIC, group), node_id)

    def transaction_coordinator(self, transactional_id: str) -> int:
        """The broker that coordinates a transactional id; -1 if none does."""
        check_name("transactional_id", transactional_id)
        return self._cluster.coordinator_partition(TRANSACTIONS_TOPIC, transactional_id).leader

    def move_transaction_coordinator(self, transactional_id: str, node_id: int, *, loading: float = 0) -> None:
        """Have another broker coordinate a transactional id, and all of its partition of ``__transaction_state``.

        For ``loading`` seconds it answers COORDINATOR_LOAD_IN_PROGRESS; then it knows what the other knew.

        Raises:
            Refused: the broker cannot lead the partition.
            KeyError: there is no such broker.
        """
        check_name("transactional_id", transactional_id)
        check_number("loading", loading)
        partition = self._cluster.coordinator_partition(TRANSACTIONS_TOPIC, transactional_id)
        with self._cluster.transactions.loading_for(loading):
            self._move(partition, node_id)

    def hold_markers(self, transactional_id: str) -> None:
        """Write no markers when a transaction of this id ends: it stays in PrepareCommit or PrepareAbort.

        Its producer hears CONCURRENT_TRANSACTIONS, and read_committed consumers wait, until :meth:`release_markers`.
        """
        check_name("transactional_id", transactional_id)
        self._cluster.transactions.hold_markers(transactional_id)

    def release_markers(self, transactional_id: str) -> None:
        """Write the markers that were held, and complete the transaction."""
        check_name("transactional_id", transactional_id)
        self._cluster.transactions.release_markers(transactional_id)

    def expire_transactional_id(self, transactional_id: str) -> None:
        """Forget a transactional id, as after ``transactional.id.expiration.ms``: INVALID_PRODUCER_ID_MAPPING follows.

        Raises:
            KeyError: it is not known.
            ValueError: its transaction is open or not complete.
        """
        check_name("transactional_id", transactional_id)
        self._cluster.transactions.expire(transactional_id)

    def _topic(self, name: str) -> HostedTopic:
        check_name("a topic's name", name)
        topic = self._cluster.topics.get(name)
        if topic is None:
            there = ", ".join(sorted(one.name for one in self._cluster.topics)) or "none"
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {name!r}: there are {there}")
        return topic

    def _partition(self, topic: str, index: int) -> HostedPartition:
        partitions = self._topic(topic).partitions
        check_index("a partition", index)
        if not 0 <= index < len(partitions):
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no partition {topic}-{index}: {topic} has {len(partitions)}"
            )
        return partitions[index]

    def _replica(self, topic: str, index: int, node_id: int) -> HostedPartition:
        self._partition(topic, index)
        self._cluster.node(node_id)
        return self._cluster.replica(topic, index, node_id)

    def _move(self, partition: HostedPartition, node_id: int, *, unclean: bool = False) -> None:
        name, node = f"{partition.log.topic}-{partition.index}", self._cluster.node(node_id)
        try:
            self._cluster.move_leader(partition, node_id, unclean=unclean)
        except ApiError as refused:
            if node_id not in partition.replicas:
                why = f"it holds no replica: {', '.join(map(str, partition.replicas))} do"
            elif not node.alive:
                why = "it is down"
            else:
                in_sync = ", ".join(map(str, partition.in_sync_replicas))
                why = f"it may lack committed records, as it is not in sync: {in_sync} are"
            raise ApiError(refused.code, f"broker {node_id} cannot lead {name}: {why}") from None
