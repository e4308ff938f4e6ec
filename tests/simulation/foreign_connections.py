"""The connections of another client: one to each broker for each purpose, dialled when they are needed."""

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Self, TypeVar

import anyio
from support.raw_client import RawClient

from aiokafkawire.testing.simulation import Simulation

__all__ = ("UNREACHABLE", "ForeignConnections")

T = TypeVar("T")

UNREACHABLE: Final = (OSError, anyio.EndOfStream, anyio.BrokenResourceError, TimeoutError)
"""What a request raises that gets no answer."""


class ForeignConnections:
    """Sends requests by name of the client; a connection whose request fails or is cancelled is closed."""

    def __init__(self, sim: Simulation, name: str) -> None:
        self._sim, self._name = sim, name
        self._open: dict[tuple[int, str], RawClient] = {}
        self._locks: dict[tuple[int, str], anyio.Lock] = {}

    async def ask(self, node: int, purpose: str, send: Callable[[RawClient], Awaitable[T]], *, within: float) -> T:
        """Call ``send`` with the connection to a broker.

        Raises:
            UNREACHABLE: there is no broker, the connection breaks, or no answer comes within so many seconds.
        """
        key = node, purpose
        async with self._locks.setdefault(key, anyio.Lock()):
            try:
                with anyio.fail_after(within):
                    client = self._open.get(key) or await self._dial(key)
                    return await send(client)
            except BaseException:
                await self._close(key)
                raise

    async def _dial(self, key: tuple[int, str]) -> RawClient:
        found = [address for address, node in self._sim.broker.addresses.items() if node == key[0]]
        if not found:
            raise ConnectionRefusedError(f"there is no broker {key[0]}")
        client = self._open[key] = RawClient(await self._sim.network.connector(self._name)(*found[0]))
        client.client_id = self._name
        return client

    async def _close(self, key: tuple[int, str]) -> None:
        client = self._open.pop(key, None)
        if client is not None:
            with anyio.CancelScope(shield=True):
                await client.stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for key in list(self._open):
            await self._close(key)
