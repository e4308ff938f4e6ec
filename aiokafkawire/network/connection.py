"""A connection to one broker: many requests in flight, answers in order, one failure ends it for all."""

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any, Final, TypeVar

import anyio

from ..config import ClientConfig
from ..errors import ConnectionLost, ErrorCode, KafkaError, RequestTimeout, WireError, broker_error, copy_for_reraise
from ..protocol.api import ApiKey, choose_version
from ..protocol.compiler import decode
from ..protocol.messages.metadata import ApiVersionsRequest, ApiVersionsResponse
from ..protocol.pre_api_versions import ANSWERS_API_VERSIONS, BrokerVersion
from ..protocol.primitives import Buffer
from ..protocol.schema import Request, Response, Versions
from ..runtime import Owner, Runtime, background_tasks
from ..types import Address
from .broker_connector import BrokerConnector
from .connector import Connector
from .legacy_version_probe import agreed
from .pipeline import Pipeline, ResponseHandler
from .reauthentication import Reauthenticator
from .request_log import LOG, log_answer, log_request
from .security import Security
from .transport import Transport

__all__ = ("ANY_VERSION", "Connection")

R = TypeVar("R", bound=Response)

ANY_VERSION: Final = Versions.parse("0+")

_SILENCE: Final = 0.25
"""Seconds in which any network brings an answer: who says nothing for less may be far away, and is no old broker."""
_HEAVY: Final = 256 * 1024
"""Answers above this are decoded on a thread, unless they carry records, which stay as they are."""


@cache
def _software_version() -> str:
    # A tenth of the package's import time, for one string that the first connection needs.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("aiokafkawire")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"


