"""The state that request handlers work on: the cluster that all nodes share, and the node that got the request."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from uuid import UUID

import attrs

from ...errors import ErrorCode
from ...protocol.schema import Versions
from ...types import TopicPartition
from ..configs.configs import Configs
from ..configs.mutation_quota import MutationQuota
from ..configs.quotas import ClientQuotas
from ..configs.tables import tables_of
from ..configs.throttling import Throttles
from ..faults.request_log import RequestLog
from ..faults.rules import FaultRules
from ..groups.committed import CommittedOffsets
from ..groups.groups import Groups
from ..groups.release_rules import ReleaseRules
from ..groups.settings import GroupSettings
from ..logs import log_cleaner
from ..logs.sessions import FetchSessions
from ..security.authorizer import Authorizer
from ..security.credentials import Credentials
from ..share.dead_letters import DeadLetterQueues
from ..share.share_groups import ShareGroups
from ..share.share_sessions import ShareSessions
from ..share.shared_partitions import SharedPartitions
from ..share.topic_partitions import SubscribedTopic
from ..telemetry.client_metrics import ClientInstances, PushedMetrics
from ..transactions.markers import Completion
from ..transactions.transactions import Transactions
from .api_error import ApiError
from .features import ClusterFeatures
from .fetch_purgatory import FetchPurgatory
from .java_hash import java_hash
from .log_dirs import LogDirs
from .quorum import MetadataQuorum
from .reassignment import complete
from .releases import Release
from .replica_lag import ReplicaLag
from .replicas import NO_LEADER, HostedPartition
from .timers import Timers
from .topics import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC, HostedTopic, TopicStore

__all__ = ("OFFSETS_TOPIC", "SHARE_STATE_TOPIC", "TRANSACTIONS_TOPIC", "ClusterState", "BrokerNode", "Settings")

_MOST_PUSHES = 1_000
_COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "104857600"}


@attrs.frozen
class Settings(GroupSettings):
    """The brokers' settings, under Kafka's property names."""

    auto_create_topics_enable: bool = True
    num_partitions: int = 1
    default_replication_factor: int = 1
    min_insync_replicas: int = 1
    message_max_bytes: int = 1_048_588
    fetch_max_bytes: int = 57_671_680
    max_incremental_fetch_session_cache_slots: int = 1_000
    replica_lag_time_max_ms: int = 30_000
    replica_selector_class: str | None = None
    message_timestamp_after_max_ms: int = 3_600_000  # KIP-1030
    offsets_topic_num_partitions: int = 50
    transaction_state_log_num_partitions: int = 50
    transaction_max_timeout_ms: int = 900_000
    share_coordinator_state_topic_num_partitions: int = 50
    group_share_min_record_lock_duration_ms: int = 1_000  # Kafka's default is 15000, too long for tests
    group_share_assignment_interval_ms: int = 0  # Kafka's default is 1000, which would slow down every test
    socket_request_max_bytes: int = 104_857_600
    max_connections_per_ip: int = 2_147_483_647
    sasl_enabled_mechanisms: tuple[str, ...] = ()  # none: clients need not authenticate
    connections_max_reauth_ms: int = 0
    connection_failed_authentication_delay_ms: int = 100
    log_dirs: int = 1
    telemetry_max_bytes: int = 1_048_576


class ClusterState:
    """The state that all nodes share: topics and their logs, groups, transactions, producer ids, waiting fetches.

    ``clock`` returns the time in ms since the epoch; ``timers`` uses the event loop's clock.
    """

    def __init__(
        self,
        cluster_id: str,
        nodes: "Sequence[BrokerNode]",
        settings: Settings,
        *,
        clock: Callable[[], int],
        new_topic_id: Callable[[], UUID],
        credentials: Credentials | None = None,
        authorizer: Authorizer | None = None,
    ) -> None:
        self.cluster_id = cluster_id
        self.nodes = nodes
        self.settings = settings
        self.clock = clock
        self.new_uuid = new_topic_id
        self.timers: Timers = Timers()
        self.features: ClusterFeatures = ClusterFeatures(nodes[0].release)
        self.quorum: MetadataQuorum = MetadataQuorum(cluster_id, nodes, self.features, clock)
        self.controllers: dict[int, BrokerNode] = {}
        """The listeners of the nodes as controllers, by id; see :class:`..controllers.Controllers`."""
        self.configs: Configs = Configs(settings, tables_of(nodes[0].release))
        self.quotas: ClientQuotas = ClientQuotas()
        self.mutation_quota: MutationQuota = MutationQuota(self.quotas)
        self.throttles: dict[int, Throttles] = {node.node_id: Throttles(self.quotas) for node in nodes}
        self.topics: TopicStore = TopicStore(
            [node.node_id for node in nodes],
            new_topic_id,
            settings.num_partitions,
            settings.default_replication_factor,
            self.configs,
        )
        self.fetch_purgatory: FetchPurgatory = FetchPurgatory()
        self.fault_rules: FaultRules = FaultRules()
        self.requests: RequestLog = RequestLog()
        self.pushed_metrics: deque[PushedMetrics] = deque(maxlen=_MOST_PUSHES)
        """The metrics that clients have pushed (KIP-714)."""
        self.credentials: Credentials = credentials or Credentials()
        self.authorizer: Authorizer | None = authorizer
        """The ACLs; None if requests are not authorized."""
        self.zookeeper_offsets: dict[tuple[str, TopicPartition], int] = {}
        self.replica_lag: ReplicaLag = ReplicaLag(self.timers, settings.replica_lag_time_max_ms / 1000, self.changed)
        for node in nodes:
            node.sessions = FetchSessions(settings.max_incremental_fetch_session_cache_slots)
            node.log_dirs = LogDirs(node.node_id, settings.log_dirs)
        self.committed: CommittedOffsets = CommittedOffsets()
        rules = ReleaseRules.of(nodes[0].release)
        self.groups: Groups = Groups(
            settings,
            self.timers,
            clock,
            self.committed,
            self.topics,
            self.configs,
            new_id=lambda: str(new_topic_id()),
            partition_of=lambda group: self.coordinator_partition(OFFSETS_TOPIC, group).index,
            check_writable=self.check_group_writable,
            rules=rules,
        )
        self.shared: SharedPartitions = SharedPartitions(
            self.timers,
            self.configs,
            clock,
            self.fetch_purgatory.notify,
            DeadLetterQueues(self.configs, self.topics, clock, self.changed),
        )
        self.share_groups: ShareGroups = ShareGroups(
            self.timers,
            self.configs,
            self._subscribed_topics,
            is_other_kind=lambda group: self.groups.store.get(group) is not None,
            partition_of=lambda group: self.coordinator_partition(OFFSETS_TOPIC, group).index,
            rules=rules,
        )
        self._producer_ids = count()
        self.transactions: Transactions = Transactions(
            settings.transaction_max_timeout_ms,
            self.timers,
            clock,
            self.next_producer_id,
            lambda transactional_id: self.coordinator_partition(TRANSACTIONS_TOPIC, transactional_id),
            Completion(self.topics, self.committed, clock, self.changed),
        )

    @property
    def alive(self) -> "list[BrokerNode]":
        """The running nodes."""
        return [node for node in self.nodes if node.alive]

    @property
    def controller_id(self) -> int:
        """The controller's id in metadata responses: that of the first running node; -1 if none runs."""
        return next((node.node_id for node in self.alive), NO_LEADER)

    def node(self, node_id: int) -> "BrokerNode":
        """Return the node with this id.

        Raises:
            KeyError: there is no such node.
        """
        if isinstance(node_id, bool) or not isinstance(node_id, int):
            raise TypeError(f"a broker's id must be an integer, got {node_id!r:.200}")
        for node in self.nodes:
            if node.node_id == node_id:
                return node
        raise KeyError(f"no broker {node_id}; known: {', '.join(str(node.node_id) for node in self.nodes)}")

    def next_producer_id(self) -> int:
        """Return a new producer id."""
        return next(self._producer_ids)

    # --- partitions --------------------------------------------------------------------------------------------

    def changed(self, partition: HostedPartition) -> None:
        """Update all state that depends on a partition, which got new records, a new high watermark or a new leader."""
        if partition.log.topic == OFFSETS_TOPIC:
            led = partition.leader != NO_LEADER
            self.groups.store.coordinator_changed(partition.index, partition.leader_epoch, led=led)
            self.share_groups.coordinator_changed(partition.index, partition.leader_epoch)
        complete(partition)
        self.replica_lag.check(partition)
        self.transactions.partition_changed(partition)
        self.shared.partition_changed(partition)
        self.fetch_purgatory.notify(partition.log)

    def replica(self, topic: str, index: int, node_id: int) -> HostedPartition:
        """Return a partition, of which the broker ``node_id`` must hold a replica.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION, there is no such partition.
            KeyError: the broker holds no replica.
        """
        partition = self.topics.partition(topic, index)
        if node_id not in partition.replicas:
            raise KeyError(f"broker {node_id} holds no replica of {topic}-{index}; its replicas: {partition.replicas}")
        return partition

    def move_leader(self, partition: HostedPartition, node_id: int, *, unclean: bool = False) -> None:
        """Make the replica on broker ``node_id`` the leader. Raises ApiError as :meth:`HostedPartition.elect`."""
        partition.elect(node_id, unclean=unclean)
        self.changed(partition)

    def node_stopped(self, node: "BrokerNode") -> None:
        """Record that a node stopped, and elect new leaders for the partitions that it led."""
        node.alive = False
        node.sessions.clear()
        node.share_sessions.clear()
        self._all_changed(self.topics.node_stopped(node.node_id))

    def node_started(self, node: "BrokerNode") -> None:
        """Record that a node runs again."""
        node.alive = node.registered = True
        self._all_changed(self.topics.node_started(node.node_id))

    def reopened(self) -> None:
        """Forget what brokers lose at a restart, such as sessions, and restart timers, after the cluster was opened."""
        for node in self.nodes:
            node.sessions.clear()
            node.share_sessions.clear()
        for throttles in self.throttles.values():
            throttles.forget()
        self.mutation_quota.forget()
        self.replica_lag.start()
        self.shared.start()
        self.share_groups.start()

    def _all_changed(self, partitions: Iterable[HostedPartition]) -> None:
        for partition in partitions:
            self.changed(partition)

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return the name of the topic with this id; None if there is no such topic."""
        topic = self.topics.by_id(topic_id)
        return topic.name if topic else None

    def delete_topic(self, topic: HostedTopic) -> None:
        """Delete a topic and notify the fetches that wait for its records.

        Deleting an internal topic deletes the state that coordinators wrote to it.
        """
        self.topics.delete(topic)
        self.committed.delete_topic(topic.name)
        self.shared.delete_topic(topic.topic_id)
        if topic.name == OFFSETS_TOPIC:
            self.groups.store.clear()
            self.committed.clear()
            self.share_groups.clear()
        elif topic.name == SHARE_STATE_TOPIC:
            self.shared.clear()
        elif topic.name == TRANSACTIONS_TOPIC:
            self.transactions.clear()
        for partition in topic.partitions:
            self.replica_lag.forget(partition)
            self.fetch_purgatory.notify(partition.log)
        self.transactions.resume()

    def _subscribed_topics(self) -> dict[str, SubscribedTopic]:
        return {topic.name: SubscribedTopic(topic.name, topic.topic_id, len(topic.partitions)) for topic in self.topics}

    # --- log cleaning ----------------------------------------------------------------------------------------------

    def compact(self, topic: HostedTopic, *, keep_tombstones: bool) -> None:
        """Keep only the newest record of each key of a topic, and tombstones only if ``keep_tombstones`` is set.

        Raises:
            ValueError: the topic's ``cleanup.policy`` does not contain compact.
        """
        if "compact" not in topic.config("cleanup.policy"):
            raise ValueError(f"the cleanup.policy of {topic.name} is {topic.config('cleanup.policy')}")
        for partition in topic.partitions:
            if log_cleaner.compact(partition.log, keep_tombstones=keep_tombstones):
                self.changed(partition)

    def apply_retention(self, topic: HostedTopic) -> None:
        """Delete records beyond the retention limits, if the topic's ``cleanup.policy`` contains delete."""
        if "delete" not in topic.config("cleanup.policy"):
            return
        limits = {name: int(topic.config(name)) for name in ("retention.ms", "retention.bytes")}
        for partition in topic.partitions:
            if log_cleaner.expire(
                partition.log,
                now=self.clock(),
                retention_ms=limits["retention.ms"],
                retention_bytes=limits["retention.bytes"],
            ):
                self.changed(partition)

    # --- coordinators ------------------------------------------------------------------------------------------

    def coordinator_partition(self, topic: str, key: str) -> HostedPartition:
        """Return the partition of an internal topic whose leader coordinates ``key``.

        The key is a group, a transactional id, or for ``SHARE_STATE_TOPIC`` a group's share of a partition.

        A missing topic is created, as in Kafka.
        """
        found = self.topics.get(topic) or self.make_internal(topic)
        return found.partitions[(java_hash(key) & 0x7FFF_FFFF) % len(found.partitions)]

    def make_internal(self, topic: str) -> HostedTopic:
        """Create an internal topic, which must not exist yet."""
        partitions = {
            OFFSETS_TOPIC: self.settings.offsets_topic_num_partitions,
            SHARE_STATE_TOPIC: self.settings.share_coordinator_state_topic_num_partitions,
            TRANSACTIONS_TOPIC: self.settings.transaction_state_log_num_partitions,
        }[topic]
        copies = min(3, len(self.nodes))
        configs = {**_COMPACTED, "compression.type": "producer"}
        if topic == TRANSACTIONS_TOPIC:
            configs |= {"compression.type": "uncompressed", "unclean.leader.election.enable": "false"}
            configs |= {"min.insync.replicas": str(max(1, copies - 1))}
        elif topic == SHARE_STATE_TOPIC:
            configs |= {"cleanup.policy": "delete", "compression.type": "uncompressed", "retention.ms": "-1"}
            configs |= {"min.insync.replicas": str(max(1, copies - 1))}
        return self.topics.create(
            topic, num_partitions=partitions, replication_factor=copies, configs=configs, internal=True
        )

    def check_all_loaded(self, node: "BrokerNode") -> None:
        """Check that this node has loaded all groups that it coordinates.

        Raises:
            ApiError: COORDINATOR_LOAD_IN_PROGRESS.
        """
        loading = [self.topics.partition(OFFSETS_TOPIC, index) for index in self.groups.store.loading]
        if any(partition.leader == node.node_id for partition in loading):
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def check_group_writable(self, group: str) -> None:
        """Check that the coordinator of a group can write to its log.

        Raises:
            ApiError: COORDINATOR_NOT_AVAILABLE, too few replicas of its partition are in sync.
        """
        if self.coordinator_partition(OFFSETS_TOPIC, group).lacks_replicas:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def check_coordinator(self, node: "BrokerNode", topic: str, key: str) -> None:
        """Check that this node coordinates ``key``: a group if ``topic`` is ``OFFSETS_TOPIC``, else a transactional id.

        Raises:
            ApiError: NOT_COORDINATOR; COORDINATOR_LOAD_IN_PROGRESS, the node has not loaded the group yet.
        """
        if self.coordinator_partition(topic, key).leader != node.node_id:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        if topic == OFFSETS_TOPIC:
            self.groups.store.check_loaded(key)


