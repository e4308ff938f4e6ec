"""A connection to one broker with many requests in flight: responses come in order; one failure ends all requests."""

import logging
import math
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import anyio

from ..config import ClientConfig
from ..errors import ConnectionLost, ErrorCode, KafkaError, RequestTimeout, WireError, broker_error, copy_for_reraise
from ..observe import Observers
from ..protocol.api import ApiKey, choose_version
from ..protocol.compiler import decode
from ..protocol.messages.metadata import ApiVersionsRequest, ApiVersionsResponse
from ..protocol.pre_api_versions import BrokerVersion
from ..protocol.primitives import Buffer
from ..protocol.schema import Request, Response, Versions
from ..protocol.throttling import client_waits, throttle_seconds
from ..runtime import Owner, Runtime, background_tasks, new_event
from ..types import Address
from ..version import __version__
from .client_security import Security
from .connection_protocol import ConnectionProtocol, ResponseHandler
from .connection_reports import ConnectionReports, ObservedRequest
from .connector import Connector, SocketOptions
from .dead_paths import DEAD_SECONDS
from .legacy_version_probe import negotiate_versions
from .reauthentication import Reauthenticator
from .request_log import LOG, log_answer, log_request
from .transport import Transport
from .transport_factory import TransportFactory

__all__ = ("ANY_VERSION", "OVERDUE_SECONDS", "BrokerIdentity", "Connection", "versions_request")

R = TypeVar("R", bound=Response)

ANY_VERSION: Final = Versions.parse("0+")

OVERDUE_SECONDS: Final = 3.0
"""The seconds without a response after which the client asks other brokers whether one of them has taken over."""
_MIN_PROBE_SECONDS: Final = 0.25
"""The shortest wait, in seconds, before a broker that does not answer is taken for an old one: it may be far away."""
_LARGE: Final = 256 * 1024
"""The size in bytes above which responses are decoded on a thread, except Fetch, whose records are decoded later."""


class BrokerIdentity(NamedTuple):
    """The broker that a client means to connect to. From v5 of ApiVersions on, a broker checks it (KIP-1242)."""

    cluster_id: str
    node_id: int


def versions_request(expected: BrokerIdentity | None = None) -> ApiVersionsRequest:
    """Return the request for a broker's versions, with this client's name and version (KIP-511).

    A broker that is not the ``expected`` one answers REBOOTSTRAP_REQUIRED.
    """
    request = ApiVersionsRequest(client_software_name="aiokafkawire", client_software_version=__version__)
    if expected is not None:
        request.cluster_id, request.node_id = expected
    return request


class _Reply:
    """A response handler for a request whose response a task awaits."""

    __slots__ = ("_event", "due_at", "error", "frame", "patience", "position", "times_out_at")

    def __init__(self, sent_at: float, patience: float, due_at: float) -> None:
        self._event = new_event()
        self.patience = patience
        self.times_out_at = sent_at + patience
        self.due_at = due_at
        self.frame = b""
        self.position = 0
        self.error: KafkaError | None = None

    def resolve(self, frame: bytes, position: int) -> None:
        self.frame, self.position = frame, position
        self._event.set()

    def fail(self, error: KafkaError) -> None:
        self.error = error
        self._event.set()

    async def wait(self) -> tuple[bytes, int]:
        await self._event.wait()
        if self.error is not None:
            raise copy_for_reraise(self.error)
        return self.frame, self.position


