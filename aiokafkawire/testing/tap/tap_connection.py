"""One connection of a client through a tap: requests to the broker, and responses back, under the fault rules.

Requests are passed on as they arrive, and responses in their order. A request that a fault rule takes waits for the
responses to earlier ones, and later ones wait for it: a broker, too, handles the requests of a connection one by one.

No more is kept in memory than one frame for each direction, and requests up to a limit: while one side does not read,
the other side is not read either.
"""

import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

import anyio
import anyio.abc
import attrs
from anyio.abc import ByteStream

from ...errors import ErrorCode
from ...protocol.api import ApiKey, response_header_version
from ...protocol.messages.metadata import ApiVersionsResponse
from ...protocol.messages.sasl import SaslHandshakeRequest
from ...protocol.schema import Response
from ...types import Address
from ..cluster.api_error import Disconnect
from ..faults.interception import Ended, OutgoingResponse, apply_rule
from ..faults.request_log import Bell, RequestOutcome
from ..faults.rules import FaultRule
from ..serving.call import Blamed
from ..serving.frames import Frames, frame_of
from .advertised_addresses import advertised_brokers, limit_versions, replace_addresses
from .exchange_reports import ExchangeReports, TapExchange
from .expected_responses import ExpectedResponses
from .fetch_results import FetchResults, has_records, inject_errors, withhold_records
from .listeners import TapListener
from .request_frames import ParsedRequest, ParsedResponse, parse_request, parse_response, prefixed
from .state import TapState

__all__ = ("TapConnection",)

_SIZE: Final = 4
_MAX_FRAME: Final = 128 * 1024 * 1024
"""The largest frame to decode, in bytes; Kafka's own limit for requests is 100 MiB (``socket.request.max.bytes``)."""
_TLS_ALERT: Final = b"\x15\x03"
_LINGER: Final = 2.0
"""How long one direction may go on after the other has ended, in seconds."""
# An SSLError after the handshake means that the broker sent bytes other than TLS; it ends the connection, too.
_GONE: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, ssl.SSLError)


class _Undecoded(Exception):
    """A response to which a fault rule cannot be applied, since it cannot be decoded."""

    def __init__(self, response: ParsedResponse) -> None:
        super().__init__(response.note)
        self.response = response


