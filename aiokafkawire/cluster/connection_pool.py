"""The connections to all brokers. Requests that must not wait for one another use separate connections (lanes)."""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import anyio

from ..config import ClientConfig
from ..config.network import parse_proxy
from ..errors import ConfigError, ConnectionLost, KafkaError, RebootstrapRequired, UsageError, copy_for_reraise
from ..event_log import EventLog, TroubleLog
from ..network.client_security import Security
from ..network.connection import BrokerIdentity, Connection
from ..network.connection_reports import ConnectionReports
from ..network.connector import Connector
from ..observe import Observers
from ..protocol.pre_api_versions import BrokerVersion
from ..runtime import Owner, Runtime
from ..types import Address
from .metadata import Node
from .retry import Backoff

__all__ = ("CONTROL", "ConnectionPool")

_log = EventLog("aiokafkawire.network")

CONTROL = "control"
"""The name of the shared lane for metadata, offsets and coordinators. A broker answers the requests of a
connection in order, so long-polling fetches and each producer have lanes of their own."""


class _Lane:
    """One connection to one broker, which is opened when it is first needed and reopened after a failure."""

    def __init__(self, backoff: Backoff) -> None:
        self.opening = anyio.Lock()
        self.connection: Connection | None = None
        self.backoff = backoff
        self.error: KafkaError | None = None
        self.retry_at = float("-inf")
        self.failing_since: float | None = None
        self.opening_since: float | None = None