class Connection:
    """A connection to one broker, made by :meth:`open`.

    If a caller is cancelled or times out, its request is still sent completely, and the response is discarded. If a
    broker does not answer a request within ``request_timeout_ms``, the connection is closed, since all later requests
    wait for that response.
    """

    def __init__(
        self,
        transport: Transport,
        pipeline: ConnectionProtocol,
        at: Address,
        config: ClientConfig,
        runtime: Runtime,
        security: Security,
        reports: ConnectionReports,
    ) -> None:
        self.broker: str = str(at)
        self.versions: Mapping[int, Versions] = {}
        """The versions that the broker supports, by API key."""
        self.features: Mapping[str, int] = {}
        """The cluster's finalised feature levels by name (KIP-584); empty if the broker sends none."""
        self.known: BrokerVersion | None = None
        """The broker's version, detected or assumed; None if it is not known yet."""
        self._expected: BrokerIdentity | None = None
        self._transport, self._pipeline, self._runtime = transport, pipeline, runtime
        self._request_timeout = config.request_timeout_ms / 1000
        self._chosen: dict[tuple[type[Request[Any]], Versions], int] = {}
        # The frames that wait for the end of a reauthentication; None at other times.
        self._held_back: deque[tuple[Sequence[bytes], ObservedRequest | None]] | None = None
        self._released = anyio.Event()
        self._login = Reauthenticator(self, security, at, runtime.chance)
        self._uses_sasl = config.uses_sasl
        # The number of answered requests when a request last timed out.
        self._answered_at_timeout: int | None = None
        self.throttled_until: float = float("-inf")
        """The time until which the broker throttles this client (KIP-219), in seconds of the runtime's clock."""
        self._ended = anyio.Event()
        self._reports = reports
        self._is_open = False
        self._now = runtime.clock()
        self.used_at: float = self._now()
        """The time at which the last request was sent, in seconds of the runtime's clock."""

    @classmethod
    async def open(
        cls,
        connector: Connector,
        host: str,
        port: int,
        *,
        config: ClientConfig,
        owner: Owner,
        runtime: Runtime,
        within: float | None = None,
        security: Security | None = None,
        known: BrokerVersion | None = None,
        dialled: Address | None = None,
        reports: ConnectionReports | None = None,
        expected: BrokerIdentity | None = None,
    ) -> "Connection":
        """Connect, negotiate versions and authenticate.

        The timeout is the shorter of ``within``, in seconds, and ``socket_connection_setup_timeout_ms``. ``known`` is
        the broker's version if an earlier connection has detected it; old versions are not probed then. ``dialled`` is
        the address to connect to, if it differs from ``host`` and ``port``; the certificate and SASL still use
        ``host``. ``reports`` notifies observers of the connection's requests and its end. ``expected``
        is the broker that must answer.

        Raises:
            RebootstrapRequired: another broker than the expected one answers.
            ConnectionLost: the broker cannot be reached, closes the connection, or does not answer.
            WireError: the answering server is not Kafka.
            AuthenticationFailed: authentication failed.
            ConfigError: certificates or credentials are invalid.
        """
        security = security or Security(config, runtime)
        at = Address(host, port)
        reports = reports or ConnectionReports(Observers(), at, "", {}, runtime.now)
        broker, limit = str(at), config.socket_connection_setup_timeout_ms / 1000
        if within is not None:
            limit = min(within, limit)
        made: Connection | None = None
        try:
            with anyio.move_on_after(limit):
                max_frame = config.receive_message_max_bytes
                client_id = config.client_id
                pipeline = ConnectionProtocol(client_id=client_id, broker=broker, max_frame=max_frame, notes=reports)
                patience = config.request_timeout_ms / 1000
                options = SocketOptions(
                    config.socket_keepalive_enable, config.send_buffer_bytes, config.receive_buffer_bytes
                )
                broker_connector = TransportFactory(connector, security, at, dialled or at, options=options)
                transport = await broker_connector.open(pipeline, patience, owner.faulted)
                made = cls(transport, pipeline, at, config, runtime, security, reports)
                made._expected = expected
                owner.spawn(made._run)
                if known is None and config.uses_sasl:
                    await made._expect_versions()
                elif known is None:
                    open_as = partial(
                        cls.open,
                        connector,
                        host,
                        port,
                        config=config,
                        owner=owner,
                        runtime=runtime,
                        within=limit,
                        security=security,
                        dialled=dialled,
                        reports=reports,
                        expected=expected,
                    )
                    soon = min(config.api_version_request_timeout_ms / 1000, max(limit / 4, _MIN_PROBE_SECONDS))
                    found = await negotiate_versions(made, lambda known: open_as(known=known), soon)
                    if found is not made:
                        return found
                else:
                    made.known, made.versions = known, known.versions
                    if not known.is_untold:
                        await made.agree_on_versions()
                await made._login.log_in()
                made._is_open = True
                return made
            stage = f"accept a {'TLS ' * config.uses_tls}connection"
            if made is not None:
                stage = "complete the login" if made.versions else "answer ApiVersions (is it a Kafka listener?)"
            raise ConnectionLost(f"{broker} did not {stage} within {limit:.4g} s")
        except BaseException as cause:
            if made is not None:
                await made.close(cause if isinstance(cause, KafkaError) else ConnectionLost(f"{broker}: given up"))
            raise

    @property
    def failure(self) -> KafkaError | None:
        """The error that closed the connection; None while it is open."""
        return self._pipeline.failure

    @property
    def in_flight(self) -> int:
        """The number of requests that wait for their responses."""
        return self._pipeline.in_flight

    @property
    def is_silent(self) -> bool:
        """Whether a request has timed out, and the broker has answered none since."""
        return self._answered_at_timeout == self._pipeline.answered

    def is_overdue(self, now: float) -> bool:
        """Return whether a broker that works would have answered the oldest pending request that a task awaits."""
        waiting = self._next_reply()
        # A broker reads no request of a throttled connection.
        return waiting is not None and now >= max(waiting[1].due_at, self.throttled_until + OVERDUE_SECONDS)

    def _next_reply(self) -> tuple[str, _Reply] | None:
        """Return the reply that comes next, and the name of its request, if a task awaits it."""
        waiting = self._pipeline.next_answered
        if waiting is None:
            return None
        name, handler = waiting
        reply = handler.handler if isinstance(handler, ObservedRequest) else handler
        return (name, reply) if isinstance(reply, _Reply) else None

    async def request(
        self,
        request: Request[R],
        *,
        timeout: float | None = None,
        wanted: Versions = ANY_VERSION,
        slow: bool = False,
    ) -> R:
        """Send a request in the newest version that both sides support, and return the response.

        ``wanted`` are the versions that have all fields of the request. The ``timeout``, in seconds, is
        ``request_timeout_ms`` at most. ``slow`` allows a longer timeout, as for JoinGroup, whose response waits for
        other members.

        While the broker throttles this client, the request waits; the timeout includes that wait (KIP-219).

        Raises:
            RequestTimeout: the broker did not answer in time.
            ConnectionLost: the connection broke before the response came; the broker may have executed the request.
            WireError: the response violates the protocol.
            UnsupportedVersion, InvalidMessage: the request cannot be encoded; nothing was sent.
        """
        spoken, called_at = self.choose(type(request), wanted), self._now()
        if self.throttled_until > called_at:
            timeout = await self._left_when_unthrottled(type(request), timeout)
        frame, position = await self._exchange(request, spoken, timeout, slow=slow, called_at=called_at)
        answer: Any = type(request).response
        if len(frame) > _LARGE and request.api_key != ApiKey.FETCH:
            response = await self._runtime.offload(self.decode, answer, spoken, frame, position)
        else:
            response = self.decode(answer, spoken, frame, position)
        self.heed_throttle(response, spoken)
        return response  # type: ignore[no-any-return]

    def heed_throttle(self, response: Response, spoken: int) -> None:
        """Extend :attr:`throttled_until` by the throttle time of a response, unless the broker has waited itself."""
        pause = throttle_seconds(response)
        if pause <= 0 and not self._reports.has_throttled:
            return  # nearly every response
        api = type(response).__name__.removesuffix("Response")
        if pause <= 0:
            self._reports.not_throttled(api)
            return
        if client_waits(response.api_key, spoken):
            self.throttled_until = max(self.throttled_until, self._now() + pause)
        self._reports.throttled(api, pause)

    async def wait_while_throttled(self) -> None:
        """Wait while the broker throttles this client, or until the connection ends."""
        while not self._ended.is_set() and (left := self.throttled_until - self._now()) > 0:
            with anyio.move_on_after(left):
                await self._ended.wait()

    async def _left_when_unthrottled(self, request: type[Request[Any]], timeout: float | None) -> float | None:
        """Wait while the broker throttles this client, or until the connection ends; return the rest of the timeout.

        The broker would not read a request before (KIP-219), and it would count as unanswered.
        """
        began, limit = self._now(), self._request_timeout if timeout is None else timeout
        with anyio.move_on_after(limit):
            await self.wait_while_throttled()
            return None if timeout is None else max(0.0, timeout - (self._now() - began))
        left = self.throttled_until - self._now()
        name = request.__name__.removesuffix("Request")
        why = f"the client has used up a quota, and {self.broker} throttles it for {left:.1f} s more"
        raise RequestTimeout(f"{name} was not sent within {limit:g} s: {why}")

    def submit(
        self,
        request: Request[Any],
        handler: ResponseHandler | None,
        *,
        wanted: Versions = ANY_VERSION,
        spoken: int | None = None,
        now: float | None = None,
    ) -> int:
        """Enqueue a request without waiting, and return its version.

        Requests are sent in the order of submission, by :meth:`transmit` or :meth:`transmit_soon`. The ``handler``
        receives the response or the error; it is None if the broker sends no response, as for Produce with ``acks=0``.
        The caller closes the connection if the broker does not answer in time.

        ``spoken`` is the version to send, and ``now`` the runtime's time, if the caller has computed them already.

        Raises:
            ConnectionLost, WireError: the connection is closed.
            UnsupportedVersion, InvalidMessage: the request cannot be encoded; nothing was sent.
        """
        if spoken is None:
            spoken = self.choose(type(request), wanted)
        self.used_at = self._now() if now is None else now
        observed = self._reports.request(handler, type(request), spoken, self.used_at)
        sent_at = self.used_at if observed is None else None
        frame = self._pipeline.send(request, spoken, handler and (observed or handler), now=sent_at)
        self._enqueue((frame,), observed)
        return spoken

    def submit_encoded(
        self,
        request: type[Request[Any]],
        spoken: int,
        body: Sequence[Buffer],
        handler: ResponseHandler | None,
        now: float,
    ) -> None:
        """Submit as :meth:`submit` a request whose ``body`` the caller has encoded, in version ``spoken``."""
        self.used_at = now
        observed = self._reports.request(handler, request, spoken, now)
        sent_at = now if observed is None else None
        frame = self._pipeline.send_encoded(request, spoken, body, handler and (observed or handler), now=sent_at)
        self._enqueue(frame, observed)

    def choose(self, request: type[Request[Any]], wanted: Versions = ANY_VERSION) -> int:
        """Return the version in which to send requests of this type.

        Raises:
            UnsupportedVersion: the broker supports no version in ``wanted``.
        """
        known = self._chosen.get((request, wanted))
        if known is not None:
            return known
        chosen = choose_version(request, self.versions, wanted, self.broker)
        self._chosen[request, wanted] = chosen
        return chosen

    async def transmit(self) -> None:
        """Write the enqueued requests, or only start to write them as :meth:`transmit_soon`: the transport chooses."""
        await self._transport.transmit()

    def transmit_soon(self) -> None:
        """Start to write the enqueued requests, and return without waiting until they are written."""
        self._transport.transmit_soon()

    def transmit_at_once(self) -> bool:
        """Transmit as :meth:`transmit_soon` and return True if writes never wait; else return False, and do nothing."""
        return self._transport.transmit_at_once()

    async def written(self) -> None:
        """Wait until all enqueued requests are written. This is the backpressure for requests without responses.

        Raises:
            ConnectionLost, WireError: the connection broke.
        """
        while self._held_back is not None:
            await self._released.wait()
        await self._transport.written()

    def decode(self, answer: type[R], spoken: int, frame: bytes, position: int) -> R:
        """Decode the response of version ``spoken`` that begins at ``position`` of a received frame.

        Raises:
            WireError: the response violates the protocol.
        """
        if LOG.is_enabled(logging.DEBUG):
            log_answer(self.broker, answer, spoken, frame)
        try:
            return decode(answer, spoken, frame, position)
        except WireError as error:
            raise WireError(f"{self.broker} answered {error}") from error

    def _enqueue(self, frame: Sequence[bytes], observed: ObservedRequest | None, *, ahead: bool = False) -> None:
        if observed is not None:
            observed.sent_bytes = sum(map(len, frame))
        if LOG.is_enabled(logging.DEBUG):
            log_request(self.broker, frame[0])
        if ahead or self._held_back is None:
            self._transport.enqueue(frame, observed)
        else:
            self._held_back.append((frame, observed))

    async def request_ahead(self, request: Request[R], *, wanted: Versions) -> R:
        """Send a request of authentication before the requests that :meth:`hold` delays. Raises as :meth:`request`."""
        spoken = self.choose(type(request), wanted)
        frame, position = await self._exchange(request, spoken, None, ahead=True)
        answer: Any = type(request).response
        return self.decode(answer, spoken, frame, position)  # type: ignore[no-any-return]

    async def send_token(self, token: bytes) -> bytes:
        """Send a SASL token as a frame without a header, and return the token in the response."""
        reply = _Reply(self._now(), self._request_timeout, self._now() + OVERDUE_SECONDS)
        self._transport.enqueue((self._pipeline.send_bare(token, reply),))  # not logged, since a token has no header
        del token  # as a frame in :meth:`_exchange`
        await self.transmit()
        try:
            return (await reply.wait())[0]
        except ConnectionLost as lost:
            raise ConnectionLost(f"{lost} (brokers before 1.0 do so if they refuse the login)") from lost

    async def hold(self) -> None:
        """Delay new requests until :meth:`release`, and wait until the pending requests are answered."""
        idle, self._held_back = anyio.Event(), deque()
        self._pipeline.hold(idle.set)
        await idle.wait()

    def release(self) -> None:
        """Send the requests that were delayed since :meth:`hold`."""
        held, self._held_back = self._held_back or (), None
        self._pipeline.release()
        for frame, observed in held:
            self._transport.enqueue(frame, observed)
        self.transmit_soon()
        released, self._released = self._released, anyio.Event()
        released.set()

    async def _exchange(
        self,
        request: Request[Any],
        spoken: int,
        timeout: float | None,
        *,
        slow: bool = False,
        ahead: bool = False,
        called_at: float | None = None,
    ) -> tuple[bytes, int]:
        patience = self._request_timeout if not slow or timeout is None else max(timeout, self._request_timeout)
        limit = patience if timeout is None else min(timeout, patience)
        now = self._now()
        if not ahead:
            self.used_at = now
        await self._close_if_silent(now)
        with anyio.move_on_after(limit):
            # A long poll may wait for data on purpose, and a slow request for other members.
            due_at = math.inf if slow else now + getattr(request, "max_wait_ms", 0) / 1000 + OVERDUE_SECONDS
            reply = _Reply(now, patience, due_at)
            called_at = now if called_at is None else called_at
            observed = self._reports.request(reply, type(request), spoken, called_at)
            sent_at = now if observed is None else None
            frame = self._pipeline.send(request, spoken, observed or reply, ahead=ahead, now=sent_at)
            self._enqueue((frame,), observed, ahead=ahead)
            del frame  # a password may be in it, and reports of errors show the variables of tracebacks
            await self.transmit()
            return await reply.wait()
        self._answered_at_timeout = self._pipeline.answered
        await self._close_if_silent(max(self._now(), now + limit))
        name = type(request).__name__.removesuffix("Request")
        raise RequestTimeout(f"no answer from {self.broker} to {name} within {limit:g} s")

    async def _close_if_silent(self, now: float) -> None:
        """Close the connection if its oldest pending request has timed out, even if no caller waits for it."""
        waiting = self._next_reply()
        if waiting is None:
            return
        name, reply = waiting
        if now >= reply.times_out_at:
            is_set = " (request_timeout_ms)" if reply.patience == self._request_timeout else ""
            limit = f"{reply.patience:g} s{is_set}"
            await self.close(
                ConnectionLost(f"{self.broker} left {name.removesuffix('Request')} unanswered for {limit}")
            )

    async def agree_on_versions(self) -> None:
        """Request the broker's versions, in the version of ApiVersions that an earlier connection has agreed on.

        A broker that lacks this version answers in v0 (KIP-511). Then, and if the broker has a newer version now, the
        request is repeated in the newest version that both sides have.

        Raises:
            ConnectionLost: the broker closes the connection, or does not answer within ``request_timeout_ms``.
            RebootstrapRequired: this is not the expected broker.
            WireError: the answering server is not Kafka.
        """
        ask = versions_request(self._expected)
        newest = ApiVersionsRequest.stable.last
        agreed = self.known.api_versions if self.known is not None else None
        spoken = newest if agreed is None else agreed
        for _ in range(2):
            try:
                frame, position = await self._exchange(ask, spoken, None)
            except RequestTimeout as cause:
                raise ConnectionLost(f"{cause} (is it a Kafka listener?)") from cause
            refused = int.from_bytes(frame[position : position + 2], "big") == ErrorCode.UNSUPPORTED_VERSION
            answer = self.decode(ApiVersionsResponse, 0 if refused else spoken, frame, position)
            self.heed_throttle(answer, 0 if refused else spoken)
            self.versions = {api.api_key: Versions(api.min_version, api.max_version) for api in answer.api_keys}
            self._chosen.clear()
            common = min(self.versions.get(ApiKey.API_VERSIONS, Versions(0, 0)).last, newest)
            if not refused and common <= spoken:
                break
            spoken = common
        if answer.error_code != ErrorCode.NONE:
            raise broker_error(answer.error_code, f"{self.broker} to ApiVersions")
        self.features = {feature.name: feature.max_version_level for feature in answer.finalized_features}
        self.known = BrokerVersion(api_versions=spoken)

    async def _expect_versions(self) -> None:
        """Request the versions of a broker with SASL. Such brokers are 0.10 or newer, so no old version is probed.

        Raises:
            ConnectionLost, WireError: as :meth:`agree_on_versions`.
        """
        try:
            await self.agree_on_versions()
        except ConnectionLost as lost:
            if isinstance(lost.__cause__, RequestTimeout):
                raise
            raise ConnectionLost(f"{lost} (is it older than Kafka 0.10, which SASL needs?)") from lost

    async def _run(self) -> None:
        """Run until the transport ends, and log the end."""
        try:
            await self._run_transport()
        finally:
            self._ended.set()
            message, text = "connection to %(broker)s closed: %(why)s", {"why": self.failure or "cancelled"}
            LOG.debug(message, text=text, broker=self.broker, error=self.failure)
            if self._is_open:
                self._reports.closed(self.failure)

    async def _run_transport(self) -> None:
        if not self._uses_sasl:
            await self._transport.run()
            return
        async with background_tasks() as tasks:
            tasks.start_soon(self._login.keep)
            try:
                await self._transport.run()
            finally:
                tasks.cancel_scope.cancel()

    async def close_if_dead(self) -> None:
        """Close the connection if the network between this client and the broker is dead, as far as the system knows.

        A new connection finds out earlier that the network works again, or that the broker has moved.
        """
        silence = self._transport.unanswered()
        if silence >= DEAD_SECONDS:
            await self.close(ConnectionLost(f"{self.broker} has left repeated packets unanswered for {silence:.1f} s"))

    async def close(self, reason: KafkaError | None = None) -> None:
        """Close the connection; pending requests fail with ``reason``. Repeated calls have no effect."""
        self._pipeline.fail(reason or ConnectionLost(f"the connection to {self.broker} was closed by this client"))
        await self._transport.close()
