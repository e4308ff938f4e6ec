"""A test's control of a running cluster: leaders, coordinators, lagging replicas and log cleaning."""

from collections.abc import Mapping

from ..errors import ErrorCode
from .broker_options import check_index, check_name, check_number
from .cluster.api_error import ApiError
from .cluster.replicas import HostedPartition
from .cluster.state import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, ClusterState
from .cluster.topics import HostedTopic
from .serving.listening import NodeServer
from .telemetry.client_metrics import PushedMetrics

__all__ = ("ClusterControl",)


class ClusterControl:
    """The part of ``Broker`` that controls leaders, coordinators, replicas, log cleaning, markers and throttles.

    An argument of a wrong type raises TypeError. The ApiError for an unknown topic or partition has the code
    UNKNOWN_TOPIC_OR_PARTITION. The messages of errors list the existing topics, brokers or replicas.
    """

    _cluster: ClusterState
    _servers: Mapping[int, NodeServer]

    @property
    def pushed_metrics(self) -> list[PushedMetrics]:
        """The metrics that clients have pushed (KIP-714), the last 1,000 pushes; needs ``client_telemetry``."""
        return [*self._cluster.pushed_metrics]

    def compact(self, topic: str, *, keep_tombstones: bool = True) -> None:
        """Clean a compacted topic now: keep only the newest record of each key. Offsets do not change.

        The broker compacts topics only in this call. Unless ``keep_tombstones`` is set, tombstones are removed, too.

        Raises:
            ApiError: there is no such topic.
            ValueError: the topic's ``cleanup.policy`` does not contain compact.
        """
        self._cluster.compact(self._topic(topic), keep_tombstones=keep_tombstones)

    def apply_retention(self, topic: str) -> None:
        """Delete a topic's records that exceed ``retention.ms`` or ``retention.bytes``.

        If the topic's ``cleanup.policy`` does not contain delete, nothing is deleted. The broker deletes such records
        only in this call, and determines their age by its ``clock``.

        Raises:
            ApiError: there is no such topic.
        """
        self._cluster.apply_retention(self._topic(topic))

    def apply_offsets_retention(self) -> None:
        """Delete expired committed offsets now, and the groups that have neither members nor offsets (KIP-211).

        Offsets expire after ``offsets.retention.minutes``, 7 days by default, by the broker's ``clock``. The broker
        also does this deletion periodically, every ten minutes by the event loop's clock.
        """
        self._cluster.groups.expiry.check()

    def throttle(self, client_id: str | None, ms: int) -> None:
        """Throttle a client: responses announce a pause of ``ms``, during which the broker reads no request (KIP-219).

        ``client_id`` None means every client without a throttle of its own; ``ms`` 0 ends the throttle.
        """
        if client_id is not None:
            check_name("client_id", client_id)
        check_number("ms", ms, whole=True)
        for throttles in self._cluster.throttles.values():
            if ms > 0:
                throttles.forced[client_id] = ms
            else:
                throttles.forced.pop(client_id, None)

    def fence_node(self, node_id: int) -> None:
        """Mark a running broker as fenced: other brokers take over its partitions (KIP-631).

        Raises:
            KeyError: there is no such broker.
        """
        node = self._cluster.node(node_id)
        if node.alive:
            self._cluster.node_stopped(node)

    def unfence_node(self, node_id: int) -> None:
        """Undo :meth:`fence_node`; a stopped broker stays stopped. Raises as :meth:`fence_node`."""
        node = self._cluster.node(node_id)
        if self._servers[node_id].running and not node.alive:
            self._cluster.node_started(node)

    def isr(self, topic: str, partition: int = 0) -> list[int]:
        """Return the ids of the brokers that have the in-sync replicas of a partition.

        Raises:
            ApiError: there is no such partition.
        """
        return list(self._partition(topic, partition).in_sync_replicas)

    def hold_replica(self, topic: str, partition: int, node_id: int) -> None:
        """Keep a follower from copying records until :meth:`release_replica`, so that requests with acks=all wait.

        The follower leaves the in-sync replicas after ``replica_lag_time_max_ms`` without the newest records.

        Raises:
            ApiError: there is no such partition.
            KeyError: there is no such broker, or it has no replica of the partition.
            ValueError: the broker leads the partition.
        """
        self._replica(topic, partition, node_id).hold(node_id)

    def release_replica(self, topic: str, partition: int, node_id: int) -> None:
        """Let a held follower copy records and rejoin the in-sync replicas.

        Raises:
            ApiError: there is no such partition.
            KeyError: there is no such broker, or it has no replica of the partition.
        """
        held = self._replica(topic, partition, node_id)
        held.release(node_id)
        self._cluster.changed(held)

    def shrink_isr(self, topic: str, partition: int, node_id: int) -> None:
        """Hold a follower and remove it from the in-sync replicas at once. Raises as :meth:`hold_replica`."""
        shrunk = self._replica(topic, partition, node_id)
        if shrunk.leader == node_id:
            raise ValueError(f"broker {node_id} leads {topic}-{partition}: a leader is always in sync")
        shrunk.hold(node_id)
        shrunk.expel(node_id)
        self._cluster.changed(shrunk)

    @property
    def partitions(self) -> list[HostedPartition]:
        """Every partition of every topic, with its replicas."""
        return list(self._cluster.topics.partitions())

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the id of the broker that leads a partition; -1 if there is no leader.

        Raises:
            ApiError: there is no such partition.
        """
        return self._partition(topic, partition).leader

    def move_leader(self, topic: str, partition: int, node_id: int, *, unclean: bool = False) -> None:
        """Make the replica on broker ``node_id`` the leader of a partition.

        With ``unclean``, even a replica that may lack committed records can lead; records that it lacks are then lost.

        Raises:
            ApiError: there is no such partition, or the replica cannot lead.
            KeyError: there is no such broker.
        """
        self._move(self._partition(topic, partition), node_id, unclean=unclean)

    def coordinator(self, group: str) -> int:
        """Return the id of the broker that coordinates a group; -1 if there is no coordinator."""
        check_name("a group's id", group)
        return self._cluster.coordinator_partition(OFFSETS_TOPIC, group).leader

    def move_coordinator(self, group: str, node_id: int, *, loading: float = 0) -> None:
        """Make another broker the coordinator of a group, and of all groups in its partition of ``__consumer_offsets``.

        Requests that wait at the old coordinator get NOT_COORDINATOR, and an unfinished generation is lost. The new
        coordinator answers COORDINATOR_LOAD_IN_PROGRESS for ``loading`` seconds, and then restarts the session timeout
        of every member.

        Raises:
            ApiError: the broker cannot lead that partition.
            KeyError: there is no such broker.
        """
        check_name("a group's id", group)
        check_number("loading", loading)
        with self._cluster.groups.store.loading_for(loading):
            self._move(self._cluster.coordinator_partition(OFFSETS_TOPIC, group), node_id)

    def transaction_coordinator(self, transactional_id: str) -> int:
        """Return the id of the broker that coordinates a transactional id; -1 if there is no coordinator."""
        check_name("transactional_id", transactional_id)
        return self._cluster.coordinator_partition(TRANSACTIONS_TOPIC, transactional_id).leader

    def move_transaction_coordinator(self, transactional_id: str, node_id: int, *, loading: float = 0) -> None:
        """Make another broker the coordinator of all transactional ids in this id's ``__transaction_state`` partition.

        The new coordinator answers COORDINATOR_LOAD_IN_PROGRESS for ``loading`` seconds, and then has the state of the
        old coordinator. Raises as :meth:`move_coordinator`.
        """
        check_name("transactional_id", transactional_id)
        check_number("loading", loading)
        partition = self._cluster.coordinator_partition(TRANSACTIONS_TOPIC, transactional_id)
        with self._cluster.transactions.loading_for(loading):
            self._move(partition, node_id)

    def hold_markers(self, transactional_id: str) -> None:
        """Withhold the markers of this id's transactions, so that an ended one stays in PrepareCommit or PrepareAbort.

        Until :meth:`release_markers`, the producer gets CONCURRENT_TRANSACTIONS, and read_committed consumers wait.
        """
        check_name("transactional_id", transactional_id)
        self._cluster.transactions.hold_markers(transactional_id)

    def release_markers(self, transactional_id: str) -> None:
        """Write the withheld markers of this id's transaction, and complete the transaction."""
        check_name("transactional_id", transactional_id)
        self._cluster.transactions.release_markers(transactional_id)

    def expire_transactional_id(self, transactional_id: str) -> None:
        """Delete a transactional id, as Kafka does after ``transactional.id.expiration.ms``.

        A producer with this id then gets INVALID_PRODUCER_ID_MAPPING.

        Raises:
            KeyError: the id is unknown.
            ValueError: the id's transaction is open, or lacks markers.
        """
        check_name("transactional_id", transactional_id)
        self._cluster.transactions.expire(transactional_id)

    def _topic(self, name: str) -> HostedTopic:
        check_name("a topic's name", name)
        topic = self._cluster.topics.get(name)
        if topic is None:
            known = ", ".join(sorted(topic.name for topic in self._cluster.topics)) or "none"
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {name!r}; known: {known}")
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
                why = f"the replicas are on {', '.join(map(str, partition.replicas))}"
            elif not node.alive:
                why = "it is down"
            else:
                in_sync = ", ".join(map(str, partition.in_sync_replicas))
                why = f"it is not in sync and may lack committed records; in sync: {in_sync}"
            raise ApiError(refused.code, f"broker {node_id} cannot lead {name}: {why}") from None
