"""Which broker to ask: routes requests, with retries inside one deadline, and finds coordinators."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import anyio

from ..config import ClientConfig
from ..errors import (
    BrokerError,
    KafkaError,
    Refresh,
    RequestTimeout,
    TopicNotReady,
    UnsupportedVersion,
    UsageError,
)
from ..network.connection import ANY_VERSION, Connection
from ..network.connector import Connector
from ..protocol.messages.metadata import MetadataResponse
from ..protocol.schema import Request, Response, Versions
from ..runtime import Runtime
from ..types import Address, CoordinatorType, TopicPartition
from .attempts import Attempts
from .connection_pool import CONTROL
from .coordinators import Coordinators, coordinator_in, lookup_forms, named
from .metadata import Node, Snapshot, Topic
from .metadata_requests import keep_only, metadata_forms
from .metadata_updater import MetadataUpdater
from .request_variants import in_newest_form
from .retry import Backoff, Deadline

if TYPE_CHECKING:
    from ..protocol.messages.group import FindCoordinatorResponse

__all__ = ("Cluster", "Route", "any_broker", "controller")

R = TypeVar("R", bound=Response)

Route = Callable[[Snapshot], Node | None]
"""Picks the broker to ask; None where the snapshot does not tell."""


def any_broker(snapshot: Snapshot) -> Node | None:
    """Any broker will do: the first that is known."""
    return next(iter(snapshot.nodes.values()), None)


def controller(snapshot: Snapshot) -> Node | None:
    """The broker that takes changes of topics and configs.

    Where nobody tells which one that is, for the brokers are older than such changes, any of them will say so.
    """
    if snapshot.controller_id < 0 and snapshot.cluster_id is None:
        return any_broker(snapshot)
    return snapshot.nodes.get(snapshot.controller_id)


class Cluster(MetadataUpdater):
    """The brokers behind a list of bootstrap addresses. Opened once, shared by producers, consumers and the admin."""

    def __init__(
        self, addresses: tuple[Address, ...], config: ClientConfig, connector: Connector, runtime: Runtime
    ) -> None:
        super().__init__(addresses, config, connector, runtime)
        self._coordinators = Coordinators(self._look_up_coordinator, self._tries)

    async def _abandon(self) -> None:
        self._coordinators.forget_all()
        await super()._abandon()

    async def connection(self, node: Node, lane: str = CONTROL, deadline: Deadline | None = None) -> Connection:
        """A connection to this broker. Raises as :meth:`Brokers.connection`, and RequestTimeout at the deadline."""
        with anyio.move_on_after(deadline.left(self.runtime.now()) if deadline is not None else None):
            return await self.brokers.connection(node.address, lane)
        raise RequestTimeout(f"no connection to {node.address} in time")

    async def leader(self, where: TopicPartition, deadline: Deadline) -> Node:
        """The leader of a partition, as soon as one is known. Partitions may have been added since the last metadata.

        Raises:
            TopicNotReady: there is none at the deadline.
            UsageError: the topic has no such partition, as metadata says that came after the call.
        """
        before = self.snapshot
        while True:
            topic = await self.topic(where.topic, deadline)
            snapshot = self.snapshot
            if not 0 <= where.partition < len(topic.partitions):
                if where.partition < 0 or snapshot.generation > before.generation:
                    raise _no_partition(where, topic)
                try:
                    await self.refresh(snapshot, deadline)
                except RequestTimeout as timeout:
                    raise _no_partition(where, topic) from timeout
                continue
            node = snapshot.leader(where)
            if node is not None:
                return node
            try:
                await self.refresh(snapshot, deadline)
            except RequestTimeout as timeout:
                raise TopicNotReady(f"{where} has no leader after {deadline.allowed:g} s") from timeout

    async def ask(
        self,
        route: Route,
        request: Request[R],
        deadline: Deadline,
        *,
        lane: str = CONTROL,
        wanted: Versions = ANY_VERSION,
        check: Callable[[R], None] = lambda _: None,
    ) -> R:
        """Ask the broker that ``route`` picks, again and elsewhere as errors demand, until the deadline.

        ``check`` raises the BrokerError that an answer carries; retriable ones are tried again.

        Raises:
            RequestTimeout: the deadline passed; the message has the last cause.
            UsageError: the client is not open.
            KafkaError: an error that no retry mends.
        """
        tries = self._tries(_name(request), deadline)
        return await self._ask(tries, route, request, lane, wanted, check)

    async def _ask(
        self,
        tries: Attempts,
        route: Route,
        request: Request[R],
        lane: str,
        wanted: Versions,
        check: Callable[[R], None],
    ) -> R:
        while not tries.over:
            self.owner.require_open()
            snapshot = self.snapshot
            node = route(snapshot)
            refresh = Refresh.METADATA
            if node is None:
                tries.nobody()
            else:
                try:
                    return await self._ask_once(node, tries.deadline, request, lane, wanted, check)
                except KafkaError as error:
                    refresh = tries.failed(error)
            if refresh is Refresh.METADATA:
                self.outdated(snapshot)
            await tries.wait()
        raise tries.late()

    async def _ask_once(
        self,
        node: Node,
        deadline: Deadline,
        request: Request[R],
        lane: str,
        wanted: Versions,
        check: Callable[[R], None],
        *,
        slow: bool = False,
        patience: float = math.inf,
    ) -> R:
        connection = await self.connection(node, lane, deadline)
        left = deadline.left(self.runtime.now())
        answer = await connection.request(request, timeout=min(left, patience), wanted=wanted, slow=slow)
        check(answer)
        return answer

    def _tries(self, what: str, deadline: Deadline, backoff: Backoff | None = None) -> Attempts:
        return Attempts(what, deadline, backoff or self.backoff(), self.runtime.now)

    async def ask_metadata(
        self, topics: Sequence[str] | None, deadline: Deadline, *, lane: str = CONTROL
    ) -> MetadataResponse:
        """What any broker says of these topics now, of all with None. No topic is created by that.

        Raises as :meth:`ask`.
        """

        async def ask(request: Request[MetadataResponse], wanted: Versions) -> MetadataResponse:
            response = await self.ask(self.least_loaded, request, deadline, lane=lane, wanted=wanted)
            keep_only(response, topics, wanted)
            return response

        return await in_newest_form(metadata_forms(topics, allow_creation=False), ask)

    # --- coordinators ----------------------------------------------------------------------------------

    async def coordinator(self, kind: CoordinatorType, key: str, deadline: Deadline) -> Node:
        """The broker that coordinates a group or a transactional id. It is remembered until it proves wrong.

        Raises:
            RequestTimeout: none was found by the deadline; the message has the last cause.
            GroupAuthorizationFailed, TransactionalIdAuthorizationFailed: access is denied.
            UnsupportedVersion: the brokers are older than transactions (0.11).
            KafkaError: another error that no retry mends.
        """
        return await self._coordinators.find(kind, key, deadline)

    def known_coordinator(self, kind: CoordinatorType, key: str) -> Node | None:
        """The coordinator as it is remembered, without asking."""
        return self._coordinators.known(kind, key)

    def doubt_coordinator(self, kind: CoordinatorType, key: str, cause: KafkaError | None = None) -> None:
        """Look the coordinator up again on the next request, since it is silent. The ``cause`` is logged."""
        known = self._coordinators.known(kind, key)
        if known is not None:
            if cause is not None:
                self._coordinators.log.lost(kind, key, known, cause)
            self._coordinators.forget(kind, key, known)

    def log_coordinator(self, kind: CoordinatorType, key: str) -> None:
        """Log at INFO which broker coordinates this group or transactional id, from now on."""
        self._coordinators.log.follow(kind, key)

    async def ask_coordinator(
        self,
        kind: CoordinatorType,
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
        newer: Callable[[], Request[R]] | None = None,
        patience: float = math.inf,
    ) -> R:
        """Ask the coordinator of a group or a transactional id, again and elsewhere as errors demand.

        A coordinator that says it is none, or whose connection fails, is looked up anew. ``check`` raises the
        BrokerError that an answer carries; retriable ones are tried again, after the waits of ``backoff`` if one is
        given. With ``slow`` the answer may take until the deadline, however late that is. ``failed`` hears why a try
        has failed. ``newer`` says, once a coordinator is found, what to ask instead: tries may be minutes apart. After
        ``patience`` seconds without an answer the ``lane`` is opened anew for the next try, which has twice as long.

        Raises:
            RequestTimeout: the deadline passed; the message has who was asked, and the last cause.
            UsageError: the client is not open.
            KafkaError: an error that no retry mends, of the request or of :meth:`coordinator`.
        """
        tries = self._tries(f"{_name(request)} of {named(kind, key)}", deadline, backoff)
        asked = set[Node]()
        while not tries.over:
            self.owner.require_open()
            snapshot, node = self.snapshot, None
            try:
                node = await self.coordinator(kind, key, deadline)
                tries.where = str(node.address)
                if node not in asked:
                    # Who takes over is ready soon, however long the one before was away.
                    asked.add(node)
                    tries.begin_anew()
                if newer is not None:
                    request = newer()
                answer = await self._ask_once(
                    node, deadline, request, lane, wanted, check, slow=slow, patience=patience
                )
                self._coordinators.log.answered(kind, key, node)
                return answer
            except KafkaError as error:
                failed(error)
                refresh = tries.failed(error)
                if patience < math.inf and isinstance(error, RequestTimeout):
                    # A broker reads what comes next on a connection only when this is answered.
                    await self.brokers.close_lanes(lane)
                    patience *= 2
                # A broker that is silent or gone may coordinate no more; one that complains of a topic does.
                if node is not None and (refresh is Refresh.COORDINATOR or not isinstance(error, BrokerError)):
                    self._coordinators.log.lost(kind, key, node, error)
                    self._coordinators.forget(kind, key, node)
            if refresh is Refresh.METADATA:
                self.outdated(snapshot)
            await tries.wait()
        raise tries.late()

    async def _look_up_coordinator(self, kind: CoordinatorType, key: str, tries: Attempts) -> Node:
        def check(answer: "FindCoordinatorResponse") -> None:
            coordinator_in(answer, kind, key)

        async def ask(request: "Request[FindCoordinatorResponse]", wanted: Versions) -> "FindCoordinatorResponse":
            return await self._ask(tries, self.least_loaded, request, CONTROL, wanted, check)

        try:
            return coordinator_in(await in_newest_form(lookup_forms(kind, key), ask), kind, key)
        except UnsupportedVersion as refused:
            if kind is not CoordinatorType.TRANSACTION:
                raise
            raise UnsupportedVersion(f"transactions came with Kafka 0.11 (KIP-98): {refused}") from None

    def least_loaded(self, snapshot: Snapshot) -> Node | None:
        """A route for :meth:`ask`: the broker that has least to do, and has not failed."""
        nodes = {node.address: node for node in snapshot.nodes.values()}
        return next((nodes[address] for address in self.brokers.least_loaded_first(list(nodes))), None)


def _no_partition(where: TopicPartition, topic: Topic) -> UsageError:
    return UsageError(f"topic {where.topic!r} has {len(topic.partitions)} partitions, no {where.partition}")


def _name(request: Request[R]) -> str:
    return type(request).__name__.removesuffix("Request")