class ConnectionPool:
    """The connections of a client to brokers, by address and lane."""

    def __init__(
        self,
        config: ClientConfig,
        connector: Connector,
        owner: Owner,
        runtime: Runtime,
        bootstrap: Collection[Address] = (),
        observers: Observers | None = None,
    ) -> None:
        self._security = Security(config, runtime)
        if config.proxy is not None:
            from ..network.proxy_connector import proxied

            connector = proxied(parse_proxy(config.proxy), connector)
        self.bootstrap: Collection[Address] = bootstrap
        """The bootstrap addresses, which ``advertised_listeners_map`` does not map."""
        self._config, self._connector, self._owner, self._runtime = config, connector, owner, runtime
        self._observers = observers or Observers()
        self._node_ids: dict[Address, int] = {}
        self._cluster_id: str | None = None
        self.on_misrouted: Callable[[], None] = lambda: None
        """Called when another broker than the metadata says listens at an address (KIP-1242)."""
        self.recovered: anyio.Event = anyio.Event()
        """Set when a connection has been opened after failures; tasks that wait before a retry may try again."""
        self._lanes: dict[tuple[Address, str], _Lane] = {}
        self._kept_open: set[str] = set()
        self._unreachable = TroubleLog(_log, runtime.now)
        self._throttled = TroubleLog(_log, runtime.now, first=logging.INFO)
        self._known: dict[Address, BrokerVersion] = {}
        self._closed = False

    async def check(self) -> None:
        """Check the files that TLS needs. Raises as :meth:`.connection_security.Security.check`."""
        await self._security.check()

    async def connection(self, address: Address, lane: str = CONTROL, within: float | None = None) -> Connection:
        """Return the open connection of a lane, or open it in ``within`` seconds at most. Concurrent callers share it.

        Raises:
            ConnectionLost, WireError: the connection cannot be opened, or the backoff after a failure is not over.
            AuthenticationFailed, ConfigError: authentication failed, or the settings are wrong.
            UsageError: the client is closed, or belongs to another event loop.
        """
        self._owner.require_own_loop()
        lane_state = self._lanes.get((address, lane))
        if lane_state is None:
            lane_state = self._lanes[address, lane] = _Lane(self._new_backoff())
        if lane_state.connection is not None and lane_state.connection.failure is None:
            return lane_state.connection
        async with lane_state.opening:
            if lane_state.connection is not None and lane_state.connection.failure is None:
                return lane_state.connection
            return await self._open(address, lane, lane_state, within)

    def use_nodes(self, nodes: Iterable[Node], cluster_id: str | None) -> None:
        """Use the ids of these brokers in reports, and expect these brokers of this cluster at their addresses."""
        self._cluster_id = cluster_id
        self._node_ids.clear()
        self._node_ids.update((node.address, node.node_id) for node in nodes)

    def accept_any_broker(self) -> None:
        """Expect no certain brokers until :meth:`use_nodes`, since other brokers may have got their addresses."""
        self._cluster_id = None

    def _expected(self, address: Address) -> BrokerIdentity | None:
        node_id = self._node_ids.get(address, -1)
        checks = self._config.metadata_cluster_check_enable and self._config.metadata_recovery_strategy == "rebootstrap"
        return BrokerIdentity(self._cluster_id, node_id) if checks and self._cluster_id and node_id >= 0 else None

    def opened(self, address: Address, lane: str) -> Connection | None:
        """Return the connection of a lane if it is open; None if it is not."""
        lane_state = self._lanes.get((address, lane))
        if lane_state is None or lane_state.connection is None or lane_state.connection.failure is not None:
            return None
        return lane_state.connection

    def in_use(self) -> list[tuple[str, Connection]]:
        """Return the open connections with their lanes. Any thread may call this method."""
        return [
            (lane, state.connection)
            for (_, lane), state in list(self._lanes.items())
            if state.connection is not None and state.connection.failure is None
        ]

    def open_connections(self) -> Mapping[Address, int]:
        """Return the number of open connections to each address that has some."""
        is_open = (
            address
            for (address, _), lane in self._lanes.items()
            if lane.connection is not None and lane.connection.failure is None
        )
        return Counter(is_open)

    def failures(self) -> dict[Address, tuple[float, KafkaError]]:
        """Return since when attempts to connect have failed, in seconds of the runtime's clock, with the last errors.

        Addresses to which the last attempt has succeeded are left out.
        """
        found: dict[Address, tuple[float, KafkaError]] = {}
        for (address, _), lane in self._lanes.items():
            if lane.error is not None and lane.failing_since is not None:
                since = min(lane.failing_since, found[address][0]) if address in found else lane.failing_since
                found[address] = since, lane.error
        return found

    def known(self, address: Address) -> BrokerVersion | None:
        """Return the version of the broker at this address; None if it is not known."""
        return self._known.get(address)

    def retry_at(self, address: Address, lane: str) -> float:
        """Return the time at which a lane that failed to open may be opened again, in seconds of the runtime's clock.

        The time is -inf if the last attempt did not fail.
        """
        lane_state = self._lanes.get((address, lane))
        return lane_state.retry_at if lane_state is not None and lane_state.error is not None else float("-inf")

    def dial_address(self, address: Address) -> Address:
        """Return the address to connect to for a broker that advertises ``address``.

        Raises:
            ConfigError: ``advertised_listeners_map`` fails, or returns no address.
        """
        mapped = self._config.advertised_listeners_map
        if mapped is None or address in self.bootstrap:
            return address
        try:
            host, port = mapped(*address)
        except Exception as error:
            raise ConfigError(
                f"advertised_listeners_map failed for {address}: {error!r}", setting="advertised_listeners_map"
            ) from error
        if not isinstance(host, str) or not host or type(port) is not int or not 0 < port < 65536:
            raise ConfigError(
                f"advertised_listeners_map returned no host and port for {address}: {(host, port)!r}",
                setting="advertised_listeners_map",
            )
        return Address(host, port)

    async def _open(self, address: Address, name: str, lane: _Lane, within: float | None) -> Connection:
        self._require_lane(address, name, lane)
        if lane.error is not None and self._runtime.now() < lane.retry_at:
            raise copy_for_reraise(lane.error)
        self._forget_version_after_break(address, lane.connection)
        known, began = self._known.get(address), self._runtime.now()
        now = self._runtime.clock()
        reports = ConnectionReports(self._observers, address, name, self._node_ids, now, self._throttled)
        lane.opening_since = began
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
                dialled=self.dial_address(address),
                reports=reports,
                expected=self._expected(address),
            )
        except KafkaError as cause:
            error = _misrouted(address, cause) if isinstance(cause, RebootstrapRequired) else cause
            self._forget(address, known)  # another broker may listen at this address by now
            delay = lane.backoff.next()
            lane.error, lane.retry_at = error, self._runtime.now() + delay
            if lane.failing_since is None:
                lane.failing_since = began
            message = "broker %(broker)s is unreachable, the client tries again: %(error)s"
            if not self._closed:
                self._unreachable.failed(address, message, broker=address, lane=name, delay=delay, error=error)
            reports.failed(self._runtime.now() - began, error)
            if error is cause:
                raise
            self.on_misrouted()
            raise error from cause
        finally:
            lane.opening_since = None
        taken = self._runtime.now() - began
        message = "connected to %(broker)s (lane %(lane)s) in %(elapsed).3f s"
        _log.debug(message, broker=address, lane=name, elapsed=taken, client_id=self._config.client_id)
        reports.opened(taken)
        if lane.connection.known is not None:
            # Lanes that agree share one object, so that :meth:`_forget` recognizes it.
            found = self._known.get(address)
            if found is None or found.api_versions != lane.connection.known.api_versions:
                self._known[address] = found = lane.connection.known
            lane.connection.known = found
        has_recovered = lane.failing_since is not None
        lane.error = lane.failing_since = None
        lane.backoff.reset()
        if has_recovered:
            self._end_waits()
        self._unreachable.ended(address, "broker %(broker)s is reachable again", broker=address)
        if self._lanes.get((address, name)) is not lane:
            await lane.connection.close()  # nothing else would use or close it
        self._require_lane(address, name, lane)
        return lane.connection

    def _require_lane(self, address: Address, name: str, lane: _Lane) -> None:
        """Raise an error if the lane was closed while its connection was opened, or waited for."""
        if self._closed:
            raise UsageError("the client is closed")
        if self._lanes.get((address, name)) is not lane:
            raise ConnectionLost(f"this client has closed its connections to {address} meanwhile")

    def _end_waits(self) -> None:
        """Let all lanes that lost their connection try again now, since they may have lost it for the same reason."""
        now = self._runtime.now()
        for lane in self._lanes.values():
            if isinstance(lane.error, ConnectionLost):
                lane.retry_at = min(lane.retry_at, now)
        recovered, self.recovered = self.recovered, anyio.Event()
        recovered.set()

    def _forget_version_after_break(self, address: Address, broken: Connection | None) -> None:
        """Forget the version of an old broker when a connection breaks, since the broker may have been upgraded.

        If several connections break at once, the first to be reopened detects the version for all.
        """
        if broken is not None and broken.known is not None and broken.known.is_untold:
            self._forget(address, broken.known)

    def _forget(self, address: Address, known: BrokerVersion | None) -> None:
        if known is not None and self._known.get(address) is known:
            del self._known[address]

    def _new_backoff(self) -> Backoff:
        config = self._config
        return Backoff(config.reconnect_backoff_ms / 1000, config.reconnect_backoff_max_ms / 1000, self._runtime.chance)

    def least_loaded_first(self, addresses: Sequence[Address]) -> list[Address]:
        """Return the addresses in the order to try.

        Addresses with an open control lane come first, those with the fewest requests in flight before the others.
        Addresses with any failed, overdue or silent lane come last, since a broker that does not answer Produce may not
        answer other requests either.
        """
        now = self._runtime.now()
        troubled = {
            address
            for (address, _), lane in self._lanes.items()
            if lane.error is not None or (lane.connection is not None and _is_troubled(lane.connection, now))
        }

        def load(address: Address) -> tuple[bool, int, int]:
            lane = self._lanes.get((address, CONTROL))
            if lane is None or lane.connection is None or lane.connection.failure is not None:
                failed = lane is not None and lane.error is not None
                return address in troubled, 2 if failed else 1, 0
            return address in troubled, 0, lane.connection.in_flight

        return sorted(dict.fromkeys(addresses), key=load)

    def keep_open(self, lane: str) -> None:
        """Leave the lane's connections open while they are idle, until :meth:`close_lanes`."""
        self._kept_open.add(lane)

    async def close_lanes(self, lane: str) -> None:
        """Close the lane's connections to all brokers, even if the calling task is cancelled."""
        self._kept_open.discard(lane)
        with anyio.CancelScope(shield=True):
            for key in [key for key in self._lanes if key[1] == lane]:
                lane_state = self._lanes.pop(key, None)
                if lane_state is not None and lane_state.connection is not None:
                    await lane_state.connection.close()

    async def abandon(self) -> None:
        """Close all connections, since they may lead to another cluster. New connections may be opened afterwards."""
        self.accept_any_broker()
        for key, lane_state in list(self._lanes.items()):
            if lane_state.opening.locked():
                self._lanes.pop(key, None)  # what is being opened is closed then
            if lane_state.connection is not None:
                await lane_state.connection.close()

    async def close_idle(self, now: float) -> None:
        """Close connections that were not used for ``connections_max_idle_ms``, and remove their lanes.

        So are lanes that failed, and that nothing has tried to open again for so long: their brokers may be gone.
        """
        limit = self._config.connections_max_idle_ms / 1000
        for key, lane_state in list(self._lanes.items()):
            connection = lane_state.connection
            if lane_state.opening.locked() or self._lanes.get(key) is not lane_state:
                continue  # others may have closed the lane while this task waited
            used_at = lane_state.retry_at
            if connection is not None:
                if connection.failure is None and (connection.in_flight or key[1] in self._kept_open):
                    continue
                used_at = max(used_at, connection.used_at)
            if now - used_at >= limit:
                del self._lanes[key]
                if connection is not None:
                    await connection.close()

    def opens_since(self, moment: float) -> bool:
        """Return whether to ask for other leaders, since an attempt to connect has lasted from this time or earlier.

        If the method is called each second, that is so each second of a first attempt, and when a later one in a row is
        1, 2, 4, 8 s old and so on. Connections for requests that any broker answers do not count.
        """
        now = self._runtime.now()
        return any(
            lane.opening_since is not None
            and name != CONTROL
            and lane.opening_since <= moment
            and (
                lane.failing_since is None
                or int(now - lane.opening_since).bit_length() > int(moment - lane.opening_since).bit_length()
            )
            for (_, name), lane in self._lanes.items()
        )

    def overdue(self, now: float) -> dict[Address, list[Connection]]:
        """Return the connections whose oldest request is unanswered for longer than a broker that works needs."""
        found: dict[Address, list[Connection]] = {}
        for (address, _), lane in self._lanes.items():
            if lane.connection is not None and lane.connection.failure is None and lane.connection.is_overdue(now):
                found.setdefault(address, []).append(lane.connection)
        return found

    async def close_dead(self) -> None:
        """Close the connections between whose ends the network is dead."""
        for _, connection in self.in_use():
            await connection.close_if_dead()

    def drop(self) -> None:
        """Drop all connections unclosed, since their event loop has ended. No connection can be opened afterwards."""
        self._closed = True
        self._lanes.clear()

    async def close(self) -> None:
        """Close all connections. No connection can be opened afterwards."""
        self._closed = True
        lanes, self._lanes = self._lanes, {}
        for lane_state in lanes.values():
            if lane_state.connection is not None:
                await lane_state.connection.close()


def _is_troubled(connection: Connection, now: float) -> bool:
    return connection.failure is not None or connection.is_silent or connection.is_overdue(now)


def _misrouted(address: Address, cause: RebootstrapRequired) -> ConnectionLost:
    return ConnectionLost(f"{address} is another broker than the metadata says, or one of another cluster: {cause}")