class TapConnection:
    """One connection of a client, and one to the broker.

    Args:
        state: the tap.
        listener: the port at which the client has connected.
        number: the number of the connection.
        client: the stream to the client.
        broker: the stream to the broker.
        addresses: the client's address, and the address of the tap that it has connected to.
    """

    def __init__(
        self,
        state: TapState,
        listener: TapListener,
        number: int,
        client: ByteStream,
        broker: ByteStream,
        addresses: tuple[Address, Address],
    ) -> None:
        self._state = state
        self._client, self._broker = client, broker
        self._from_client, self._from_broker = Frames(client, _MAX_FRAME), Frames(broker, _MAX_FRAME)
        self._peer, self._reached_at = addresses
        self._reports = ExchangeReports(
            requests=state.requests,
            cluster=state.cluster,
            emit=state.emit,
            listener=listener,
            connection=number,
            client=self._peer,
        )
        self._journal = None if state.journal is None else state.journal.connection(*addresses)
        self._expected: ExpectedResponses[TapExchange] = ExpectedResponses()
        self._changed = Bell()  # rings when a response was passed on
        self._sending = anyio.Lock()
        self._directions = 2
        self._expects_tokens = False
        self._is_unread = False

    async def run(self) -> None:
        """Pass bytes in both directions until the connection ends, and close both streams."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._run, self._pass_requests, self._broker, tasks, True)
                tasks.start_soon(self._run, self._pass_responses, self._client, tasks, False)
        finally:
            for expecting in self._expected:
                self._reports.settle(expecting.context, RequestOutcome.FAILED)
            with anyio.CancelScope(shield=True):  # closing takes no time, and must not be left half done
                await anyio.aclose_forcefully(self._client)
                await anyio.aclose_forcefully(self._broker)

    async def _run(
        self, pump: Callable[[], Awaitable[None]], target: ByteStream, tasks: anyio.abc.TaskGroup, by_client: bool
    ) -> None:
        """Run one direction to its end, and then end the connection."""
        try:
            await pump()
            self._directions -= 1
            if self._directions:
                # The other side reads what was sent before, and then closes the connection.
                with suppress(OSError, RuntimeError, *_GONE):  # as of streams that are closed, and of TLS
                    await target.send_eof()
                await anyio.sleep(_LINGER)
        except Disconnect as reason:
            self._reports.notice(f"disconnected: {reason}")
        except Ended as end:
            if end.outcome is RequestOutcome.SWALLOWED:
                with suppress(*_GONE):  # clients expect responses in order, so none can follow a suppressed one
                    await self._from_client.drain()
        except _GONE:
            pass
        except Exception as fault:
            fault.add_note(f"tap: connection {self._reports.connection} of {self._peer}")
            self._state.on_fault(fault)
        finally:
            if self._journal is not None:
                self._journal.closed(by_client=by_client)
        tasks.cancel_scope.cancel()

    # --- requests --------------------------------------------------------------------------------------------------

    async def _pass_requests(self) -> None:
        while (size := await self._from_client.exactly(_SIZE)) is not None:
            length = int.from_bytes(size, signed=True)
            if self._is_unread or not 0 <= length <= _MAX_FRAME:
                await self._pass_unread(size, self._from_client, self._broker, by_client=True)
                return
            frame = await self._from_client.exactly(length)
            if frame is None:
                raise Disconnect(f"the client ended within a request of {length} bytes")
            self._record(prefixed(frame), by_client=True)
            await self._pass_request(parse_request(frame, expects_tokens=self._expects_tokens))

    async def _pass_unread(self, size: bytes, source: Frames, target: ByteStream, *, by_client: bool) -> None:
        """Pass on all further bytes of one direction as they are, since they have no frames of Kafka's protocol."""
        if not self._is_unread:
            self._is_unread = True
            length = int.from_bytes(size, signed=True)
            why = f"a frame would have {length} bytes"
            if not by_client and size.startswith(_TLS_ALERT):
                why = "the broker speaks TLS, and the tap does not (tls)"
            self._reports.notice(f"{why}: all bytes are passed on unread")
        if any(expecting.context.arrived is not None for expecting in self._expected):
            raise Disconnect("a fault rule needs a response that cannot be decoded")
        data = size
        while data:
            self._record(data, by_client=by_client)
            await target.send(data)
            data = await source.chunk()

    async def _pass_request(self, request: ParsedRequest) -> None:
        exchange, rules = self._reports.arrived(request), self._state.rules
        rule: FaultRule | None = None
        asked = exchange.asked
        is_forwarded = False
        try:
            while self._expected.is_full:
                await self._changed.wait()
            await rules.thawed(self._reports.node)
            if asked is not None and asked.api is ApiKey.PRODUCE:
                await rules.resumed(asked)
            rule = None if asked is None else rules.take(asked)
            if rule is None:
                is_forwarded = True
                await self._forward(request, exchange)
            else:
                await self._apply(rule, request, exchange)
        except Ended as end:
            self._reports.settle(exchange, end.outcome, rule=rule)
            raise
        finally:
            if not is_forwarded:
                self._reports.settle(exchange, RequestOutcome.FAILED, rule=rule)  # the connection ends meanwhile
        if request.request is SaslHandshakeRequest:
            self._expects_tokens = request.version == 0
        elif request.message is not None:
            self._expects_tokens = False

    async def _forward(self, request: ParsedRequest, exchange: TapExchange) -> None:
        """Send a request to the broker; if no response follows, report that."""
        if request.has_response:
            self._expected.add(request, exchange)
        else:
            self._reports.settle(exchange, RequestOutcome.UNANSWERED)
        await self._broker.send(prefixed(request.frame))

    # --- fault rules -----------------------------------------------------------------------------------------------

    async def _apply(self, rule: FaultRule, request: ParsedRequest, exchange: TapExchange) -> None:
        """Handle a request under a fault rule, and send the response, if any."""
        try:
            while len(self._expected):
                await self._changed.wait()
        except BaseException:
            rule.give_back()
            raise
        assert exchange.asked is not None
        try:
            outgoing = await apply_rule(rule, exchange.asked, partial(self._ask_broker, request, exchange))
        except _Undecoded as undecoded:
            await self._deliver(exchange, undecoded.response.encoded(), undecoded.response)
            return
        await self._state.rules.thawed(self._reports.node)
        if outgoing.response is None:
            self._reports.settle(exchange, RequestOutcome.UNANSWERED, rule=rule)
            return
        response, frame = _encoded(outgoing, request, exchange.response, rule)
        data, outcome = outgoing.spoiled(frame)
        await self._deliver(exchange, data, response, outcome, rule)
        if outcome is RequestOutcome.CUT:
            raise Ended(outcome)

    async def _ask_broker(
        self, request: ParsedRequest, exchange: TapExchange, message: Any, blamed: Blamed | None = None
    ) -> Response | None:
        """Send a request, or a part of one, to the broker and return its response; None if it sends none."""
        if blamed is not None and hasattr(message, "max_wait_ms"):
            message = attrs.evolve(message, max_wait_ms=0)  # a broker with an error does not wait for records
        sent = request if message is request.message else request.replaced(message)
        if not sent.has_response:
            await self._broker.send(prefixed(sent.frame))
            return None
        exchange.arrived = anyio.Event()
        expecting = self._expected.add(sent, exchange)
        await self._broker.send(prefixed(sent.frame))
        await exchange.arrived.wait()
        self._expected.remove(expecting)
        response = exchange.response
        assert response is not None
        if response.message is None:
            raise _Undecoded(response)
        if blamed is not None and isinstance(response.message, FetchResults):
            cluster = self._state.cluster
            asked = cluster.partitions(self._reports.node, message, request.version)
            inject_errors(response.message, asked, blamed, cluster.named)
        return response.message

    # --- responses -------------------------------------------------------------------------------------------------

    async def _pass_responses(self) -> None:
        while (size := await self._from_broker.exactly(_SIZE)) is not None:
            length = int.from_bytes(size, signed=True)
            if self._is_unread or not 0 <= length <= _MAX_FRAME:
                await self._pass_unread(size, self._from_broker, self._client, by_client=False)
                return
            frame = await self._from_broker.exactly(length)
            if frame is None:
                raise Disconnect(f"the broker ended within a response of {length} bytes")
            await self._pass_response(frame)

    async def _pass_response(self, frame: bytes) -> None:
        expecting, skipped = self._expected.match(frame)
        for each in skipped:
            self._reports.settle(each.context, RequestOutcome.UNANSWERED)
        if expecting is None:
            self._reports.notice(f"{len(frame)} bytes from the broker answer no request, and are passed on unread")
            await self._send(prefixed(frame))
            return
        exchange = expecting.context
        response = await self._read(expecting.request, frame)
        if exchange.arrived is not None:
            exchange.response = response
            exchange.arrived.set()
            return
        await self._state.rules.thawed(self._reports.node)
        await self._deliver(exchange, response.encoded(), response)
        self._expected.remove(expecting)
        self._changed.ring()

    async def _read(self, request: ParsedRequest, frame: bytes) -> ParsedResponse:
        """Decode a response, learn from it, and replace the addresses of brokers in it."""
        state, node, response = self._state, self._reports.node, parse_response(request, frame)
        message = response.message
        if message is None:
            return response
        if request.message is not None:
            state.cluster.learn(node, request.message, request.version, message)
        if isinstance(message, ApiVersionsResponse):
            response.changed = limit_versions(message)
        brokers = advertised_brokers(message)
        if brokers:
            addresses = await state.listeners.addresses(brokers, self._reached_at.host)
            response.changed = replace_addresses(message, addresses)
        is_paused = state.rules.is_paused
        if (
            state.rules.has_paused
            and isinstance(message, FetchResults)
            and withhold_records(message, is_paused, state.cluster.named)
        ):
            response.changed = True
            if not has_records(message):  # without records the broker would have waited, too
                await anyio.sleep(getattr(request.message, "max_wait_ms", 0) / 1000)
        return response

    async def _deliver(
        self,
        exchange: TapExchange,
        data: bytes,
        response: ParsedResponse,
        outcome: RequestOutcome = RequestOutcome.ANSWERED,
        rule: FaultRule | None = None,
    ) -> None:
        # The outcome is logged before the response is sent, so that a test whose client has the response finds it.
        self._reports.settle(exchange, outcome, response, max(len(data) - _SIZE, 0), rule)
        try:
            await self._send(data)
        except BaseException:
            if exchange.asked is not None:
                exchange.asked.outcome = RequestOutcome.FAILED
            raise

    async def _send(self, data: bytes) -> None:
        self._record(data, by_client=False)
        async with self._sending:
            await self._client.send(data)

    def _record(self, data: bytes, *, by_client: bool) -> None:
        if self._journal is not None:
            self._journal.sent(data, by_client=by_client)


def _encoded(
    outgoing: OutgoingResponse, request: ParsedRequest, received: ParsedResponse | None, rule: FaultRule
) -> tuple[ParsedResponse, bytes]:
    """Return the response under a fault rule, and its frame: the broker's bytes, if the rule does not change them."""
    message, action = outgoing.response, rule.action
    assert message is not None
    assert request.request is not None
    if received is not None and received.message is message and action.answer is None and action.corrupt != "records":
        return received, received.encoded()
    version = request.version
    if isinstance(message, ApiVersionsResponse) and message.error_code == ErrorCode.UNSUPPORTED_VERSION:
        version = 0  # as brokers answer (KIP-511)
    head = response_header_version(request.request, version)
    frame = frame_of(request.correlation_id, head, message, version)
    return ParsedResponse(frame[_SIZE:], version, message, changed=True), frame
