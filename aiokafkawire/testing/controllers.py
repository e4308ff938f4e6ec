"""The listeners of a cluster's nodes as controllers, for clients with ``bootstrap.controllers`` (KIP-919)."""

import errno
from contextlib import AsyncExitStack
from itertools import count
from types import TracebackType
from typing import Final, Self

import anyio.lowlevel
from anyio.abc import ByteStream

from ..types import Address
from .broker import Broker
from .cluster.releases import controllers_release
from .cluster.state import BrokerNode
from .serving.listening import NodeServer

__all__ = ("Controllers",)

_MEMORY_PORT: Final = 9093
_FIRST_CONNECTION: Final = 100_000
"""The number of the first connection to a controller, above those of connections to brokers."""


class Controllers:
    """The nodes of a :class:`~.broker.Broker` as controllers, while this context is open; open the Broker first.

    async with Broker(nodes=3) as broker, Controllers(broker) as controllers:
        async with Client(bootstrap_controllers=controllers.bootstrap) as kafka: ...

    Each node is a broker and a controller (``process.roles=broker,controller``). Controllers serve the requests that
    Kafka's controllers serve. They keep running if brokers are stopped, as separate processes would.

    Args:
        broker: the cluster.
        in_memory: whether clients use :meth:`connect` instead of TCP ports.
    """

    def __init__(self, broker: Broker, *, in_memory: bool = False) -> None:
        self._broker = broker
        self._servers: list[tuple[BrokerNode, NodeServer]] = []
        cluster, numbers = broker._cluster, count(_FIRST_CONNECTION)
        for node in cluster.nodes:
            host, port = (f"controller-{node.node_id}", _MEMORY_PORT) if in_memory else ("127.0.0.1", 0)
            release = controllers_release(node.release)
            controller = BrokerNode(node.node_id, host, port, release, rack=node.rack, is_controller=True)
            controller.cluster, controller.log_dirs = cluster, node.log_dirs
            listens_on = None if in_memory else (host, port)
            server = NodeServer(controller, listens_on, lambda: next(numbers), broker._failed)
            self._servers.append((controller, server))
        self._stack = AsyncExitStack()

    @property
    def bootstrap(self) -> str:
        """The value for clients' ``bootstrap.controllers``."""
        return ",".join(str(Address(node.host, node.port)) for node, _ in self._servers)

    async def connect(self, host: str, port: int) -> ByteStream:
        """Open an in-memory connection to the controller at ``host`` and ``port``.

        Raises:
            ConnectionRefusedError: no controller has this address.
        """
        await anyio.lowlevel.checkpoint()
        for node, server in self._servers:
            if server.accepting and (host, port) == (node.host, node.port):
                return server.connect()
        raise ConnectionRefusedError(errno.ECONNREFUSED, f"no controller listens at {host}:{port}")

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for node, server in self._servers:
                stack.push_async_callback(server.stop)
                await server.start()
                node.cluster.controllers[node.node_id] = node
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._broker._cluster.controllers.clear()
        await self._stack.aclose()