@attrs.define(eq=False)
class BrokerNode:
    """One broker of the cluster: its id, its address and the API versions it advertises."""

    node_id: int
    host: str
    port: int
    release: Release
    rack: str | None = None
    alive: bool = True
    registered: bool = True
    is_controller: bool = False
    sessions: FetchSessions = attrs.field(factory=FetchSessions, init=False, repr=False)
    share_sessions: ShareSessions = attrs.field(factory=ShareSessions, init=False, repr=False)
    log_dirs: LogDirs = attrs.field(init=False, repr=False)
    client_metrics: ClientInstances = attrs.field(factory=ClientInstances, init=False, repr=False)
    connections: Counter[str] = attrs.field(factory=Counter, init=False, repr=False)
    """The number of connections from each client address."""
    cluster: ClusterState = attrs.field(init=False, repr=False)

    @property
    def advertised(self) -> Mapping[int, Versions]:
        """The versions of each API that ApiVersions lists."""
        return self.release.advertised

    def connection_closed(self, connection: int) -> None:
        """Close the share sessions of a connection that has ended, and release their records."""
        self.client_metrics.connection_closed(connection)
        for session in self.share_sessions.of_connection(connection):
            self.share_sessions.close(session)
            self.cluster.shared.release(session, self.node_id)

    def hosted(self, topic: str, index: int) -> HostedPartition:
        """Return a partition that this node leads or follows.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER.
        """
        partition = self.cluster.topics.partition(topic, index)
        if self.node_id not in partition.replicas:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition

    def led(self, topic: str, index: int) -> HostedPartition:
        """Return a partition that this node leads. Raises ApiError as :meth:`hosted`."""
        partition = self.cluster.topics.partition(topic, index)
        partition.check_leader(self.node_id)
        return partition
