"""An in-process Kafka cluster, which clients reach over TCP or in memory.

async with Broker() as broker:
    broker.create_topic("flights", partitions=6)
    ...  # any Kafka client, at broker.bootstrap
"""

import errno
import logging
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import count
from types import TracebackType
from typing import Final, Self
from uuid import UUID, uuid4

import anyio.lowlevel
from anyio.abc import ByteStream

from ..runtime import Owner
from ..types import Address
from .broker_options import (
    authorizer_of,
    check_choices,
    check_configs,
    check_consumer_groups,
    check_index,
    check_listening,
    check_name,
    check_nodes,
    check_types,
    settings_of,
)
from .cluster.api_error import ApiError
from .cluster.releases import DEFAULT_RELEASE, release_named
from .cluster.state import BrokerNode, ClusterState
from .cluster.topics import HostedTopic
from .cluster_control import ClusterControl
from .faults.fault_api import Faults
from .faults.rules import UnusedFaultRules
from .groups.target_assignment import ASSIGNORS
from .logs.log import PartitionLog
from .security.bearer_tokens import TokenValidator, bearer_tokens
from .security.credentials import Credentials
from .security.delegation_tokens import DelegationTokens
from .security.mechanisms import MECHANISMS, enabled_mechanisms
from .serving.apis import APIS, TELEMETRY_APIS
from .serving.listening import NodeServer

__all__ = ("Broker", "ApiError", "UnusedFaultRules")

_CLUSTER_ID: Final = "YWlva2Fma2F3aXJlLTAwMQ"  # 16 bytes in URL-safe base64, like Kafka's cluster ids
_MEMORY_PORT: Final = 9092

_log = logging.getLogger(__name__)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class _Servers(dict[int, NodeServer]):
    """The servers of the brokers, by id; the KeyError for an unknown id lists the known ids."""

    def __missing__(self, node_id: int) -> NodeServer:
        check_index("a broker's id", node_id)
        raise KeyError(f"no broker {node_id}; known: {', '.join(map(str, self))}")


