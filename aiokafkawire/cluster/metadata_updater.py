"""Learns the cluster from Metadata: bootstraps, and keeps the snapshot fresh."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final

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
    WireError,
    as_kafka_error,
    broker_error,
    copy_for_reraise,
)
from ..network.connector import Connector
from ..network.happy_eyeballs import canonical
from ..protocol.messages.metadata import MetadataResponse
from ..protocol.schema import Request, Versions
from ..runtime import Runtime
from ..types import Address
from .bootstrap_errors import distrust, unreachable
from .connection_pool import ConnectionPool
from .metadata import EMPTY, Snapshot, Topic, forget, is_large, merge, other_cluster
from .metadata_cache import MetadataCache
from .metadata_requests import excuse_starting, keep_only, metadata_forms
from .missing_topics import advice, does_not_exist, say_missing
from .rebootstrap import RebootstrapPolicy
from .request_variants import in_newest_form
from .retry import Backoff, Deadline
from .topics_in_use import Names, TopicsInUse

__all__ = ("MetadataUpdater",)

_log = logging.getLogger("aiokafkawire.cluster")

_LEAST_SHARE: Final = 0.1
"""What an address has at least of all the time, however many there are."""


class MetadataUpdater(MetadataCache):
    """What is known of the cluster, from opening to closing; :class:`~.cluster.Cluster` has all of it, and asks."""

    def __init__(
        self, addresses: tuple[Address, ...], config: ClientConfig, connector: Connector, runtime: Runtime
    ) -> None:
        super().__init__(runtime)
        self.config: ClientConfig = config
        self.brokers: ConnectionPool = ConnectionPool(config, connector, self.owner, runtime, addresses)
        self._given = self._addresses = addresses
        self._recovery = RebootstrapPolicy(config)
        self._features: Mapping[str, int] = {}
        self._topics = TopicsInUse(config)
        # How many want to know of all topics there are.
        self._all = 0
        self._stale = anyio.Event()
        self._new_topic = anyio.Event()
        self._refresh_error: KafkaError | None = None

    @property
    def features(self) -> Mapping[str, int]:
        """The levels of features that the cluster has finalised, by name (KIP-584): those of the connection that last
        answered Metadata, as they were when it was opened. Empty where brokers say none.
        """
        return self._features

    # --- opening and closing ---------------------------------------------------------------------------

    async def open(self) -> None:
        """Find a broker and learn the cluster from it, within ``bootstrap_timeout_ms``.

        Raises:
            NoBrokerReachable: no address led to a broker; the message has the cause of each.
            WireError: what answers is not Kafka.
            AuthenticationFailed: broker and client do not trust one another; nothing is tried again.
            ConfigError: certificates or credentials will not do.
        """
        try:
            await self.brokers.check()
            await self.owner.open()
            await self._bootstrap(self.deadline(self.config.bootstrap_timeout_ms / 1000))
        except BaseException:
            await self.close()
            raise
        self.owner.spawn(self._keep_fresh)
        self.owner.spawn(self._close_idle_connections)

    async def _bootstrap(self, deadline: Deadline) -> None:
        backoff = self.backoff()
        errors: dict[Address, KafkaError] = {}
        while not deadline.passed(self.runtime.now()):
            if await self._learn(errors, deadline):
                return
            # Whoever speaks another protocol will not learn Kafka's in a few seconds, and a wrong password stays wrong.
            if distrust(errors) or all(isinstance(error, WireError) for error in errors.values()):
                raise unreachable(errors)
            await anyio.sleep(min(backoff.next(), deadline.left(self.runtime.now())))
        untried = {at: ConnectionLost("not tried, no time was left") for at in self._addresses}
        raise unreachable(untried | errors, deadline.allowed)

    async def close(self) -> None:
        """Close all connections and end all background tasks. May be called again.

        Raises:
            UsageError: it was opened on another event loop. If that has ended, the connections are dropped.
        """
        if self.owner.has_lost_loop:
            self.brokers.drop()
        self.owner.require_own_loop()
        with anyio.CancelScope(shield=True):
            await self.brokers.close()
        await self.owner.close()
        # Whoever waits for metadata hears that none will come.
        self._changed.set()

    # --- metadata --------------------------------------------------------------------------------------

    def deadline(self, allowed: float) -> Deadline:
        """``allowed`` seconds from now."""
        return Deadline.after(allowed, self.runtime.now())

    def backoff(self) -> Backoff:
        """The waits between retries that the configuration asks for."""
        config = self.config
        return Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000, self.runtime.chance)

    def outdated(self, seen: Snapshot) -> None:
        """Say that ``seen`` was wrong: a refresh begins in the background, unless a newer snapshot came already."""
        if self._snapshot.generation <= seen.generation:
            self._stale.set()

    async def refresh(self, seen: Snapshot, deadline: Deadline) -> Snapshot:
        """Wait for a snapshot newer than ``seen``. However many wait, one request is under way.

        Raises:
            RequestTimeout: none came in time; the message has the last cause.
            AuthenticationFailed, ConfigError: no broker would do, and one and this client do not trust one another.
            UsageError: the client is not open.
        """
        with anyio.move_on_after(deadline.left(self.runtime.now())):
            while self._snapshot.generation <= seen.generation:
                self.owner.require_open()
                self._stale.set()
                await self._changed.wait()
                if isinstance(self._refresh_error, AuthenticationFailed | ConfigError):
                    raise copy_for_reraise(self._refresh_error)
        if self._snapshot.generation <= seen.generation:
            last = f": {self._refresh_error}" if self._refresh_error else ""
            raise RequestTimeout(f"no metadata within {deadline.allowed:g} s{last}") from self._refresh_error
        return self._snapshot

    def use(self, topics: Iterable[str], now: float | None = None) -> None:
        """Keep these topics in the metadata; each is forgotten when unused for ``metadata_max_idle_ms``."""
        if now is None:
            now = self.runtime.now()
        if self._topics.use(topics, now):
            self._new_topic.set()

    def following(self, names: Names, also: Names = tuple) -> AbstractContextManager[None]:
        """Meanwhile, keep these topics in the metadata, and log which of ``names`` do not exist."""
        return self._topics.following(names, also)

    def missing_of(self, topics: Iterable[str]) -> list[str]:
        """Return those of the topics in use that do not exist, as the last Metadata answer says."""
        return [name for name in topics if name in self._topics.missing]

    @contextmanager
    def all_topics(self) -> Iterator[None]:
        """Meanwhile, keep all topics in the metadata: some are chosen by a pattern."""
        self._all += 1
        self._new_topic.set()
        self._stale.set()
        try:
            yield
        finally:
            self._all -= 1

    async def topic(self, name: str, deadline: Deadline) -> Topic:
        """The topic with its partitions, as soon as they are known.

        Raises:
            TopicNotReady: the cluster has said for ``topic_metadata_propagation_max_ms`` that there is no such topic,
                or it is still unknown at the deadline; the message has the broker's answer.
            BrokerError: the broker refuses: the name is invalid, or access is denied.
        """
        known = self._known_topic(name)
        if isinstance(known, Topic):
            return known
        with self.following(lambda: (name,)):
            return await self._wait_for_topic(name, deadline)

    def not_ready(self, name: str) -> TopicNotReady:
        """Return the error of a topic whose partitions are not known now, for a call that does not wait."""
        if name not in self._topics.missing:
            return TopicNotReady(f"the partitions of topic {name!r} are not known yet")
        what_to_do = advice(allow_creation=self.config.allow_auto_create_topics)
        return TopicNotReady(f"{say_missing([name])}, as the cluster said last: {what_to_do}")

    async def _wait_for_topic(self, name: str, deadline: Deadline) -> Topic:
        missing, config = self._topics.missing, self.config
        limit, answers = config.topic_metadata_propagation_max_ms / 1000, missing.answers
        missing_since: float | None = None
        while True:
            snapshot, known = self._snapshot, self._known_topic(name)
            if isinstance(known, Topic):
                return known
            if name not in missing:
                missing_since = None
            elif missing.answers > answers:  # an answer from before this call may be out of date
                now = self.runtime.now()
                missing_since = now if missing_since is None else missing_since
                if now - missing_since >= limit:
                    raise does_not_exist(name, limit, allow_creation=config.allow_auto_create_topics)
            try:
                await self.refresh(snapshot, deadline)
            except RequestTimeout as timeout:
                cause = known or timeout
                message = f"topic {name!r} is not known after {deadline.allowed:g} s: {cause}"
                if name in missing:
                    message += f"; {advice(allow_creation=config.allow_auto_create_topics)}"
                raise TopicNotReady(message) from cause

    def _known_topic(self, name: str) -> Topic | BrokerError | None:
        """Return the topic if its partitions are known, else the broker's answer; raise one that no retry mends."""
        self.use((name,))
        known = self._snapshot.topics.get(name)
        if known is None:
            return None
        if known.error == ErrorCode.NONE and known.partitions:
            return known
        # A topic without partitions is one whose brokers are still at work.
        code = known.error if known.error != ErrorCode.NONE else ErrorCode.LEADER_NOT_AVAILABLE
        error = broker_error(code, f"topic {name!r}")
        if not error.retriable:
            raise error
        return error

    async def _keep_fresh(self) -> None:
        """Ask for metadata when someone needs it, and when it has grown old."""
        pace = self.backoff()
        while True:
            with anyio.move_on_after(self._topics.ask_again_within()):
                await self._stale.wait()
            self._stale = anyio.Event()
            errors: dict[Address, KafkaError] = {}
            if not await self._learn(errors):
                self._refresh_error = unreachable(errors)
                _log.debug("cannot refresh the metadata: %s", self._refresh_error)
                self._stale.set()
                if distrust(errors):
                    # Whoever waits need not wait for what will not come.
                    self._wake()
            elif self._snapshot.healthy:
                pace.reset()
            # A cluster in trouble has many clients that ask: none may ask in a tight loop. But who needs a topic
            # for the first time does not wait for the trouble of others.
            with anyio.move_on_after(pace.next()):
                await self._new_topic.wait()
            self._new_topic = anyio.Event()

    async def _learn(self, errors: dict[Address, KafkaError], deadline: Deadline | None = None) -> bool:
        """One refresh: the brokers that are known, one after the other, then the bootstrap addresses.

        Whether one helped; ``errors`` gets what the others said.
        """
        nodes = [node.address for node in self._snapshot.nodes.values()]
        ordered = self.brokers.least_loaded_first(nodes)
        known, until, bootstrap = self._recovery.round(ordered, self._addresses, self.runtime.now())
        if known and await self._learn_from(known, errors, until, obeys=until is not None):
            return True
        if known and _demanding(errors) and self._recovery.demanded():
            bootstrap = self._addresses
            await self._abandon()
        if not bootstrap:
            return False
        bootstrap = await self._looked_up(bootstrap)
        return await self._learn_from(self.brokers.least_loaded_first(bootstrap), errors, deadline)

    async def _abandon(self) -> None:
        """What is known is of another cluster, or of another time."""
        await self.brokers.abandon()

    async def _looked_up(self, addresses: tuple[Address, ...]) -> tuple[Address, ...]:
        """Bootstrap addresses as ``client_dns_lookup`` wants them; they are dialled as they are found."""
        if self.config.client_dns_lookup == "use_all_dns_ips":
            return addresses
        found: list[Address] = []
        for at in self._given:
            names: tuple[Address, ...] = (at,)
            with anyio.move_on_after(self.config.socket_connection_setup_timeout_ms / 1000):
                names = await canonical(at)
            found += names
        self._addresses = self.brokers.bootstrap = tuple(dict.fromkeys(found))
        return self._addresses

    async def _learn_from(
        self,
        addresses: Sequence[Address],
        errors: dict[Address, KafkaError],
        deadline: Deadline | None,
        *,
        obeys: bool = False,
    ) -> bool:
        """Ask one after the other. Until a ``deadline`` each has its share of the time, so that one that is silent does
        not keep us from the next; but of very many no share is too short for a broker far away. Who ``obeys`` asks
        nobody else once one says to begin again."""
        untried = list(addresses)
        while untried:
            now = self.runtime.now()
            share = None if deadline is None else _share(deadline, now, len(untried))
            address = untried.pop(0)
            try:
                await self._learned(*await self._ask_metadata(address, share))
            except Exception as error:
                # Of a share of the time, a short one tells less than what came before.
                if address not in errors or share is None or not share.passed(self.runtime.now()):
                    errors[address] = as_kafka_error(error, "asking for metadata")
                if obeys and isinstance(error, RebootstrapRequired):
                    return False
            else:
                return True
        return False

    async def _ask_metadata(
        self, address: Address, deadline: Deadline | None
    ) -> tuple[MetadataResponse, Mapping[str, int], Sequence[str]]:
        def left() -> float | None:
            return None if deadline is None else deadline.left(self.runtime.now())

        asked = self._topics.to_ask(self.runtime.now())
        wanted = None if self._all else asked
        connection = await self.brokers.connection(address, within=left())

        async def ask(request: Request[MetadataResponse], versions: Versions) -> MetadataResponse:
            response = await connection.request(request, timeout=left(), wanted=versions)
            keep_only(response, wanted, versions)
            return response

        forms = metadata_forms(wanted, allow_creation=self.config.allow_auto_create_topics)
        try:
            response = await in_newest_form(forms, ask)
        except ConnectionLost as lost:
            if self.config.uses_sasl or self._snapshot.nodes:
                raise
            from .sasl_probe import login_wanted  # few listeners hang up like that

            raise (await login_wanted(self.brokers, address, left()) or lost) from lost
        if response.error_code != ErrorCode.NONE:
            raise broker_error(response.error_code, f"{address} to Metadata")
        if not response.brokers:
            # Kafka 0.8 lists no broker before there is a topic, and none of its brokers tells versions.
            if connection.known is None or not connection.known.is_untold:
                raise NoBrokerReachable(f"{address} knows of no broker, itself included: it is starting or stopping")
            excuse_starting(response, address)
        return response, connection.features, asked

    async def _learned(self, response: MetadataResponse, features: Mapping[str, int], asked: Sequence[str]) -> None:
        before = [self._snapshot]
        if other_cluster(before[0], response):
            told = "the brokers belong to another cluster now: %s instead of %s; dropping the metadata of the old one"
            _log.warning(told, response.cluster_id, before[0].cluster_id)
            await self._abandon()
            before = [attrs.evolve(EMPTY, generation=self._snapshot.generation)]
        large = is_large(response)
        if large:
            merged = await self._merged_on_a_thread(before, response)
        else:
            merged = merge(before[0], response)
        self._refresh_error, self._features = None, features
        self._recovery.learned()
        _log.debug("metadata: %d brokers, %d topics", len(merged.nodes), len(merged.topics))
        self._topics.learned(asked, merged, self.runtime.now())
        self._replace(merged)
        if large:
            await self.runtime.offload(forget, before)

    async def _close_idle_connections(self) -> None:
        while True:
            await anyio.sleep(self.config.connections_max_idle_ms / 1000 / 10)
            await self.brokers.close_idle(self.runtime.now())


def _demanding(errors: Mapping[Address, KafkaError]) -> bool:
    return any(isinstance(error, RebootstrapRequired) for error in errors.values())


def _share(deadline: Deadline, now: float, count: int) -> Deadline:
    """Until when the first of so many may take."""
    left = deadline.left(now)
    return Deadline.after(min(left, max(left / count, deadline.allowed * _LEAST_SHARE)), now)
