"""TelemetryReporter requests the subscription to a client's metrics, and pushes them (KIP-714)."""

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Final
from uuid import UUID

import anyio

from ..errors import ConnectionLost, KafkaError, RequestTimeout, UnsupportedVersion, broker_error
from ..event_log import EventLog
from ..network.connection import Connection
from ..protocol.api import ApiKey
from ..protocol.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
)
from ..protocol.primitives import ZERO_UUID
from ..runtime import new_event
from ..telemetry.application_metrics import ApplicationMetrics, ApplicationValue
from ..telemetry.exchange import FIRST_PUSH, TelemetryExchange, TelemetryState, TelemetrySubscription
from ..telemetry.payload import Measured, Payload, PayloadBuilder
from .metadata import Node, Snapshot
from .retry import Deadline

if TYPE_CHECKING:
    from .cluster import Cluster

__all__ = ("LAST_PUSH_SECONDS", "Resource", "TelemetryReporter")

_log = EventLog("aiokafkawire.telemetry")

LAST_PUSH_SECONDS: Final = 2.0
"""How long the last push may delay closing the client, in seconds."""
_LANE: Final = "telemetry"
_NEEDS: Final = "clients' metrics need brokers since 3.7 with a plugin that receives them (KIP-714)"

Resource = Callable[[], Mapping[str, str]]
"""A function that returns the labels of the client, such as its group."""


