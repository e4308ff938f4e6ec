"""The connections to every broker, a lane each for what must not wait behind one another."""

import logging
from collections.abc import Collection, Sequence

import anyio

from ..config import ClientConfig
from ..config.network import parse_proxy
from ..errors import ConfigError, KafkaError, UsageError, copy_for_reraise
from ..network.connection import Connection
from ..network.connector import Connector
from ..network.security import Security
from ..protocol.pre_api_versions import BrokerVersion
from ..runtime import Owner, Runtime
from ..types import Address
from .retry import Backoff

__all__ = ("CONTROL", "ConnectionPool")

_log = logging.getLogger("aiokafkawire.network")

CONTROL = "control"
"""The lane of metadata, offsets and coordinators, shared by all. A broker answers a connection strictly in order, so
a long-polling fetch has a lane of its own, and so has each producer."""


class _Lane:
    """One connection, opened when it is first needed and again after it failed."""

    def __init__(self, backoff: Backoff) -> None:
        self.opening = anyio.Lock()
        self.connection: Connection | None = None
        self.backoff = backoff
        self.error: KafkaError | None = None
        self.retry_at = float("-inf")


class ConnectionPool:
    """Opens, shares and closes connections. Lanes are by address, so a bootstrap connection serves its node too."""

    def __init__(
        self,
        config: ClientConfig,
        connector: Connector,
        owner: Owner,
        runtime: Runtime,
        bootstrap: Collection[Address] = (),
    ) -> None:
        self._security = Security(config, runtime)
        if config.proxy is not None:
            from ..network.proxy_connector import through

            connector = through(parse_proxy(config.proxy), connector)
        self.bootstrap: Collection[Address] = bootstrap
        """The addresses that are dialled as they are."""
        self._config, self._connector, self._owner, self._runtime = config, connector, owner, runtime
        self._lanes: dict[tuple[Address, str], _Lane] = {}
        self._unreachable: set[Address] = set()
        self._known: dict[Address, BrokerVersion] = {}
        self._closed = False

    async def check(self) -> None:
        """Look into the files that connections need.

        Raises:
            ConfigError: one is not there, or does not hold what it should.
        """
        await self._security.check()

    async def connection(self, address: Address, lane: str = CONTROL, within: float | None = None) -> Connection:
        """The lane's connection, opened if need be, ``within`` so many seconds; callers that come meanwhile share it.

        Raises:
            ConnectionLost, WireError: it cannot be opened, or failed a moment ago (``reconnect_backoff_ms``).
            AuthenticationFailed, ConfigError: broker and client do not trust one another.
            UsageError: the client is closed, or this is another event loop than its own.
        """
        self._owner.require_own_loop()
        held = self._lanes.get((address, lane))
        if held is None:
            held = self._lanes[address, lane] = _Lane(self._new_backoff())
        if held.connection is not None and held.connection.failure is None:
            return held.connection
        async with held.opening:
            if held.connection is not None and held.connection.failure is None:
                return held.connection
            return await self._open(address, lane, held, within)

    def opened(self, address: Address, lane: str) -> Connection | None:
        """The lane's connection if it is open and healthy now; nothing is opened."""
        held = self._lanes.get((address, lane))
        if held is None or held.connection is None or held.connection.failure is not None:
            return None
        return held.connection

    def known(self, address: Address) -> BrokerVersion | None:
        """What the broker there was found to be, if it was reached."""
        return self._known.get(address)

    def retry_at(self, address: Address, lane: str) -> float:
        """From when on a lane that failed to open is dialled again, in seconds of the runtime's clock.

        It is -inf where the last try did not fail: such a lane is dialled at once.
        """
        held = self._lanes.get((address, lane))
        return held.retry_at if held is not None and held.error is not None else float("-inf")

    def dialled(self, address: Address) -> Address:
        """Where a broker is dialled that advertises this address.

        Raises:
            ConfigError: ``advertised_listeners_map`` fails, or gives no address.
        """
        mapped = self._config.advertised_listeners_map
        if mapped is None or address in self.bootstrap:
            return address
        try:
            host, port = mapped(*address)
        except Exception as error:
            raise ConfigError(f"advertised_listeners_map failed for {address}: {error!r}") from error
        if not isinstance(host, str) or not host or type(port) is not int or not 0 < port < 65536:
            raise ConfigError(f"advertised_listeners_map gave no host and port for {address}, but {(host, port)!r}")
        return Address(host, port)

    async def _open(self, address: Address, name: str, lane: _Lane, within: float | None) -> Connection:
        if self._closed:
            raise UsageError("the client is closed")
        if lane.error is not None and self._runtime.now() < lane.retry_at:
            raise copy_for_reraise(lane.error)
        self._forget_what_broke(address, lane.connection)
        known, began = self._known.get(address), self._runtime.now()
        try:
            lane.connection = await Connection.open(
                self._connector,
                *address,
                config=self._config,
                owner=self._owner,
                runtime=self._runtime,
                within=within,
                security=self._security,
                known=known,
                dialled=self.dialled(address),
            )
        except KafkaError as error:
            self._forget(address, known)  # another may listen there by now
            delay = lane.backoff.next()
            lane.error, lane.retry_at = error, self._runtime.now() + delay
            self._tell_unreachable(address, error)
            _log.debug("cannot connect to %s (lane %s), not again for %.0f ms: %s", address, name, delay * 1000, error)
            raise
        _log.debug("connected to %s (lane %s) in %.0f ms", address, name, (self._runtime.now() - began) * 1000)
        if lane.connection.known is not None:
            # Lanes that were opened side by side have found the same: they break together, too.
            lane.connection.known = self._known.setdefault(address, lane.connection.known)
        lane.error = None
        lane.backoff.reset()
        self._tell_reachable(address)
        return lane.connection

    def _forget_what_broke(self, address: Address, broken: Connection | None) -> None:
        """An upgrade breaks all connections: what an old broker was found to be is found out again after each break.

        Of many connections that break at once the first has it found out, and the others go by that.
        """
        if broken is not None and broken.known is not None and broken.known.is_untold:
            self._forget(address, broken.known)

    def _forget(self, address: Address, known: BrokerVersion | None) -> None:
        if known is not None and self._known.get(address) is known:
            del self._known[address]

    def _tell_unreachable(self, address: Address, error: KafkaError) -> None:
        """One line for a broker, not one for each lane and try. A connection that only broke may be opened at once."""
        if self._closed or address in self._unreachable:
            return
        self._unreachable.add(address)
        _log.warning("broker %s is unreachable: %s", address, error)

    def _tell_reachable(self, address: Address) -> None:
        if address in self._unreachable:
            self._unreachable.remove(address)
            _log.info("broker %s is reachable again", address)

    def _new_backoff(self) -> Backoff:
        config = self._config
        return Backoff(config.reconnect_backoff_ms / 1000, config.reconnect_backoff_max_ms / 1000, self._runtime.chance)

    def least_loaded_first(self, addresses: Sequence[Address]) -> list[Address]:
        """The addresses in the order to try: open control lanes by what they have in flight, then the others.

        Last come those that had a lane fail, of whatever use: who has left a produce unanswered may leave all so.
        """
        troubled = {
            address
            for (address, _), lane in self._lanes.items()
            if lane.error is not None or (lane.connection is not None and lane.connection.failure is not None)
        }

        def load(address: Address) -> tuple[bool, int, int]:
            lane = self._lanes.get((address, CONTROL))
            if lane is None or lane.connection is None or lane.connection.failure is not None:
                failed = lane is not None and lane.error is not None
                return address in troubled, 2 if failed else 1, 0
            return address in troubled, 0, lane.connection.in_flight

        return sorted(dict.fromkeys(addresses), key=load)

    async def close_lanes(self, lane: str) -> None:
        """Close a lane to every broker: its producer or consumer is done, even one that is cancelled."""
        with anyio.CancelScope(shield=True):
            for key in [key for key in self._lanes if key[1] == lane]:
                held = self._lanes.pop(key)
                if held.connection is not None:
                    await held.connection.close()

    async def abandon(self) -> None:
        """Close all connections: the brokers at their other ends are not those of this client any more."""
        for held in list(self._lanes.values()):
            if held.connection is not None:
                await held.connection.close()

    async def close_idle(self, now: float) -> None:
        """Close connections that were not used for ``connections_max_idle_ms``, and forget their lanes."""
        limit = self._config.connections_max_idle_ms / 1000
        for key, held in list(self._lanes.items()):
            connection = held.connection
            if held.opening.locked() or connection is None:
                continue
            if not connection.in_flight and now - connection.used_at >= limit:
                del self._lanes[key]
                await connection.close()

    def drop(self) -> None:
        """Let go of all connections: their event loop has ended and cannot close them. Nothing opens afterwards."""
        self._closed = True
        self._lanes.clear()

    async def close(self) -> None:
        """Close everything; nothing opens afterwards."""
        self._closed = True
        lanes, self._lanes = self._lanes, {}
        for held in lanes.values():
            if held.connection is not None:
                await held.connection.close()