class Broker(ClusterControl, Faults):
    """A Kafka cluster of one or more brokers that runs while its context is open and keeps its topics in memory.

    1. Leaving the context closes every connection at once and leaves no task behind. The context may be left
       in another task than the one that entered it, as in fixtures.
    2. An unexpected exception in a request handler closes the client's connection; the broker logs the traceback and
       keeps the exception in ``faults``. Leaving the context raises these exceptions, so that no test overlooks them.
       If the context's body has raised an exception, these are added to that exception as notes instead.
    3. Clients' mistakes are no faults: the broker answers them as Kafka does, or disconnects and logs why.
    4. A closed Broker may be opened again. Topics, records, groups, transactions, settings, fault rules and ports are
       kept; ``faults``, ``requests`` and ``pushed_metrics`` are cleared, and brokers that were stopped or fenced run
       again.

    Args:
        nodes: the number of brokers; their ids count up from ``node_id``.
        node_id: the first broker's id.
        racks: the rack of each broker (``broker.rack``), if the brokers have racks.
        cluster_id: the cluster's id.
        max_versions: the release of Apache Kafka to emulate, such as "2.4". The broker then serves the API versions
            of that release that are implemented here. Releases up to 0.9 know no ApiVersions request.

        host: the address to listen on.
        port: the first broker's port; further brokers take the next ports. 0 means any free port, None no port: clients
            then use :meth:`connect`.
        advertised_host: the host that clients connect to, if it is not ``host``: needed if ``host`` is "0.0.0.0".

        auto_create_topics_enable: whether a metadata request creates a missing topic.
        num_partitions: the number of partitions of a topic that is created without a partition count.
        default_replication_factor: the number of replicas of a topic that is created without a replication factor; by
            default one per broker, at most 3.
        min_insync_replicas: the number of in-sync replicas that acks=all needs.
        replica_lag_time_max_ms: how long a follower may lack records before it leaves the in-sync replicas.
        replica_selector_class: the full name of Kafka's RackAwareReplicaSelector, by which leaders send consumers to
            replicas in the consumers' rack (KIP-392); or None.

        group_min_session_timeout_ms: the shortest session timeout that group members may request.
        group_initial_rebalance_delay_ms: how long a new group waits for more members; the default in Kafka is 3000.
        group_max_size: the largest number of members of a classic group.
        group_consumer_session_timeout_ms: the session timeout of members of consumer groups (KIP-848).
        group_consumer_heartbeat_interval_ms: the time between the heartbeats of these members.
        group_consumer_max_size: the largest number of members of a consumer group.
        group_consumer_assignors: the assignors of consumer groups, the default first.
        group_consumer_migration_policy: "upgrade" lets classic groups become consumer groups while they have members,
            "downgrade" the reverse; "bidirectional" or "disabled".

        users: the passwords of the users who may authenticate with SASL, by name. With None and without ``oauthbearer``
            clients need not authenticate. Requests can alter SCRAM credentials later.
        sasl_enabled_mechanisms: the SASL mechanisms by which ``users`` authenticate.
        oauthbearer: whether OAUTHBEARER accepts unsecured tokens, as Kafka does for development (KIP-255); or a
            function of a token and a time in ms that returns a BearerToken or raises TokenRefused.
        connections_max_reauth_ms: the longest lifetime of an authentication (KIP-368). 0 means no limit, except
            that an authentication by OAUTHBEARER ends with its token.
        connection_failed_authentication_delay_ms: the delay before a failed authentication is answered (KIP-306).
        delegation_token_secret_key: the key of delegation tokens (KIP-48); with None there can be none.
        delegation_token_max_lifetime_ms: the longest lifetime of a delegation token.
        delegation_token_expiry_time_ms: how long a delegation token is valid without a renewal.
        tls: the context for TLS on the TCP ports; in-memory connections are plain. If the context requires a client
            certificate, the certificate names the principal.
        authorizer: whether ACLs decide what clients may do, as in Kafka's StandardAuthorizer; by default all may
            do everything.
        super_users: the principals that may do everything, such as "User:admin", if there is an authorizer.
        allow_everyone_if_no_acl_found: whether resources that no ACL covers are for everyone, and not for super users
            only.

        log_dirs: the number of log directories of each broker, between which replicas can move.
        message_max_bytes: the largest batch size.
        max_incremental_fetch_session_cache_slots: the largest number of fetch sessions of a broker (KIP-227).
        socket_request_max_bytes: the largest request size; a broker disconnects a client that announces more.
        max_connections_per_ip: the largest number of connections of a broker from one address; further ones are closed
            at once. All in-memory connections count as connections from 127.0.0.1.

        client_telemetry: whether clients may push their metrics (KIP-714), as to brokers with a plugin that receives
            them; ``pushed_metrics`` has what was pushed. Subscriptions are configs of client metrics resources.
        telemetry_max_bytes: the largest size of one push.

        strict: whether leaving the context raises UnusedFaultRules if ``is_met`` of a fault rule is False.
        clock: the function that returns the time in ms since the epoch.
        new_uuid: the function that makes ids of topics and group members.

    Raises:
        ConfigError: an argument is invalid; the message says what is valid. It is a ValueError, too.
    """

    def __init__(
        self,
        nodes: int = 1,
        *,
        node_id: int = 1,
        racks: Sequence[str | None] = (),
        cluster_id: str = _CLUSTER_ID,
        max_versions: str | None = None,
        host: str = "127.0.0.1",
        port: int | None = 0,
        advertised_host: str | None = None,
        auto_create_topics_enable: bool = True,
        num_partitions: int = 1,
        default_replication_factor: int | None = None,
        min_insync_replicas: int = 1,
        replica_lag_time_max_ms: int = 30_000,
        replica_selector_class: str | None = None,
        group_min_session_timeout_ms: int = 6_000,
        group_initial_rebalance_delay_ms: int = 0,
        group_max_size: int = 2**31 - 1,
        group_consumer_session_timeout_ms: int = 45_000,
        group_consumer_heartbeat_interval_ms: int = 5_000,
        group_consumer_max_size: int = 2**31 - 1,
        group_consumer_assignors: Sequence[str] = tuple(ASSIGNORS),
        group_consumer_migration_policy: str = "bidirectional",
        users: Mapping[str, str] | None = None,
        sasl_enabled_mechanisms: Sequence[str] = MECHANISMS,
        oauthbearer: bool | TokenValidator = False,
        connections_max_reauth_ms: int = 0,
        connection_failed_authentication_delay_ms: int = 100,
        delegation_token_secret_key: str | None = None,
        delegation_token_max_lifetime_ms: int = 604_800_000,
        delegation_token_expiry_time_ms: int = 86_400_000,
        tls: ssl.SSLContext | None = None,
        log_dirs: int = 1,
        authorizer: bool = False,
        super_users: Sequence[str] = (),
        allow_everyone_if_no_acl_found: bool = False,
        message_max_bytes: int = 1_048_588,
        max_incremental_fetch_session_cache_slots: int = 1_000,
        socket_request_max_bytes: int = 104_857_600,
        max_connections_per_ip: int = 2**31 - 1,
        client_telemetry: bool = False,
        telemetry_max_bytes: int = 1_048_576,
        strict: bool = False,
        clock: Callable[[], int] = _wall_ms,
        new_uuid: Callable[[], UUID] = uuid4,
    ) -> None:
        given = locals().copy()
        self.faults: list[Exception] = []
        """Unexpected exceptions of request handlers since the broker was opened; notes name the client and request."""
        check_types(given)
        check_nodes(nodes, racks, default_replication_factor)
        check_listening(nodes, port, tls)
        check_choices(max_versions, replica_selector_class)
        check_consumer_groups(group_consumer_assignors, group_consumer_migration_policy)
        self._apis = {**APIS, **TELEMETRY_APIS} if client_telemetry else APIS
        release = release_named(DEFAULT_RELEASE if max_versions is None else max_versions, self._apis)
        tokens = bearer_tokens(oauthbearer, clock)
        settings = settings_of(
            given,
            message_timestamp_after_max_ms=3_600_000 if release.since("4.0") else 2**63 - 1,  # KIP-1030
            default_replication_factor=default_replication_factor or min(nodes, 3),
            group_consumer_assignors=tuple(group_consumer_assignors),
            sasl_enabled_mechanisms=enabled_mechanisms(users, sasl_enabled_mechanisms, tokens),
        )
        numbers = count(1)
        made, self._servers = list[BrokerNode](), _Servers()
        for index in range(nodes):
            number = node_id + index
            at = (
                (f"memory-{number}", _MEMORY_PORT) if port is None else (advertised_host or host, port and port + index)
            )
            node = BrokerNode(number, *at, release, rack=racks[index] if racks else None)
            listens_on = None if port is None else (host, port and port + index)
            made.append(node)
            self._servers[number] = NodeServer(node, listens_on, lambda: next(numbers), self._failed, tls)
        lifetimes = delegation_token_max_lifetime_ms, delegation_token_expiry_time_ms
        key = delegation_token_secret_key
        delegation_tokens = None if key is None else DelegationTokens(key, *lifetimes, clock, new_uuid)
        credentials = Credentials(users, settings.sasl_enabled_mechanisms, tokens, delegation_tokens)
        self._cluster = ClusterState(
            cluster_id,
            made,
            settings,
            clock=clock,
            new_topic_id=new_uuid,
            credentials=credentials,
            authorizer=authorizer_of(given),
        )
        for node in made:
            node.cluster = self._cluster
        self._strict = strict
        self._owner: Owner | None = None

    @property
    def bootstrap(self) -> str:
        """The value for clients' ``bootstrap.servers``; invented host names if the brokers listen on no port."""
        return ",".join(str(Address(node.host, node.port)) for node in self._cluster.nodes)

    # --- for tests ---------------------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int = 1, *, configs: Mapping[str, str] | None = None) -> HostedTopic:
        """Create a topic, as CreateTopics does, with settings such as ``{"cleanup.policy": "compact"}``.

        Raises:
            ApiError: the name, the number of partitions or a setting is invalid, or the topic exists.
        """
        check_name("a topic's name", name)
        check_index("partitions", partitions)
        check_configs(configs)
        return self._cluster.topics.create(name, num_partitions=partitions, configs=configs)

    def delete_topic(self, name: str) -> None:
        """Delete a topic, as DeleteTopics does.

        Raises:
            ApiError: there is no such topic.
        """
        self._cluster.delete_topic(self._topic(name))

    def log(self, topic: str, partition: int = 0) -> PartitionLog:
        """Return the log of a partition.

        Raises:
            ApiError: there is no such partition.
        """
        return self._partition(topic, partition).log

    @property
    def node_ids(self) -> list[int]:
        """The ids of all brokers, including stopped ones."""
        return list(self._servers)

    async def stop_node(self, node_id: int) -> None:
        """Kill one broker: its connections break, and other brokers take over its partitions.

        Raises:
            KeyError: there is no such broker.
        """
        node = self._cluster.node(node_id)
        await self._servers[node_id].stop()
        if node.alive:
            self._cluster.node_stopped(node)

    async def start_node(self, node_id: int, *, max_versions: str | None = None) -> None:
        """Restart a stopped broker at its previous address.

        With ``max_versions`` it serves the API versions of that release of Apache Kafka from then on, as in a rolling
        upgrade or downgrade. The features of the cluster stay those of the release that it began with. A running broker
        stays as it is.

        Raises:
            ConfigError: the release is unknown.
            KeyError: there is no such broker.
            RuntimeError: the cluster is not open.
            OSError: another process took the broker's port.
        """
        node = self._cluster.node(node_id)
        if self._owner is None:
            raise RuntimeError("this broker is not open")
        release = node.release if max_versions is None else release_named(max_versions, self._apis)
        if not self._servers[node_id].running:
            node.release = release
            await self._servers[node_id].start()
            self._cluster.node_started(node)

    @property
    def addresses(self) -> dict[tuple[str, int], int]:
        """The id of each broker, by the broker's host and port."""
        return {(node.host, node.port): node.node_id for node in self._cluster.nodes}

    # --- connections -----------------------------------------------------------------------------------------------

    async def connect(self, host: str, port: int) -> ByteStream:
        """Open an in-memory connection to the broker at ``host`` and ``port``.

        Raises:
            ConnectionRefusedError: no running broker has this address.
        """
        await anyio.lowlevel.checkpoint()
        if self._owner is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"no broker listens at {host}:{port}: it is not open")
        for node in self._cluster.nodes:
            server = self._servers[node.node_id]
            if server.accepting and (host, port) == (node.host, node.port):
                return server.connect()
        raise ConnectionRefusedError(errno.ECONNREFUSED, f"no broker listens at {host}:{port}")

    def attend(self, node_id: int, stream: ByteStream, name: str) -> None:
        """Serve a connection that another component made, such as a simulated network.

        Args:
            node_id: the broker.
            stream: the broker's end of the connection.
            name: the client's name in the log.

        Raises:
            KeyError: there is no such broker.
            ConnectionRefusedError: the broker is stopped or refuses connections.
        """
        check_index("a broker's id", node_id)
        if not self._servers[node_id].accepting:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"broker {node_id} refuses connections")
        self._servers[node_id].attend(stream, name)

    async def __aenter__(self) -> Self:
        if self._owner is not None:
            raise RuntimeError("this broker is open already")
        self.faults.clear()
        self.requests.clear()
        self._cluster.pushed_metrics.clear()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._stop)
            self._owner = Owner(self._failed)
            await self._owner.open()
            self._owner.spawn(self._cluster.timers.run, self._failed)
            self._cluster.reopened()
            self._cluster.groups.start()
            self._cluster.transactions.start()
            for node_id, server in self._servers.items():
                await server.start()
                node = self._cluster.node(node_id)
                if not node.alive:  # stopped or fenced before the cluster was closed
                    self._cluster.node_started(node)
            stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stop()
        if error is not None:
            for fault in self.faults:
                error.add_note(f"the broker failed, too: {_describe(fault)}")
        elif len(self.faults) == 1:
            raise self.faults[0]
        elif self.faults:
            raise ExceptionGroup("the broker failed", self.faults)
        elif self._strict:
            self._cluster.fault_rules.check()

    async def _stop(self) -> None:
        for server in self._servers.values():
            await server.stop()
        owner, self._owner = self._owner, None
        if owner is not None:
            await owner.close()

    def _failed(self, fault: Exception) -> None:
        _log.error("the broker failed: %s", _describe(fault), exc_info=fault)
        self.faults.append(fault)


def _describe(fault: Exception) -> str:
    """Return an exception's text with its notes, which name the client and the request."""
    return "; ".join((repr(fault), *getattr(fault, "__notes__", ())))