class TelemetryReporter:
    """The exchange of one client with its brokers about its metrics, on a connection of its own.

    All requests go to one broker while it answers, since brokers remember the clients whose metrics they get.
    """

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster, self._runtime = cluster, cluster.runtime
        self.applications: ApplicationMetrics = ApplicationMetrics()
        """The metrics of the application to push."""
        self._exchange = TelemetryExchange()
        self._payloads = PayloadBuilder(self._now_ns())
        self._asking = anyio.Lock()
        self._changed = new_event()
        self._broker: Node | None = None
        self._source: Callable[[], Iterable[Measured]] | None = None
        self._resource: Resource = dict
        self._has_warned = False

    async def client_instance_id(self, deadline: Deadline) -> UUID:
        """Return the id by which brokers know this client; the first call lets a broker choose it.

        Raises:
            UnsupportedVersion: the broker is too old, or has no plugin that receives metrics.
            RequestTimeout: the deadline has passed.
            KafkaError: the broker refuses.
        """

        def check(response: GetTelemetrySubscriptionsResponse) -> None:
            if response.error_code:
                raise broker_error(response.error_code, "GetTelemetrySubscriptions")

        with anyio.move_on_after(deadline.left(self._runtime.now())):
            async with self._asking:
                if self._exchange.instance_id == ZERO_UUID:
                    await self._subscribe(deadline, check)
                    self._changed.set()
        if self._exchange.instance_id == ZERO_UUID:
            raise RequestTimeout(f"no broker has chosen a client instance id within {deadline.allowed:g} s")
        return self._exchange.instance_id

    async def run(self, source: Callable[[], Iterable[Measured]], resource: Resource) -> None:
        """Push the metrics that ``source`` returns, as often as brokers request, until :meth:`terminate`."""
        self._source, self._resource = source, resource
        while not self._exchange.is_terminating:
            await self._pause()
            async with self._asking:
                if self._exchange.due <= self._runtime.now() and not self._exchange.is_terminating:
                    await self._step()

    async def terminate(self) -> None:
        """Push the metrics for the last time, if brokers have requested some, within LAST_PUSH_SECONDS."""
        if self._exchange.terminate():
            with anyio.move_on_after(LAST_PUSH_SECONDS):
                async with self._asking:
                    await self._step()
        self._exchange.ended()
        self._changed.set()

    async def _pause(self) -> None:
        self._changed = new_event()
        seconds = self._exchange.due - self._runtime.now()
        if seconds > 0:
            with anyio.move_on_after(None if seconds == math.inf else seconds):
                await self._changed.wait()

    async def _step(self) -> None:
        """Send the request that is due, once; the exchange decides what a failure means."""
        state = self._exchange.begin()
        deadline = self._cluster.deadline(self._cluster.config.request_timeout_ms / 1000)
        try:
            if state is TelemetryState.SUBSCRIPTION_IN_PROGRESS:
                await self._subscribe(deadline, lambda _: None)
            else:
                await self._push(deadline, is_last=state is TelemetryState.TERMINATING_PUSH_IN_PROGRESS)
        except KafkaError as error:
            self._broker = None
            self._exchange.unanswered(self._runtime.now())
            message = "no metrics are pushed for %(delay)g s: %(error)s"
            _log.debug(message, delay=self._exchange.interval, error=error)

    async def _subscribe(self, deadline: Deadline, check: Callable[[GetTelemetrySubscriptionsResponse], None]) -> None:
        try:
            await self._find_receiver(deadline)
            request = GetTelemetrySubscriptionsRequest(client_instance_id=self._exchange.instance_id)
            response = await self._cluster.ask(self._route, request, deadline, lane=_LANE, check=check)
        except UnsupportedVersion as refused:
            raise UnsupportedVersion(f"{_NEEDS}: {refused}") from None
        is_new = self._exchange.instance_id == ZERO_UUID
        share = self._runtime.chance.uniform(*FIRST_PUSH)
        self._exchange.subscribed(response, self._runtime.now(), share)
        self._warn_if_refused("GetTelemetrySubscriptions", response.error_code)
        if is_new and self._exchange.instance_id != ZERO_UUID:
            message = "brokers know this client as client instance %(client_instance_id)s"
            _log.info(message, client_instance_id=self._exchange.instance_id)
        text = {"subscription": self._exchange.subscription}
        _log.debug("the subscription to this client's metrics: %(subscription)s", text=text)

    async def _find_receiver(self, deadline: Deadline) -> None:
        """Choose the broker, and check that it receives metrics before a connection is opened for them."""
        node = self._route(self._cluster.metadata.snapshot)
        if node is not None:
            connection = await self._cluster.connection(node, deadline=deadline)
            if ApiKey.GET_TELEMETRY_SUBSCRIPTIONS not in connection.versions:
                self._broker = None
                raise UnsupportedVersion(f"{node.address} does not receive them")

    async def _connection(self, deadline: Deadline) -> Connection:
        snapshot = self._cluster.metadata.snapshot
        node = self._route(snapshot)
        if node is None:
            raise ConnectionLost("no broker is known")
        try:
            return await self._cluster.connection(node, _LANE, deadline)
        except KafkaError:
            self._cluster.metadata.mark_stale(snapshot)
            raise

    def _route(self, snapshot: Snapshot) -> Node | None:
        if self._broker is None or self._broker not in snapshot.nodes.values():
            self._broker = self._cluster.least_loaded(snapshot)
        return self._broker

    async def _push(self, deadline: Deadline, *, is_last: bool) -> None:
        subscription = self._exchange.subscription
        assert subscription is not None
        applications = [*self.applications.values()]
        try:
            labels = self._resource()
            payload = await self._runtime.offload(self._build, applications, subscription, labels)
        except Exception as error:
            message = "the client's metrics could not be encoded; they are tried again with the next push"
            _log.error(message, error=error, exc_info=error)
            self._exchange.skipped(self._runtime.now())
            return
        if payload.left_out and not self._has_warned:
            self._has_warned = True
            message = "%(count)d of %(all)d metrics are not pushed: brokers accept %(size)d bytes (telemetry.max.bytes)"
            text = {"all": payload.left_out + payload.sent}
            _log.warning(message, text=text, count=payload.left_out, size=subscription.max_bytes)
        request = PushTelemetryRequest(
            client_instance_id=self._exchange.instance_id,
            subscription_id=subscription.subscription_id,
            terminating=is_last,
            compression_type=payload.codec,
            metrics=payload.metrics,
        )
        # A push is sent once: a broker that has not answered may have got it, and a repeated one would count again.
        connection = await self._connection(deadline)
        response = await connection.request(request, timeout=deadline.left(self._runtime.now()))
        if not response.error_code:
            self._payloads.accepted(payload)
        self._exchange.pushed(response.error_code, self._runtime.now())
        self._warn_if_refused("PushTelemetry", response.error_code)
        message, text = "pushed %(count)d metrics in %(size)d bytes: error %(code)d", {"code": response.error_code}
        _log.debug(message, text=text, count=payload.sent, size=len(payload.metrics))

    def _build(
        self, applications: list[ApplicationValue], subscription: TelemetrySubscription, labels: Mapping[str, str]
    ) -> Payload:
        """Return the payload of a push. A thread runs this: a client with thousands of partitions has many metrics."""
        metrics = chain(() if self._source is None else self._source(), applications)
        return self._payloads.build(metrics, subscription, labels, self._now_ns())

    def _warn_if_refused(self, what: str, error_code: int) -> None:
        if error_code and self._exchange.has_ended:
            error = broker_error(error_code, what)
            _log.warning("this client pushes no more metrics: %(error)s", api=what, error=error)

    def _now_ns(self) -> int:
        return self._runtime.wall_ms() * 1_000_000
