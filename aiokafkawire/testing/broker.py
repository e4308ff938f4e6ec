"""The broker: a cluster of Kafka inside this process, over TCP and over memory.

async with Broker() as broker:
    broker.create_topic("flights", partitions=6)
    ...  # any Kafka client, at broker.bootstrap
"""

import errno
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from itertools import count
from types import TracebackType
from typing import Final, Self
from uuid import uuid4

import anyio.lowlevel
from anyio.abc import ByteStream

from ..runtime import Owner
from ..types import Address
from .apis import ADVERTISED
from .listening import NodeServer
from .log import PartitionLog
from .state import ClusterState, Node, Settings
from .topics import Topic

__all__ = ("Broker",)

_CLUSTER_ID: Final = "YWlva2Fma2F3aXJlLTAwMQ"  # Kafka's are UUIDs in URL-safe base64, too
_MEMORY_PORT: Final = 9092

_log = logging.getLogger(__name__)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class Broker:
    """A cluster that runs while its context is open, and holds its topics in memory. One broker is one, too.

    1. Leaving the context drops every connection at once and leaves no task behind. It may be left in another task
       than it was entered in, as fixtures are.
    2. A bug in the broker closes the connection that met it, is logged with its traceback and kept in ``faults``.
       Leaving the context raises what is there, so that no test passes over it; unless the body raised already,
       whose exception then carries them as notes.
    3. Clients' mistakes are no faults: they are answered as Kafka answers them, or cut off with a line in the log.

    Args:
        nodes: how many brokers; their ids count up from ``node_id``.
        host: where to listen.
        advertised_host: where clients find it, if that is elsewhere: listening on "0.0.0.0" is no address to go to.
        port: 0 for any free one; None to be reached through :meth:`connect` only. Further brokers take the ports
            after it.
        node_id: the first broker's id in the metadata.
        racks: the rack of each broker, if they have any (``broker.rack``).
        auto_create_topics: whether asking for the metadata of a topic makes it.
        num_partitions: of topics made without saying how many.
        replication_factor: of topics made without saying; as many as there are brokers, up to 3, unless given.
        min_insync_replicas: how many replicas must be in sync for acks=all.
        max_message_bytes: the largest batch.
        cluster_id: the cluster's id in the metadata.
        clock: the time in ms since the epoch.
    """

    def __init__(
        self,
        nodes: int = 1,
        *,
        host: str = "127.0.0.1",
        advertised_host: str | None = None,
        port: int | None = 0,
        node_id: int = 1,
        racks: Sequence[str | None] = (),
        auto_create_topics: bool = True,
        num_partitions: int = 1,
        replication_factor: int | None = None,
        min_insync_replicas: int = 1,
        max_message_bytes: int = 1_048_588,
        cluster_id: str = _CLUSTER_ID,
        clock: Callable[[], int] = _wall_ms,
    ) -> None:
        self.faults: list[Exception] = []
        """What handlers raised and should not have, since the broker was opened."""
        if nodes < 1 or (racks and len(racks) != nodes):
            raise ValueError(
                f"{nodes} brokers with {len(racks)} racks: at least one broker, and a rack for each or none"
            )
        settings = Settings(
            auto_create_topics_enable=auto_create_topics,
            num_partitions=num_partitions,
            default_replication_factor=min(nodes, 3) if replication_factor is None else replication_factor,
            min_insync_replicas=min_insync_replicas,
            message_max_bytes=max_message_bytes,
        )
        numbers = count(1)
        made, self._servers = list[Node](), dict[int, NodeServer]()
        for index in range(nodes):
            number = node_id + index
            at = (
                (f"memory-{number}", _MEMORY_PORT) if port is None else (advertised_host or host, port and port + index)
            )
            node = Node(number, *at, ADVERTISED, rack=racks[index] if racks else None)
            listens_on = None if port is None else (host, port and port + index)
            made.append(node)
            self._servers[number] = NodeServer(node, listens_on, lambda: next(numbers), self._failed)
        self._cluster = ClusterState(cluster_id, made, settings, clock=clock, new_topic_id=uuid4)
        for node in made:
            node.cluster = self._cluster
        self._owner: Owner | None = None

    @property
    def bootstrap(self) -> str:
        """What to give clients as ``bootstrap.servers``; a made-up name where it listens on no port."""
        return ",".join(str(Address(node.host, node.port)) for node in self._cluster.nodes)

    # --- for tests ---------------------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int = 1) -> Topic:
        """Make a topic, as CreateTopics does.

        Raises:
            Refused: the name or the number will not do, or the topic is there already.
        """
        return self._cluster.topics.create(name, num_partitions=partitions)

    def delete_topic(self, name: str) -> None:
        """Delete a topic, as DeleteTopics does.

        Raises:
            KeyError: there is none of that name.
        """
        topic = self._cluster.topics.get(name)
        if topic is None:
            raise KeyError(name)
        self._cluster.delete_topic(topic)

    def log(self, topic: str, partition: int = 0) -> PartitionLog:
        """The log of a partition.

        Raises:
            Refused: there is no such partition.
        """
        return self._cluster.topics.partition(topic, partition).log

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
            OSError: its port was taken meanwhile.
        """
        node = self._cluster.node(node_id)
        if not self._servers[node_id].running:
            await self._servers[node_id].start()
            self._cluster.node_started(node)

    def leader(self, topic: str, partition: int = 0) -> int:
        """The broker that leads a partition; -1 if none does.

        Raises:
            Refused: there is no such partition.
        """
        return self._cluster.topics.partition(topic, partition).leader

    def move_leader(self, topic: str, partition: int, node_id: int, *, unclean: bool = False) -> None:
        """Have another replica lead a partition; with ``unclean`` one that lags, so that records are lost.

        Raises:
            Refused: there is no such partition, or the replica cannot lead.
        """
        self._cluster.move_leader(self._cluster.topics.partition(topic, partition), node_id, unclean=unclean)

    # --- being reached -----------------------------------------------------------------------------------------

    async def connect(self, host: str, port: int) -> ByteStream:
        """Open a connection over memory to the broker at ``host`` and ``port``.

        Raises:
            ConnectionRefusedError: nothing listens there: no broker has this address, or it does not run.
        """
        await anyio.lowlevel.checkpoint()
        for node in self._cluster.nodes:
            server = self._servers[node.node_id]
            if server.running and (host, port) == (node.host, node.port):
                return server.connect()
        raise ConnectionRefusedError(errno.ECONNREFUSED, f"no broker listens at {host}:{port}")

    async def __aenter__(self) -> Self:
        if self._owner is not None:
            raise RuntimeError("this broker is open already")
        self.faults.clear()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._stop)
            self._owner = Owner(self._failed)
            await self._owner.open()
            self._owner.spawn(self._cluster.timers.run)
            for server in self._servers.values():
                await server.start()
            stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stop()
        if error is not None:
            for fault in self.faults:
                error.add_note(f"the broker failed, too: {fault!r}")
        elif len(self.faults) == 1:
            raise self.faults[0]
        elif self.faults:
            raise ExceptionGroup("the broker failed", self.faults)

    async def _stop(self) -> None:
        for server in self._servers.values():
            await server.stop()
        owner, self._owner = self._owner, None
        if owner is not None:
            await owner.close()

    def _failed(self, fault: Exception) -> None:
        _log.error("the broker failed", exc_info=fault)
        self.faults.append(fault)
