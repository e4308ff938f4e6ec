"""Routes requests to brokers, retries them within a deadline, and finds coordinators."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

import anyio

from ..config import ClientConfig
from ..errors import (
    BrokerError,
    ConnectionLost,
    KafkaError,
    Refresh,
    RequestTimeout,
    TopicNotReady,
    UnsupportedVersion,
    UsageError,
)
from ..network.connection import ANY_VERSION, OVERDUE_SECONDS, Connection
from ..network.connector import Connector, connect_tcp
from ..network.dead_paths import CAN_RECOGNIZE
from ..observe import Observers
from ..protocol.messages.metadata import MetadataResponse
from ..protocol.schema import Request, Response, Versions
from ..runtime import Owner, Runtime
from ..tracing import Tracing
from ..types import Address, CoordinatorType, TopicPartition
from .connection_pool import CONTROL, ConnectionPool
from .controller_metadata import not_served
from .coordinators import Coordinators, coordinator_in, lookup_variants, named
from .metadata import Node, Snapshot, Topic
from .metadata_requests import BY_ID, keep_only, metadata_variants, names_request
from .metadata_updater import MetadataUpdater
from .producer_waits import ProducerWaits
from .request_attempts import Attempts
from .request_variants import in_newest_form
from .retry import Backoff, Deadline, new_backoff
from .silent_brokers import WATCH_SECONDS, SilentBrokers

if TYPE_CHECKING:
    from ..protocol.messages.group import FindCoordinatorResponse
    from .telemetry_reporter import TelemetryReporter

__all__ = ("Cluster", "Route", "any_broker", "controller")

R = TypeVar("R", bound=Response)

Route = Callable[[Snapshot], Node | None]
"""A function that returns the broker to send a request to; None if the snapshot does not contain that broker."""


def any_broker(snapshot: Snapshot) -> Node | None:
    """Return the first known broker; None if no broker is known."""
    return next(iter(snapshot.nodes.values()), None)


def controller(snapshot: Snapshot) -> Node | None:
    """Return the controller, which changes topics and configs; None if it is not known.

    Brokers before 0.10 name no controller. Then return any broker: its answer is that it supports no changes.
    """
    if snapshot.controller_id < 0 and snapshot.cluster_id is None:
        return any_broker(snapshot)
    return snapshot.nodes.get(snapshot.controller_id)


class Cluster:
    """The brokers of one cluster, found by bootstrap addresses. A client's producers, consumers and admin share it."""

    def __init__(
        self,
        addresses: tuple[Address, ...],
        config: ClientConfig,
        connector: Connector,
        runtime: Runtime,
        observers: Observers | None = None,
    ) -> None:
        self.config: ClientConfig = config
        self.runtime: Runtime = runtime
        self.owner: Owner = Owner()
        self.observers: Observers = observers or Observers()
        """The objects to notify of the work of the client, its producers and its consumers."""
        self._watches_sockets = CAN_RECOGNIZE and config.socket_keepalive_enable and connector is connect_tcp
        self.tracing: Tracing | None = None
        """What makes spans of the work of producers and consumers that are opened from now on; None if nothing does."""
        self.producer_waits: ProducerWaits = ProducerWaits()
        """What the producers have waited for."""
        self.brokers: ConnectionPool = ConnectionPool(config, connector, self.owner, runtime, addresses, self.observers)
        self._coordinators = Coordinators(self._look_up_coordinator, self._attempts, self.observers, runtime.now)
        self.metadata: MetadataUpdater = MetadataUpdater(
            addresses, config, self.brokers, self.owner, runtime, self._coordinators.invalidate_all, self.observers
        )

        self._silent = SilentBrokers(self.brokers, self.metadata, self._coordinators, self._look_up_soon)

    @cached_property
    def telemetry(self) -> "TelemetryReporter":
        """The exchange with brokers about the client's metrics; made at the first use."""
        from .telemetry_reporter import TelemetryReporter

        return TelemetryReporter(self)

    @property
    def record_tracing(self) -> Tracing | None:
        """The tracing system, if it makes spans of single records; otherwise None, so that records cost nothing."""
        return self.tracing if self.tracing is not None and self.tracing.makes_spans else None

    def deadline(self, allowed: float) -> Deadline:
        """Return the deadline that is ``allowed`` seconds from now."""
        return Deadline.after(allowed, self.runtime.now())

    def broker_timeout_ms(self, deadline: Deadline) -> int:
        """Return the timeout to send to a broker: the call's timeout, at most ``request_timeout_ms``."""
        return int(min(deadline.allowed * 1000, self.config.request_timeout_ms))

    def backoff(self) -> Backoff:
        """Return the waits between retries (``retry_backoff_ms``, ``retry_backoff_max_ms``)."""
        return new_backoff(self.config, self.runtime.chance)

    # --- opening and closing ---------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect to a broker and request the metadata, within ``bootstrap_timeout_ms``.

        Raises:
            NoBrokerReachable: no broker is reachable at any address; the message has each address's error.
            WireError: the answering server is not Kafka.
            AuthenticationFailed: authentication failed, which is not retried.
            ConfigError: certificates or credentials are invalid.
        """
        try:
            await self.brokers.check()
            await self.owner.open()
            await self.metadata.bootstrap(self.deadline(self.config.bootstrap_timeout_ms / 1000))
        except BaseException:
            await self.close()
            raise
        self.owner.spawn(self.metadata.run)
        self.owner.spawn(self._close_idle_connections)
        self.owner.spawn(self._watch_connections)

    async def close(self) -> None:
        """Close all connections and end all background tasks. Repeated calls have no effect.

        Raises:
            UsageError: the cluster was opened on another event loop; if that loop has ended, connections are dropped.
        """
        if self.owner.has_lost_loop:
            self.brokers.drop()
        self.owner.require_own_loop()
        with anyio.CancelScope(shield=True):
            await self.brokers.close()
        await self.owner.close()
        self.metadata.close()

    async def _close_idle_connections(self) -> None:
        while True:
            await anyio.sleep(self.config.connections_max_idle_ms / 1000 / 10)
            await self.brokers.close_idle(self.runtime.now())

    async def _watch_connections(self) -> None:
        """Close dead connections, and refresh the metadata while a broker accepts no connection or answers nothing.

        Another broker may lead the partitions long before the attempt fails, or the request times out.
        """
        while True:
            await anyio.sleep(WATCH_SECONDS)
            if self._watches_sockets:
                await self.brokers.close_dead()
            now = self.runtime.now()
            if self.brokers.opens_since(now - WATCH_SECONDS):
                self.metadata.mark_stale(self.metadata.snapshot)
            await self._silent.leave(now)

    # --- requests ----------------------------------------------------------------------------------------

    async def connection(self, node: Node, lane: str = CONTROL, deadline: Deadline | None = None) -> Connection:
        """Return a connection to a broker, on a lane of the pool.

        Raises as :meth:`ConnectionPool.connection`, and RequestTimeout at the deadline.
        """
        self.owner.require_own_loop()
        opened = self.brokers.opened(node.address, lane)
        if opened is not None:
            return opened
        with anyio.move_on_after(deadline.left(self.runtime.now()) if deadline is not None else None):
            return await self.brokers.connection(node.address, lane)
        raise RequestTimeout(f"no connection to {node.address} in time")

    async def leader(self, partition: TopicPartition, deadline: Deadline) -> Node:
        """Return the leader of a partition; wait until the leader is known.

        Raises:
            TopicNotReady: the partition has no leader at the deadline.
            UsageError: the topic has no such partition, even after a metadata refresh.
        """
        before = self.metadata.snapshot
        while True:
            topic = await self.metadata.topic(partition.topic, deadline)
            snapshot = self.metadata.snapshot
            if not 0 <= partition.partition < len(topic.partitions):
                if partition.partition < 0 or snapshot.generation > before.generation:
                    raise _no_partition(partition, topic)
                try:
                    await self.metadata.refresh(snapshot, deadline)
                except RequestTimeout as timeout:
                    raise _no_partition(partition, topic) from timeout
                continue
            node = snapshot.leader(partition)
            if node is not None:
                return node
            try:
                await self.metadata.refresh(snapshot, deadline)
            except RequestTimeout as timeout:
                raise TopicNotReady(f"{partition} has no leader after {deadline.allowed:g} s") from timeout

    async def ask(
        self,
        route: Route,
        request: Request[R],
        deadline: Deadline,
        *,
        lane: str = CONTROL,
        wanted: Versions = ANY_VERSION,
        check: Callable[[R], None] = lambda _: None,
        unanswered: Callable[[KafkaError], None] = lambda _: None,
    ) -> R:
        """Send a request to the broker that ``route`` returns; retry, with refreshed metadata, until the deadline.

        ``check`` raises the BrokerError in a response; retriable errors are retried. ``lane`` is the connection to use,
        and ``wanted`` are the versions that have all fields of the request. ``unanswered`` is called with the error of
        each attempt that was sent and has no answer: the broker may have done what it asks for.

        Raises:
            RequestTimeout: the deadline passed; the message has the last cause.
            UsageError: the client is not open.
            KafkaError: an error that is not retriable.
        """
        attempts = self._attempts(_name(request), deadline)
        return await self._ask(attempts, route, request, lane, wanted, check, unanswered=unanswered)

    async def _ask(
        self,
        attempts: Attempts,
        route: Route,
        request: Request[R],
        lane: str,
        wanted: Versions,
        check: Callable[[R], None],
        patience: float = math.inf,
        unanswered: Callable[[KafkaError], None] = lambda _: None,
    ) -> R:
        while not attempts.over:
            self.owner.require_open()
            snapshot = self.metadata.snapshot
            node = route(snapshot)
            refresh = Refresh.METADATA
            if node is None:
                attempts.no_broker()
            else:
                try:
                    return await self._ask_once(
                        node, attempts.deadline, request, lane, wanted, check, unanswered, patience=patience
                    )
                except KafkaError as error:
                    refresh = attempts.failed(error)
                    patience *= 2
            if refresh is Refresh.METADATA:
                self.metadata.mark_stale(snapshot)
            await attempts.wait()
        raise attempts.timeout()

    async def _ask_once(
        self,
        node: Node,
        deadline: Deadline,
        request: Request[R],
        lane: str,
        wanted: Versions,
        check: Callable[[R], None],
        unanswered: Callable[[KafkaError], None],
        *,
        slow: bool = False,
        patience: float = math.inf,
    ) -> R:
        connection = await self.connection(node, lane, deadline)
        left = deadline.left(self.runtime.now())
        try:
            answer = await connection.request(request, timeout=min(left, patience), wanted=wanted, slow=slow)
        except UnsupportedVersion as refused:
            if self.config.bootstrap_controllers is not None and request.api_key not in connection.versions:
                raise not_served(_name(request), refused) from None
            raise
        except (ConnectionLost, RequestTimeout) as lost:
            unanswered(lost)
            raise
        check(answer)
        return answer

    def _attempts(self, what: str, deadline: Deadline, backoff: Backoff | None = None) -> Attempts:
        return Attempts(what, deadline, backoff or self.backoff(), self.runtime.now)

    async def ask_metadata(
        self, topics: Sequence[str] | None, deadline: Deadline, *, lane: str = CONTROL
    ) -> MetadataResponse:
        """Return the current metadata of these topics, or of all topics (None), without creating topics.

        Raises as :meth:`ask`.
        """

        async def ask(request: Request[MetadataResponse], wanted: Versions) -> MetadataResponse:
            response = await self.ask(self.least_loaded, request, deadline, lane=lane, wanted=wanted)
            keep_only(response, topics, wanted)
            return response

        return await in_newest_form(metadata_variants(topics, allow_creation=False), ask)

    async def find_topic_names(self, topic_ids: Iterable[UUID], deadline: Deadline) -> dict[UUID, str]:
        """Return the names of those of the topics that the broker knows, by id (KIP-516).

        Raises as :meth:`ask`.
        """
        response = await self.ask(self.least_loaded, names_request(topic_ids), deadline, wanted=BY_ID)
        return {topic.topic_id: topic.name for topic in response.topics if topic.name and not topic.error_code}

    # --- coordinators ----------------------------------------------------------------------------------

    async def coordinator(self, key_type: CoordinatorType, key: str, deadline: Deadline) -> Node:
        """Return the coordinator of a group or a transactional id; cache it until :meth:`invalidate_coordinator`.

        Raises:
            RequestTimeout: no coordinator was found by the deadline; the message has the last cause.
            GroupAuthorizationFailed, TransactionalIdAuthorizationFailed: access is denied.
            UnsupportedVersion: the brokers have no transactions, since they are older than 0.11.
            KafkaError: another error that is not retriable.
        """
        return await self._coordinators.find(key_type, key, deadline)

    def known_coordinator(self, key_type: CoordinatorType, key: str) -> Node | None:
        """Return the cached coordinator; None if none is cached."""
        return self._coordinators.known(key_type, key)

    def invalidate_coordinator(self, key_type: CoordinatorType, key: str, cause: KafkaError | None = None) -> None:
        """Remove a coordinator from the cache, so that the next request looks it up. Log the ``cause``, if given."""
        known = self._coordinators.known(key_type, key)
        if known is not None:
            if cause is not None:
                self._coordinators.log.lost(key_type, key, known, cause)
            self._coordinators.invalidate(key_type, key, known)

    def use_coordinator(self, key_type: CoordinatorType, key: str, node: Node) -> None:
        """Store a coordinator that a response named, until :meth:`invalidate_coordinator`."""
        self._coordinators.use(key_type, key, node)

    def log_coordinator(self, key_type: CoordinatorType, key: str) -> None:
        """Log at INFO, from now on, each change of the coordinator of this group or transactional id."""
        self._coordinators.log.follow(key_type, key)

    async def ask_coordinator(
        self,
        key_type: CoordinatorType,
        key: str,
        request: Request[R],
        deadline: Deadline,
        *,
        lane: str = CONTROL,
        wanted: Versions = ANY_VERSION,
        check: Callable[[R], None],
        backoff: Backoff | None = None,
        slow: bool = False,
        failed: Callable[[KafkaError], None] = lambda _: None,
        unanswered: Callable[[KafkaError], None] = lambda _: None,
        newer: Callable[[], Request[R]] | None = None,
        patience: float = math.inf,
    ) -> R:
        """Send a request to the coordinator of a group or a transactional id; retry until the deadline.

        The coordinator is looked up again if its connection fails or it answers NOT_COORDINATOR. ``wanted`` are the
        versions that have all fields of the request.

        Args:
            key_type, key: the group or the transactional id.
            deadline: the time after which no attempt is made.
            lane: the connection to use.
            check: raises the BrokerError in a response; retriable errors are retried.
            backoff: the waits between attempts; by default ``retry_backoff_ms`` and ``retry_backoff_max_ms``.
            slow: whether a response may take until the deadline, longer than ``request_timeout_ms``.
            failed: called with the error of each failed attempt.
            unanswered: called with the error of each attempt that was sent and has no answer, as in :meth:`ask`.
            newer: makes the request of each attempt, instead of ``request``, since attempts may be minutes apart.
            patience: the seconds without a response after which the lane is closed; doubled for the next attempt.

        Raises:
            RequestTimeout: the deadline passed; the message has the coordinator and the last cause.
            UsageError: the client is not open.
            KafkaError: an error that is not retriable, of the request or of :meth:`coordinator`.
        """
        attempts = self._attempts(f"{_name(request)} of {named(key_type, key)}", deadline, backoff)
        asked = set[Node]()
        while not attempts.over:
            self.owner.require_open()
            snapshot, node = self.metadata.snapshot, None
            try:
                node = await self.coordinator(key_type, key, deadline)
                attempts.broker = str(node.address)
                if node not in asked:
                    # A new coordinator is ready soon, so the waits for the previous coordinator do not count.
                    asked.add(node)
                    attempts.reset_backoff()
                if newer is not None:
                    request = newer()
                answer = await self._ask_once(
                    node, deadline, request, lane, wanted, check, unanswered, slow=slow, patience=patience
                )
                self._coordinators.log.answered(key_type, key, node)
                return answer
            except KafkaError as error:
                failed(error)
                refresh = attempts.failed(error)
                if patience < math.inf and isinstance(error, RequestTimeout):
                    # A broker reads the next request of a connection only after it has answered the pending request.
                    await self.brokers.close_lanes(lane)
                    patience *= 2
                # After a timeout or a lost connection the coordinator may have moved; after an error about a topic it
                # has not.
                if node is not None and (refresh is Refresh.COORDINATOR or not isinstance(error, BrokerError)):
                    self._coordinators.log.lost(key_type, key, node, error)
                    self._coordinators.invalidate(key_type, key, node)
            if refresh is Refresh.METADATA:
                self.metadata.mark_stale(snapshot)
            await attempts.wait()
        raise attempts.timeout()

    async def _look_up_soon(self, key_type: CoordinatorType, key: str) -> Node:
        attempts = self._attempts(f"FindCoordinator of {named(key_type, key)}", self.deadline(WATCH_SECONDS))
        return await self._look_up_coordinator(key_type, key, attempts)

    async def _look_up_coordinator(self, key_type: CoordinatorType, key: str, attempts: Attempts) -> Node:
        def check(answer: "FindCoordinatorResponse") -> None:
            try:
                coordinator_in(answer, key_type, key)
            except BrokerError as error:
                if error.retriable:
                    self._coordinators.log.unavailable(key_type, key, error)
                raise

        async def ask(request: "Request[FindCoordinatorResponse]", wanted: Versions) -> "FindCoordinatorResponse":
            # Any broker knows the coordinator, so that one that is silent need not be waited for.
            return await self._ask(
                attempts, self.least_loaded, request, CONTROL, wanted, check, patience=OVERDUE_SECONDS
            )

        try:
            return coordinator_in(await in_newest_form(lookup_variants(key_type, key), ask), key_type, key)
        except UnsupportedVersion as refused:
            if key_type is not CoordinatorType.TRANSACTION:
                raise
            raise UnsupportedVersion(f"transactions came with Kafka 0.11 (KIP-98): {refused}") from None

    def least_loaded(self, snapshot: Snapshot) -> Node | None:
        """Return the least loaded broker, if possible without failed connections; None if no broker is known.

        If the client speaks to controllers, return the active one, since the others do not serve most requests.
        """
        if self.config.bootstrap_controllers is not None:
            return controller(snapshot)
        nodes = {node.address: node for node in snapshot.nodes.values()}
        return next((nodes[address] for address in self.brokers.least_loaded_first(list(nodes))), None)


def _no_partition(partition: TopicPartition, topic: Topic) -> UsageError:
    return UsageError(f"topic {partition.topic!r} has {len(topic.partitions)} partitions, no {partition.partition}")


def _name(request: Request[R]) -> str:
    return type(request).__name__.removesuffix("Request")
