"""One node at work: it listens, serves connections, stops and returns."""

import logging
from collections.abc import Callable

import anyio
from anyio.abc import ByteStream, Listener, SocketAttribute, SocketStream

from ..runtime import Owner
from .call import Peer
from .memory import memory_connection
from .server import serve
from .state import Node

__all__ = ("NodeServer",)

_log = logging.getLogger(__name__)


class NodeServer:
    """Serves the requests of one node, from TCP and from memory.

    Args:
        node: who answers.
        listens_on: host and port, 0 for a free one; None for memory only. After a stop it comes back to the same port.
        number: gives each connection its number.
        on_fault: hears of bugs.
    """

    def __init__(
        self,
        node: Node,
        listens_on: tuple[str, int] | None,
        number: Callable[[], int],
        on_fault: Callable[[Exception], None],
    ) -> None:
        self._node = node
        self._listens_on = listens_on
        self._number = number
        self._on_fault = on_fault
        self._owner: Owner | None = None

    @property
    def running(self) -> bool:
        """Whether it takes connections."""
        return self._owner is not None

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: the address cannot be listened at.
        """
        self._owner = Owner(self._on_fault)
        await self._owner.open()
        if self._listens_on is not None:
            host, port = self._listens_on
            try:
                listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
            except BaseException:
                await self.stop()
                raise
            self._node.port = listener.extra(SocketAttribute.local_port)  # noqa: S610  # not Django's extra
            self._listens_on = host, self._node.port
            self._owner.spawn(self._listen, listener)

    async def stop(self) -> None:
        """Close the listener and every connection at once."""
        owner, self._owner = self._owner, None
        if owner is not None:
            await owner.close()

    def connect(self) -> ByteStream:
        """A connection over memory: the client's end."""
        assert self._owner is not None
        theirs, ours = memory_connection()
        number = self._number()
        self._owner.spawn(serve, self._node, ours, Peer(f"memory connection {number}", number=number))
        return theirs

    async def _listen(self, listener: Listener[SocketStream]) -> None:
        async def attend(stream: SocketStream) -> None:
            number = self._number()
            try:
                host, port = tuple(stream.extra(SocketAttribute.remote_address))[:2]  # noqa: S610  # not Django's extra
                peer = Peer(f"{host}:{port}", str(host), number)
            except anyio.TypedAttributeLookupError:
                peer = Peer("someone who left at once", number=number)
            try:
                await serve(self._node, stream, peer)
            except Exception as fault:
                # One connection's bug is not the others' end.
                self._on_fault(fault)

        async with listener:
            await listener.serve(attend)
