"""Requests the cluster's metadata when the client opens, and refreshes it until the client closes."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final, TypeAlias

import anyio
import attrs

from ..config import ClientConfig
from ..errors import (
    AuthenticationFailed,
    BrokerError,
    ConfigError,
    ConnectionLost,
    ErrorCode,
    KafkaError,
    NoBrokerReachable,
    RebootstrapRequired,
    RequestTimeout,
    TopicNotReady,
    UsageError,
    WireError,
    as_kafka_error,
    broker_error,
    copy_for_reraise,
)
from ..network.connection import OVERDUE_SECONDS
from ..network.happy_eyeballs import canonical
from ..observe import MetadataUpdated, Observers
from ..protocol.messages.metadata import MetadataResponse
from ..protocol.schema import Request, Versions
from ..runtime import Owner, Runtime
from ..types import Address
from .bootstrap_errors import bootstrap_error, lasting_error
from .connection_pool import ConnectionPool
from .controller_metadata import ask_controllers, check_is_broker, need_brokers
from .metadata import EMPTY, Snapshot, Topic, forget, has_other_ids, is_large, is_other_cluster, merge
from .metadata_cache import MetadataCache
from .metadata_log import MetadataLog
from .metadata_requests import add_starting_broker, drop_unreliable_epochs, keep_only, metadata_variants
from .missing_topics import advice, does_not_exist, say_missing
from .rebootstrap import RebootstrapPolicy
from .request_variants import in_newest_form
from .retry import Deadline, new_backoff
from .topics_in_use import Names, TopicsInUse

__all__ = ("MetadataUpdater",)

_Answer: TypeAlias = tuple[MetadataResponse, Mapping[str, int], Sequence[str]]
"""A Metadata response, the feature levels of the broker that sent it, and the requested topics."""

_MIN_SHARE: Final = 0.1
"""The smallest fraction of the timeout that one address gets."""


class MetadataUpdater(MetadataCache):
    """The metadata of a cluster, which is refreshed until the cluster closes.

    Args:
        addresses: the bootstrap addresses.
        config: the client's settings.
        brokers: the connections to brokers.
        owner: owns the background task that refreshes the metadata.
        runtime: provides the clock.
        on_abandon: called when the brokers may belong to another cluster, before their connections are closed.
        observers: the objects to notify of every refresh.
    """

    def __init__(
        self,
        addresses: tuple[Address, ...],
        config: ClientConfig,
        brokers: ConnectionPool,
        owner: Owner,
        runtime: Runtime,
        on_abandon: Callable[[], None],
        observers: Observers,
    ) -> None:
        super().__init__(owner, runtime)
        self._observers = observers
        self._config, self._brokers, self._on_abandon = config, brokers, on_abandon
        self._given = self._addresses = addresses
        self._recovery = RebootstrapPolicy(config)
        brokers.on_misrouted = self._misrouted
        self._features: Mapping[str, int] = {}
        self._topics = TopicsInUse(config)
        self._log = MetadataLog(runtime.now)
        # The number of consumers that need the metadata of all topics.
        self._all = 0
        self._stale = anyio.Event()
        self._new_topic = anyio.Event()
        self._refresh_error: KafkaError | None = None
        self.updated_at: float | None = None
        """When a broker last sent metadata, in seconds of the runtime's clock; None before the first time."""

    @property
    def features(self) -> Mapping[str, int]:
        """The cluster's finalised feature levels by name (KIP-584), from the ApiVersions response of the broker that
        last answered Metadata. Empty if the broker sends none.
        """
        return self._features

    @property
    def refresh_error(self) -> KafkaError | None:
        """Why the last refresh has failed; None if a broker has answered it."""
        return self._refresh_error

    async def bootstrap(self, deadline: Deadline) -> None:
        """Request the metadata from a bootstrap address; raises as :meth:`Cluster.open`."""
        backoff = new_backoff(self._config, self._runtime.chance)
        errors: dict[Address, KafkaError] = {}
        began = self._runtime.now()
        while not deadline.passed(self._runtime.now()):
            if await self._learn(errors, deadline):
                self._report(began, None)
                return
            if self._owner.has_closed:
                raise UsageError("the client was closed while it was opened")
            # Retries do not help if a server is not Kafka or a password is wrong.
            if lasting_error(errors) or all(isinstance(error, WireError) for error in errors.values()):
                raise bootstrap_error(errors)
            self._refresh_error = bootstrap_error(errors)
            await anyio.sleep(min(backoff.next(), deadline.left(self._runtime.now())))
        untried = {at: ConnectionLost("not tried, since the timeout was over") for at in self._addresses}
        raise bootstrap_error(untried | errors, deadline.allowed)

    # --- metadata --------------------------------------------------------------------------------------

    def _replace(self, snapshot: Snapshot) -> None:
        self._brokers.use_nodes(snapshot.nodes.values(), snapshot.cluster_id)
        super()._replace(snapshot)

    def mark_stale(self, seen: Snapshot) -> None:
        """Start a refresh in the background, unless there is already a snapshot newer than ``seen``."""
        if self.snapshot.generation <= seen.generation:
            self._stale.set()

    async def refresh(self, seen: Snapshot, deadline: Deadline) -> Snapshot:
        """Refresh the metadata, and wait for a snapshot newer than ``seen``. All waiting tasks share one request.

        Raises:
            RequestTimeout: no metadata was received by the deadline; the message has the last error.
            AuthenticationFailed, ConfigError: no broker answered, and a login failed or a setting is wrong.
            UsageError: the client is not open.
        """
        with anyio.move_on_after(deadline.left(self._runtime.now())):
            while self.snapshot.generation <= seen.generation:
                self._owner.require_open()
                self._stale.set()
                await self._changed.wait()
                if isinstance(self._refresh_error, AuthenticationFailed | ConfigError):
                    raise copy_for_reraise(self._refresh_error)
        if self.snapshot.generation <= seen.generation:
            last = f": {self._refresh_error}" if self._refresh_error else ""
            raise RequestTimeout(f"no metadata within {deadline.allowed:g} s{last}") from self._refresh_error
        return self.snapshot

    def track_topics(self, topics: Iterable[str], now: float | None = None) -> None:
        """Add the topics to Metadata requests until they are unused for ``metadata_max_idle_ms``."""
        if now is None:
            now = self._runtime.now()
        if self._topics.track(topics, now):
            self._new_topic.set()

    def following(self, names: Names, also: Names = tuple) -> AbstractContextManager[None]:
        """Add topics to Metadata requests while the context is open, as :meth:`.TopicsInUse.following`."""
        return self._topics.following(names, also)

    def missing_of(self, topics: Iterable[str]) -> list[str]:
        """Return which of the topics do not exist, according to the last Metadata response."""
        return [name for name in topics if name in self._topics.missing]

    @contextmanager
    def all_topics(self) -> Iterator[None]:
        """Add all topics to Metadata requests while the context is open, for a subscription by pattern."""
        self._all += 1
        self._new_topic.set()
        self._stale.set()
        try:
            yield
        finally:
            self._all -= 1

    async def topic(self, name: str, deadline: Deadline) -> Topic:
        """Return the topic with its partitions; wait until they are known.

        Raises:
            TopicNotReady: the topic did not exist for ``topic_metadata_propagation_max_ms``, or was unknown until the
                deadline; the message has the broker's error.
            BrokerError: the topic's name is invalid, or access is denied.
            UnsupportedEndpointType: the client speaks to controllers.
        """
        if self._config.bootstrap_controllers is not None:
            raise need_brokers(f"topic {name!r}")
        known = self._known_topic(name)
        if isinstance(known, Topic):
            return known
        with self.following(lambda: (name,)):
            return await self._wait_for_topic(name, deadline)

    def not_ready(self, name: str) -> TopicNotReady:
        """Return the error for a call that does not wait for metadata, if the topic's partitions are not known."""
        if name not in self._topics.missing:
            return TopicNotReady(f"the partitions of topic {name!r} are not known yet")
        what_to_do = advice(allow_creation=self._config.allow_auto_create_topics)
        return TopicNotReady(f"{say_missing([name])} in the cluster: {what_to_do}")

    async def _wait_for_topic(self, name: str, deadline: Deadline) -> Topic:
        missing, config = self._topics.missing, self._config
        limit, answers = config.topic_metadata_propagation_max_ms / 1000, missing.answers
        missing_since: float | None = None
        while True:
            snapshot, known = self.snapshot, self._known_topic(name)
            if isinstance(known, Topic):
                return known
            is_current = missing.answers > answers  # a response from before this call may be out of date
            if known is not None and not known.retriable and is_current:
                raise known
            if name not in missing:
                missing_since = None
            elif is_current:
                now = self._runtime.now()
                missing_since = now if missing_since is None else missing_since
                if now - missing_since >= limit:
                    raise does_not_exist(name, limit, allow_creation=config.allow_auto_create_topics)
            try:
                await self.refresh(snapshot, deadline)
            except RequestTimeout as timeout:
                if known is not None and not known.retriable:
                    raise known from timeout
                cause = known or timeout
                message = f"topic {name!r} is not known after {deadline.allowed:g} s: {cause}"
                if name in missing:
                    message += f"; {advice(allow_creation=config.allow_auto_create_topics)}"
                raise TopicNotReady(message) from cause

    def _known_topic(self, name: str) -> Topic | BrokerError | None:
        """Return the topic if its partitions are known, or else its error; None if the metadata lacks the topic."""
        self.track_topics((name,))
        known = self.snapshot.topics.get(name)
        if known is None:
            return None
        if known.error == ErrorCode.NONE and known.partitions:
            return known
        # A topic without partitions is still being created.
        code = known.error if known.error != ErrorCode.NONE else ErrorCode.LEADER_NOT_AVAILABLE
        return broker_error(code, f"topic {name!r}")

    async def run(self) -> None:
        """Refresh the metadata regularly, and when it is marked as stale."""
        pace = new_backoff(self._config, self._runtime.chance)
        while True:
            with anyio.move_on_after(self._topics.ask_again_within()):
                await self._stale.wait()
            self._stale = anyio.Event()
            errors: dict[Address, KafkaError] = {}
            began = self._runtime.now()
            if not await self._learn(errors):
                self._refresh_error = bootstrap_error(errors)
                self._report(began, self._refresh_error)
                self._log.failed(errors)
                self._stale.set()
                if lasting_error(errors):
                    # Waiting tasks raise this error at once, since retries do not help.
                    self.wake()
            else:
                self._report(began, None)
                if self.snapshot.healthy:
                    pace.reset()
            # Back off, to spare an overloaded cluster; but a topic that is new to this client is requested at once.
            with anyio.move_on_after(pace.next()):
                await self._new_topic.wait()
            self._new_topic = anyio.Event()

    def _report(self, began: float, error: KafkaError | None) -> None:
        if (notify := self._observers.metadata_updated) is not None:
            snapshot, seconds = self.snapshot, self._runtime.now() - began
            notify(
                MetadataUpdated(brokers=len(snapshot.nodes), topics=len(snapshot.topics), seconds=seconds, error=error)
            )

    async def _learn(self, errors: dict[Address, KafkaError], deadline: Deadline | None = None) -> bool:
        """Refresh the metadata once: ask the known brokers one by one, then the bootstrap addresses.

        Return whether a broker answered; add the error of each address to ``errors``.
        """
        nodes = [node.address for node in self.snapshot.nodes.values()]
        ordered = self._brokers.least_loaded_first(nodes)
        known, until, bootstrap = self._recovery.candidates(ordered, self._addresses, self._runtime.now())
        if known and await self._learn_from(known, errors, until, OVERDUE_SECONDS, obeys=until is not None):
            return True
        if known and _demanding(errors) and self._recovery.demanded():
            bootstrap = self._addresses
            await self._abandon()
        if not bootstrap:
            return False
        if not known:
            self._brokers.accept_any_broker()
        bootstrap = await self._resolve(bootstrap)
        return await self._learn_from(self._brokers.least_loaded_first(bootstrap), errors, deadline)

    def _misrouted(self) -> None:
        """Use the bootstrap addresses for the next refresh, which begins now."""
        self._recovery.demanded()
        self._stale.set()

    async def _abandon(self) -> None:
        """Close all connections, since the addresses may belong to another cluster."""
        self._on_abandon()
        await self._brokers.abandon()

    async def _resolve(self, addresses: tuple[Address, ...]) -> tuple[Address, ...]:
        """Return the bootstrap addresses; resolve them to canonical names if ``client_dns_lookup`` requires that."""
        if self._config.client_dns_lookup == "use_all_dns_ips":
            return addresses
        found: list[Address] = []
        for at in self._given:
            names: tuple[Address, ...] = (at,)
            with anyio.move_on_after(self._config.socket_connection_setup_timeout_ms / 1000):
                names = await canonical(at)
            found += names
        self._addresses = self._brokers.bootstrap = tuple(dict.fromkeys(found))
        return self._addresses

    async def _learn_from(
        self,
        addresses: Sequence[Address],
        errors: dict[Address, KafkaError],
        deadline: Deadline | None,
        patience: float = math.inf,
        *,
        obeys: bool = False,
    ) -> bool:
        """Ask the addresses one by one until one answers; return whether any address answered.

        With a ``deadline``, each address gets a share of the remaining time, at least 10 % of the timeout, so that an
        unresponsive address does not block the next one. All but the last get ``patience`` seconds at most. With
        ``obeys``, ask no further address after the error REBOOTSTRAP_REQUIRED. Add the error of each address to
        ``errors``.
        """
        untried = list(addresses)
        while untried:
            now = self._runtime.now()
            at_most = self._config.request_timeout_ms / 1000
            share = None if deadline is None else _share(deadline, now, len(untried), at_most)
            if len(untried) > 1 and patience < (at_most if share is None else share.left(now)):
                share = Deadline.after(patience, now)
            address = untried.pop(0)
            try:
                answer = await self._ask_metadata(address, share)
                await self._learned(*await self._second_answer(answer, untried))
            except Exception as error:
                # The timeout of a short share is less informative than the address's previous error.
                if address not in errors or share is None or not share.passed(self._runtime.now()):
                    errors[address] = as_kafka_error(error, "asking for metadata")
                if obeys and isinstance(error, RebootstrapRequired):
                    return False
            else:
                return True
        return False

    async def _second_answer(self, answer: _Answer, untried: Sequence[Address]) -> _Answer:
        """Return another broker's answer if this one has other topic ids than the known ones; without one, this answer.

        A broker that was cut off from the cluster for a while may still know a topic that was deleted and created again
        meanwhile. The cluster's other brokers do not name it to clients.
        """
        response = answer[0]
        if not has_other_ids(self.snapshot, response):
            return answer
        named = {Address(broker.host, broker.port) for broker in response.brokers}
        other = next((address for address in untried if address in named), None)
        if other is None:
            return answer
        try:
            return await self._ask_metadata(other, Deadline.after(OVERDUE_SECONDS, self._runtime.now()))
        except Exception:
            return answer

    async def _ask_metadata(self, address: Address, deadline: Deadline | None) -> _Answer:
        def left() -> float | None:
            return None if deadline is None else deadline.left(self._runtime.now())

        asked = self._topics.to_ask(self._runtime.now())
        wanted = None if self._all else asked
        connection = await self._brokers.connection(address, within=left())
        if self._config.bootstrap_controllers is not None:
            return await ask_controllers(connection, left()), connection.features, ()
        check_is_broker(connection)

        async def ask(request: Request[MetadataResponse], versions: Versions) -> MetadataResponse:
            response = await connection.request(request, timeout=left(), wanted=versions)
            keep_only(response, wanted, versions)
            drop_unreliable_epochs(response, connection.choose(type(request), versions))
            return response

        forms = metadata_variants(wanted, allow_creation=self._config.allow_auto_create_topics)
        try:
            response = await in_newest_form(forms, ask)
        except ConnectionLost as lost:
            if self._config.uses_sasl or self.snapshot.nodes:
                raise
            from .sasl_required_probe import probe_sasl  # rarely needed

            raise (await probe_sasl(self._brokers, address, left()) or lost) from lost
        if response.error_code != ErrorCode.NONE:
            raise broker_error(response.error_code, f"{address} to Metadata")
        if not response.brokers:
            # Kafka 0.8, which has no ApiVersions, lists no brokers before the first topic exists.
            if connection.known is None or not connection.known.is_untold:
                raise NoBrokerReachable(f"{address} lists no brokers, not even itself: it is starting or stopping")
            add_starting_broker(response, address)
        return response, connection.features, asked

    async def _learned(self, response: MetadataResponse, features: Mapping[str, int], asked: Sequence[str]) -> None:
        before = [self.snapshot]
        if is_other_cluster(before[0], response):
            self._log.other_cluster(before[0].cluster_id, response.cluster_id)
            await self._abandon()
            before = [attrs.evolve(EMPTY, generation=self.snapshot.generation)]
        large = is_large(response)
        if large:
            merged = await self._merge_on_a_thread(before, response)
        else:
            merged = merge(before[0], response)
        self._refresh_error, self._features = None, features
        self._recovery.learned()
        self._log.refreshed(merged)
        self.updated_at = self._runtime.now()
        self._topics.learned(asked, merged, self.updated_at)
        self._replace(merged)
        if large:
            await self._runtime.offload(forget, before)


def _demanding(errors: Mapping[Address, KafkaError]) -> bool:
    return any(isinstance(error, RebootstrapRequired) for error in errors.values())


def _share(deadline: Deadline, now: float, count: int, at_most: float) -> Deadline:
    """Return the deadline for the first of ``count`` addresses that share the time until ``deadline``."""
    left = deadline.left(now)
    return Deadline.after(min(left, at_most, max(left / count, deadline.allowed * _MIN_SHARE)), now)
