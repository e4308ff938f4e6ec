"""The broker: one node of Kafka inside this process, over TCP and over memory.

async with Broker() as broker:
    broker.create_topic("flights", partitions=6)
    ...  # any Kafka client, at broker.bootstrap
"""

import errno
import logging
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self
from uuid import uuid4

import anyio
import anyio.lowlevel
from anyio.abc import ByteStream, Listener, SocketAttribute, SocketStream

from ..runtime import Owner
from ..types import Address
from .apis import ADVERTISED
from .log import PartitionLog
from .memory import memory_connection
from .server import serve
from .state import ClusterState, Node, Settings
from .topics import Topic

__all__ = ("Broker",)

_CLUSTER_ID: Final = "YWlva2Fma2F3aXJlLTAwMQ"  # Kafka's are UUIDs in URL-safe base64, too
_MEMORY_PORT: Final = 9092

_log = logging.getLogger(__name__)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class Broker:
    """A broker that runs while its context is open, and holds its topics in memory.

    1. Leaving the context drops every connection at once and leaves no task behind. It may be left in another task
       than it was entered in, as fixtures are.
    2. A bug in the broker closes the connection that met it, is logged with its traceback and kept in ``faults``.
       Leaving the context raises what is there, so that no test passes over it; unless the body raised already,
       whose exception then carries them as notes.
    3. Clients' mistakes are no faults: they are answered as Kafka answers them, or cut off with a line in the log.

    Args:
        host: where to listen.
        advertised_host: where clients find it, if that is elsewhere: listening on "0.0.0.0" is no address to go to.
        port: 0 for any free one; None to be reached through :meth:`connect` only.
        node_id: the broker's id in the metadata.
        auto_create_topics: whether asking for the metadata of a topic makes it.
        num_partitions: of topics made without saying how many.
        max_message_bytes: the largest batch.
        cluster_id: the cluster's id in the metadata.
        clock: the time in ms since the epoch.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        advertised_host: str | None = None,
        port: int | None = 0,
        node_id: int = 1,
        auto_create_topics: bool = True,
        num_partitions: int = 1,
        max_message_bytes: int = 1_048_588,
        cluster_id: str = _CLUSTER_ID,
        clock: Callable[[], int] = _wall_ms,
    ) -> None:
        self.faults: list[Exception] = []
        """What handlers raised and should not have, since the broker was opened."""
        settings = Settings(
            auto_create_topics_enable=auto_create_topics,
            num_partitions=num_partitions,
            message_max_bytes=max_message_bytes,
        )
        self._listens_on = None if port is None else (host, port)
        address = (f"memory-{node_id}", _MEMORY_PORT) if port is None else (advertised_host or host, port)
        self._node = Node(node_id, *address, ADVERTISED)
        self._cluster = ClusterState(cluster_id, [self._node], settings, clock=clock, new_topic_id=uuid4)
        self._node.cluster = self._cluster
        self._owner: Owner | None = None
        self._memory_connections = 0

    @property
    def bootstrap(self) -> str:
        """What to give clients as ``bootstrap.servers``; a made-up name where it listens on no port."""
        return str(Address(self._node.host, self._node.port))

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

    # --- being reached -----------------------------------------------------------------------------------------

    async def connect(self, host: str, port: int) -> ByteStream:
        """Open a connection over memory to the broker at ``host`` and ``port``.

        Raises:
            ConnectionRefusedError: nothing listens there: this broker has another address, or is not open.
        """
        await anyio.lowlevel.checkpoint()
        if self._owner is None or (host, port) != (self._node.host, self._node.port):
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"no broker listens at {host}:{port}")
        theirs, ours = memory_connection()
        self._memory_connections += 1
        self._owner.spawn(serve, self._node, ours, f"memory connection {self._memory_connections}")
        return theirs

    async def __aenter__(self) -> Self:
        if self._owner is not None:
            raise RuntimeError("this broker is open already")
        self.faults.clear()
        self._owner = Owner(self._failed)
        await self._owner.open()
        if self._listens_on is not None:
            host, port = self._listens_on
            try:
                listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
            except BaseException:
                await self._stop()
                raise
            self._node.port = listener.extra(SocketAttribute.local_port)  # noqa: S610  # not Django's extra
            self._owner.spawn(self._listen, listener)
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
        owner, self._owner = self._owner, None
        if owner is not None:
            await owner.close()

    async def _listen(self, listener: Listener[SocketStream]) -> None:
        async def attend(stream: SocketStream) -> None:
            try:
                peer = str(stream.extra(SocketAttribute.remote_address))  # noqa: S610  # not Django's extra
            except anyio.TypedAttributeLookupError:
                peer = "someone who left at once"
            try:
                await serve(self._node, stream, peer)
            except Exception as fault:
                # One connection's bug is not the others' end.
                self._failed(fault)

        async with listener:
            await listener.serve(attend)

    def _failed(self, fault: Exception) -> None:
        _log.error("node %d failed", self._node.node_id, exc_info=fault)
        self.faults.append(fault)