class _Reply:
    """A slot that a task waits on."""

    __slots__ = ("_event", "error", "frame", "patience", "position", "silent_at")

    def __init__(self, asked_at: float, patience: float) -> None:
        self._event = anyio.Event()
        self.patience = patience
        self.silent_at = asked_at + patience
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
    """One stream to one broker, made by :meth:`open`.

    A caller that is cancelled or out of time leaves its place in line: its frame is whole on the wire, and its
    answer is swallowed when it comes. A broker that leaves a request unanswered for ``request_timeout_ms`` loses
    the connection, since everything behind that request waits for it.
    """

    def __init__(
        self,
        wire: Transport,
        pipeline: Pipeline,
        at: Address,
        config: ClientConfig,
        runtime: Runtime,
        security: Security,
    ) -> None:
        self.where: str = str(at)
        self.versions: Mapping[int, Versions] = {}
        """What the broker speaks, by API key."""
        self.features: Mapping[str, int] = {}
        """The levels of features that the cluster has finalised, by name (KIP-584); empty where it says none."""
        self.known: BrokerVersion | None = None
        """What the broker was found to be, or taken for."""
        self._wire, self._pipeline, self._runtime = wire, pipeline, runtime
        self._request_timeout = config.request_timeout_ms / 1000
        self._chosen: dict[tuple[type[Request[Any]], Versions], int] = {}
        # What is asked while the login is renewed; None while it is not.
        self._held_back: deque[bytes] | None = None
        self._renewed = anyio.Event()
        self._login = Reauthenticator(self, security, at, runtime.chance)
        self._uses_sasl = config.uses_sasl
        self.used_at: float = runtime.now()
        """When it was last asked something, in seconds of the runtime's clock."""

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
    ) -> "Connection":
        """Connect, agree on versions and log in, ``within`` so many seconds or ``socket_connection_setup_timeout_ms``.

        What is ``known`` of the broker from another connection is not found out again; :attr:`known` has it for the
        next one. With ``dialled`` the broker is reached there; its certificate and its login are still to be of the
        host.

        Raises:
            ConnectionLost: it cannot be reached, hangs up, or does not answer.
            WireError: what answers is not Kafka.
            AuthenticationFailed: broker and client do not trust one another.
            ConfigError: certificates or credentials will not do.
        """
        security = security or Security(config, runtime)
        at = Address(host, port)
        where, limit = str(at), config.socket_connection_setup_timeout_ms / 1000
        if within is not None:
            limit = min(within, limit)
        made: Connection | None = None
        try:
            with anyio.move_on_after(limit):
                pipeline = Pipeline(client_id=config.client_id, where=where, max_frame=config.receive_message_max_bytes)
                patience = config.request_timeout_ms / 1000
                way = BrokerConnector(connector, security, at, dialled or at, keepalive=config.socket_keepalive_enable)
                wire = await way.open(pipeline, patience, owner.faulted)
                made = cls(wire, pipeline, at, config, runtime, security)
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
                    )
                    soon = min(config.api_version_request_timeout_ms / 1000, max(limit / 4, _SILENCE))
                    found = await agreed(made, lambda known: open_as(known=known), soon)
                    if found is not made:
                        return found
                else:
                    made.known, made.versions = known, known.versions
                    if not known.is_untold:
                        await made.agree_on_versions()
                await made._login.log_in()
                return made
            stage = f"accept a {'TLS ' * config.uses_tls}connection"
            if made is not None:
                stage = "let us log in" if made.versions else "answer ApiVersions (is it a Kafka listener?)"
            raise ConnectionLost(f"{where} did not {stage} within {limit:g} s")
        except BaseException as cause:
            if made is not None:
                await made.close(cause if isinstance(cause, KafkaError) else ConnectionLost(f"{where}: given up"))
            raise

    @property
    def failure(self) -> KafkaError | None:
        """Why the connection is closed; None while it is open."""
        return self._pipeline.failure

    @property
    def in_flight(self) -> int:
        """How many requests wait for their answers."""
        return self._pipeline.in_flight

    async def request(
        self,
        request: Request[R],
        *,
        timeout: float | None = None,
        wanted: Versions = ANY_VERSION,
        slow: bool = False,
    ) -> R:
        """Ask, and wait for the answer.

        Args:
            request: encoded in the newest version that both sides speak.
            timeout: seconds; None, or more than ``request_timeout_ms``, waits as long as that.
            wanted: the versions that can carry what is asked.
            slow: the broker may take longer than ``request_timeout_ms``: it waits for others, as with JoinGroup.

        Raises:
            RequestTimeout: no answer in time.
            ConnectionLost: the connection broke before the answer came; the broker may have acted.
            WireError: the answer is not what the protocol allows.
            UnsupportedVersion, InvalidMessage: nothing was sent.
        """
        spoken = self.choose(type(request), wanted)
        frame, position = await self._exchange(request, spoken, timeout, slow=slow)
        answer: Any = type(request).response
        if len(frame) > _HEAVY and request.api_key != ApiKey.FETCH:
            return await self._runtime.offload(self.decode, answer, spoken, frame, position)
        return self.decode(answer, spoken, frame, position)  # type: ignore[no-any-return]

    def submit(
        self,
        request: Request[Any],
        slot: ResponseHandler | None,
        *,
        wanted: Versions = ANY_VERSION,
        spoken: int | None = None,
        now: float | None = None,
    ) -> int:
        """Put a request in line, without waiting for anything; the version that it is in.

        Requests go out in the order in which they are submitted, on :meth:`transmit` or :meth:`transmit_soon`. The
        ``slot`` hears of the answer, or why there will be none, in the task that reads; with None the broker does not
        answer, as to Produce with ``acks=0``. Whoever submits sees to it that a silent broker is left by :meth:`close`.

        Whoever has chosen the version already, as ``spoken``, and knows what time it is ``now``, saves that here.

        Raises:
            ConnectionLost, WireError: the connection is closed.
            UnsupportedVersion, InvalidMessage: nothing was sent.
        """
        if spoken is None:
            spoken = self.choose(type(request), wanted)
        self.used_at = self._runtime.now() if now is None else now
        self._put_in_line(self._pipeline.send(request, spoken, slot))
        return spoken

    def submit_encoded(
        self, kind: type[Request[Any]], spoken: int, body: Sequence[Buffer], slot: ResponseHandler | None, now: float
    ) -> None:
        """As :meth:`submit`, of a request of that ``kind`` that its caller has encoded: the parts of its ``body``."""
        self.used_at = now
        self._put_in_line(self._pipeline.send_encoded(kind, spoken, body, slot))

    def choose(self, request: type[Request[Any]], wanted: Versions = ANY_VERSION) -> int:
        """The version in which such a request is sent.

        Raises:
            UnsupportedVersion: the broker speaks none of those that are wanted.
        """
        known = self._chosen.get((request, wanted))
        if known is not None:
            return known
        chosen = choose_version(request, self.versions, wanted, self.where)
        self._chosen[request, wanted] = chosen
        return chosen

    async def transmit(self) -> None:
        """Write what was submitted, here and now where the wire is idle."""
        await self._wire.transmit()

    def transmit_soon(self) -> None:
        """Have what was submitted written, without waiting for anything."""
        self._wire.transmit_soon()

    def transmit_at_once(self) -> bool:
        """Write what was submitted if that never takes waiting; otherwise say so, and :meth:`transmit` does it."""
        return self._wire.transmit_at_once()

    async def written(self) -> None:
        """Wait until nothing is in line: where no answer slows a caller down, the wire must.

        Raises:
            ConnectionLost, WireError: the connection broke.
        """
        while self._held_back is not None:
            await self._renewed.wait()
        await self._wire.written()

    def decode(self, answer: type[R], spoken: int, frame: bytes, position: int) -> R:
        """Read an answer that a slot was given.

        Raises:
            WireError: it is not what the protocol allows.
        """
        if LOG.isEnabledFor(logging.DEBUG):
            log_answer(self.where, answer, spoken, frame)
        try:
            return decode(answer, spoken, frame, position)
        except WireError as error:
            raise WireError(f"{self.where} answered {error}") from error

    def _put_in_line(self, frame: bytes, *, ahead: bool = False) -> None:
        if LOG.isEnabledFor(logging.DEBUG):
            log_request(self.where, frame)
        if ahead or self._held_back is None:
            self._wire.put(frame)
        else:
            self._held_back.append(frame)

    async def ask_ahead(self, request: Request[R], *, wanted: Versions) -> R:
        """Ask before whatever is held back, as a login does; raises as :meth:`request`."""
        spoken = self.choose(type(request), wanted)
        frame, position = await self._exchange(request, spoken, None, ahead=True)
        answer: Any = type(request).response
        return self.decode(answer, spoken, frame, position)  # type: ignore[no-any-return]

    async def ask_bare(self, token: bytes) -> bytes:
        """Send a SASL token as a frame without a header, and wait for the one that comes back."""
        reply = _Reply(self._runtime.now(), self._request_timeout)
        self._wire.put(self._pipeline.send_bare(token, reply))  # without a header that could be logged
        await self.transmit()
        try:
            return (await reply.wait())[0]
        except ConnectionLost as lost:
            raise ConnectionLost(f"{lost} (a broker from before 1.0 does so if it refuses the login)") from lost

    async def hold(self) -> None:
        """Hold back what is asked from now on, and wait until what was asked before is answered."""
        idle, self._held_back = anyio.Event(), deque()
        self._pipeline.hold(idle.set)
        await idle.wait()

    def release(self) -> None:
        """Send what was held back."""
        held, self._held_back = self._held_back or (), None
        self._pipeline.release()
        for frame in held:
            self._wire.put(frame)
        self.transmit_soon()
        renewed, self._renewed = self._renewed, anyio.Event()
        renewed.set()

    async def _exchange(
        self,
        request: Request[Any],
        spoken: int,
        timeout: float | None,
        *,
        slow: bool = False,
        ahead: bool = False,
    ) -> tuple[bytes, int]:
        patience = self._request_timeout if not slow or timeout is None else max(timeout, self._request_timeout)
        limit = patience if timeout is None else min(timeout, patience)
        now = self._runtime.now()
        if not ahead:
            self.used_at = now
        await self._close_if_silent(now)
        with anyio.move_on_after(limit):
            reply = _Reply(now, patience)
            self._put_in_line(self._pipeline.send(request, spoken, reply, ahead=ahead), ahead=ahead)
            await self.transmit()
            return await reply.wait()
        await self._close_if_silent(max(self._runtime.now(), now + limit))
        name = type(request).__name__.removesuffix("Request")
        raise RequestTimeout(f"no answer from {self.where} to {name} within {limit:g} s")

    async def _close_if_silent(self, now: float) -> None:
        """Close, if the request that is next to be answered waits too long: its caller may have left long ago."""
        waiting = self._pipeline.next_answered
        if waiting is None:
            return
        name, reply = waiting
        if isinstance(reply, _Reply) and now >= reply.silent_at:
            is_set = " (request_timeout_ms)" if reply.patience == self._request_timeout else ""
            limit = f"{reply.patience:g} s{is_set}"
            await self.close(ConnectionLost(f"{self.where} left {name.removesuffix('Request')} unanswered for {limit}"))

    async def agree_on_versions(self) -> None:
        """Ask which versions the broker speaks. It answers a version of the question that it lacks in v0 (KIP-511).

        Raises:
            ConnectionLost: it hangs up, or does not answer within ``request_timeout_ms``.
            WireError: what answers is not Kafka.
        """
        ask = ApiVersionsRequest(client_software_name="aiokafkawire", client_software_version=_software_version())
        spoken = ApiVersionsRequest.stable.last
        for _ in range(2):
            try:
                frame, position = await self._exchange(ask, spoken, None)
            except RequestTimeout as cause:
                raise ConnectionLost(f"{cause} (is it a Kafka listener?)") from cause
            refused = int.from_bytes(frame[position : position + 2], "big") == ErrorCode.UNSUPPORTED_VERSION
            answer = self.decode(ApiVersionsResponse, 0 if refused else spoken, frame, position)
            self.versions = {one.api_key: Versions(one.min_version, one.max_version) for one in answer.api_keys}
            self._chosen.clear()
            if not refused:
                break
            spoken = min(self.versions.get(ApiKey.API_VERSIONS, Versions(0, 0)).last, ApiVersionsRequest.stable.last)
        if answer.error_code != ErrorCode.NONE:
            raise broker_error(answer.error_code, f"{self.where} to ApiVersions")
        self.features = {one.name: one.max_version_level for one in answer.finalized_features}

    async def _expect_versions(self) -> None:
        """Ask a broker that is to be logged in to: silence makes no old one of it, since none of those has a login.

        Raises:
            ConnectionLost, WireError: as :meth:`agree_on_versions`.
        """
        try:
            await self.agree_on_versions()
        except ConnectionLost as lost:
            if isinstance(lost.__cause__, RequestTimeout):
                raise
            raise ConnectionLost(f"{lost} (is it older than Kafka 0.10, which SASL needs?)") from lost
        self.known = ANSWERS_API_VERSIONS

    async def _run(self) -> None:
        """Last as long as the wire."""
        try:
            await self._run_wire()
        finally:
            LOG.debug("connection to %s closed: %s", self.where, self.failure or "cancelled")

    async def _run_wire(self) -> None:
        if not self._uses_sasl:
            await self._wire.run()
            return
        async with background_tasks() as tasks:
            tasks.start_soon(self._login.keep)
            try:
                await self._wire.run()
            finally:
                tasks.cancel_scope.cancel()

    async def close(self, reason: KafkaError | None = None) -> None:
        """Close the stream; whoever waits fails with ``reason``. May be called again."""
        self._pipeline.fail(reason or ConnectionLost(f"the connection to {self.where} was closed by this client"))
        await self._wire.close()
