"""The broker: a cluster of Kafka inside this process, over TCP and over memory.

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
from typing import Any, Final, Self
from uuid import UUID, uuid4

import anyio.lowlevel
from anyio.abc import ByteStream

from ..argument_checks import shown
from ..runtime import Owner
from ..types import Address
from .broker_options import check_choices, check_index, check_kinds, check_listening, check_name, check_nodes
from .cluster.api_error import ApiError
from .cluster.releases import newest, release_named
from .cluster.state import BrokerNode, ClusterState, Settings
from .cluster.topics import HostedTopic
from .cluster_control import ClusterControl
from .faults.fault_api import Faults
from .faults.rules import UnusedFaultRules
from .logs.log import PartitionLog
from .security.bearer_tokens import TokenValidator, bearer_tokens
from .security.credentials import Credentials
from .security.mechanisms import MECHANISMS, enabled_mechanisms
from .serving.apis import APIS
from .serving.listening import NodeServer

__all__ = ("Broker", "ApiError", "UnusedFaultRules")

_CLUSTER_ID: Final = "YWlva2Fma2F3aXJlLTAwMQ"  # Kafka's are UUIDs in URL-safe base64, too
_MEMORY_PORT: Final = 9092

_log = logging.getLogger(__name__)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class _Servers(dict[int, NodeServer]):
    """The brokers by id; asked for one that is not there, it says which are."""

    def __missing__(self, node_id: int) -> NodeServer:
        check_index("a broker's id", node_id)
        raise KeyError(f"no broker {node_id}: there are {', '.join(map(str, self))}")


class Broker(ClusterControl, Faults):
    """A cluster that runs while its context is open, and holds its topics in memory. One broker is one, too.

    1. Leaving the context drops every connection at once and leaves no task behind. It may be left in another task
       than it was entered in, as fixtures are.
    2. A bug in the broker closes the connection that met it, is logged with its traceback and kept in ``faults``.
       Leaving the context raises what is there, so that no test passes over it; unless the body raised already,
       whose exception then carries them as notes.
    3. Clients' mistakes are no faults: they are answered as Kafka answers them, or cut off with a line in the log.
    4. It may be opened again. Topics, records, groups, transactions, settings and orders are as they were, and a port
       that was chosen stays; ``faults`` and ``requests`` begin anew, and brokers that were stopped or fenced are back.

    Args:
        nodes: how many brokers; their ids count up from ``node_id``.
        node_id: the first broker's id in the metadata.
        racks: the rack of each broker, if they have any (``broker.rack``).
        cluster_id: the cluster's id in the metadata.
        max_versions: the release of Apache Kafka to be, as "2.4": what that speaks, as far as it is there. Up to 0.9
            it neither tells versions nor answers when asked.

        host: where to listen.
        port: 0 for any free one; None to be reached through :meth:`connect` only. Further brokers take the ports
            after it.
        advertised_host: where clients find it, if that is elsewhere: listening on "0.0.0.0" is no address to go to.

        auto_create_topics_enable: whether asking for the metadata of a topic makes it.
        num_partitions: of topics made without saying how many.
        default_replication_factor: of topics made without saying; as many as there are brokers, up to 3, unless given.
        min_insync_replicas: how many replicas must be in sync for acks=all.
        replica_lag_time_max_ms: how long a follower may lack records before it leaves the in-sync replicas.
        replica_selector_class: Kafka's RackAwareReplicaSelector, or None: whether leaders send consumers to replicas in
            their rack (KIP-392).

        group_min_session_timeout_ms: the least session timeout that members of groups may ask for.
        group_initial_rebalance_delay_ms: how long a new group waits for more members; Kafka's own default is 3000.
        group_max_size: how many members a group may have.

        users: who may log in by SASL, and the password of each; None lets everyone in. SCRAM credentials can be
            altered later, by requests.
        sasl_enabled_mechanisms: those to log in with, where there are users.
        oauthbearer: whether OAUTHBEARER takes unsecured tokens, as Kafka for development (KIP-255); or a function that
            looks at a token at a time, in ms, and gives a BearerToken or raises TokenRefused; both are in
            ``aiokafkawire.testing.security.bearer_tokens``.
        connections_max_reauth_ms: for how long a login holds; 0 for ever, or as long as its token (KIP-368).
        connection_failed_authentication_delay_ms: how late a failed login is answered (KIP-306).
        tls: speak TLS on the port, not over memory. Where it asks for certificates, a client is who its says it is.

        message_max_bytes: the largest batch.
        max_incremental_fetch_session_cache_slots: how many fetch sessions each broker keeps (KIP-227).
        socket_request_max_bytes: the largest request; who announces a larger one is cut off.
        max_connections_per_ip: how many connections one client's address may have at each broker; those beyond it are
            closed at once. All over memory count as one address.

        strict: leaving the context raises UnmetOrders if an order was not carried out as often as it says.
        clock: the time in ms since the epoch.
        new_uuid: makes the ids of topics and of members of groups.

    Raises:
        ConfigError: an argument cannot be what it is; the message says what may be. It is a ValueError, too.
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
        users: Mapping[str, str] | None = None,
        sasl_enabled_mechanisms: Sequence[str] = MECHANISMS,
        oauthbearer: bool | TokenValidator = False,
        connections_max_reauth_ms: int = 0,
        connection_failed_authentication_delay_ms: int = 100,
        tls: ssl.SSLContext | None = None,
        message_max_bytes: int = 1_048_588,
        max_incremental_fetch_session_cache_slots: int = 1_000,
        socket_request_max_bytes: int = 104_857_600,
        max_connections_per_ip: int = 2**31 - 1,
        strict: bool = False,
        clock: Callable[[], int] = _wall_ms,
        new_uuid: Callable[[], UUID] = uuid4,
    ) -> None:
        given = locals().copy()
        self.faults: list[Exception] = []
        """What handlers raised and should not have, since the broker was opened; a note says who was asked for what."""
        check_kinds(given)
        check_nodes(nodes, racks, default_replication_factor)
        check_listening(nodes, port, tls)
        check_choices(max_versions, replica_selector_class)
        release = newest(APIS) if max_versions is None else release_named(max_versions, APIS)
        tokens = bearer_tokens(oauthbearer, clock)
        settings = Settings(
            message_timestamp_after_max_ms=3_600_000 if release.since("4.0") else 2**63 - 1,  # KIP-1030
            auto_create_topics_enable=auto_create_topics_enable,
            num_partitions=num_partitions,
            default_replication_factor=default_replication_factor or min(nodes, 3),
            min_insync_replicas=min_insync_replicas,
            replica_lag_time_max_ms=replica_lag_time_max_ms,
            replica_selector_class=replica_selector_class,
            message_max_bytes=message_max_bytes,
            max_incremental_fetch_session_cache_slots=max_incremental_fetch_session_cache_slots,
            group_min_session_timeout_ms=group_min_session_timeout_ms,
            group_initial_rebalance_delay_ms=group_initial_rebalance_delay_ms,
            group_max_size=group_max_size,
            socket_request_max_bytes=socket_request_max_bytes,
            max_connections_per_ip=max_connections_per_ip,
            sasl_enabled_mechanisms=enabled_mechanisms(users, sasl_enabled_mechanisms, tokens),
            connections_max_reauth_ms=connections_max_reauth_ms,
            connection_failed_authentication_delay_ms=connection_failed_authentication_delay_ms,
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
        credentials = Credentials(users, settings.sasl_enabled_mechanisms, tokens)
        self._cluster = ClusterState(
            cluster_id, made, settings, clock=clock, new_topic_id=new_uuid, credentials=credentials
        )
        for node in made:
            node.cluster = self._cluster
        self._strict = strict
        self._owner: Owner | None = None

    @property
    def bootstrap(self) -> str:
        """What to give clients as ``bootstrap.servers``; a made-up name where it listens on no port."""
        return ",".join(str(Address(node.host, node.port)) for node in self._cluster.nodes)

    # --- for tests ---------------------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int = 1, *, configs: Mapping[str, str] | None = None) -> HostedTopic:
        """Make a topic, as CreateTopics does; ``configs`` are settings, such as ``{"cleanup.policy": "compact"}``.

        Raises:
            Refused: the name, the number or the settings will not do, or the topic is there already.
        """
        check_name("a topic's name", name)
        check_index("partitions", partitions)
        _check_configs(configs)
        return self._cluster.topics.create(name, num_partitions=partitions, configs=configs)

    def delete_topic(self, name: str) -> None:
        """Delete a topic, as DeleteTopics does.

        Raises:
            Refused: there is none of that name.
        """
        self._cluster.delete_topic(self._topic(name))

    def log(self, topic: str, partition: int = 0) -> PartitionLog:
        """The log of a partition.

        Raises:
            Refused: there is no such partition.
        """
        return self._partition(topic, partition).log

    @property
    def node_ids(self) -> list[int]:
        """The ids of all brokers, stopped ones included."""
        return list(self._servers)

    async def stop_node(self, node_id: int) -> None:
        """Kill one broker: its connections break, others lead where it led.

        Raises:
            KeyError: there is no such broker.
        """
        node = self._cluster.node(node_id)
        await self._servers[node_id].stop()
        if node.alive:
            self._cluster.node_stopped(node)

    async def start_node(self, node_id: int) -> None:
        """Bring a stopped broker back, at the address it had.

        Raises:
            KeyError: there is no such broker.
            RuntimeError: the cluster is not open.
            OSError: its port was taken meanwhile.
        """
        node = self._cluster.node(node_id)
        if self._owner is None:
            raise RuntimeError("this broker is not open")
        if not self._servers[node_id].running:
            await self._servers[node_id].start()
            self._cluster.node_started(node)

    @property
    def addresses(self) -> dict[tuple[str, int], int]:
        """Which broker listens where: its id by host and port."""
        return {(node.host, node.port): node.node_id for node in self._cluster.nodes}

    # --- being reached -----------------------------------------------------------------------------------------

    async def connect(self, host: str, port: int) -> ByteStream:
        """Open a connection over memory to the broker at ``host`` and ``port``.

        Raises:
            ConnectionRefusedError: nothing listens there: no broker has this address, or it does not run.
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
        """Serve a connection that something else has made, as a simulated network does.

        Args:
            node_id: which broker.
            stream: the broker's end.
            name: whose connection it is, for the log.

        Raises:
            KeyError: there is no such broker.
            ConnectionRefusedError: the broker does not run, or takes no connections.
        """
        check_index("a broker's id", node_id)
        if not self._servers[node_id].accepting:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"broker {node_id} takes no connections")
        self._servers[node_id].attend(stream, name)

    async def __aenter__(self) -> Self:
        if self._owner is not None:
            raise RuntimeError("this broker is open already")
        self.faults.clear()
        self.requests.clear()
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
                if not node.alive:  # it was stopped, or fenced, when the broker was open before
                    self._cluster.node_started(node)
            stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stop()
        if error is not None:
            for fault in self.faults:
                error.add_note(f"the broker failed, too: {_told(fault)}")
        elif len(self.faults) == 1:
            raise self.faults[0]
        elif self.faults:
            raise ExceptionGroup("the broker failed", self.faults)
        elif self._strict:
            self._cluster.orders.check()

    async def _stop(self) -> None:
        for server in self._servers.values():
            await server.stop()
        owner, self._owner = self._owner, None
        if owner is not None:
            await owner.close()

    def _failed(self, fault: Exception) -> None:
        _log.error("the broker failed: %s", _told(fault), exc_info=fault)
        self.faults.append(fault)


def _check_configs(configs: Any) -> None:
    """Raise TypeError unless these are settings of a topic, or None."""
    if configs is not None and not isinstance(configs, Mapping):
        raise TypeError(f"configs must be a mapping such as {{'cleanup.policy': 'compact'}}, got {shown(configs)}")
    for name, value in (configs or {}).items():
        check_name("a setting's name", name)
        check_name(f"the setting {name}", value)


def _told(fault: Exception) -> str:
    """A fault, and which node and connection met it."""
    return "; ".join((repr(fault), *getattr(fault, "__notes__", ())))
